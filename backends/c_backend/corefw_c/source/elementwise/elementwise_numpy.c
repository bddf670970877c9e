/* Loops of NumPy's own ufuncs, for element types that have no formula: in our threads, blocks and walks. */
#include "elementwise/elementwise.h"

#include <stdlib.h>

/* The public fields of NumPy's ufunc object, whose layout is part of its binary interface. */
struct ufunc {
    ssize_t references;
    void *type;
    int inputs, outputs, operands, identity;
    void (**functions)(char **args, const intptr_t *n, const intptr_t *steps, void *data);
    void *const *data;
    int loops, reserved;
    const char *name, *types; /* the type numbers of the operands, loop by loop */
};

const struct elementwise_loop *numpy_loop(uintptr_t ufunc, int place, int cost) {
    const struct ufunc *u = (const struct ufunc *)ufunc;
    if (place < 0 || place >= u->loops || u->inputs > 5 || u->outputs != 1 || !u->functions[place]) return NULL;
    struct elementwise_loop *loop = calloc(1, sizeof *loop);
    if (!loop) return NULL;
    *loop = (struct elementwise_loop){.op = u->name, .tensors = u->inputs, .cost = cost, .numpy = u->functions[place],
                                      .data = u->data ? u->data[place] : NULL};
    bool known = true;
    for (int i = 0; i <= u->inputs; i++) {
        enum dtype dtype = dtype_of_number(u->types[place * u->operands + i]);
        loop->types[i < u->inputs ? i : 5] = dtype;
        known &= dtype != NO_DTYPE;
    }
    if (known) return loop;
    free(loop);
    return NULL;
}
