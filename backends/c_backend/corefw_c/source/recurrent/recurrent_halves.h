/* The products of recurrences of half types: of the rows of a step with the recurrent weight, summed in float32. */
#ifndef COREFW_RECURRENT_HALVES_H
#define COREFW_RECURRENT_HALVES_H

#include "core/array.h"
#include "gemm/gemm_packed.h"

/* A weight as the right factor of the steps' products, `k` by `columns`, in panels that an engine multiplies. */
struct half_weight {
    const struct engine *with;
    ssize_t k, columns;
    const uint16_t *weight; /* element (l, j) at weight[l * row + j * column] */
    ssize_t row, column;
    char *packed;
};

/* What multiplies few rows of a half type, by `products` of kernels.h. */
const struct engine *step_engine(enum dtype dtype, int products);

/* Pack the panels. False if there is no memory. */
bool pack_half_weight(struct half_weight *weight);

/* c = a times the weight, for m contiguous rows; those of c lie `c_row` apart. False if there is no memory. Parallel.
 * A sum does not depend on m. */
bool times_half_weight(const struct half_weight *weight, ssize_t m, const uint16_t *a, float *c, ssize_t c_row);

#endif
