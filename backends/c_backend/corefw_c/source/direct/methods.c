/* Methods and attributes of the frontend's classes in C, in the place of its own, which do what these do not take. Those of
 * tensors here read what its slots and its array say; no kernel is called, no element is read. */
#include "direct/tensors.h"

#include "kernels.h"

#include <string.h>

struct frontend frontend;
struct slots slots;

/* What is put in the place of a method or an attribute, which it keeps as its own. */
struct method {
    const char *name;
    fast_method *call;
    PyMethodDef definition;
    PyObject *own, *put;
};
static struct method methods[METHODS];

PyObject *method_put(int i) { return methods[i].put; }

PyObject *call_own(int i, PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    enum { MOST = 16 };
    PyObject *all[1 + MOST] = {self}; /* NULL for a function */
    Py_ssize_t further = names ? PyTuple_Size(names) : 0;
    if (count + further > MOST) return PyErr_SetString(PyExc_TypeError, "too many arguments"), NULL;
    for (Py_ssize_t j = 0; j < count + further; j++) all[1 + j] = given[j];
    return PyObject_Vectorcall(methods[i].own, all + !self, (size_t)(!!self + count), names);
}

/* -- methods of tensors -- */
/* A method without arguments that is told by the array. */
#define OF_ARRAY(name, number, value)                                                                         \
    static PyObject *name(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names) {        \
        array a = count || names ? NULL : array_of(self);                                                     \
        PyObject *found = a ? (value) : NULL;                                                                 \
        let_go(a);                                                                                            \
        return found || PyErr_Occurred() ? found : call_own(number, self, given, count, names);               \
    }

static PyObject *truth(bool value) {
    PyObject *found = value ? Py_True : Py_False;
    Py_INCREF(found);
    return found;
}

/* The shape as a Size. */
static PyObject *size_of_array(array a) {
    static allocfunc allocate = NULL;
    if (!allocate) allocate = (allocfunc)PyType_GetSlot((PyTypeObject *)frontend.size, Py_tp_alloc);
    PyObject *made = allocate((PyTypeObject *)frontend.size, a->ndim);
    for (int d = 0; made && d < a->ndim; d++) {
        PyObject *n = PyLong_FromSsize_t(a->shape[d]);
        if (!n || PyTuple_SetItem(made, d, n)) Py_CLEAR(made);
    }
    return made;
}

/* The strides in elements; NULL for those of no elements, which are others. */
static PyObject *strides_of(array a) {
    ssize_t size = (ssize_t)size_of(dtype_of(a));
    if (!size || !count_of(a)) return NULL;
    PyObject *made = PyTuple_New(a->ndim);
    for (int d = 0; made && d < a->ndim; d++) {
        PyObject *n = PyLong_FromSsize_t(a->strides[d] / size);
        if (!n || PyTuple_SetItem(made, d, n)) Py_CLEAR(made);
    }
    return made;
}

/* One of the numbers of an array's dimensions, where `given` is its number alone. */
static bool dimension(array a, PyObject *const *given, Py_ssize_t count, PyObject *names, long long *dim) {
    if (!a || count != 1 || names || !as_integer(given[0], dim)) return false;
    if (*dim < 0) *dim += a->ndim;
    return *dim >= 0 && *dim < a->ndim;
}

static bool is_dense(array a) { return a->flags & IS_IN_ROWS; }

OF_ARRAY(numel, NUMEL, PyLong_FromSsize_t(count_of(a)))
OF_ARRAY(nelement, NELEMENT, PyLong_FromSsize_t(count_of(a)))
OF_ARRAY(is_in_order, IS_CONTIGUOUS, truth(is_dense(a)))
OF_ARRAY(data_ptr, DATA_PTR, PyLong_FromVoidPtr(a->data))
OF_ARRAY(storage_offset, STORAGE_OFFSET, a->base ? NULL : PyLong_FromLong(0))
OF_ARRAY(whole_size, SIZE, size_of_array(a))
OF_ARRAY(all_strides, STRIDE, strides_of(a))

static PyObject *size(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    array a = array_of(self);
    long long dim;
    PyObject *found = dimension(a, given, count, names, &dim) ? PyLong_FromSsize_t(a->shape[dim]) : NULL;
    let_go(a);
    return found ? found : whole_size(self, given, count, names);
}

static PyObject *stride(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    array a = array_of(self);
    long long dim;
    ssize_t bytes = a ? (ssize_t)size_of(dtype_of(a)) : 0;
    PyObject *found = NULL;
    if (bytes && count_of(a) && dimension(a, given, count, names, &dim))
        found = PyLong_FromSsize_t(a->strides[dim] / bytes);
    let_go(a);
    return found ? found : all_strides(self, given, count, names);
}

/* An op: while modes answer for ops, its own is asked. */
static PyObject *contiguous(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    array a = count || names || !ops_are_themselves() ? NULL : array_of(self);
    bool dense = a && is_dense(a);
    let_go(a);
    if (!dense) return call_own(CONTIGUOUS, self, given, count, names);
    Py_INCREF(self);
    return self;
}

/* One of the sizes that a Size holds; slices are its own matter. */
static PyObject *size_item(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    long long i;
    if (names || count != 1 || !as_integer(given[0], &i)) return call_own(SIZE_ITEM, self, given, count, names);
    if (i < 0) i += PyTuple_Size(self);
    if (i < 0 || i >= PyTuple_Size(self)) return call_own(SIZE_ITEM, self, given, count, names);
    PyObject *found = PyTuple_GetItem(self, (Py_ssize_t)i);
    Py_INCREF(found);
    return found;
}

static struct method methods[METHODS] = {
    [SIZE_ITEM] = {.name = "__getitem__", .call = size_item},
    [NUMEL] = {.name = "numel", .call = numel},
    [NELEMENT] = {.name = "nelement", .call = nelement},
    [SIZE] = {.name = "size", .call = size},
    [STRIDE] = {.name = "stride", .call = stride},
    [IS_CONTIGUOUS] = {.name = "is_contiguous", .call = is_in_order},
    [CONTIGUOUS] = {.name = "contiguous", .call = contiguous},
    [DATA_PTR] = {.name = "data_ptr", .call = data_ptr},
    [STORAGE_OFFSET] = {.name = "storage_offset", .call = storage_offset},
    [TAKE] = {.name = "take", .call = take_numbers},
    [DRAW] = {.name = "draw", .call = draw_numbers},
    [FILL] = {.name = "fill", .call = fill_numbers},
    [PERMUTATION] = {.name = "permutation", .call = draw_permutation},
    [UNIFORM] = {.name = "uniform_", .call = fill_uniform},
    [NORMAL] = {.name = "normal_", .call = fill_normal},
    [EXPONENTIAL] = {.name = "exponential_", .call = fill_exponential},
    [SIZE_AND_TARGET] = {.name = "size_and_target", .call = size_and_target},
    [NEW_TENSOR] = {.name = "new_tensor", .call = new_tensor},
};

/* -- attributes of tensors: their closure is the frontend's own attribute -- */
static PyObject *own_value(PyObject *self, void *own) {
    descrgetfunc get = (descrgetfunc)PyType_GetSlot(Py_TYPE((PyObject *)own), Py_tp_descr_get);
    return get(own, self, (PyObject *)Py_TYPE(self));
}

static int set_own_value(PyObject *self, PyObject *value, void *own) {
    descrsetfunc set = (descrsetfunc)PyType_GetSlot(Py_TYPE((PyObject *)own), Py_tp_descr_set);
    return set(own, self, value);
}

static PyObject *shape(PyObject *self, void *own) {
    array a = array_of(self);
    PyObject *found = a ? size_of_array(a) : own_value(self, own);
    let_go(a);
    return found;
}

static PyObject *nbytes(PyObject *self, void *own) {
    array a = array_of(self);
    ssize_t size = a ? (ssize_t)size_of(dtype_of(a)) : 0;
    PyObject *found = size ? PyLong_FromSsize_t(count_of(a) * size) : own_value(self, own);
    let_go(a);
    return found;
}

/* Whether a tensor is on a device of this type. */
static PyObject *is_on(PyObject *self, void *own, const char *type) {
    PyObject *key = is_tensor(self) ? seen(&slots.key, self) : NULL;
    if (!key || (PyObject *)Py_TYPE(key) != frontend.dispatch_key) return own_value(self, own);
    PyObject *device = seen(&slots.device, key), *name = device ? seen(&slots.type, device) : NULL;
    if (!name) return own_value(self, own);
    return truth(!PyUnicode_CompareWithASCIIString(name, type));
}

static PyObject *is_cpu(PyObject *self, void *own) { return is_on(self, own, "cpu"); }
static PyObject *is_cuda(PyObject *self, void *own) { return is_on(self, own, "cuda"); }
static PyObject *is_meta(PyObject *self, void *own) { return is_on(self, own, "meta"); }

/* What computed a tensor that is no view; NULL for a view, whose history its base tells. */
static PyObject *node_of(PyObject *self) {
    return is_tensor(self) && seen(&slots.view, self) == Py_None ? seen(&slots.node, self) : NULL;
}

static bool is_leaf_node(PyObject *node) { return (PyObject *)Py_TYPE(node) == frontend.accumulation; }

static PyObject *requires_grad(PyObject *self, void *own) {
    PyObject *node = node_of(self);
    return node ? truth(node != Py_None) : own_value(self, own);
}

static PyObject *is_leaf(PyObject *self, void *own) {
    PyObject *node = node_of(self);
    return node ? truth(node == Py_None || is_leaf_node(node)) : own_value(self, own);
}

/* None for a leaf. */
static PyObject *grad_fn(PyObject *self, void *own) {
    PyObject *node = node_of(self);
    if (!node || (node != Py_None && !is_leaf_node(node))) return own_value(self, own);
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *grad(PyObject *self, void *own) {
    PyObject *node = node_of(self);
    if (!node || (node != Py_None && !is_leaf_node(node))) return own_value(self, own);
    return PyObject_GetAttr(self, frontend.names.gradient);
}

static const struct attribute {
    const char *name;
    getter get;
} attributes[] = {
    {"shape", shape},     {"nbytes", nbytes},   {"is_cpu", is_cpu}, {"is_cuda", is_cuda}, {"is_meta", is_meta},
    {"requires_grad", requires_grad}, {"is_leaf", is_leaf}, {"grad_fn", grad_fn}, {"grad", grad},
};

/* -- what Python calls -- */
static struct slot slot_of(PyObject *class, const char *name) {
    struct slot s = {.descriptor = PyObject_GetAttrString(class, name)};
    s.get = (descrgetfunc)PyType_GetSlot(Py_TYPE(s.descriptor), Py_tp_descr_get);
    s.set = (descrsetfunc)PyType_GetSlot(Py_TYPE(s.descriptor), Py_tp_descr_set);
    return s;
}

void *set_frontend(void *parts) {
    PyObject **to = (PyObject **)&frontend;
    for (int i = 0; i < FRONTEND_PARTS; i++) to[i] = PyTuple_GetItem(parts, i), Py_INCREF(to[i]);
    PyObject *tensor = frontend.tensor, *key = frontend.dispatch_key, *generator = frontend.generator;
    PyObject *device = (PyObject *)frontend.device, *dtype = (PyObject *)frontend.dtype;
    slots = (struct slots){
        .array = slot_of(tensor, "array"),     .key = slot_of(tensor, "dispatch_key"), .node = slot_of(tensor, "node"),
        .view = slot_of(tensor, "view_info"),  .version = slot_of(tensor, "version"),  .device = slot_of(key, "device"),
        .dtype = slot_of(key, "dtype"),        .runtime = slot_of(key, "runtime"),     .type = slot_of(device, "type"),
        .index = slot_of(device, "index"),     .keys = slot_of(device, "_keys"),       .numpy = slot_of(dtype, "numpy"),
        .seed = slot_of(generator, "_seed"),   .offset = slot_of(generator, "_offset"), .lock = slot_of(generator, "_lock"),
    };
    Py_INCREF(Py_None);
    return Py_None;
}

/* What is put in the place of a class's or a module's own: of a tuple of these, name, own, and a text as documentation. */
void *method_in_c(void *given) {
    PyObject *owner = PyTuple_GetItem(given, 0);
    PyTypeObject *class = PyType_Check(owner) ? (PyTypeObject *)owner : NULL; /* else a module */
    const char *name = PyBytes_AsString(PyTuple_GetItem(given, 1)), *text = PyBytes_AsString(PyTuple_GetItem(given, 3));
    PyObject *own = PyTuple_GetItem(given, 2);
    Py_INCREF((PyObject *)given); /* it keeps the texts, for as long as there are descriptors: for ever */
    for (struct method *m = methods; m < methods + METHODS; m++)
        if (!strcmp(name, m->name)) {
            PyCFunction call = (PyCFunction)(void (*)(void))m->call;
            m->own = own;
            m->definition = (PyMethodDef){m->name, call, METH_FASTCALL | METH_KEYWORDS, text};
            m->put = class ? PyDescr_NewMethod(class, &m->definition) : PyCFunction_NewEx(&m->definition, NULL, NULL);
            Py_XINCREF(m->put);
            return m->put;
        }
    static PyGetSetDef definitions[sizeof attributes / sizeof *attributes];
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (!strcmp(name, attributes[i].name)) {
            definitions[i] = (PyGetSetDef){attributes[i].name, attributes[i].get, set_own_value, text, own};
            return PyDescr_NewGetSet(class, &definitions[i]);
        }
    PyErr_SetString(PyExc_KeyError, name);
    return NULL;
}
