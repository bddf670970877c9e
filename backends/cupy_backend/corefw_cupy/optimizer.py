"""Optimizer steps over a whole parameter list, in place, and the norm of such a list."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import chain
from math import inf
from typing import Any
from weakref import ref

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import COMPLEX, FLOATS, THREADS, offered
from corefw_cupy.layouts import inverse, memory_order
from corefw_cupy.optimizer_rates import DeviceRates
from corefw_cupy.parameter_lists import fills_memory, tables

_EVERY = {**FLOATS, **COMPLEX}
_NORMS = {2: "Euclidean", 1: "Moduli", 0: "Nonzeros", inf: "Largest", -inf: "Smallest", None: "Powers"}


class Plan:
    """What stays the same between the steps of some lists: tables, and views of the numbers kept on the host.

    Raises ValueError where an array does not lie in memory like its parameter.
    """

    def __init__(self, lists: Sequence[list], numbers: Sequence[list], rates: int):
        params = lists[0]
        self.dtype = params[0].dtype
        parts = 1 + (self.dtype.kind == "c")
        self.real = np.dtype(f"f{self.dtype.itemsize // parts}") if parts == 2 else self.dtype
        self.layouts = [(self.dtype, p.shape, p.strides) for p in params]
        if not all(map(fills_memory, params)) or not all(map(self.matches, lists[1:])):
            raise ValueError("arrays of a parameter differ in their memory order or dtype")
        self.watch: list[ref] = []
        self.numbers = [[memoryview(number.reshape(())) for number in column] for column in numbers]
        self.tables = tables(len(lists) + 1, rates, [parts * p.size for p in params])
        for table in self.tables:
            for k, column in zip((0, *range(2, len(lists) + 1)), lists):
                table.arrays[k] = [a.data.ptr for a in column[table.begin : table.end]]

    def matches(self, column: list) -> bool:
        """Whether all arrays lie in memory like their parameters."""
        return [(a.dtype, a.shape, a.strides) for a in column] == self.layouts


class Step:
    """An optimizer's CUDA function, for lists of parameters, gradients and states.

    Args:
        cuda: what compiles it.
        file: the function's, in source/.
        name: of the function.
        arrays: how many arrays a parameter may have.
        rates: how many numbers each parameter has of its own, or for this step only.
    """

    def __init__(self, cuda: Cuda, file: str, name: str, arrays: Sequence[int], rates: int):
        self.copying = cuda.copying
        self.empty = cuda.empty
        self.function = cuda.function(file, name, T=FLOATS, ARRAYS={n: str(n) for n in arrays})
        self.rates = rates
        self.plans: dict[bytes, Plan] = {}  # by the addresses of the arrays as Python objects

    def __call__(
        self,
        params: list,
        grads: list,
        states: Sequence[list],
        numbers: Sequence[list],
        rates: Callable[..., Any],
        options: tuple,
    ) -> None:
        """Step once.

        Args:
            params, grads: the parameters and their gradients.
            states: further lists of arrays.
            numbers: lists of what is kept on the host.
            rates: gives each parameter's rates for views of the numbers, which it may change; or an array that the
                device fills with them.
            options: the other arguments of the function.
        """
        lists = (params, *states)
        if any(len(column) != len(params) for column in (grads, *states, *numbers)):
            raise ValueError("the lists differ in their lengths")
        try:
            plan = self._plan(lists, numbers)
        except ValueError:
            return self._on_copies(params, grads, states, numbers, rates, options)
        if not plan.matches(grads):
            grads = [self._like(p, g) for p, g in zip(params, grads)]
        given = rates(*plan.numbers)
        launch = self.function[plan.real, len(lists) + 1]
        for table in plan.tables:
            begin, end = table.begin, table.end
            table.arrays[1] = [g.data.ptr for g in grads[begin:end]]
            computed = 0
            if given.__class__ is not list:
                computed = given[begin:]
            elif self.rates:
                own = given[begin:end]
                same = own.count(own[0]) == len(own)
                table.rates[...] = np.array(own[:1] if same else own).T
            launch((table.blocks,), (THREADS,), (table.struct, computed, *options))

    def _plan(self, lists: Sequence[list], numbers: Sequence[list]) -> Plan:
        """The plan of these very arrays, which is forgotten with the first of them."""
        key = array("Q", map(id, chain(*lists, *numbers))).tobytes()
        plan = self.plans.get(key)
        if plan is None:
            plan = self.plans[key] = Plan(lists, numbers, self.rates)
            plan.watch = [ref(a, lambda _: self.plans.pop(key, None)) for a in chain(*lists)]
        return plan

    def _like(self, param, grad):
        """`grad` if it lies in memory like `param`, else a copy that does."""
        if grad.shape != param.shape:
            raise ValueError("a gradient has not its parameter's shape")
        if (grad.dtype, grad.strides) == (param.dtype, param.strides):
            return grad
        order = memory_order(param.shape, param.strides, param.itemsize)
        assert order is not None, "parameters with gaps are stepped on copies"
        made = self.empty(tuple(param.shape[d] for d in order), param.dtype)
        copy = made.transpose(inverse(order))
        self.copying.copy(copy, grad)
        return copy

    def _on_copies(self, params, grads, states, numbers, rates, options):
        """Step copies that lie in memory alike, and write back what became of them."""
        lists = [params, *states]
        copies = [[self.empty(p.shape, p.dtype) for p in params] for _ in lists]
        for copy, original in zip(chain(*copies), chain(*lists)):
            self.copying.copy(copy, original)
        self(copies[0], grads, copies[1:], numbers, rates, options)
        for copy, original in zip(chain(*copies), chain(*lists)):
            self.copying.copy(original, copy)


def _counted(rates: Callable[[float], tuple]) -> Callable[[list], list[tuple]]:
    """From the rates of a step number those of all parameters, whose counts go on by one."""

    def of_views(counts):
        known: dict[float, tuple] = {}  # to make a cached function takes longer
        found = []
        for count in counts:
            count[()] = number = count[()] + 1
            if number not in known:
                known[number] = rates(number)
            found.append(known[number])
        return found

    return of_views


def _rectification(t: float, beta2: float) -> float | None:
    """RAdam's factor on Adam's step number `t`, None while the variance is not known well enough."""
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * t * beta2**t / (1 - beta2**t)
    if length <= 5:
        return None
    return ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ** 0.5


def _decay(lr: float, weight_decay: float, decoupled: bool) -> tuple[float, float]:
    """What of a parameter is added to its gradient, and what it is multiplied by."""
    return (0.0, 1.0 - lr * weight_decay) if decoupled else (float(weight_decay), 1.0)


def _steps(cuda: Cuda) -> dict[str, Callable]:
    """The optimizers' steps by name."""
    on_device = DeviceRates(cuda)
    sgd = Step(cuda, "optimizer/sgd.cu", "sgd_step", (2, 3), 2)
    adam = Step(cuda, "optimizer/adam.cu", "adam_step", (4, 5), 3)
    adadelta = Step(cuda, "optimizer/adagrad.cu", "adadelta_step", (4,), 0)
    adagrad = Step(cuda, "optimizer/adagrad.cu", "adagrad_step", (3,), 1)
    adamax = Step(cuda, "optimizer/adam_variants.cu", "adamax_step", (4,), 1)
    nadam = Step(cuda, "optimizer/adam_variants.cu", "nadam_step", (4,), 3)
    radam = Step(cuda, "optimizer/adam_variants.cu", "radam_step", (4,), 2)
    rmsprop = Step(cuda, "optimizer/rmsprop.cu", "rmsprop_step", (3, 4, 5), 0)

    def sgd_step(params, grads, buffers, first, lr, momentum, dampening, weight_decay, nesterov, maximize):
        options = (float(momentum), float(dampening), float(weight_decay), nesterov, maximize)
        firsts = [1.0 if f else 0.0 for f in first] if momentum else [0.0] * len(params)

        def rates():
            return [(lr, f) for f in firsts] if lr.__class__ is float else on_device.sgd(lr, firsts)

        sgd(params, grads, [buffers] if momentum else [], [], rates, options)

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
        states = [exp_avgs, exp_avg_sqs, *([max_exp_avg_sqs] if amsgrad else [])]
        decay, decoupled_decay = (0.0, float(weight_decay)) if decoupled else (float(weight_decay), 0.0)
        options = (float(beta1), float(beta2), float(eps), decay, maximize)
        if on_device.counts(steps):
            adam(params, grads, states, [], lambda: on_device.adam(steps, lr, beta1, beta2, decoupled_decay), options)
            return

        def of_step(t):
            return lr / (1 - beta1**t), (1 - beta2**t) ** 0.5, 1.0 - lr * decoupled_decay

        adam(params, grads, states, [steps], _counted(of_step), options)

    def adadelta_step(params, grads, square_avgs, acc_deltas, steps, lr, rho, eps, weight_decay, maximize):
        options = (lr, float(rho), float(eps), float(weight_decay), maximize)
        adadelta(params, grads, [square_avgs, acc_deltas], [steps], _counted(lambda t: ()), options)

    def adagrad_step(params, grads, sums, steps, lr, lr_decay, eps, weight_decay, maximize):
        rates = _counted(lambda t: (lr / (1 + (t - 1) * lr_decay),))
        adagrad(params, grads, [sums], [steps], rates, (float(eps), float(weight_decay), maximize))

    def adamax_step(params, grads, exp_avgs, exp_infs, steps, lr, beta1, beta2, eps, weight_decay, maximize):
        rates = _counted(lambda t: (lr / (1 - beta1**t),))
        options = (float(beta1), float(beta2), float(eps), float(weight_decay), maximize)
        adamax(params, grads, [exp_avgs, exp_infs], [steps], rates, options)

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
        def of_step(t):
            mu, mu_next = (beta1 * (1 - 0.5 * 0.96 ** (s * momentum_decay)) for s in (t, t + 1))
            return mu, mu_next, 1 - beta2**t

        def rates(counts, products):
            found = []
            for (mu, mu_next, correction), view in zip(_counted(of_step)(counts), products):
                product = view.obj
                product *= mu  # in its own precision
                rest = float(product)
                found.append((lr * (1 - mu) / (1 - rest), lr * mu_next / (1 - rest * mu_next), correction))
            return found

        options = (float(beta1), float(beta2), float(eps), *_decay(lr, weight_decay, decoupled), maximize)
        nadam(params, grads, [exp_avgs, exp_avg_sqs], [steps, mu_products], rates, options)

    def radam_step(
        params, grads, exp_avgs, exp_avg_sqs, steps, lr, beta1, beta2, eps, weight_decay, decoupled, maximize
    ):
        def of_step(t):
            rate, factor = lr / (1 - beta1**t), _rectification(t, beta2)
            return (rate, 0.0) if factor is None else (rate * factor * (1 - beta2**t) ** 0.5, 1.0)

        options = (float(beta1), float(beta2), float(eps), *_decay(lr, weight_decay, decoupled), maximize)
        radam(params, grads, [exp_avgs, exp_avg_sqs], [steps], _counted(of_step), options)

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
        states = [square_avgs, *([grad_avgs] if centered else []), *([momentum_buffers] if momentum else [])]
        options = (lr, float(alpha), float(eps), float(weight_decay), float(momentum), centered, maximize)
        rmsprop(params, grads, states, [steps], _counted(lambda t: ()), options)

    made = (sgd_step, adam_step, adadelta_step, adagrad_step, adamax_step, nadam_step, radam_step, rmsprop_step)
    return {step.__name__: step for step in made}


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    empty, copying = cuda.empty, cuda.copying
    norm_parts = cuda.function("optimizer/clipping.cu", "norm_parts", T=FLOATS, NORM=_NORMS)
    norm_of_parts = cuda.function("optimizer/clipping.cu", "norm_of_parts", T=FLOATS, NORM=_NORMS)
    scale = cuda.function("optimizer/scaling.cu", "scale_step", T=_EVERY)

    def norm_into(out, tensors, order):
        """Write the norm of all elements of all tensors to `out`."""
        tensors = [x if fills_memory(x) else copying.dense(x) for x in tensors]
        key = out.dtype, order if order in _NORMS else None
        made = tables(1, 0, [x.size for x in tensors])
        parts = empty((sum(table.blocks for table in made),), np.dtype(np.float64))
        done = 0
        for table in made:
            table.arrays[0] = [x.data.ptr for x in tensors[table.begin : table.end]]
            norm_parts[key]((table.blocks,), (THREADS,), (table.struct, parts[done:], order))
            done += table.blocks
        norm_of_parts[key]((1,), (4 * THREADS,), (parts, done, out, order))

    def total_norm(tensors, norm_type):
        out = empty((), tensors[0].dtype)
        if norm_type == 0:  # the number of tensors that are not all zero
            counts = empty((len(tensors),), out.dtype)
            for i, tensor in enumerate(tensors):
                norm_into(counts[i : i + 1], [tensor], 0.0)
            tensors = [counts]
        norm_into(out, tensors, float(norm_type))
        return out

    def scale_step(tensors, factor):
        dtype = factor.dtype
        changed = [x if x.dtype == dtype and fills_memory(x) else copying.cast(x, dtype) for x in tensors]
        for table in tables(1, 0, [x.size for x in tensors]):
            table.arrays[0] = [x.data.ptr for x in changed[table.begin : table.end]]
            scale[dtype]((table.blocks,), (THREADS,), (table.struct, factor))
        for tensor, scaled in zip(tensors, changed):
            if scaled is not tensor:
                copying.copy(tensor, scaled)

    return [
        Kernel("scale_step", scale_step, offered(_EVERY)),
        Kernel("total_norm", total_norm, offered(FLOATS)),
        *(Kernel(name, step, offered(_EVERY)) for name, step in _steps(cuda).items()),
    ]
