/* Optimizer steps: one pass over all elements of a list of parameters, in place. */
#include "kernels.h"
#include "core/mathematics.h"
#include "optimizer/parameters.h"

/* The options that the optimizers share; what one of them lacks is zero. */
struct options {
    double lr, momentum, dampening, mean_rate, square_rate, eps, weight_decay;
    bool nesterov, amsgrad, centered, decoupled, maximize;
};

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
static enum status finish(struct parameters *all, const update *updates, const struct options *options, ssize_t cost) {
    update_parameters(all, updates, options, cost);
    close_parameters(all);
    return OK;
}

int sgd_step(uintptr_t params, uintptr_t grads, uintptr_t buffers, const unsigned char *first, intptr_t firsts, double lr,
             double momentum, double dampening, double weight_decay, int nesterov, int maximize) {
    struct parameters all;
    struct options options = {.lr = lr, .momentum = momentum, .dampening = dampening, .weight_decay = weight_decay,
                              .nesterov = nesterov, .maximize = maximize};
    enum status status = open_parameters(&all, momentum != 0 ? 3 : 2, (uintptr_t[]){params, grads, buffers}, GRADIENTS);
    if (status) return status;
    if (momentum == 0) return finish(&all, (update[]){sgd_f32, sgd_f64}, &options, 4);
    if (firsts != all.count) {
        close_parameters(&all);
        return WRONG_SHAPE;
    }
    for (ssize_t i = 0; i < all.count; i++) all.items[i].rate[0] = first[i];
    return finish(&all, (update[]){sgd_with_momentum_f32, sgd_with_momentum_f64}, &options, 5);
}

int adam_step(uintptr_t params, uintptr_t grads, uintptr_t exp_avgs, uintptr_t exp_avg_sqs, uintptr_t max_exp_avg_sqs,
              uintptr_t steps, double lr, double beta1, double beta2, double eps, double weight_decay, int decoupled,
              int amsgrad, int maximize) {
    struct parameters all;
    struct options options = {.lr = lr, .mean_rate = beta1, .square_rate = beta2, .eps = eps, .weight_decay = weight_decay,
                              .decoupled = decoupled, .amsgrad = amsgrad, .maximize = maximize};
    const uintptr_t lists[] = {params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs};
    enum status status = open_counted(&all, amsgrad ? 5 : 4, lists, steps);
    if (status) return status;
    for (ssize_t i = 0; i < all.count; i++) {
        double t = next_step(steps, i), *rate = all.items[i].rate;
        rate[0] = lr / (1 - pow(beta1, t));
        rate[1] = sqrt(1 - pow(beta2, t));
    }
    return finish(&all, (update[]){adam_f32, adam_f64}, &options, 10);
}

int adadelta_step(uintptr_t params, uintptr_t grads, uintptr_t square_avgs, uintptr_t acc_deltas, uintptr_t steps, double lr,
                  double rho, double eps, double weight_decay, int maximize) {
    struct parameters all;
    struct options options = {.lr = lr, .square_rate = rho, .eps = eps, .weight_decay = weight_decay, .maximize = maximize};
    enum status status = open_counted(&all, 4, (uintptr_t[]){params, grads, square_avgs, acc_deltas}, steps);
    if (status) return status;
    for (ssize_t i = 0; i < all.count; i++) next_step(steps, i);
    return finish(&all, (update[]){adadelta_f32, adadelta_f64}, &options, 10);
}

int adagrad_step(uintptr_t params, uintptr_t grads, uintptr_t sums, uintptr_t steps, double lr, double lr_decay, double eps,
                 double weight_decay, int maximize) {
    struct parameters all;
    struct options options = {.eps = eps, .weight_decay = weight_decay, .maximize = maximize};
    enum status status = open_counted(&all, 3, (uintptr_t[]){params, grads, sums}, steps);
    if (status) return status;
    for (ssize_t i = 0; i < all.count; i++) all.items[i].rate[0] = lr / (1 + (next_step(steps, i) - 1) * lr_decay);
    return finish(&all, (update[]){adagrad_f32, adagrad_f64}, &options, 8);
}

int adamax_step(uintptr_t params, uintptr_t grads, uintptr_t exp_avgs, uintptr_t exp_infs, uintptr_t steps, double lr,
                double beta1, double beta2, double eps, double weight_decay, int maximize) {
    struct parameters all;
    struct options options = {.mean_rate = beta1, .square_rate = beta2, .eps = eps, .weight_decay = weight_decay,
                              .maximize = maximize};
    enum status status = open_counted(&all, 4, (uintptr_t[]){params, grads, exp_avgs, exp_infs}, steps);
    if (status) return status;
    for (ssize_t i = 0; i < all.count; i++) all.items[i].rate[0] = lr / (1 - pow(beta1, next_step(steps, i)));
    return finish(&all, (update[]){adamax_f32, adamax_f64}, &options, 8);
}

int nadam_step(uintptr_t params, uintptr_t grads, uintptr_t exp_avgs, uintptr_t exp_avg_sqs, uintptr_t mu_products,
               uintptr_t steps, double lr, double beta1, double beta2, double eps, double weight_decay,
               double momentum_decay, int decoupled, int maximize) {
    struct parameters all;
    struct options options = {.lr = lr, .mean_rate = beta1, .square_rate = beta2, .eps = eps, .weight_decay = weight_decay,
                              .decoupled = decoupled, .maximize = maximize};
    enum status status = open_counted(&all, 4, (uintptr_t[]){params, grads, exp_avgs, exp_avg_sqs}, steps);
    if (status) return status;
    if ((status = check_numbers(&all, mu_products))) {
        close_parameters(&all);
        return status;
    }
    for (ssize_t i = 0; i < all.count; i++) {
        double t = next_step(steps, i), *rate = all.items[i].rate;
        double mu = beta1 * (1 - 0.5 * pow(0.96, t * momentum_decay));
        double mu_next = beta1 * (1 - 0.5 * pow(0.96, (t + 1) * momentum_decay));
        double product = advance(list_at(mu_products)->items[i], mu, 0);
        rate[0] = lr * (1 - mu) / (1 - product);
        rate[1] = lr * mu_next / (1 - product * mu_next);
        rate[2] = 1 - pow(beta2, t);
    }
    return finish(&all, (update[]){nadam_f32, nadam_f64}, &options, 12);
}

/* RAdam's factor on Adam's step number t, 0 while the variance is not known well enough. */
static double rectification(double t, double beta2) {
    double longest = 2 / (1 - beta2) - 1, power = pow(beta2, t), length = longest - 2 * t * power / (1 - power);
    if (length <= 5) return 0;
    return sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
}

int radam_step(uintptr_t params, uintptr_t grads, uintptr_t exp_avgs, uintptr_t exp_avg_sqs, uintptr_t steps, double lr,
               double beta1, double beta2, double eps, double weight_decay, int decoupled, int maximize) {
    struct parameters all;
    struct options options = {.lr = lr, .mean_rate = beta1, .square_rate = beta2, .eps = eps, .weight_decay = weight_decay,
                              .decoupled = decoupled, .maximize = maximize};
    enum status status = open_counted(&all, 4, (uintptr_t[]){params, grads, exp_avgs, exp_avg_sqs}, steps);
    if (status) return status;
    for (ssize_t i = 0; i < all.count; i++) {
        double t = next_step(steps, i), *rate = all.items[i].rate;
        rate[1] = rectification(t, beta2);
        rate[0] = lr / (1 - pow(beta1, t)) * (rate[1] != 0 ? rate[1] * sqrt(1 - pow(beta2, t)) : 1);
    }
    return finish(&all, (update[]){radam_f32, radam_f64}, &options, 10);
}

int rmsprop_step(uintptr_t params, uintptr_t grads, uintptr_t square_avgs, uintptr_t momentum_buffers, uintptr_t grad_avgs,
                 uintptr_t steps, double lr, double alpha, double eps, double weight_decay, double momentum, int centered,
                 int maximize) {
    struct parameters all;
    struct options options = {.lr = lr, .mean_rate = alpha, .square_rate = alpha, .momentum = momentum, .eps = eps,
                              .weight_decay = weight_decay, .centered = centered, .maximize = maximize};
    uintptr_t lists[MOST_ARRAYS] = {params, grads, square_avgs};
    int arrays = 3;
    if (centered) lists[arrays++] = grad_avgs;
    if (momentum != 0) lists[arrays++] = momentum_buffers;
    enum status status = open_counted(&all, arrays, lists, steps);
    if (status) return status;
    for (ssize_t i = 0; i < all.count; i++) next_step(steps, i);
    return finish(&all, (update[]){rmsprop_f32, rmsprop_f64}, &options, 10);
}
