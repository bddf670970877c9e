/* Lists of parameters, gradients and states as one range of elements, so that many small parameters are shared between
 * threads like a large one. */
#ifndef COREFW_PARAMETERS_H
#define COREFW_PARAMETERS_H

#include "core/array.h"
#include "core/lists.h"

enum { MOST_ARRAYS = 5, MOST_RATES = 3 };

/* A parameter, its gradient and its states: arrays of equal shape. */
struct parameter {
    ssize_t begin; /* the number of its first element among those of all parameters */
    char *data[MOST_ARRAYS];
    double rate[MOST_RATES]; /* what depends on its own count of steps */
};

struct parameters {
    ssize_t count;
    int arrays; /* how many lists there are */
    int read;   /* the number of the one that is only read, or -1 */
    enum dtype dtype;
    struct parameter *items; /* and behind them one that begins where all end */
};

enum { GRADIENTS = 1 }; /* the number of their list among those of a step, after that of the parameters */

/* Read `arrays` lists of arrays, the first of which holds the parameters; number `read` is only read, the others are to be
 * written (-1: all of them). What OK is returned for is to be closed. */
enum status open_parameters(struct parameters *all, int arrays, const uintptr_t *lists, int read);

void close_parameters(struct parameters *all);

/* What is done with n elements of one parameter, whose arrays begin at data[0], data[1], ... */
typedef void (*update)(ssize_t n, char *const *data, const double *rate, const void *options);

/* Apply updates[0] to parameters of float32, and of half types by way of that, updates[1] to those of float64; `cost`
 * elementary steps for an element. */
void update_parameters(const struct parameters *all, const update *updates, const void *options, ssize_t cost);

#endif
