/* Python's objects as the shims in C read them. Nothing here leaves an error set. */
#ifndef COREFW_OBJECTS_H
#define COREFW_OBJECTS_H
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "core/array.h"

/* CPython exports it since 3.9; the limited API's headers declare it from 3.12 on. */
PyAPI_FUNC(PyObject *) PyObject_Vectorcall(PyObject *, PyObject *const *arguments, size_t count, PyObject *names);

enum { FEW = 4096, FEW_DIMS = 8 }; /* elements, or steps of work, of a call that holds Python's lock */

/* The sizes of an array, how many elements it has, and the strides of a view in bytes. */
struct sizes {
    int ndim;
    ssize_t count, n[FEW_DIMS], strides[FEW_DIMS];
};

static inline struct sizes no_sizes(void) {
    struct sizes s;
    s.ndim = 0, s.count = 1;
    return s;
}

static inline array as_array(PyObject *object) { return (array)object; }
static inline bool is_array(PyObject *object) { return as_array(object)->type == array_type; }

/* Add a dimension; false if there are too many, or too many elements. */
static inline bool add_size(struct sizes *s, ssize_t n) {
    if (s->ndim == FEW_DIMS || n < 0 || n > FEW) return false;
    s->n[s->ndim++] = n;
    s->count *= n;
    return s->count <= FEW;
}

/* Add the sizes of the dimensions begin to end of an array. */
static inline bool add_sizes(struct sizes *s, array a, int begin, int end) {
    for (int d = begin; d < end; d++)
        if (!add_size(s, a->shape[d])) return false;
    return true;
}

/* A number of C; false if the object is no int, or one that does not fit. */
static inline bool as_integer(PyObject *object, long long *value) {
    int overflow = 0;
    if (Py_TYPE(object) != &PyLong_Type) return false;
    *value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return !overflow;
}

/* A float or an int as a double. */
static inline bool as_real(PyObject *object, double *value) {
    long long integer;
    if (Py_TYPE(object) == &PyFloat_Type) return *value = PyFloat_AsDouble(object), true;
    if (!as_integer(object, &integer)) return false;
    return *value = (double)integer, true;
}

static inline bool as_word(PyObject *object, uint64_t *value) {
    if (Py_TYPE(object) != &PyLong_Type) return false;
    *value = PyLong_AsUnsignedLongLong(object);
    if (*value != UINT64_MAX || !PyErr_Occurred()) return true;
    PyErr_Clear();
    return false;
}

/* The element type that a dtype of NumPy names; NO_DTYPE for another object. */
static inline enum dtype as_dtype(PyObject *object) {
    if (!PyType_IsSubtype(Py_TYPE(object), (PyTypeObject *)descriptor_type)) return NO_DTYPE;
    return dtype_of_descriptor((const struct descriptor *)object);
}

/* The sizes that a tuple holds. */
static inline bool as_sizes(PyObject *tuple, struct sizes *s) {
    *s = no_sizes();
    if (!PyTuple_Check(tuple)) return false;
    for (Py_ssize_t i = 0, ndim = PyTuple_Size(tuple); i < ndim; i++) {
        long long n;
        if (!as_integer(PyTuple_GetItem(tuple, i), &n) || !add_size(s, n)) return false;
    }
    return true;
}

/* A new array, whose elements are arbitrary or 0; NULL without memory. */
static inline PyObject *new_array(const struct sizes *s, const void *descriptor, bool zeros) {
    Py_INCREF((PyObject *)descriptor); /* NumPy's function takes it away */
    PyObject *made = (zeros ? numpy.zeros : numpy.empty)(s->ndim, s->n, descriptor, 0);
    if (!made) PyErr_Clear();
    return made;
}

/* The array that a kernel writes new elements to: `out`, if it is one of these sizes and this type without gaps, or, where
 * there is none, a new one. */
static inline PyObject *target_array(PyObject *out, const struct sizes *s, const void *descriptor) {
    if (!out) return new_array(s, descriptor, false);
    if (!is_array(out) || !is_contiguous(as_array(out)) || !has_shape(as_array(out), s->ndim, s->n)) return NULL;
    if (dtype_of(as_array(out)) != dtype_of_descriptor((const struct descriptor *)descriptor)) return NULL;
    Py_INCREF(out);
    return out;
}

/* Add a dimension of a view. */
static inline bool add_stride(struct sizes *s, ssize_t n, ssize_t stride) {
    if (s->ndim == FEW_DIMS || n < 0 || __builtin_mul_overflow(s->count, n, &s->count)) return false;
    s->strides[s->ndim] = stride;
    s->n[s->ndim++] = n;
    return true;
}

/* Add the dimensions begin to end of an array. */
static inline bool add_strides(struct sizes *s, array a, int begin, int end) {
    for (int d = begin; d < end; d++)
        if (!add_stride(s, a->shape[d], a->strides[d])) return false;
    return true;
}

/* A view of an array's memory, `offset` bytes behind its first element; NULL without memory. */
static inline PyObject *new_view(array a, const struct sizes *s, ssize_t offset) {
    Py_INCREF((PyObject *)a->descriptor);
    PyObject *made = numpy.view(array_type, a->descriptor, s->ndim, s->n, s->strides, a->data + offset,
                                a->flags & MAY_BE_WRITTEN, NULL);
    Py_INCREF((PyObject *)a);
    if (!made) Py_DECREF((PyObject *)a);
    if (made && numpy.keep(made, (void *)a)) Py_CLEAR(made);
    if (!made) PyErr_Clear();
    return made;
}

/* The array that a kernel of this status has written to; NULL if it has not. */
static inline PyObject *if_done(int status, PyObject *made) {
    if (status == OK) return made;
    Py_DECREF(made);
    return NULL;
}

#endif
