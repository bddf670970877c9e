/* Lists of arrays, and the test that Python's layout of lists is the expected one. */
#include "core/lists.h"
#include "kernels.h"

static void *list_type;

int list_is(uintptr_t address, uintptr_t first, uintptr_t second) {
    const struct list *list = (const struct list *)address;
    list_type = list->type;
    return list->count == 2 && (uintptr_t)list->items[0] == first && (uintptr_t)list->items[1] == second;
}

const struct list *list_at(uintptr_t address) {
    const struct list *list = (const struct list *)address;
    return list->type == list_type ? list : NULL;
}
