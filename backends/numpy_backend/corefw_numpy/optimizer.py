"""Optimizer steps over a whole parameter list, in place.

A step has two functions: the factors that follow from a parameter's count of steps, and the change of all parameters,
of which each row has the factors, the parameter, its gradient and its states, real arrays. In both, `s` is the whole
step, its arguments by the names of their declaration.
"""

from functools import partial
from itertools import chain
from operator import itemgetter

from corefw.dispatch.flags import unheard
from corefw.dispatch.records import record
from corefw.errors import read_only


@unheard
def descent(s, param, grad):
    """The gradient to follow: signed, with the decay added."""
    if s.maximize:
        grad = -grad
    return grad + s.weight_decay * param if s.weight_decay else grad


@unheard
def decay(s, param, grad):
    """The gradient to follow; decoupled decay shrinks the parameter instead of changing the gradient."""
    if not s.decoupled_weight_decay:
        return descent(s, param, grad)
    if s.weight_decay:
        param *= 1 - s.lr * s.weight_decay
    return -grad if s.maximize else grad


@unheard
def follow(mean, value, weight):
    """Move the running mean towards `value`."""
    mean += weight * (value - mean)


@unheard
def follow_square(square, value, rate):
    """Update the running mean of squares, which keeps the share `rate`."""
    square *= rate
    square += (1 - rate) * (value * value)


def refuse_read_only(name, *lists):
    """Raise for an array that a step may not change, before it changes any."""
    for array in chain(*lists):
        if array is not None and not array.flags.writeable:
            raise read_only(name)


def counted(number):
    """The number of the step that a parameter makes now. Python's addition: NumPy's of a scalar takes eight times as
    long."""
    number[...] = number.item() + 1
    return number.item()


# -- factors ----------------------------------------------------------------------------------------------------------
def none(s, step):
    """For a step that is the same each time, but counted."""
    counted(step)


@unheard
def corrections(s, step):
    """Adam's step size, and the correction of the root of the mean square."""
    t = counted(step)
    return s.lr / (1 - s.beta1**t), (1 - s.beta2**t) ** 0.5


@unheard
def decreasing(s, step):
    """Adagrad's step size."""
    return s.lr / (1 + (counted(step) - 1) * s.lr_decay)


@unheard
def corrected(s, step):
    """Adamax' step size."""
    return s.lr / (1 - s.beta1 ** counted(step))


@unheard
def warmed_up(s, mu_product, step):
    """NAdam's step sizes along the gradient and along the mean, and the correction of the mean square."""
    t = counted(step)
    mu = s.beta1 * (1 - 0.5 * 0.96 ** (t * s.momentum_decay))
    mu_next = s.beta1 * (1 - 0.5 * 0.96 ** ((t + 1) * s.momentum_decay))
    mu_product *= mu
    product = float(mu_product)
    return s.lr * (1 - mu) / (1 - product), s.lr * mu_next / (1 - product * mu_next), 1 - s.beta2**t


@unheard
def rectified(s, step):
    """RAdam's step size, and whether the variance is known well enough to divide by its root."""
    t = counted(step)
    rate = s.lr / (1 - s.beta1**t)
    longest = 2 / (1 - s.beta2) - 1
    length = longest - 2 * t * s.beta2**t / (1 - s.beta2**t)
    if length <= 5:
        return rate, False
    factor = ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ** 0.5
    return rate * factor * (1 - s.beta2**t) ** 0.5, True


# -- kernels ----------------------------------------------------------------------------------------------------------
def in_parts(rows):
    """The rows of a step; those of complex arrays are two, of the real and of the imaginary parts."""
    for of_step, *arrays in rows:
        if arrays[0].dtype.kind == "c":
            yield of_step, *[a if a is None else a.real for a in arrays]
            yield of_step, *[a if a is None else a.imag for a in arrays]
        else:
            yield of_step, *arrays


def stepping(name, factors, change):
    """The kernel of a step, refused before it changes anything if what it is to change is read-only."""
    spec = record(name)
    named, change = spec.named, unheard(change)
    lists = itemgetter(*[named._fields.index(array) for array in spec.arrays])
    counts = [named._fields.index(number) for number in spec.counts]

    def kernel(*arguments):
        s = tuple.__new__(named, arguments)
        params, grads, *states = lists(s)
        numbers = [s[number] for number in counts]
        refuse_read_only(name, params, *states, *numbers)
        nothing = [None] * len(params)
        of_steps = map(partial(factors, s), *numbers) if numbers else nothing
        rows = zip(of_steps, params, grads, *[state or nothing for state in states], strict=True)
        change(s, in_parts(rows) if "c" in [p.dtype.kind for p in params] else rows)

    return kernel


def kernels(xp):
    """Ops that compute."""
    return {}


def data_movement(xp):
    """Updates in place: every dtype is stepped in its own arithmetic."""

    def sgd(s, rows):
        follows, lr, momentum = s.maximize or s.weight_decay, s.lr, s.momentum
        for _, p, step, buffer in rows:
            if follows:
                step = descent(s, p, step)
            if momentum:
                if s.first:
                    buffer[...] = step
                else:
                    buffer *= momentum
                    buffer += step if s.dampening == 0 else (1 - s.dampening) * step
                step = step + momentum * buffer if s.nesterov else buffer
            p -= lr * step

    def adam(s, rows):
        for (rate, correction), p, g, mean, square, largest in rows:
            g = decay(s, p, g)
            follow(mean, g, 1 - s.beta1)
            follow_square(square, g, s.beta2)
            if s.amsgrad:
                xp.maximum(largest, square, out=largest)
            denominator = xp.sqrt(largest if s.amsgrad else square)
            denominator /= correction
            denominator += s.eps
            p -= rate * (mean / denominator)

    def adadelta(s, rows):
        for _, p, g, square, moved in rows:
            g = descent(s, p, g)
            follow_square(square, g, s.rho)
            delta = xp.sqrt(moved + s.eps)
            delta /= xp.sqrt(square + s.eps)
            delta *= g
            follow_square(moved, delta, s.rho)
            p -= s.lr * delta

    def adagrad(s, rows):
        for rate, p, g, total in rows:
            g = descent(s, p, g)
            total += g * g
            p -= rate * (g / (xp.sqrt(total) + s.eps))

    def adamax(s, rows):
        for rate, p, g, mean, norm in rows:
            g = descent(s, p, g)
            follow(mean, g, 1 - s.beta1)
            norm *= s.beta2
            xp.maximum(norm, abs(g) + s.eps, out=norm)
            p -= rate * (mean / norm)

    def nadam(s, rows):
        for (along_gradient, along_mean, correction), p, g, mean, square in rows:
            g = decay(s, p, g)
            follow(mean, g, 1 - s.beta1)
            follow_square(square, g, s.beta2)
            denominator = xp.sqrt(square / correction)
            denominator += s.eps
            p -= along_gradient * (g / denominator)
            p -= along_mean * (mean / denominator)

    def radam(s, rows):
        for (rate, variance_known), p, g, mean, square in rows:
            g = decay(s, p, g)
            follow(mean, g, 1 - s.beta1)
            follow_square(square, g, s.beta2)
            p -= rate * (mean / (xp.sqrt(square) + s.eps) if variance_known else mean)

    def rmsprop(s, rows):
        for _, p, g, square, mean, buffer in rows:
            g = descent(s, p, g)
            follow_square(square, g, s.alpha)
            if s.centered:
                follow(mean, g, 1 - s.alpha)
                delta = g / (xp.sqrt(square - mean * mean) + s.eps)
            else:
                delta = g / (xp.sqrt(square) + s.eps)
            if s.momentum:
                buffer *= s.momentum
                buffer += delta
                delta = buffer
            p -= s.lr * delta

    @unheard
    def scale_step(tensors, factor):
        refuse_read_only("scale_step", tensors)
        for tensor in tensors:
            tensor *= factor

    steps = {
        "sgd_step": (None, sgd),
        "adam_step": (corrections, adam),
        "adadelta_step": (none, adadelta),
        "adagrad_step": (decreasing, adagrad),
        "adamax_step": (corrected, adamax),
        "nadam_step": (warmed_up, nadam),
        "radam_step": (rectified, radam),
        "rmsprop_step": (none, rmsprop),
    }
    return {"scale_step": scale_step, **{name: stepping(name, *functions) for name, functions in steps.items()}}
