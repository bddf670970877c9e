/* Elementwise kernels as Python calls them: a loop over arrays of types that it takes, a ufunc for all else. */
#include "direct/objects.h"
#include "elementwise/operands.h"
#include "kernels.h"

enum { MOST_INPUTS = 5 };

/* What a call computes with. */
struct call {
    const struct typed_loop *typed;
    uintptr_t operands[MOST_INPUTS + 1]; /* the inputs, then the result */
    int inputs, ndim;
    ssize_t shape[MAX_DIMS], count; /* of the result */
};

/* Find the loop that takes these inputs; false if one of them is no array, or there is no such loop. */
static bool find_loop(PyObject *loops, PyObject *const *inputs, Py_ssize_t count, struct call *c) {
    uint64_t key = 1;
    c->inputs = (int)count, c->ndim = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        array a = as_array(inputs[i]);
        if (a->type != array_type) return false;
        c->operands[i] = (uintptr_t)a;
        c->ndim = a->ndim > c->ndim ? a->ndim : c->ndim;
        key = key << 4 | dtype_of(a);
    }
    const struct typed_loop *typed = (const struct typed_loop *)PyBytes_AsString(loops);
    ssize_t n = PyBytes_Size(loops) / (ssize_t)sizeof *typed;
    for (ssize_t i = 0; i < n; i++)
        if (typed[i].key == key) {
            c->typed = typed + i;
            return true;
        }
    return false;
}

/* The shape that the inputs broadcast to, and its elements; false if there is none. */
static bool find_shape(struct call *c) {
    c->count = 1;
    for (int d = 1; d <= c->ndim; d++) { /* from the last dimension on */
        ssize_t size = 1;
        for (int i = 0; i < c->inputs; i++) {
            array a = (array)c->operands[i];
            ssize_t own = d <= a->ndim ? a->shape[a->ndim - d] : 1;
            if (own == 1 || own == size) continue;
            if (size != 1) return false;
            size = own;
        }
        c->shape[c->ndim - d] = size;
        if (__builtin_mul_overflow(c->count, size, &c->count)) return false;
    }
    return true;
}

/* Whether the elements lie in column-major order without gaps. */
static bool lies_in_columns(array a) {
    ssize_t expected = (ssize_t)size_of(dtype_of(a));
    for (int d = 0; d < a->ndim; expected *= a->shape[d++])
        if (a->shape[d] != 1 && a->strides[d] != expected) return false;
    return true;
}

/* A new array for the results, laid out as the first input of their shape is. */
static PyObject *new_result(const struct call *c, PyObject *empty_like) {
    const void *dtype = c->typed->dtype;
    for (int i = 0; i < c->inputs; i++) {
        array a = (array)c->operands[i];
        bool repeats = !has_shape(a, c->ndim, c->shape);
        for (int d = 0; d < a->ndim && !repeats; d++) repeats = a->strides[d] == 0;
        if (repeats) continue;
        if (is_contiguous(a)) break;
        PyObject *made = PyObject_Vectorcall(empty_like, (PyObject *[]){(PyObject *)a, (PyObject *)dtype}, 2, NULL);
        if (!made) PyErr_Clear();
        return made;
    }
    Py_INCREF((PyObject *)dtype); /* NumPy's function takes it away */
    PyObject *made = numpy.empty(c->ndim, c->shape, dtype, 0);
    if (!made) PyErr_Clear();
    return made;
}

/* Whether all operands are one run of elements, or one element; then where they begin, and their steps. */
static bool are_flat(const struct call *c, char **at, intptr_t *steps) {
    bool in_rows = true, in_columns = true;
    for (int i = 0; i <= c->inputs; i++) {
        array a = (array)c->operands[i];
        ssize_t size = (ssize_t)size_of(dtype_of(a));
        at[i] = a->data, steps[i] = size;
        if (!is_aligned(a, size < 8 ? size : 8)) return false;
        if (i < c->inputs && !is_apart(a, (array)c->operands[c->inputs])) return false;
        if (i < c->inputs && count_of(a) == 1) {
            steps[i] = 0;
            continue;
        }
        if (!has_shape(a, c->ndim, c->shape)) return false;
        in_rows = in_rows && is_contiguous(a);
        in_columns = in_columns && lies_in_columns(a);
    }
    return in_rows || in_columns;
}

static enum status run(const struct call *c) {
    char *at[MOST_INPUTS + 1];
    intptr_t steps[MOST_INPUTS + 1], n = c->count;
    if (!are_flat(c, at, steps))
        return elementwise_apply(c->typed->loop, c->inputs, c->operands, c->operands[c->inputs]);
    if (n > 0) elementwise_run(at, &n, steps, (void *)c->typed->loop);
    return OK;
}

/* The result of a loop; NULL if there is none for such operands. */
static PyObject *computed(PyObject *parts, PyObject *const *inputs, Py_ssize_t count, PyObject *out) {
    struct call c;
    if (count < 1 || count > MOST_INPUTS || !find_loop(PyTuple_GetItem(parts, 2), inputs, count, &c)) return NULL;
    if (c.ndim == 0 || !find_shape(&c)) return NULL; /* of no dimensions a ufunc makes a scalar */
    if (out) {
        if (!is_array(out) || !is_writable(as_array(out)) || !has_shape(as_array(out), c.ndim, c.shape)) return NULL;
        if (dtype_of(as_array(out)) != (enum dtype)c.typed->loop->types[MOST_INPUTS]) return NULL;
        Py_INCREF(out);
    } else if (!(out = new_result(&c, PyTuple_GetItem(parts, 1)))) return NULL;
    c.operands[count] = (uintptr_t)out;
    PyThreadState *state = c.count > FEW ? PyEval_SaveThread() : NULL;
    enum status status = run(&c);
    if (state) PyEval_RestoreThread(state);
    return if_done(status, out);
}

static PyObject *call(PyObject *parts, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
    PyObject *out = NULL;
    bool plain = true;
    if (names && PyTuple_Size(names)) {
        plain = PyTuple_Size(names) == 1 && !PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "out");
        if (plain && arguments[count] != Py_None) out = arguments[count];
    }
    PyObject *made = plain ? computed(parts, arguments, count, out) : NULL;
    return made ? made : PyObject_Vectorcall(PyTuple_GetItem(parts, 0), arguments, (size_t)count, names);
}

void *with_fast_path(void *parts) {
    static PyMethodDef method = {"elementwise", (PyCFunction)(void (*)(void))call, METH_FASTCALL | METH_KEYWORDS, NULL};
    return PyCFunction_NewEx(&method, parts, NULL);
}
