/* Tensors and their parts as C reads, changes and makes them: the slots of the frontend's classes. */
#ifndef COREFW_TENSORS_H
#define COREFW_TENSORS_H
#include "direct/objects.h"

/* A slot of a class of Python's. */
struct slot {
    PyObject *descriptor;
    descrgetfunc get;
    descrsetfunc set;
};

/* What C knows of the frontend, in the order in which Python gives it (`corefw_c/methods.py`). */
struct frontend {
    PyObject *tensor, *dispatch_key, *generator, *size, *accumulation; /* classes */
    PyObject *levels, *inferring, *dressed;  /* what is empty before any vmap, outside of inference, and of modes */
    PyObject *depths;                        /* the thread's vmaps that are running */
    PyObject *kinds;                         /* {kind of numbers: (function, table, in-place table, words)} */
    PyObject *uniform, *normal, *exponential, *order; /* such kinds: of permutations the last one */
    PyObject *copy;                          /* the function that writes a tensor over another */
    PyObject *generators;                    /* {device: the generator that is used where none is given} */
    PyObject *grad_mode, *default_device;    /* the thread's */
    PyObject *default_dtype;                 /* the class that holds it */
    PyObject *locked;                        /* the method that says whether a lock is taken */
    struct {
        PyObject *array, *gradient, *take, *recording, *device, *dtype, *empty, *running;
    } names; /* of attributes */
    PyObject *out; /* ("out",) */
    PyTypeObject *device, *dtype;
};
enum { FRONTEND_PARTS = sizeof(struct frontend) / sizeof(PyObject *) };
extern struct frontend frontend;

extern struct slots {
    struct slot array, key, node, view, version; /* of a tensor */
    struct slot device, dtype, runtime;          /* of a dispatch key */
    struct slot type, index, keys;               /* of a device */
    struct slot numpy;                           /* of a dtype */
    struct slot seed, offset, lock;              /* of a generator */
} slots;

/* The value of a slot, a new reference; NULL, without an error, if there is none. */
static inline PyObject *value_of(const struct slot *s, PyObject *object) {
    PyObject *found = s->get(s->descriptor, object, (PyObject *)Py_TYPE(object));
    if (!found) PyErr_Clear();
    return found;
}

/* The same, to which the object keeps the reference: for as long as nothing of Python's runs, a collection of garbage included. */
static inline PyObject *seen(const struct slot *s, PyObject *object) {
    PyObject *found = value_of(s, object);
    Py_XDECREF(found);
    return found;
}

/* Whether an object is of a class that leaves the slots of tensors as they are. */
static inline bool is_tensor(PyObject *object) {
    PyObject *class = (PyObject *)Py_TYPE(object);
    if (class == frontend.tensor) return true;
    PyObject *found = PyObject_GetAttr(class, frontend.names.array);
    Py_XDECREF(found);
    return found ? found == slots.array.descriptor : (PyErr_Clear(), false);
}

/* The array of a tensor, a new reference; NULL if it is none of NumPy's. */
static inline array array_of(PyObject *tensor) {
    PyObject *found = is_tensor(tensor) ? value_of(&slots.array, tensor) : NULL;
    if (found && !is_array(found)) Py_CLEAR(found);
    return found ? as_array(found) : NULL;
}

static inline void let_go(array a) { Py_XDECREF((PyObject *)a); }

/* Whether another call may explain what was raised, if anything was, which is no error any more then. */
static inline bool is_forgiven(void) {
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return false;
    return PyErr_Clear(), true;
}

/* A new tensor over an array, outside of inference mode; NULL without memory. */
PyObject *tensor_over(PyObject *over, PyObject *key);

/* The frontend's own method or function number `i`, called with everything that the one in C was given. */
PyObject *call_own(int i, PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names);

/* The descriptor that is in the place of the frontend's method number `i`. */
PyObject *method_put(int i);

typedef PyObject *fast_method(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names);
/* Functions (factories.c). */
fast_method size_and_target, new_tensor;
/* Methods of generators (drawing.c). */
fast_method take_numbers, draw_numbers, fill_numbers, draw_permutation;
/* And those of tensors that their device's generator fills. */
fast_method fill_uniform, fill_normal, fill_exponential;

/* The places of methods that have an own one. */
enum { SIZE_ITEM, NUMEL, NELEMENT, SIZE, STRIDE, IS_CONTIGUOUS, CONTIGUOUS, DATA_PTR, STORAGE_OFFSET, TAKE, DRAW, FILL, PERMUTATION,
       UNIFORM, NORMAL, EXPONENTIAL, SIZE_AND_TARGET, NEW_TENSOR, METHODS };

/* Whether functions of ops, which methods in C stand for, answer for themselves: no mode or class is asked first. */
static inline bool ops_are_themselves(void) { return !PyDict_Size(frontend.dressed); }

#endif
