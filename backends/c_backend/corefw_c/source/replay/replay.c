/* Prepared calls of kernels, one after the other, without Python. */
#include "core/array.h"
#include "core/lists.h"
#include "kernels.h"

#include <string.h>

intptr_t run_prepared(const struct prepared *calls, intptr_t begin, intptr_t end) {
    while (begin < end && calls[begin].run(calls[begin].arguments) == OK) begin++;
    return begin;
}

int point_arrays(const struct pointed *pointed, intptr_t count, uintptr_t list) {
    const struct list *sources = list_at(list);
    if (!sources) return UNSUPPORTED;
    for (intptr_t i = 0; i < count; i++) {
        if (pointed[i].source < 0 || pointed[i].source >= sources->count) return OUT_OF_RANGE;
        array source = sources->items[pointed[i].source];
        if (source->type != array_type) return WRONG_DTYPE;
        if ((source->flags ^ pointed[i].flags) & (MAY_BE_WRITTEN | IS_ALIGNED)) return UNSUPPORTED;
    }
    for (intptr_t i = 0; i < count; i++)
        ((struct array *)pointed[i].array)->data = sources->items[pointed[i].source]->data + pointed[i].offset;
    return OK;
}

intptr_t point_and_run(
    const struct pointed *pointed, intptr_t count, uintptr_t list, const struct prepared *calls, intptr_t end) {
    return point_arrays(pointed, count, list) == OK ? run_prepared(calls, 0, end) : -1;
}

_Bool is_same(uintptr_t address, uintptr_t other, size_t size) {
    return !size || !memcmp((const void *)address, (const void *)other, size);
}
