/* Keys of rows of elements. */
#include "sorting/keys.h"

bool has_narrow_keys(array a) {
    enum dtype d = dtype_of(a);
    if (d != INT64) return size_of(d) <= 4;
    const int64_t *x = (const int64_t *)a->data;
    ssize_t n = count_of(a);
    int64_t wide = 0;
    for (ssize_t first = 0; first < n && !wide; first += 1024)
        for (ssize_t i = first; i < n && i < first + 1024; i++) wide |= x[i] ^ (int32_t)x[i];
    return !wide;
}

#define EACH(TYPE, KEY)                                                                \
    for (ssize_t i = 0; i < n; i++) {                                                  \
        TYPE element = ((const TYPE *)x)[i * stride];                                  \
        keys[i] = (KEY) ^ flip;                                                        \
    }                                                                                  \
    return

void narrow_keys(enum dtype d, const void *x, ssize_t n, ssize_t stride, uint32_t flip, uint32_t *keys) {
    const uint32_t middle = 0x80000000u;
    switch (d) {
    case BOOL: EACH(uint8_t, element != 0);
    case UINT8: EACH(uint8_t, (uint32_t)element);
    case INT8: EACH(int8_t, (uint32_t)(int32_t)element + middle);
    case UINT16: EACH(uint16_t, (uint32_t)element);
    case INT16: EACH(int16_t, (uint32_t)(int32_t)element + middle);
    case UINT32: EACH(uint32_t, element);
    case INT32: EACH(int32_t, (uint32_t)element + middle);
    case INT64: EACH(int64_t, (uint32_t)(int32_t)element + middle); /* that fit */
    case FLOAT16: EACH(uint16_t, key_of_half(element, INFINITY_FLOAT16));
    case BFLOAT16: EACH(uint16_t, key_of_half(element, INFINITY_BFLOAT16));
    case FLOAT32: EACH(float, key_of_f32(element));
    default: return;
    }
}

void wide_keys(enum dtype d, const void *x, ssize_t n, ssize_t stride, uint64_t flip, uint64_t *keys) {
    switch (d) {
    case UINT64: EACH(uint64_t, element);
    case INT64: EACH(int64_t, (uint64_t)element + 0x8000000000000000u);
    case FLOAT64: EACH(double, key_of_f64(element));
    default: return;
    }
}
