"""Optimizer steps over a whole parameter list, in place, and the norm of such a list."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import chain
from math import inf
from typing import Any
from weakref import ref

import numpy as np

from corefw.dispatch.backend import Kernel
from corefw.dispatch.records import Layout, record
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import COMPLEX, FLOATS, THREADS, argument, offered
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
        self, params: list, grads: list, states: Sequence[list], numbers: Sequence[list], rates: Callable[..., Any],
        struct: Any,
    ) -> None:  # fmt: skip
        """Step once.

        Args:
            params, grads: the parameters and their gradients.
            states: further lists of arrays.
            numbers: lists of what is kept on the host.
            rates: gives each parameter's rates for views of the numbers, which it may change; or an array that the
                device fills with them.
            struct: the step's numbers, as an argument of the launch.
        """
        lists = (params, *states)
        if any(len(column) != len(params) for column in (grads, *states, *numbers)):
            raise ValueError("the lists differ in their lengths")
        try:
            plan = self._plan(lists, numbers)
        except ValueError:
            return self._on_copies(params, grads, states, numbers, rates, struct)
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
            else:
                own = given[begin:end]
                same = own.count(own[0]) == len(own)
                table.rates[...] = np.array(own[:1] if same else own).T
            launch((table.blocks,), (THREADS,), (table.struct, computed, struct))

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

    def _on_copies(self, params, grads, states, numbers, rates, struct):
        """Step copies that lie in memory alike, and write back what became of them."""
        lists = [params, *states]
        copies = [[self.empty(p.shape, p.dtype) for p in params] for _ in lists]
        for copy, original in zip(chain(*copies), chain(*lists)):
            self.copying.copy(copy, original)
        self(copies[0], grads, copies[1:], numbers, rates, struct)
        for copy, original in zip(chain(*copies), chain(*lists)):
            self.copying.copy(original, copy)


# -- rates of step number t, those on the host ------------------------------------------------------------------------
def _learning_rate(s: Any, t: float) -> tuple:
    return (s.lr,)


def _decreasing(s: Any, t: float) -> tuple:
    return (s.lr / (1 + (t - 1) * s.lr_decay),)


def _corrected(s: Any, t: float) -> tuple:
    return (s.lr / (1 - s.beta1**t),)


def _shrinkage(s: Any) -> float:
    """What decoupled weight decay multiplies a parameter by."""
    return 1.0 - s.lr * s.weight_decay if s.decoupled_weight_decay else 1.0


def _corrections(s: Any, t: float) -> tuple:
    return s.lr / (1 - s.beta1**t), (1 - s.beta2**t) ** 0.5, _shrinkage(s)


def _rectified(s: Any, t: float) -> tuple:
    rate, longest = s.lr / (1 - s.beta1**t), 2 / (1 - s.beta2) - 1
    length = longest - 2 * t * s.beta2**t / (1 - s.beta2**t)
    if length <= 5:
        return rate, 0.0, _shrinkage(s)
    factor = ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ** 0.5
    return rate * factor * (1 - s.beta2**t) ** 0.5, 1.0, _shrinkage(s)


def _momenta(s: Any, t: float) -> tuple:
    """NAdam's decay rates of the mean in this step and in the next one, and the correction of the mean square."""
    mu, mu_next = (s.beta1 * (1 - 0.5 * 0.96 ** (i * s.momentum_decay)) for i in (t, t + 1))
    return mu, mu_next, 1 - s.beta2**t


def _counted(formula: Callable[[Any, float], tuple], s: Any, counts: list) -> list[tuple]:
    """The rates of all parameters, whose counts of steps, given as views, go on by one."""
    known: dict[float, tuple] = {}  # to make a cached function takes longer
    found = []
    for count in counts:
        count[()] = number = count[()] + 1
        if number not in known:
            known[number] = formula(s, number)
        found.append(known[number])
    return found


def _warmed_up(formula: Callable[[Any, float], tuple], s: Any, products: list, counts: list) -> list[tuple]:
    """As `_counted`, for NAdam, which keeps the product of its decay rates."""
    found = []
    for (mu, mu_next, correction), view in zip(_counted(formula, s, counts), products):
        product = view.obj
        product *= mu  # in its own precision
        rest = float(product)
        rates = s.lr * (1 - mu) / (1 - rest), s.lr * mu_next / (1 - rest * mu_next), correction, _shrinkage(s)
        found.append(rates)
    return found


def _uncounted(formula: Callable[[Any, float], tuple], s: Any) -> list[tuple]:
    """The rates of parameters whose steps are not counted."""
    return [formula(s, 0)] * len(s.params)


#: by step its file, the number of its rates, their formula, and the CUDA function that computes them
_STEPS = {
    "sgd_step": ("sgd.cu", 1, _learning_rate, "learning_rates"),
    "adam_step": ("adam.cu", 3, _corrections, "adam_rates"),
    "adadelta_step": ("adagrad.cu", 1, _learning_rate, "counting_rates"),
    "adagrad_step": ("adagrad.cu", 1, _decreasing, "adagrad_rates"),
    "adamax_step": ("adam_variants.cu", 1, _corrected, "adamax_rates"),
    "nadam_step": ("adam_variants.cu", 4, _momenta, "nadam_rates"),
    "radam_step": ("adam_variants.cu", 3, _rectified, "radam_rates"),
    "rmsprop_step": ("rmsprop.cu", 1, _learning_rate, "counting_rates"),
}
_HOST_RATES: dict[int, Callable] = {
    0: _uncounted,
    1: _counted,
    2: _warmed_up,
}  # by how many numbers are counted for each parameter
_NUMBERS = Layout("numbers")


@lru_cache(maxsize=256)
def _struct(packed: bytes) -> Any:
    """A step's numbers as an argument of launches."""
    return argument(np.frombuffer(packed, np.uint8))


def _stepping(cuda: Cuda, name: str) -> Callable:
    """The kernel of an optimizer's step."""
    file, rates, formula, device_rates = _STEPS[name]
    spec, pack = record(name), _NUMBERS.packer(name)
    first_number = len(spec.lists) + len(spec.rates)
    most = len(spec.arrays)
    step = Step(cuda, f"optimizer/{file}", name, range(most - len(spec.where), most + 1), rates)
    on_device = DeviceRates(cuda, device_rates, rates)
    on_host = _HOST_RATES[len(spec.counts)]

    def kernel(*arguments):
        s, numbers = spec.named(*arguments), _struct(pack(*arguments[first_number:]))
        counts = [getattr(s, name) for name in spec.counts]
        params, grads, *states = spec.present(s)
        if on_device.serve(counts, s.lr):
            step(params, grads, states, [], lambda: on_device(len(params), counts, s.lr, numbers), numbers)
            return
        step(params, grads, states, counts, partial(on_host, formula, s), numbers)

    return kernel


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
        *(Kernel(name, _stepping(cuda, name), offered(_EVERY)) for name in _STEPS),
    ]
