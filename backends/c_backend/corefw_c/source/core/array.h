/* NumPy's array object as the kernels read it: the only place that knows its layout. */
#ifndef COREFW_ARRAY_H
#define COREFW_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What a kernel returns; library.py turns the others into exceptions. */
enum status { OK, WRONG_SHAPE, WRONG_DTYPE, NO_MEMORY, OUT_OF_RANGE, UNSUPPORTED, READ_ONLY };

/* Element types; `dtype_of` gives them from NumPy's type numbers. */
enum dtype { BOOL, INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64,
             COMPLEX64, COMPLEX128, NO_DTYPE };

/* The public fields of NumPy's descriptor and array objects, whose layout is part of its binary interface. */
struct descriptor {
    ssize_t references;
    void *type, *scalar_type;
    char kind, letter, byteorder, former_flags;
    int type_number;
};

struct array {
    ssize_t references;
    void *type;
    char *data;
    int ndim;
    ssize_t *shape, *strides; /* strides in bytes */
    void *base;
    struct descriptor *descriptor;
    int flags;
};

typedef const struct array *array;

extern const void *array_type;          /* NumPy's class of arrays */
extern const void *descriptor_type;     /* and of dtypes */
extern const struct array not_an_array; /* of no shape and no dtype that a kernel takes */

enum { MAX_DIMS = 64 }; /* of NumPy's arrays */

/* Kernels take the addresses of array objects, which Python's id() gives; 0 stands for an absent one. */
static inline array ARRAY(uintptr_t address) {
    array a = (array)address;
    return !a || a->type == array_type ? a : &not_an_array;
}

enum { IS_IN_ROWS = 1, IS_ALIGNED = 0x100, MAY_BE_WRITTEN = 0x400 }; /* among the flags */

static inline bool is_writable(array a) { return a->flags & MAY_BE_WRITTEN; }

/* Whether a kernel may write to all of these arrays, given by their addresses; absent ones are no hindrance. */
#define WRITABLE(...) \
    are_writable(sizeof((uintptr_t[]){__VA_ARGS__}) / sizeof(uintptr_t), (const uintptr_t[]){__VA_ARGS__})

static inline bool are_writable(size_t count, const uintptr_t *addresses) {
    for (size_t i = 0; i < count; i++)
        if (addresses[i] && !is_writable(ARRAY(addresses[i]))) return false;
    return true;
}

/* NumPy's functions that make arrays, to be called with Python's lock: of sizes and a dtype, which they take away; of
 * memory; and what has an array keep another one, which it takes away. */
typedef void *array_maker(int ndim, const ssize_t *shape, const void *descriptor, int in_columns);
typedef void *view_maker(const void *class, const void *descriptor, int ndim, const ssize_t *shape,
                         const ssize_t *strides, void *data, int flags, void *like);
typedef int array_keeper(void *array, void *kept);
struct makers {
    array_maker *empty, *zeros;
    view_maker *view;
    array_keeper *keep;
};
extern struct makers numpy;

extern int bfloat16_number; /* NumPy's type number of ml_dtypes.bfloat16, or -1 */

enum dtype dtype_of_number(int type_number);

static inline enum dtype dtype_of_descriptor(const struct descriptor *d) {
    return d->byteorder == '>' ? NO_DTYPE : dtype_of_number(d->type_number);
}

static inline enum dtype dtype_of(array a) { return dtype_of_descriptor(a->descriptor); }

static inline size_t size_of(enum dtype d) {
    static const unsigned char sizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 16, 0};
    return sizes[d];
}

static inline ssize_t count_of(array a) {
    ssize_t n = 1;
    for (int i = 0; i < a->ndim; i++) n *= a->shape[i];
    return n;
}

/* Whether the elements lie in row-major order without gaps. */
bool is_contiguous(array a);

/* Whether a and b have the same shape. */
bool same_shape(array a, array b);

/* Whether the array has exactly this shape: has_shape(a, 2, (ssize_t[]){m, n}). */
bool has_shape(array a, int ndim, const ssize_t *shape);

#endif
