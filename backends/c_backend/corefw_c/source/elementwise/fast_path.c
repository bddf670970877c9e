/* Elementwise kernels as Python calls them: a ufunc, and another function for what ufuncs do slowly. */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "core/array.h"
#include "kernels.h"

/* CPython exports it since 3.9; the limited API's headers declare it from 3.12 on. */
PyAPI_FUNC(PyObject *) PyObject_Vectorcall(PyObject *, PyObject *const *arguments, size_t count, PyObject *names);

enum { FEWEST = 1 << 15, MOST_INPUTS = 5 }; /* the elements of a result that is worth more than a ufunc's call */

static array as_array(PyObject *object) { return (array)object; }

/* Whether the elements that these shapes broadcast to are many, if they do broadcast. */
static bool are_many(PyObject *const *inputs, Py_ssize_t count, int ndim) {
    ssize_t n = 1;
    for (int d = 1; d <= ndim; d++) { /* from the last dimension on */
        ssize_t size = 1;
        for (Py_ssize_t i = 0; i < count; i++) {
            array a = as_array(inputs[i]);
            if (d <= a->ndim && a->shape[a->ndim - d] > size) size = a->shape[a->ndim - d];
        }
        n *= size < FEWEST ? size : FEWEST;
        if (n >= FEWEST) return true;
    }
    return false;
}

/* Whether arrays lie alike and without gaps, so that a ufunc has one loop over all; an element alone fits any. */
static bool are_flat(PyObject *const *arrays, Py_ssize_t count) {
    array first = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        array a = as_array(arrays[i]);
        if (a->ndim == 0) continue;
        if (!is_contiguous(a) || (first && !same_shape(a, first))) return false;
        first = a;
    }
    return true;
}

/* Whether a call, of `count` inputs and then one value for each of the names, is one for the other function. */
static bool is_for_other(PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
    if (count < 1 || count > MOST_INPUTS) return false;
    int ndim = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        array a = as_array(arguments[i]);
        if (a->type != array_type) return false;
        ndim = a->ndim > ndim ? a->ndim : ndim;
    }
    if (!are_many(arguments, count, ndim)) return false;
    if (names && PyTuple_Size(names)) {
        PyObject *out = arguments[count];
        if (PyTuple_Size(names) != 1) return false;
        if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "out")) return false;
        if (out != Py_None) {
            if (as_array(out)->type != array_type) return false;
            count++;
        }
    }
    return !are_flat(arguments, count);
}

static PyObject *call(PyObject *pair, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
    PyObject *chosen = PyTuple_GetItem(pair, is_for_other(arguments, count, names));
    return PyObject_Vectorcall(chosen, arguments, (size_t)count, names);
}

void *with_fast_path(void *pair) {
    static PyMethodDef method = {"elementwise", (PyCFunction)(void (*)(void))call, METH_FASTCALL | METH_KEYWORDS, NULL};
    return PyCFunction_NewEx(&method, pair, NULL);
}
