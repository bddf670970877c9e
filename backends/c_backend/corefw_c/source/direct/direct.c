/* Kernels that Python calls without cffi: a few shims in C, for few elements. What they do not take, the shim does. */
#include "direct/objects.h"

#include "kernels.h"

#include <string.h>

/* A shim in C: the new array, or NULL for arguments that it does not take; `out` is the last one. `self` is a tuple:
 * the shim in Python, the address of this function, and numbers. */
typedef PyObject *direct_call(PyObject *self, PyObject *const *given, Py_ssize_t count);

static long number(PyObject *self, Py_ssize_t i) { return PyLong_AsLong(PyTuple_GetItem(self, 2 + i)); }

static uintptr_t address(const void *object) { return (uintptr_t)object; }

/* -- memory, creation, joining -- */
static PyObject *zeros(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    struct sizes size;
    (void)self;
    if (count != 2 || !as_sizes(given[0], &size) || as_dtype(given[1]) == NO_DTYPE) return NULL;
    return new_array(&size, given[1], true);
}

static PyObject *full(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    struct sizes size;
    double real = 0;
    long long integer = 0;
    (void)self;
    if (count != 3 || !as_sizes(given[0], &size)) return NULL;
    enum dtype type = as_dtype(given[2]);
    bool taken = type == FLOAT32 || type == FLOAT64 ? as_real(given[1], &real)
                                                    : type == INT64 && as_integer(given[1], &integer);
    PyObject *made = taken ? new_array(&size, given[2], false) : NULL;
    if (!made) return NULL;
    char *out = as_array(made)->data;
    for (ssize_t i = 0; i < size.count; i++)
        if (type == FLOAT32) ((float *)out)[i] = (float)real;
        else if (type == FLOAT64) ((double *)out)[i] = real;
        else ((int64_t *)out)[i] = integer;
    return made;
}

/* The elements of an array without gaps, as another type. */
static PyObject *converted(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    struct sizes size = no_sizes();
    (void)self;
    if (count != 3 || !is_array(given[0]) || as_dtype(given[1]) == NO_DTYPE || given[2] != Py_True) return NULL;
    array a = as_array(given[0]);
    if (!is_contiguous(a) || !add_sizes(&size, a, 0, a->ndim)) return NULL;
    PyObject *made = new_array(&size, given[1], false);
    return made ? if_done(copy(address(a), address(made)), made) : NULL;
}

/* A copy without gaps, of dimensions in the order in which they are. */
static PyObject *copied(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    struct sizes size = no_sizes();
    (void)self;
    if (count != 2 || !is_array(given[0]) || !PyTuple_Check(given[1])) return NULL;
    array a = as_array(given[0]);
    for (int d = 0; d < a->ndim; d++) {
        long long dim;
        if (d >= PyTuple_Size(given[1]) || !as_integer(PyTuple_GetItem(given[1], d), &dim) || dim != d) return NULL;
    }
    if (dtype_of(a) == NO_DTYPE || !add_sizes(&size, a, 0, a->ndim)) return NULL;
    PyObject *made = new_array(&size, a->descriptor, false);
    return made ? if_done(copy(address(a), address(made)), made) : NULL;
}

/* Elements written over those of `out`, which lie elsewhere. */
static PyObject *overwritten(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    if (count != 3 || !is_array(given[1]) || !is_array(given[2])) return NULL;
    array value = as_array(given[1]), out = as_array(given[2]);
    enum dtype type = dtype_of(out);
    ssize_t size = (ssize_t)size_of(type), n = count_of(out), m = count_of(value);
    bool single = number(self, 0); /* whether the value must be */
    if (value->ndim > out->ndim || (single && value->ndim)) return NULL;
    if (type == NO_DTYPE || type != dtype_of(value)) return NULL;
    if (n > FEW || m > FEW || !is_contiguous(out) || !is_contiguous(value)) return NULL;
    if (value->data < out->data + n * size && out->data < value->data + m * size) return NULL;
    if (copy(address(value), address(out))) return NULL;
    Py_INCREF(given[2]);
    return given[2];
}

/* start + i * step */
static PyObject *range(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    struct sizes size = no_sizes();
    long long start = 0, step = 0, n;
    double first = 0, by = 0;
    (void)self;
    if (count != 4 || !as_integer(given[2], &n) || !add_size(&size, n)) return NULL;
    enum dtype type = as_dtype(given[3]);
    bool real = type == FLOAT32 || type == FLOAT64;
    if (real ? !as_real(given[0], &first) || !as_real(given[1], &by)
             : type != INT64 || !as_integer(given[0], &start) || !as_integer(given[1], &step))
        return NULL;
    PyObject *made = new_array(&size, given[3], false);
    if (!made) return NULL;
    uintptr_t out = address(made);
    return if_done(real ? real_range(first, by, out) : integer_range((uint64_t)start, (uint64_t)step, out), made);
}

static PyObject *linear_space(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    struct sizes size = no_sizes();
    long long n;
    double start, end;
    (void)self;
    if (count != 4 || !as_real(given[0], &start) || !as_real(given[1], &end) || !as_integer(given[2], &n)) return NULL;
    enum dtype type = as_dtype(given[3]);
    if ((type != FLOAT32 && type != FLOAT64) || !add_size(&size, n)) return NULL;
    PyObject *made = new_array(&size, given[3], false);
    return made ? if_done(real_linspace(start, end, address(made)), made) : NULL;
}

static PyObject *unit_matrix(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    struct sizes size = no_sizes();
    long long rows, columns;
    (void)self;
    if (count != 3 || !as_integer(given[0], &rows) || !as_integer(given[1], &columns)) return NULL;
    if (as_dtype(given[2]) == NO_DTYPE || !add_size(&size, rows) || !add_size(&size, columns)) return NULL;
    PyObject *made = new_array(&size, given[2], false);
    return made ? if_done(identity(address(made)), made) : NULL;
}

/* The arrays of a list, all like the first one and without gaps, and how many there are; 0 for others. */
enum { FEW_ARRAYS = 16 };
static int arrays_of(PyObject *list, uintptr_t *arrays) {
    if (!PyList_CheckExact(list)) return 0;
    Py_ssize_t count = PyList_Size(list);
    if (count > FEW_ARRAYS) return 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyList_GetItem(list, i);
        if (!is_array(item) || as_array(item)->ndim > FEW_DIMS || !is_contiguous(as_array(item))) return 0;
        if (i && as_array(item)->ndim != ((array)arrays[0])->ndim) return 0;
        arrays[i] = address(item);
    }
    return (int)count;
}

static PyObject *joined(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    uintptr_t arrays[FEW_ARRAYS];
    long long dim;
    bool stacked = number(self, 0);
    int joined = count == 2 ? arrays_of(given[0], arrays) : 0;
    if (!joined || !as_integer(given[1], &dim)) return NULL;
    array first = (array)arrays[0];
    int ndim = first->ndim + stacked;
    if (dim < 0) dim += ndim;
    if (dim < 0 || dim >= ndim) return NULL;
    ssize_t total = stacked ? joined : 0;
    for (int i = 0; i < joined && !stacked; i++) total += ((array)arrays[i])->shape[dim];
    struct sizes size = no_sizes();
    int after = (int)dim + !stacked;
    if (!add_sizes(&size, first, 0, (int)dim) || !add_size(&size, total) ||
        !add_sizes(&size, first, after, first->ndim))
        return NULL;
    PyObject *made = new_array(&size, first->descriptor, false);
    if (!made) return NULL;
    return if_done((stacked ? stack : cat)(arrays, joined, (int)dim, address(made)), made);
}

/* -- linear algebra -- */
static PyObject *product(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    if (count != 2 || !is_array(given[0]) || !is_array(given[1])) return NULL;
    array a = as_array(given[0]), b = as_array(given[1]);
    long transposed = number(self, 0), products = number(self, 1), fewest = number(self, 2), most = number(self, 3);
    int batch = a->ndim == 3;
    if (a->ndim < fewest || b->ndim < fewest || a->ndim > most || b->ndim > most) return NULL;
    if (batch != (b->ndim == 3) || (batch && a->shape[0] != b->shape[0]) || dtype_of(a) == INT8) return NULL;
    int left = a->ndim - 2 + (transposed & 1), right = b->ndim - 1 - (transposed >> 1);
    struct sizes size = no_sizes(), work;
    if ((batch && !add_size(&size, a->shape[0])) || (a->ndim > 1 && !add_size(&size, a->shape[left])) ||
        (b->ndim > 1 && !add_size(&size, b->shape[right])))
        return NULL;
    work = size;
    if (!add_size(&work, a->ndim == 1 ? a->shape[0] : a->shape[a->ndim - 1 - (transposed & 1)])) return NULL;
    PyObject *made = new_array(&size, a->descriptor, false);
    if (!made) return NULL;
    int status = matmul(address(a), address(b), 0, (int)transposed, 1, 1, (int)products, address(made));
    return if_done(status, made);
}

static PyObject *affine(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    if (count != 3 || !is_array(given[0]) || !is_array(given[1])) return NULL;
    if (given[2] != Py_None && !is_array(given[2])) return NULL;
    array input = as_array(given[0]), weight = as_array(given[1]);
    struct sizes size = no_sizes(), work;
    if (input->ndim < 1 || weight->ndim != 2 || !add_sizes(&size, input, 0, input->ndim - 1)) return NULL;
    if (!add_size(&size, weight->shape[0])) return NULL;
    work = size;
    if (!add_size(&work, weight->shape[1])) return NULL;
    PyObject *made = new_array(&size, input->descriptor, false);
    if (!made) return NULL;
    uintptr_t added = given[2] == Py_None ? 0 : address(given[2]);
    int status = matmul(address(input), address(weight), added, 2, 1, 1, (int)number(self, 0), address(made));
    return if_done(status, made);
}

/* -- normalization -- */
/* The address of an optional weight or bias of these sizes; false if it is something else. */
static bool as_weight(PyObject *object, const struct sizes *size, uintptr_t *weight) {
    *weight = object == Py_None ? 0 : address(object);
    return !*weight || (is_array(object) && has_shape(as_array(object), size->ndim, size->n));
}

/* Rows with mean 0 and variance 1, with weight and bias; the means, and the factors. */
static PyObject *layers(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    struct sizes row, size = no_sizes(), rows = no_sizes();
    uintptr_t weight, bias;
    double eps;
    (void)self;
    if (count != 5 || !is_array(given[0]) || !as_real(given[4], &eps)) return NULL;
    if (!as_sizes(given[1], &row) || !row.count) return NULL;
    array x = as_array(given[0]);
    if (dtype_of(x) != FLOAT32 && dtype_of(x) != FLOAT64) return NULL; // statistics of half types are wider
    int first = x->ndim - row.ndim;
    if (!row.ndim || first < 0 || memcmp(x->shape + first, row.n, (size_t)row.ndim * sizeof *row.n)) return NULL;
    if (!as_weight(given[2], &row, &weight) || !as_weight(given[3], &row, &bias)) return NULL;
    if (!add_sizes(&size, x, 0, x->ndim) || !add_sizes(&rows, x, 0, first)) return NULL;
    for (int d = 0; d < row.ndim; d++)
        if (!add_size(&rows, 1)) return NULL;
    PyObject *made[3] = {new_array(&size, x->descriptor, false), new_array(&rows, x->descriptor, false),
                         new_array(&rows, x->descriptor, false)};
    PyObject *all = made[0] && made[1] && made[2] ? PyTuple_Pack(3, made[0], made[1], made[2]) : NULL;
    for (int i = 0; i < 3; i++) Py_XDECREF(made[i]);
    if (!all) return PyErr_Clear(), NULL;
    uintptr_t y = address(made[0]), mean = address(made[1]), scale = address(made[2]);
    return if_done(normalize_groups(address(x), row.count, weight, bias, eps, y, mean, scale), all);
}

/* -- indexing: blocks of the first dimension at the positions of one array -- */
static PyObject *blocks_at(PyObject *input, PyObject *index, bool from_end) {
    if (!is_array(input) || !is_array(index)) return NULL;
    array x = as_array(input), i = as_array(index);
    struct sizes size = no_sizes();
    enum dtype type = dtype_of(i);
    if (x->ndim < 1 || (type != INT64 && type != INT32) || !is_contiguous(x)) return NULL;
    if (!add_sizes(&size, i, 0, i->ndim) || !add_sizes(&size, x, 1, x->ndim)) return NULL;
    PyObject *made = new_array(&size, x->descriptor, false);
    if (!made) return NULL;
    return if_done(index_read(address(x), 0, address(i), 1, from_end, address(made)), made);
}

/* Blocks of the first dimensions at the positions of arrays of one shape, one for each of these dimensions. */
static PyObject *blocks_at_several(array x, PyObject *list, int count) {
    array indices[FEW_DIMS];
    struct sizes size = no_sizes();
    if (count > FEW_DIMS || x->ndim < count || dtype_of(x) == NO_DTYPE || !is_contiguous(x)) return NULL;
    for (int i = 0; i < count; i++) {
        PyObject *item = PyList_GetItem(list, i);
        array index = indices[i] = as_array(item);
        if (!is_array(item) || dtype_of(index) != INT64 || !is_contiguous(index)) return NULL;
        if (!has_shape(index, indices[0]->ndim, indices[0]->shape)) return NULL;
    }
    if (!add_sizes(&size, indices[0], 0, indices[0]->ndim)) return NULL;
    const ssize_t n = size.count;
    if (!add_sizes(&size, x, count, x->ndim)) return NULL;
    PyObject *made = new_array(&size, x->descriptor, false);
    if (!made) return NULL;
    const size_t bytes = n ? (size_t)(size.count / n) * size_of(dtype_of(x)) : 0;
    char *out = as_array(made)->data;
    for (ssize_t j = 0; j < n; j++, out += bytes) {
        const char *block = x->data;
        for (int i = 0; i < count; i++) {
            int64_t at = ((const int64_t *)indices[i]->data)[j];
            if (at < 0) at += x->shape[i];
            if (at < 0 || at >= x->shape[i]) return Py_DECREF(made), NULL;
            block += at * x->strides[i];
        }
        memcpy(out, block, bytes);
    }
    return made;
}

static PyObject *indexed(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    (void)self;
    if (count != 2 || !is_array(given[0]) || !PyList_CheckExact(given[1])) return NULL;
    int found = (int)PyList_Size(given[1]);
    if (found == 1) return blocks_at(given[0], PyList_GetItem(given[1], 0), true);
    return found ? blocks_at_several(as_array(given[0]), given[1], found) : NULL;
}

static PyObject *rows(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    (void)self;
    if (count != 4 || !is_array(given[0]) || as_array(given[0])->ndim != 2) return NULL;
    return blocks_at(given[0], given[1], false);
}

static PyObject *selected(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    long long dim;
    (void)self;
    if (count != 3 || !as_integer(given[1], &dim) || dim || !is_array(given[2]) || as_array(given[2])->ndim != 1)
        return NULL;
    return blocks_at(given[0], given[2], false);
}

static PyObject *gathered(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    long long dim;
    (void)self;
    if (count != 3 || !is_array(given[0]) || !is_array(given[2]) || !as_integer(given[1], &dim)) return NULL;
    array x = as_array(given[0]), index = as_array(given[2]);
    struct sizes size = no_sizes();
    if (x->ndim < 1 || x->ndim != index->ndim || dim < 0 || dim >= x->ndim || !is_contiguous(index)) return NULL;
    if (dtype_of(index) != INT64 || !is_contiguous(x) || !add_sizes(&size, index, 0, index->ndim)) return NULL;
    PyObject *made = new_array(&size, x->descriptor, false);
    if (!made) return NULL;
    return if_done(gather(address(x), (int)dim, address(index), address(made)), made);
}

/* -- views -- */
/* The memory of an array without gaps under other sizes, one of which may be -1. */
static PyObject *reshaped(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    struct sizes size = no_sizes();
    (void)self;
    if (count != 2 || !is_array(given[0]) || !PyTuple_Check(given[1])) return NULL;
    array a = as_array(given[0]);
    ssize_t elements = count_of(a), stride = (ssize_t)size_of(dtype_of(a));
    int unknown = -1;
    if (!elements || !stride || !is_contiguous(a)) return NULL;
    for (Py_ssize_t i = 0, ndim = PyTuple_Size(given[1]); i < ndim; i++) {
        long long n;
        if (!as_integer(PyTuple_GetItem(given[1], i), &n)) return NULL;
        if (n == -1 && unknown == -1) n = 1, unknown = (int)i;
        if (!n || !add_stride(&size, n, 0)) return NULL;
    }
    if (unknown >= 0) size.n[unknown] = elements / size.count, size.count *= size.n[unknown];
    if (size.count != elements) return NULL;
    for (int d = size.ndim - 1; d >= 0; d--) size.strides[d] = stride, stride *= size.n[d];
    return new_view(a, &size, 0);
}

static PyObject *expanded(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    struct sizes size = no_sizes();
    (void)self;
    if (count != 2 || !is_array(given[0]) || !PyTuple_Check(given[1])) return NULL;
    array a = as_array(given[0]);
    Py_ssize_t ndim = PyTuple_Size(given[1]), lead = ndim - a->ndim;
    if (lead < 0) return NULL;
    for (Py_ssize_t i = 0; i < ndim; i++) {
        ssize_t here = i < lead ? 1 : a->shape[i - lead];
        long long n;
        if (!as_integer(PyTuple_GetItem(given[1], i), &n)) return NULL;
        if (n == -1 && i >= lead) n = here;
        if (n < 1 || (n != here && here != 1)) return NULL;
        if (!add_stride(&size, n, i < lead || n != here ? 0 : a->strides[i - lead])) return NULL;
    }
    return new_view(a, &size, 0);
}

static PyObject *with_dimension(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    struct sizes size = no_sizes();
    long long dim;
    (void)self;
    if (count != 2 || !is_array(given[0]) || !as_integer(given[1], &dim)) return NULL;
    array a = as_array(given[0]);
    if (dim < 0) dim += a->ndim + 1;
    if (dim < 0 || dim > a->ndim) return NULL;
    ssize_t step = dim < a->ndim ? a->shape[dim] * a->strides[dim] : (ssize_t)size_of(dtype_of(a));
    if (!add_strides(&size, a, 0, (int)dim) || !add_stride(&size, 1, step)) return NULL;
    return step && add_strides(&size, a, (int)dim, a->ndim) ? new_view(a, &size, 0) : NULL;
}

/* Without dimensions of size 1: all of them, or those that a tuple names. */
static PyObject *without_dimensions(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    struct sizes size = no_sizes();
    (void)self;
    if (count != 2 || !is_array(given[0])) return NULL;
    array a = as_array(given[0]);
    bool named[FEW_DIMS] = {false}, all = given[1] == Py_None;
    if (a->ndim > FEW_DIMS || (!all && !PyTuple_Check(given[1]))) return NULL;
    for (Py_ssize_t i = 0; !all && i < PyTuple_Size(given[1]); i++) {
        long long dim;
        if (!as_integer(PyTuple_GetItem(given[1], i), &dim) || dim < 0 || dim >= a->ndim) return NULL;
        named[dim] = true;
    }
    for (int d = 0; d < a->ndim; d++)
        if ((a->shape[d] != 1 || !(all || named[d])) && !add_stride(&size, a->shape[d], a->strides[d])) return NULL;
    return new_view(a, &size, 0);
}

/* A plane's diagonal as the last dimension. */
static PyObject *diagonal(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    struct sizes size = no_sizes();
    long long above, rows, columns;
    (void)self;
    if (count != 4 || !is_array(given[0]) || !as_integer(given[1], &above) || !as_integer(given[2], &rows)) return NULL;
    array a = as_array(given[0]);
    if (!as_integer(given[3], &columns) || rows == columns || rows < 0 || columns < 0) return NULL;
    if (rows >= a->ndim || columns >= a->ndim || above <= -a->shape[rows] || above >= a->shape[columns]) return NULL;
    ssize_t down = a->shape[rows] + (above < 0 ? above : 0), across = a->shape[columns] - (above > 0 ? above : 0);
    for (int d = 0; d < a->ndim; d++)
        if (d != rows && d != columns && !add_stride(&size, a->shape[d], a->strides[d])) return NULL;
    if (!add_stride(&size, down < across ? down : across, a->strides[rows] + a->strides[columns])) return NULL;
    return new_view(a, &size, above >= 0 ? above * a->strides[columns] : -above * a->strides[rows]);
}

/* The parts of an array along a dimension: of a size each, which the last one may lack; or its slices. */
static PyObject *parts(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    long long dim, length = 1;
    bool slices = number(self, 0);
    if (count != 3 - slices || !is_array(given[0]) || !as_integer(given[count - 1], &dim)) return NULL;
    if (!slices && !as_integer(given[1], &length)) return NULL;
    array a = as_array(given[0]);
    if (dim < 0 || dim >= a->ndim || length <= 0 || !count_of(a)) return NULL;
    ssize_t n = a->shape[dim];
    PyObject *list = PyList_New((n + length - 1) / length);
    for (ssize_t begin = 0; list && begin < n; begin += length) {
        struct sizes size = no_sizes();
        ssize_t here = begin + length < n ? length : n - begin;
        bool fits = add_strides(&size, a, 0, (int)dim) && (slices || add_stride(&size, here, a->strides[dim])) &&
                    add_strides(&size, a, (int)dim + 1, a->ndim);
        PyObject *part = fits ? new_view(a, &size, begin * a->strides[dim]) : NULL;
        if (!part) Py_CLEAR(list);
        else PyList_SetItem(list, begin / length, part);
    }
    return list;
}

/* -- random -- */
static PyObject *random_numbers(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    enum { UNIFORM, NORMAL, INTEGERS };
    struct sizes size;
    uint64_t seed, offset;
    if (count < 6 || count > 7 || !as_sizes(given[0], &size)) return NULL;
    if (!as_word(given[1], &seed) || !as_word(given[2], &offset)) return NULL;
    long kind = number(self, 0);
    double first = 0, second = 0;
    long long low = 0, high = 0;
    if (kind == INTEGERS) {
        if (!as_integer(given[3], &low) || !as_integer(given[4], &high) || low >= high) return NULL;
    } else if (!as_real(given[3], &first) || !as_real(given[4], &second)) return NULL;
    if (as_dtype(given[5]) == NO_DTYPE || (kind == UNIFORM && (first != 0 || second != 1))) return NULL;
    PyObject *made = target_array(count == 7 ? given[6] : NULL, &size, given[5]);
    if (!made) return NULL;
    uintptr_t out = address(made);
    int status = kind == UNIFORM  ? uniform_at(seed, offset, 0, 1, 1, out)
                 : kind == NORMAL ? normal_at(seed, offset, first, second, out)
                                  : integers_at(seed, offset, (uint64_t)low, (uint64_t)high - (uint64_t)low, 1, out);
    return if_done(status, made);
}

static PyObject *permutation(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    struct sizes size = no_sizes();
    uint64_t seed, offset;
    long long n;
    (void)self;
    if (count != 4 || !as_integer(given[0], &n)) return NULL;
    if (!as_word(given[1], &seed) || !as_word(given[2], &offset)) return NULL;
    if (as_dtype(given[3]) != INT64 || !add_size(&size, n)) return NULL;
    PyObject *made = new_array(&size, given[3], false);
    if (!made) return NULL;
    return if_done(permutation_at(seed, offset, address(made)), made);
}

/* -- what Python calls -- */
static PyObject *call(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    bool one = names && PyTuple_Size(names) == 1;
    bool into = one && !PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "out");
    if (!names || into) {
        direct_call *function = (direct_call *)PyLong_AsVoidPtr(PyTuple_GetItem(self, 1));
        PyObject *made = function(self, given, count + into);
        if (made) return made;
    }
    return PyObject_Vectorcall(PyTuple_GetItem(self, 0), given, (size_t)count, names);
}

void *direct_function(const char *name) {
    static const struct {
        const char *name;
        direct_call *function;
    } table[] = {
        {"zeros", zeros},
        {"full", full},
        {"converted", converted},
        {"copied", copied},
        {"overwritten", overwritten},
        {"range", range},
        {"linspace", linear_space},
        {"eye", unit_matrix},
        {"joined", joined},
        {"product", product},
        {"affine", affine},
        {"layers", layers},
        {"indexed", indexed},
        {"rows", rows},
        {"selected", selected},
        {"gathered", gathered},
        {"reshaped", reshaped},
        {"diagonal", diagonal},
        {"expanded", expanded},
        {"with_dimension", with_dimension},
        {"without_dimensions", without_dimensions},
        {"parts", parts},
        {"random", random_numbers},
        {"permutation", permutation},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(name, table[i].name)) return (void *)table[i].function;
    return NULL;
}

void *with_direct_call(void *self) {
    static PyMethodDef method = {"kernel", (PyCFunction)(void (*)(void))call, METH_FASTCALL | METH_KEYWORDS, NULL};
    return PyCFunction_NewEx(&method, self, NULL);
}
