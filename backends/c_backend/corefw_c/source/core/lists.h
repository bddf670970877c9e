/* Python's lists of arrays as the kernels read them: the only place that knows their layout. */
#ifndef COREFW_LISTS_H
#define COREFW_LISTS_H

#include "core/array.h"

struct list {
    ssize_t references;
    void *type;
    ssize_t count;
    const array *items;
};

/* The list at an address that Python's id() gave; NULL if the object there is no list. */
const struct list *list_at(uintptr_t address);

#endif
