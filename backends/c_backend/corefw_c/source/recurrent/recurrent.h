/* Packed sequences: the rows of all steps, step after step, each step with the rows of the sequences that reach it. */
#ifndef COREFW_RECURRENT_H
#define COREFW_RECURRENT_H

#include <stdbool.h>
#include <sys/types.h>

/* One step: `size` rows from row `start` on. The first `known` of them go on from the rows at `previous`, the others
 * from the first state. */
struct step {
    ssize_t start, size, previous, known;
};

/* All steps in the order in which the recurrence visits them. */
struct sequence {
    ssize_t count, rows, batch;
    struct step *steps;
};

/* Reads the number of rows of each step, which must not grow. */
int read_sequence(ssize_t count, const ssize_t *batch_sizes, bool reverse, struct sequence *sequence);

/* The sequences are shared out in parts of about equally many rows: the first sequence of a part. */
ssize_t first_of_part(const struct sequence *sequence, ssize_t part, ssize_t parts);

/* How many parts are worthwhile when one row costs so many elementary steps. */
ssize_t parts_of(const struct sequence *sequence, ssize_t cost);

#endif
