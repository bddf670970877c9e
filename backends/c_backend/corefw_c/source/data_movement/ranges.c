/* Numbers at equal distances, and the identity matrix. */
#if !defined(__clang__)
#pragma GCC optimize("fp-contract=off") /* the bits of what is rounded twice */
#endif
#pragma STDC FP_CONTRACT OFF

#include "core/array.h"
#include "kernels.h"

#include <string.h>

int integer_range(uint64_t start, uint64_t step, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array y = ARRAY(output);
    ssize_t n = count_of(y);
    if (!is_contiguous(y)) return WRONG_SHAPE;
    switch (dtype_of(y)) {
    case INT8:
    case UINT8:
        for (ssize_t i = 0; i < n; i++) ((uint8_t *)y->data)[i] = (uint8_t)(start + (uint64_t)i * step);
        return OK;
    case INT16:
    case UINT16:
        for (ssize_t i = 0; i < n; i++) ((uint16_t *)y->data)[i] = (uint16_t)(start + (uint64_t)i * step);
        return OK;
    case INT32:
    case UINT32:
        for (ssize_t i = 0; i < n; i++) ((uint32_t *)y->data)[i] = (uint32_t)(start + (uint64_t)i * step);
        return OK;
    case INT64:
    case UINT64:
        for (ssize_t i = 0; i < n; i++) ((uint64_t *)y->data)[i] = start + (uint64_t)i * step;
        return OK;
    default: return WRONG_DTYPE;
    }
}

int real_range(double start, double step, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array y = ARRAY(output);
    ssize_t n = count_of(y);
    if (!is_contiguous(y)) return WRONG_SHAPE;
    if (dtype_of(y) == FLOAT32)
        for (ssize_t i = 0; i < n; i++) ((float *)y->data)[i] = (float)((double)i * step + start);
    else if (dtype_of(y) == FLOAT64)
        for (ssize_t i = 0; i < n; i++) ((double *)y->data)[i] = (double)i * step + start;
    else return WRONG_DTYPE;
    return OK;
}

int real_linspace(double start, double end, uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array y = ARRAY(output);
    ssize_t n = count_of(y);
    enum dtype type = dtype_of(y);
    if (!is_contiguous(y)) return WRONG_SHAPE;
    if (type != FLOAT32 && type != FLOAT64) return WRONG_DTYPE;
    double step = n > 1 ? (end - start) / (double)(n - 1) : 0;
    for (ssize_t i = 0; i < n; i++) {
        double x = i < n / 2 || n == 1 ? start + step * (double)i : end - step * (double)(n - 1 - i);
        if (type == FLOAT32) ((float *)y->data)[i] = (float)x;
        else ((double *)y->data)[i] = x;
    }
    return OK;
}

int identity(uintptr_t output) {
    if (!WRITABLE(output)) return READ_ONLY;
    array y = ARRAY(output);
    enum dtype type = dtype_of(y);
    if (y->ndim != 2 || !is_contiguous(y)) return WRONG_SHAPE;
    if (type > UINT64 && type != FLOAT32 && type != FLOAT64) return WRONG_DTYPE;
    ssize_t rows = y->shape[0], columns = y->shape[1], size = (ssize_t)size_of(type);
    float f32 = 1;
    double f64 = 1;
    uint64_t integer = 1; /* hosts are little-endian */
    const void *one = type == FLOAT32 ? (const void *)&f32 : type == FLOAT64 ? (const void *)&f64 : &integer;
    memset(y->data, 0, (size_t)(rows * columns * size));
    for (ssize_t i = 0; i < rows && i < columns; i++) memcpy(y->data + i * (columns + 1) * size, one, (size_t)size);
    return OK;
}
