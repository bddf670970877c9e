/* Facts about arrays, and the test that NumPy's layout is the expected one. */
#include "core/array.h"
#include "kernels.h"

#include <string.h>

int bfloat16_number = -1;
const void *array_type, *descriptor_type;
struct makers numpy;

static struct descriptor no_descriptor = {.byteorder = '>'};
const struct array not_an_array = {.ndim = -1, .descriptor = &no_descriptor, .flags = MAY_BE_WRITTEN};

enum dtype dtype_of_number(int type_number) {
    /* NumPy's numbers: bool, (u)byte, (u)short, (u)int, (u)long, (u)longlong, float, double, longdouble, ... */
    static const unsigned char long_is_64 = sizeof(long) == 8;
    switch (type_number) {
    case 0: return BOOL;
    case 1: return INT8;
    case 2: return UINT8;
    case 3: return INT16;
    case 4: return UINT16;
    case 5: return INT32;
    case 6: return UINT32;
    case 7: return long_is_64 ? INT64 : INT32;
    case 8: return long_is_64 ? UINT64 : UINT32;
    case 9: return INT64;
    case 10: return UINT64;
    case 11: return FLOAT32;
    case 12: return FLOAT64;
    case 14: return COMPLEX64;
    case 15: return COMPLEX128;
    case 23: return FLOAT16;
    default: return type_number == bfloat16_number ? BFLOAT16 : NO_DTYPE;
    }
}

bool is_contiguous(array a) {
    ssize_t expected = (ssize_t)size_of(dtype_of(a));
    bool dense = true;
    for (int i = a->ndim - 1; i >= 0; i--) {
        if (a->shape[i] == 0) return true;
        if (a->shape[i] != 1) {
            dense &= a->strides[i] == expected;
            expected *= a->shape[i];
        }
    }
    return dense;
}

bool same_shape(array a, array b) { return has_shape(a, b->ndim, b->shape); }

bool has_shape(array a, int ndim, const ssize_t *shape) {
    return a->ndim == ndim && (ndim == 0 || !memcmp(a->shape, shape, (size_t)ndim * sizeof *shape));
}

int layout_is(uintptr_t address, uintptr_t data, int ndim, const intptr_t *shape, const intptr_t *strides,
              int type_number) {
    array a = (array)address;
    if ((uintptr_t)a->data != data || a->ndim != ndim || a->descriptor->type_number != type_number) return 0;
    for (int i = 0; i < ndim; i++)
        if (a->shape[i] != shape[i] || a->strides[i] != strides[i]) return 0;
    return 1;
}

int is_read_only(uintptr_t address) { return !is_writable((array)address); }

void set_types(uintptr_t array_class, uintptr_t descriptor_class, int bfloat16) {
    array_type = (const void *)array_class;
    descriptor_type = (const void *)descriptor_class;
    bfloat16_number = bfloat16;
}

void set_makers(uintptr_t empty, uintptr_t zeros, uintptr_t view, uintptr_t keep) {
    numpy = (struct makers){(array_maker *)empty, (array_maker *)zeros, (view_maker *)view, (array_keeper *)keep};
}
