/* Optimizer steps: one pass over all elements of a list of parameters, in place. */
#if !defined(__clang__)
#pragma GCC optimize("fp-contract=off") /* a parameter that shrinks is rounded before it moves, as in NumPy */
#endif
#pragma STDC FP_CONTRACT OFF

#include "kernels.h"
#include "core/mathematics.h"
#include "optimizer/parameters.h"
#include "optimizer/step.h"

#include <string.h>

#define TEMPLATE "optimizer/optimizer.inc"
#include "core/each_real.h"

/* number = factor * number + term in the number's own type; returns what it became. */
static double advance(array number, double factor, double term) {
    if (dtype_of(number) == FLOAT32) {
        float *x = (float *)number->data;
        return *x = (float)factor * *x + (float)term;
    }
    double *x = (double *)number->data;
    return *x = factor * *x + term;
}

/* Whether `list` has for each parameter a number that `advance` takes. */
static enum status check_numbers(const struct parameters *all, uintptr_t list) {
    const struct list *numbers = list_at(list);
    if (!numbers) return UNSUPPORTED;
    if (numbers->count != all->count) return WRONG_SHAPE;
    for (ssize_t i = 0; i < all->count; i++) {
        array number = numbers->items[i];
        if (!is_writable(number)) return READ_ONLY;
        if (dtype_of(number) != FLOAT32 && dtype_of(number) != FLOAT64) return WRONG_DTYPE;
        if (count_of(number) != 1) return WRONG_SHAPE;
    }
    return OK;
}

/* As open_parameters, for steps that are counted: the list `steps` has one number for each parameter. */
static enum status open_counted(struct parameters *all, int arrays, const uintptr_t *lists, uintptr_t steps) {
    enum status status = open_parameters(all, arrays, lists, GRADIENTS);
    if (status) return status;
    status = check_numbers(all, steps);
    if (status) close_parameters(all);
    return status;
}

/* The number of the step that parameter i makes now. */
static double next_step(uintptr_t steps, ssize_t i) { return advance(list_at(steps)->items[i], 1, 1); }

/* Make the step, which costs so much for an element, and close the list. */
static enum status finish(struct parameters *all, const update *updates, const struct step *step, ssize_t cost) {
    update_parameters(all, updates, step, cost);
    close_parameters(all);
    return OK;
}

/* The step that Python has packed. */
static struct step unpacked(const char *packed) {
    struct step step;
    memcpy(&step, packed, sizeof step);
    return step;
}

int sgd_step(const char *packed) {
    const struct step s = unpacked(packed);
    struct parameters all;
    const uintptr_t lists[] = {s.params, s.grads, s.momentum_buffers};
    enum status status = open_parameters(&all, s.momentum != 0 ? 3 : 2, lists, GRADIENTS);
    if (status) return status;
    if (s.momentum == 0) return finish(&all, (update[]){sgd_f32, sgd_f64}, &s, 4);
    return finish(&all, (update[]){sgd_with_momentum_f32, sgd_with_momentum_f64}, &s, 5);
}

int adam_step(const char *packed) {
    const struct step s = unpacked(packed);
    struct parameters all;
    const uintptr_t lists[] = {s.params, s.grads, s.exp_avgs, s.exp_avg_sqs, s.max_exp_avg_sqs};
    enum status status = open_counted(&all, s.amsgrad ? 5 : 4, lists, s.steps);
    if (status) return status;
    for (ssize_t i = 0; i < all.count; i++) {
        double t = next_step(s.steps, i), *rate = all.items[i].rate;
        rate[0] = s.lr / (1 - pow(s.beta1, t));
        rate[1] = sqrt(1 - pow(s.beta2, t));
    }
    return finish(&all, (update[]){adam_f32, adam_f64}, &s, 10);
}

int adadelta_step(const char *packed) {
    const struct step s = unpacked(packed);
    struct parameters all;
    enum status status = open_counted(&all, 4, (uintptr_t[]){s.params, s.grads, s.square_avgs, s.acc_deltas}, s.steps);
    if (status) return status;
    for (ssize_t i = 0; i < all.count; i++) next_step(s.steps, i);
    return finish(&all, (update[]){adadelta_f32, adadelta_f64}, &s, 10);
}

int adagrad_step(const char *packed) {
    const struct step s = unpacked(packed);
    struct parameters all;
    enum status status = open_counted(&all, 3, (uintptr_t[]){s.params, s.grads, s.sums}, s.steps);
    if (status) return status;
    for (ssize_t i = 0; i < all.count; i++)
        all.items[i].rate[0] = s.lr / (1 + (next_step(s.steps, i) - 1) * s.lr_decay);
    return finish(&all, (update[]){adagrad_f32, adagrad_f64}, &s, 8);
}

int adamax_step(const char *packed) {
    const struct step s = unpacked(packed);
    struct parameters all;
    enum status status = open_counted(&all, 4, (uintptr_t[]){s.params, s.grads, s.exp_avgs, s.exp_infs}, s.steps);
    if (status) return status;
    for (ssize_t i = 0; i < all.count; i++) all.items[i].rate[0] = s.lr / (1 - pow(s.beta1, next_step(s.steps, i)));
    return finish(&all, (update[]){adamax_f32, adamax_f64}, &s, 8);
}

int nadam_step(const char *packed) {
    const struct step s = unpacked(packed);
    struct parameters all;
    enum status status = open_counted(&all, 4, (uintptr_t[]){s.params, s.grads, s.exp_avgs, s.exp_avg_sqs}, s.steps);
    if (status) return status;
    if ((status = check_numbers(&all, s.mu_products))) {
        close_parameters(&all);
        return status;
    }
    for (ssize_t i = 0; i < all.count; i++) {
        double t = next_step(s.steps, i), *rate = all.items[i].rate;
        double mu = s.beta1 * (1 - 0.5 * pow(0.96, t * s.momentum_decay));
        double mu_next = s.beta1 * (1 - 0.5 * pow(0.96, (t + 1) * s.momentum_decay));
        double product = advance(list_at(s.mu_products)->items[i], mu, 0);
        rate[0] = s.lr * (1 - mu) / (1 - product);
        rate[1] = s.lr * mu_next / (1 - product * mu_next);
        rate[2] = 1 - pow(s.beta2, t);
    }
    return finish(&all, (update[]){nadam_f32, nadam_f64}, &s, 12);
}

/* RAdam's factor on Adam's step number t, 0 while the variance is not known well enough. */
static double rectification(double t, double beta2) {
    double longest = 2 / (1 - beta2) - 1, power = pow(beta2, t), length = longest - 2 * t * power / (1 - power);
    if (length <= 5) return 0;
    return sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
}

int radam_step(const char *packed) {
    const struct step s = unpacked(packed);
    struct parameters all;
    enum status status = open_counted(&all, 4, (uintptr_t[]){s.params, s.grads, s.exp_avgs, s.exp_avg_sqs}, s.steps);
    if (status) return status;
    for (ssize_t i = 0; i < all.count; i++) {
        double t = next_step(s.steps, i), *rate = all.items[i].rate;
        rate[1] = rectification(t, s.beta2);
        rate[0] = s.lr / (1 - pow(s.beta1, t)) * (rate[1] != 0 ? rate[1] * sqrt(1 - pow(s.beta2, t)) : 1);
    }
    return finish(&all, (update[]){radam_f32, radam_f64}, &s, 10);
}

int rmsprop_step(const char *packed) {
    const struct step s = unpacked(packed);
    struct parameters all;
    uintptr_t lists[MOST_ARRAYS] = {s.params, s.grads, s.square_avgs};
    int arrays = 3;
    if (s.centered) lists[arrays++] = s.grad_avgs;
    if (s.momentum != 0) lists[arrays++] = s.momentum_buffers;
    enum status status = open_counted(&all, arrays, lists, s.steps);
    if (status) return status;
    for (ssize_t i = 0; i < all.count; i++) next_step(s.steps, i);
    return finish(&all, (update[]){rmsprop_f32, rmsprop_f64}, &s, 10);
}
