/* How a generator of the engine Philox hands out its stream and fills tensors from it. */
#include "direct/tensors.h"

#include <string.h>

enum { MOST_PARAMETERS = 4 };

/* -- the stream -- */
/* Whether no vmap is running, which draws for several examples. */
static bool is_outside(void) {
    if (!PyDict_Size(frontend.levels)) return true;
    PyObject *running = PyObject_GetAttr(frontend.depths, frontend.names.running);
    bool outside = running && !PyDict_Size(running);
    Py_XDECREF(running);
    PyErr_Clear();
    return outside;
}

/* Whether it is so, and tensors are made whose changes are counted. */
static bool is_usual(void) { return is_outside() && !PySet_Size(frontend.inferring); }

static bool is_device(PyObject *object) { return Py_TYPE(object) == frontend.device; }

/* Reserve the next blocks of the stream: seed and number of the first one, new references. False if another thread is at it,
 * or the state is no number of C, as while a graph is captured. */
static bool reserve(PyObject *generator, uint64_t blocks, PyObject **seed, PyObject **offset) {
    PyObject *lock = seen(&slots.lock, generator);
    uint64_t first;
    *seed = *offset = NULL;
    if (!lock) return false;
    PyObject *taken = PyObject_Vectorcall(frontend.locked, &lock, 1, NULL);
    Py_XDECREF(taken);
    if (taken != Py_False) return PyErr_Clear(), false;
    PyObject *before = seen(&slots.offset, generator), *stream = seen(&slots.seed, generator);
    if (!before || !stream || Py_TYPE(stream) != &PyLong_Type || !as_word(before, &first)) return false;
    PyObject *after = PyLong_FromUnsignedLongLong(first + blocks);
    if (!after) return PyErr_Clear(), false;
    Py_INCREF(*seed = stream);
    Py_INCREF(*offset = before);
    slots.offset.set(slots.offset.descriptor, generator, after);
    Py_DECREF(after);
    return true;
}

PyObject *take_numbers(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    long long n = 0, words = 4;
    uint64_t all;
    bool usual = !names && count >= 1 && count <= 3 && (PyObject *)Py_TYPE(self) == frontend.generator &&
                 (count < 3 || given[2] == Py_None || is_device(given[2])) && is_outside() &&
                 as_integer(given[0], &n) && (count < 2 || as_integer(given[1], &words));
    PyObject *seed, *offset;
    if (!usual || n < 0 || words < 0 || __builtin_mul_overflow((uint64_t)n, (uint64_t)words, &all) ||
        all > UINT64_MAX - 3 || !reserve(self, (all + 3) / 4, &seed, &offset))
        return call_own(TAKE, self, given, count, names);
    PyObject *found = PyTuple_Pack(2, seed, offset);
    Py_DECREF(seed);
    Py_DECREF(offset);
    return found;
}

/* Seed and offset for `n` numbers of so many words, by the generator's method: a mode may have put another in its place. */
static bool take(PyObject *self, uint64_t n, PyObject *words, PyObject *device, PyObject **seed, PyObject **offset) {
    PyObject *method = PyObject_GetAttr((PyObject *)Py_TYPE(self), frontend.names.take), *found = NULL;
    uint64_t each, all;
    bool own = method == method_put(TAKE) && as_word(words, &each) && !__builtin_mul_overflow(n, each, &all);
    if (own && all <= UINT64_MAX - 3 && reserve(self, (all + 3) / 4, seed, offset)) return Py_DECREF(method), true;
    PyObject *number = PyLong_FromUnsignedLongLong(n);
    if (method && number) found = PyObject_Vectorcall(method, (PyObject *[]){self, number, words, device}, 4, NULL);
    Py_XDECREF(method);
    Py_XDECREF(number);
    if (!found) return false;
    Py_XINCREF(*seed = PyTuple_GetItem(found, 0));
    Py_XINCREF(*offset = PyTuple_GetItem(found, 1));
    Py_DECREF(found);
    return *seed && *offset;
}

/* -- numbers -- */
/* What draws a kind of numbers at a dispatch key, by entries of tables, which modes empty. */
struct drawing {
    PyObject *function, *table, *entry, *into, *kernel, *key, *class, *words, *device, *dtype;
};

/* Find it, to be given to `draw` or `forget`; false for what has no entries yet, or is no ordinary key. */
static bool find(PyObject *kind, PyObject *key, struct drawing *d) {
    PyObject *ways = PyDict_GetItem(frontend.kinds, kind);
    if (!ways || (PyObject *)Py_TYPE(key) != frontend.dispatch_key) return false;
    PyObject *type = seen(&slots.dtype, key), *entry = PyDict_GetItem(PyTuple_GetItem(ways, 1), key);
    if (!type || !entry) return false;
    d->function = PyTuple_GetItem(ways, 0), d->entry = entry;
    d->table = PyTuple_GetItem(ways, 2), d->into = NULL;
    d->kernel = PyTuple_GetItem(entry, 0), d->key = PyTuple_GetItem(entry, 1), d->class = PyTuple_GetItem(entry, 2);
    d->words = PyDict_GetItem(PyTuple_GetItem(ways, 3), type);
    d->device = seen(&slots.device, key), d->dtype = seen(&slots.numpy, type);
    if (!d->words || !d->device || !is_device(d->device) || !d->dtype) return false;
    Py_INCREF(d->entry);
    return true;
}

static void forget(struct drawing *d) {
    Py_DECREF(d->entry);
    Py_XDECREF(d->into);
}

/* The numbers of `size`, which has `n` elements, as a new tensor or, `over` a tensor, as itself. */
static PyObject *draw(PyObject *self, struct drawing *d, PyObject *key, PyObject *size, uint64_t n,
                      PyObject *parameters, PyObject *over) {
    PyObject *seed = NULL, *offset = NULL, *all[6 + MOST_PARAMETERS], *found = NULL;
    size_t count = 0;
    if (!take(self, n, d->words, d->device, &seed, &offset)) return forget(d), NULL;
    all[count++] = key, all[count++] = size, all[count++] = seed, all[count++] = offset;
    for (Py_ssize_t i = 0; parameters && i < PyTuple_Size(parameters); i++) all[count++] = PyTuple_GetItem(parameters, i);
    all[count++] = d->dtype;
    if (over) {
        PyObject *target = value_of(&slots.array, over), *made = NULL;
        all[count] = target;
        if (target) made = PyObject_Vectorcall(d->into, all + 1, count - 1, frontend.out);
        Py_XDECREF(target);
        if (made) Py_INCREF(found = over);
        Py_XDECREF(made);
    } else {
        PyObject *made = PyObject_Vectorcall(d->kernel, all + 1, count - 1, NULL);
        if (made && (PyObject *)Py_TYPE(made) == d->class) found = tensor_over(made, d->key);
        Py_XDECREF(made);
    }
    if (!found && is_forgiven()) { /* the op's function and a copy explain it */
        found = PyObject_Vectorcall(d->function, all, count, NULL);
        PyObject *copied = found && over ? PyObject_Vectorcall(frontend.copy, (PyObject *[]){over, found}, 2, NULL) : NULL;
        if (over) Py_XDECREF(found), found = copied;
    }
    Py_DECREF(seed);
    Py_DECREF(offset);
    forget(d);
    return found;
}

static bool are_parameters(PyObject *object) {
    return Py_TYPE(object) == &PyTuple_Type && PyTuple_Size(object) <= MOST_PARAMETERS;
}

/* How many elements a shape has; false for what is none. */
static bool elements(PyObject *shape, uint64_t *n) {
    if (Py_TYPE(shape) != &PyTuple_Type) return false;
    *n = 1;
    for (Py_ssize_t i = 0; i < PyTuple_Size(shape); i++) {
        long long size;
        if (!as_integer(PyTuple_GetItem(shape, i), &size) || size < 0) return false;
        if (__builtin_mul_overflow(*n, (uint64_t)size, n)) return false;
    }
    return true;
}

PyObject *draw_numbers(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    struct drawing d;
    uint64_t n;
    if (names || count < 4 || count > 5 || !is_usual() || (PyObject *)Py_TYPE(self) != frontend.generator ||
        !elements(given[2], &n) || !are_parameters(given[3]) || !find(given[0], given[1], &d))
        return call_own(DRAW, self, given, count, names);
    return draw(self, &d, given[1], given[2], n, given[3], NULL);
}

PyObject *draw_permutation(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    struct drawing d;
    long long n;
    if (names || count != 2 || !is_usual() || (PyObject *)Py_TYPE(self) != frontend.generator ||
        !as_integer(given[1], &n) || n < 0 || !find(frontend.order, given[0], &d))
        return call_own(PERMUTATION, self, given, count, names);
    return draw(self, &d, given[0], given[1], (uint64_t)n, NULL, NULL);
}

/* Count a change of a tensor's memory, if its changes are counted by a number alone. */
static bool count_change(PyObject *tensor) {
    PyObject *version = seen(&slots.version, tensor), *counted = NULL;
    long long changes;
    if (!version || !PyList_CheckExact(version) || !as_integer(PyList_GetItem(version, 0), &changes)) return false;
    counted = PyLong_FromLongLong(changes + 1);
    return counted && !PyList_SetItem(version, 0, counted);
}

/* Whether the elements of a tensor may be written over without a node: it has no history, or gradients are off. */
static bool is_free(PyObject *tensor) {
    if (seen(&slots.view, tensor) != Py_None) return false;
    PyObject *node = seen(&slots.node, tensor);
    if (node == Py_None) return true;
    PyObject *recording = node ? PyObject_GetAttr(frontend.grad_mode, frontend.names.recording) : NULL;
    Py_XDECREF(recording);
    return recording == Py_False;
}

/* Fill a tensor; NULL, without an error, for what is not taken. */
static PyObject *fill(PyObject *self, PyObject *kind, PyObject *tensor, PyObject *parameters) {
    struct drawing d;
    array a = (PyObject *)Py_TYPE(self) == frontend.generator && is_usual() ? array_of(tensor) : NULL;
    PyObject *key = a && is_free(tensor) ? seen(&slots.key, tensor) : NULL;
    if (!key || !are_parameters(parameters) || !find(kind, key, &d)) return let_go(a), NULL;
    d.into = PyObject_GetItem(d.table, key); /* found on first use */
    PyObject *size = d.into ? PyTuple_New(a->ndim) : NULL, *found = NULL;
    for (int i = 0; size && i < a->ndim; i++) {
        PyObject *n = PyLong_FromSsize_t(a->shape[i]);
        if (!n || PyTuple_SetItem(size, i, n)) Py_CLEAR(size);
    }
    if (size && count_change(tensor)) found = draw(self, &d, key, size, (uint64_t)count_of(a), parameters, tensor);
    else PyErr_Clear(), forget(&d);
    Py_XDECREF(size);
    let_go(a);
    return found;
}

PyObject *fill_numbers(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    PyObject *found = names || count != 3 ? NULL : fill(self, given[0], given[1], given[2]);
    return found || PyErr_Occurred() ? found : call_own(FILL, self, given, count, names);
}

/* -- methods of tensors: their parameters by position -- */
/* Fill a tensor by its device's generator; NULL, without an error, for what is not taken. */
static PyObject *fill_usually(PyObject *tensor, PyObject *kind, double first, const double *second) {
    PyObject *key = is_tensor(tensor) && ops_are_themselves() ? seen(&slots.key, tensor) : NULL;
    PyObject *device = key && (PyObject *)Py_TYPE(key) == frontend.dispatch_key ? seen(&slots.device, key) : NULL;
    PyObject *generator = device ? PyDict_GetItem(frontend.generators, device) : NULL, *found = NULL;
    if (!generator) return NULL;
    PyObject *parameters = PyTuple_New(1 + !!second);
    if (parameters) {
        PyTuple_SetItem(parameters, 0, PyFloat_FromDouble(first));
        if (second) PyTuple_SetItem(parameters, 1, PyFloat_FromDouble(*second));
        found = fill(generator, kind, tensor, parameters);
        Py_DECREF(parameters);
    }
    return found;
}

/* The numbers given, behind which the defaults stand; false for others. */
static bool as_reals(PyObject *const *given, Py_ssize_t count, PyObject *names, Py_ssize_t most, double *values) {
    if (names || count > most) return false;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!as_real(given[i], &values[i])) return false;
    return true;
}

PyObject *fill_uniform(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    double range[2] = {0, 1};
    bool taken = as_reals(given, count, names, 2, range) && range[0] >= -1 && range[0] <= range[1] && range[1] <= 1;
    PyObject *found = taken ? fill_usually(self, frontend.uniform, range[0], &range[1]) : NULL;
    return found || PyErr_Occurred() ? found : call_own(UNIFORM, self, given, count, names);
}

PyObject *fill_normal(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    double moments[2] = {0, 1};
    bool taken = as_reals(given, count, names, 2, moments) && moments[1] >= 0;
    PyObject *found = taken ? fill_usually(self, frontend.normal, moments[0], &moments[1]) : NULL;
    return found || PyErr_Occurred() ? found : call_own(NORMAL, self, given, count, names);
}

PyObject *fill_exponential(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    double rate = 1;
    bool taken = as_reals(given, count, names, 1, &rate) && rate > 0;
    PyObject *found = taken ? fill_usually(self, frontend.exponential, rate, NULL) : NULL;
    return found || PyErr_Occurred() ? found : call_own(EXPONENTIAL, self, given, count, names);
}
