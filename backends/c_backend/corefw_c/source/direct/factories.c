/* What functions that make tensors share: their arguments, and memory without content. */
#include "direct/tensors.h"

PyObject *tensor_over(PyObject *over, PyObject *key) {
    static newfunc make = NULL;
    static PyObject *nothing = NULL;
    if (!make) make = (newfunc)PyType_GetSlot(&PyBaseObject_Type, Py_tp_new), nothing = PyTuple_New(0);
    PyObject *made = make((PyTypeObject *)frontend.tensor, nothing, NULL);
    PyObject *version = PyList_New(1), *zero = PyLong_FromLong(0);
    if (made && version && zero) {
        PyList_SetItem(version, 0, zero);
        slots.array.set(slots.array.descriptor, made, over);
        slots.key.set(slots.key.descriptor, made, key);
        slots.node.set(slots.node.descriptor, made, Py_None);
        slots.view.set(slots.view.descriptor, made, Py_None);
        slots.version.set(slots.version.descriptor, made, version);
    } else {
        Py_CLEAR(made);
        Py_XDECREF(zero);
    }
    Py_XDECREF(version);
    return made;
}

/* Sizes, and the dispatch key of a dtype, or the default one, on the default device; all else its own function finds. */
PyObject *size_and_target(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    (void)self;
    enum { NAME, SIZE, NAMED, DTYPE, DEVICE, LAYOUT, PIN_MEMORY, GIVEN };
    PyObject *device = NULL, *dtype = NULL, *found = NULL;
    bool usual = count == GIVEN && !names && Py_TYPE(given[SIZE]) == &PyTuple_Type && PyTuple_Size(given[SIZE]) &&
                 (given[NAMED] == Py_None || !PyDict_Size(given[NAMED])) && given[DEVICE] == Py_None &&
                 given[LAYOUT] == Py_None && given[PIN_MEMORY] == Py_False;
    for (Py_ssize_t i = 0; usual && i < PyTuple_Size(given[SIZE]); i++) {
        long long n;
        usual = as_integer(PyTuple_GetItem(given[SIZE], i), &n) && n >= 0;
    }
    if (usual && (device = PyObject_GetAttr(frontend.default_device, frontend.names.device))) {
        if (given[DTYPE] == Py_None) dtype = PyObject_GetAttr(frontend.default_dtype, frontend.names.dtype);
        else Py_INCREF(dtype = given[DTYPE]);
        PyObject *keys = dtype && Py_TYPE(dtype) == frontend.dtype ? seen(&slots.keys, device) : NULL;
        PyObject *key = keys ? PyDict_GetItem(keys, dtype) : NULL;
        if (key) found = PyTuple_Pack(2, given[SIZE], key);
    }
    Py_XDECREF(device);
    Py_XDECREF(dtype);
    PyErr_Clear();
    return found ? found : call_own(SIZE_AND_TARGET, NULL, given, count, names);
}

/* A tensor with arbitrary content, whose memory its device's runtime gives. */
PyObject *new_tensor(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    PyObject *found = NULL;
    (void)self;
    if (count == 2 && !names && (PyObject *)Py_TYPE(given[0]) == frontend.dispatch_key && !PySet_Size(frontend.inferring)) {
        PyObject *device = seen(&slots.device, given[0]), *dtype = seen(&slots.dtype, given[0]);
        PyObject *runtime = seen(&slots.runtime, given[0]), *index = device ? seen(&slots.index, device) : NULL;
        PyObject *empty = runtime ? PyObject_GetAttr(runtime, frontend.names.empty) : NULL, *over = NULL;
        if (empty && index && dtype)
            over = PyObject_Vectorcall(empty, (PyObject *[]){given[1], dtype, index}, 3, NULL);
        if (over) found = tensor_over(over, given[0]);
        Py_XDECREF(over);
        Py_XDECREF(empty);
        if (!found && !is_forgiven()) return NULL;
    }
    return found ? found : call_own(NEW_TENSOR, NULL, given, count, names);
}
