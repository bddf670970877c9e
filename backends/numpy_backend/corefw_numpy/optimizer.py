"""Optimizer steps over a whole parameter list, in place."""

from functools import wraps

from corefw.errors import read_only


def parts(*arrays):
    """The arrays, or the real and then the imaginary parts of complex ones: each part is stepped like a real array."""
    if arrays[0].dtype.kind == "c":
        return [[a.real for a in arrays], [a.imag for a in arrays]]
    return [arrays]


def descent(param, grad, weight_decay, maximize):
    """The gradient to follow: signed, with the decay added."""
    if maximize:
        grad = -grad
    return grad + weight_decay * param if weight_decay else grad


def decay(param, grad, lr, weight_decay, decoupled, maximize):
    """The gradient to follow; decoupled decay shrinks the parameter instead of changing the gradient."""
    if decoupled and weight_decay:
        param *= 1 - lr * weight_decay
    return descent(param, grad, 0 if decoupled else weight_decay, maximize)


def follow(mean, value, weight):
    """Move the running mean towards `value`."""
    mean += weight * (value - mean)


def follow_square(square, value, rate):
    """Update the running mean of squares, which keeps the share `rate`."""
    square *= rate
    square += (1 - rate) * (value * value)


def rectification(t, beta2):
    """RAdam's factor on Adam's step number `t`, None while the variance is not known well enough."""
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * t * beta2**t / (1 - beta2**t)
    if length <= 5:
        return None
    return ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ** 0.5


def unless_read_only(step):
    """`step`, refused before it changes anything if an array in one of its lists, but the gradients, is read-only."""

    @wraps(step)
    def checked(*arguments):
        lists = [a for position, a in enumerate(arguments) if position != 1 and isinstance(a, list)]
        # among them are lists of options
        if not all(array.flags.writeable for arrays in lists for array in arrays if hasattr(array, "flags")):
            raise read_only(step.__name__)
        step(*arguments)

    return checked


def kernels(xp):
    """Ops that compute."""
    return {}


def data_movement(xp):
    """Updates in place: every dtype is stepped in its own arithmetic."""

    def sgd_step(params, grads, buffers, first, lr, momentum, dampening, weight_decay, nesterov, maximize):
        for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
            step = descent(param, grad, weight_decay, maximize)
            if momentum:
                buffer = buffers[i]
                if first[i]:
                    buffer[...] = step
                else:
                    buffer *= momentum
                    buffer += step if dampening == 0 else (1 - dampening) * step
                step = step + momentum * buffer if nesterov else buffer
            param -= lr * step

    def adam_step(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        steps,
        lr,
        beta1,
        beta2,
        eps,
        weight_decay,
        decoupled,
        amsgrad,
        maximize,
    ):
        largest = max_exp_avg_sqs if amsgrad else exp_avg_sqs
        for param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step in zip(
            params, grads, exp_avgs, exp_avg_sqs, largest, steps, strict=True
        ):
            step += 1
            t = float(step)
            grad = decay(param, grad, lr, weight_decay, decoupled, maximize)
            for p, g, mean, square, most in parts(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq):
                follow(mean, g, 1 - beta1)
                follow_square(square, g, beta2)
                if amsgrad:
                    xp.maximum(most, square, out=most)
                denominator = xp.sqrt(most)
                denominator /= (1 - beta2**t) ** 0.5
                denominator += eps
                p -= lr / (1 - beta1**t) * (mean / denominator)

    def adadelta_step(params, grads, square_avgs, acc_deltas, steps, lr, rho, eps, weight_decay, maximize):
        for param, grad, square_avg, acc_delta, step in zip(params, grads, square_avgs, acc_deltas, steps, strict=True):
            step += 1
            grad = descent(param, grad, weight_decay, maximize)
            for p, g, square, moved in parts(param, grad, square_avg, acc_delta):
                follow_square(square, g, rho)
                delta = xp.sqrt(moved + eps)
                delta /= xp.sqrt(square + eps)
                delta *= g
                follow_square(moved, delta, rho)
                p -= lr * delta

    def adagrad_step(params, grads, sums, steps, lr, lr_decay, eps, weight_decay, maximize):
        for param, grad, total, step in zip(params, grads, sums, steps, strict=True):
            step += 1
            rate = lr / (1 + (float(step) - 1) * lr_decay)
            grad = descent(param, grad, weight_decay, maximize)
            for p, g, squares in parts(param, grad, total):
                squares += g * g
                p -= rate * (g / (xp.sqrt(squares) + eps))

    def adamax_step(params, grads, exp_avgs, exp_infs, steps, lr, beta1, beta2, eps, weight_decay, maximize):
        for param, grad, exp_avg, exp_inf, step in zip(params, grads, exp_avgs, exp_infs, steps, strict=True):
            step += 1
            rate = lr / (1 - beta1 ** float(step))
            grad = descent(param, grad, weight_decay, maximize)
            for p, g, mean, norm in parts(param, grad, exp_avg, exp_inf):
                follow(mean, g, 1 - beta1)
                norm *= beta2
                xp.maximum(norm, abs(g) + eps, out=norm)
                p -= rate * (mean / norm)

    def nadam_step(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        mu_products,
        steps,
        lr,
        beta1,
        beta2,
        eps,
        weight_decay,
        momentum_decay,
        decoupled,
        maximize,
    ):
        for param, grad, exp_avg, exp_avg_sq, mu_product, step in zip(
            params, grads, exp_avgs, exp_avg_sqs, mu_products, steps, strict=True
        ):
            step += 1
            t = float(step)
            mu = beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay))
            mu_next = beta1 * (1 - 0.5 * 0.96 ** ((t + 1) * momentum_decay))
            mu_product *= mu
            product = float(mu_product)
            grad = decay(param, grad, lr, weight_decay, decoupled, maximize)
            for p, g, mean, square in parts(param, grad, exp_avg, exp_avg_sq):
                follow(mean, g, 1 - beta1)
                follow_square(square, g, beta2)
                denominator = xp.sqrt(square / (1 - beta2**t))
                denominator += eps
                p -= lr * (1 - mu) / (1 - product) * (g / denominator)
                p -= lr * mu_next / (1 - product * mu_next) * (mean / denominator)

    def radam_step(
        params, grads, exp_avgs, exp_avg_sqs, steps, lr, beta1, beta2, eps, weight_decay, decoupled, maximize
    ):
        for param, grad, exp_avg, exp_avg_sq, step in zip(params, grads, exp_avgs, exp_avg_sqs, steps, strict=True):
            step += 1
            t = float(step)
            rate, factor = lr / (1 - beta1**t), rectification(t, beta2)
            grad = decay(param, grad, lr, weight_decay, decoupled, maximize)
            for p, g, mean, square in parts(param, grad, exp_avg, exp_avg_sq):
                follow(mean, g, 1 - beta1)
                follow_square(square, g, beta2)
                if factor is None:
                    p -= rate * mean
                else:
                    p -= rate * factor * (1 - beta2**t) ** 0.5 * (mean / (xp.sqrt(square) + eps))

    def rmsprop_step(
        params,
        grads,
        square_avgs,
        momentum_buffers,
        grad_avgs,
        steps,
        lr,
        alpha,
        eps,
        weight_decay,
        momentum,
        centered,
        maximize,
    ):
        for param, grad, square_avg, momentum_buffer, grad_avg, step in zip(
            params,
            grads,
            square_avgs,
            momentum_buffers if momentum else square_avgs,
            grad_avgs if centered else square_avgs,
            steps,
            strict=True,
        ):
            step += 1
            grad = descent(param, grad, weight_decay, maximize)
            for p, g, square, buffer, mean in parts(param, grad, square_avg, momentum_buffer, grad_avg):
                follow_square(square, g, alpha)
                if centered:
                    follow(mean, g, 1 - alpha)
                    delta = g / (xp.sqrt(square - mean * mean) + eps)
                else:
                    delta = g / (xp.sqrt(square) + eps)
                if momentum:
                    buffer *= momentum
                    buffer += delta
                    delta = buffer
                p -= lr * delta

    def scale_step(tensors, factor):
        for tensor in tensors:
            tensor *= factor

    steps = (
        sgd_step,
        adam_step,
        adadelta_step,
        adagrad_step,
        adamax_step,
        nadam_step,
        radam_step,
        rmsprop_step,
        scale_step,
    )
    return {step.__name__: unless_read_only(step) for step in steps}
