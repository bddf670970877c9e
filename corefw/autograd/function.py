"""Custom gradients: `Function`, a computation with a backward written by the user."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from corefw.autograd.saved import restored_output
from corefw.dispatch.batching.arrays import LevelDevice
from corefw.dispatch.batching.tensors import level_of
from corefw.dispatch.declare import ops
from corefw.dtypes import FLOATING
from corefw.errors import GradientError
from corefw.graph.grad_mode import mode, no_recording
from corefw.graph.inplace import check_writable, rebase
from corefw.graph.nodes import freed, output_node, stale
from corefw.graph.views import node_of
from corefw.tensor import Node, Tensor, new, next_sequence


class FunctionCtx:
    """The first argument of `Function.forward` and `Function.backward`: takes notes from the one to the other.

    Attributes: ``saved_tensors`` what was saved; ``needs_input_grad`` for each argument of ``apply`` whether its
    gradient is wanted; any others the user sets.
    """

    to_save: tuple = ()
    to_save_forward: tuple = ()
    dirty_tensors: tuple = ()
    non_differentiable: tuple = ()
    materialize_grads = True
    needs_input_grad: tuple[bool, ...] = ()
    _node: Callable[[], FunctionNode | None] | None = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (inputs, outputs or others) for the backward; changes of them until then are noticed."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument 0 is of type {type(tensor).__name__}"
                )
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `Function.jvp`, which finds them as ``ctx.saved_tensors``."""
        self.to_save_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Say that these inputs were changed in place; they must be returned too."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say that no gradient flows through these outputs."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether the backward gets zeros (the default) or None for outputs that nothing was computed from."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What `save_for_backward` was given; RuntimeError if one was changed in place since, or all were freed."""
        node = self._node() if self._node is not None else None
        return self.to_save if node is None else node.restore()


class FunctionNode(Node):
    """The node of a `Function`: calls the user's backward."""

    __slots__ = ("arguments", "ctx", "output_infos", "output_names", "saved_kinds")
    function: type[Function]
    arguments: tuple[bool, ...]  # for each argument of apply whether it is a tensor
    ctx: FunctionCtx
    output_infos: tuple  # (shape, dispatch key) of each output, None for what is no tensor
    saves_tensors = True

    def backward(self, gradient):
        ctx, function = self.ctx, self.function
        gradients = gradient if gradient.__class__ is list else [gradient]
        if ctx.materialize_grads and any(g is None for g in gradients):
            gradients = [
                ops.zeros(info[0], dtype=info[1].dtype, device=info[1].device) if g is None and info is not None else g
                for g, info in zip(gradients, self.output_infos)
            ]
        user_backward = function.vjp if function.backward is Function.backward else function.backward
        results = user_backward(ctx, *gradients)
        return self._of_tensors(results if isinstance(results, tuple) else (results,))

    def _of_tensors(self, results: tuple) -> list[Tensor | None]:
        """The gradients of the tensors among the arguments."""
        arguments = self.arguments
        while len(results) > len(arguments) and results[-1] is None:
            results = results[:-1]
        if len(results) != len(arguments):
            raise GradientError(
                f"function {self.name()} returned an incorrect number of gradients (expected {len(arguments)}, got "
                f"{len(results)})"
            )
        gradients = []
        for i, (is_tensor, result) in enumerate(zip(arguments, results)):
            if result is not None and not is_tensor:
                raise GradientError(
                    f"function {self.name()} returned a gradient different than None at position {i + 1}, but the "
                    "corresponding forward input was not a Variable"
                )
            if result is not None and not isinstance(result, Tensor):
                raise GradientError(f"expected Variable or None (got {type(result).__name__})")
            if is_tensor:
                gradients.append(result)
        return gradients

    def save(self, tensors: tuple, outputs: tuple[Tensor | None, ...]) -> None:
        """Keep `tensors`; those among `outputs` as arrays, since the outputs hold this node."""
        saved: list[Any] = []
        kinds = []
        for i, tensor in enumerate(tensors):
            which = next((j for j, o in enumerate(outputs) if o is tensor and o is not None), None)
            if which is not None:
                kinds.append((f"output{which}", "output"))
                saved.append((tensor.array, tensor.version, +tensor.version[0]))
            else:
                kinds.append((f"tensor{i}", "tensor"))
                saved += [tensor, 0 if tensor is None else +tensor.version[0]]
        self.saved = tuple(saved)
        self.saved_kinds = tuple(kinds)
        self.output_names = tuple(f"output{j}" for j in range(len(outputs))) if self.outputs > 1 else ()

    def restore(self) -> tuple[Tensor | None, ...]:
        """What was saved, with its history; GradientError if it was freed, or changed in place."""
        if self.saved is None:
            raise freed(self)
        tensors: list[Tensor | None] = []
        items = iter(self.saved)
        for name, kind in self.saved_kinds:
            if kind == "tensor":
                tensor, count = next(items), next(items)
                version = None if tensor is None else tensor.version
            else:
                array, version, count = next(items)
                tensor = restored_output(self, name, array)
                tensor.version = version
                if self._is_constant(int(name.removeprefix("output"))):
                    tensor.node = None
            if version is not None and version[0] != count:
                raise stale(self.name(), tensor.array.shape, tensor.dispatch_key, count, version[0])
            tensors.append(tensor)
        return tuple(tensors)

    def _is_constant(self, index: int) -> bool:
        return index in self.__dict__.get("constant_outputs", ())

    def release(self) -> None:
        if self.saved_kinds:
            self.saved = None

    def __getattr__(self, name: str):
        """What the user set on `ctx` can be read from ``grad_fn`` too."""
        if name == "ctx":
            raise AttributeError(name)
        return getattr(self.ctx, name)


class Function:
    """Base class of computations with a gradient of their own; used by calling ``apply``.

    ``forward(ctx, *args)`` computes without being recorded, ``backward(ctx, *grads)`` takes one gradient per output and
    returns one per argument of forward (None for what is no tensor). Where ``setup_context(ctx, inputs, output)`` is
    defined too, ``forward(*args)`` takes no `ctx`. A backward that consists of tensor ops can be differentiated again.

    >>> import corefw as torch
    >>> class Cube(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return grad * 3 * x * x
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> y = Cube.apply(x)
    >>> y.backward()
    >>> x.grad, y.grad_fn.name()
    (tensor(12.), 'CubeBackward')
    """

    generate_vmap_rule = False
    _backward_cls: type[FunctionNode]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._backward_cls = type(
            cls.__name__ + "Backward", (FunctionNode,), {"__slots__": (), "__module__": cls.__module__, "function": cls}
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method: call it with .apply(...)."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: ``forward(ctx, *args)``, or ``forward(*args)`` beside a `setup_context`."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> Any:
        """Take notes on `ctx` after a `forward` without it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        """From the gradients of the outputs to those of the arguments: ``backward(ctx, *grad_outputs)``."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name for `backward`."""
        return Function.backward(ctx, *grad_outputs)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """From tangents of the arguments to those of the outputs, in forward-mode differentiation.

        A tensor without a tangent has zeros, or None after ``set_materialize_grads(False)``. It is called behind
        `forward`; where it is left out, `backward` is differentiated.
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> Any:
        """The computation over a batch."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs, and record the computation if one of the tensors in `args` requires a gradient."""
        ctx = FunctionCtx()
        separate = cls.setup_context is not Function.setup_context
        if separate or kwargs:
            leading = () if separate else (ctx,)
            bound = inspect.signature(cls.forward).bind(*leading, *args, **kwargs)
            bound.apply_defaults()
            args = bound.args[len(leading) :]
        are_tensors = tuple(isinstance(a, Tensor) for a in args)
        nodes = [node_of(a) for a in args if isinstance(a, Tensor)]
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        with no_recording():
            output = cls._run(ctx, args)
        raw = output if isinstance(output, tuple) else (output,)
        recorder = mode.recording if any(ctx.needs_input_grad) else False
        inputs = [a for a in args if isinstance(a, Tensor)]
        results = (
            _record(cls, ctx, inputs, are_tensors, nodes, raw, recorder) if recorder else _distinct(raw, inputs, ctx)
        )
        return results if isinstance(output, tuple) else results[0]

    @classmethod
    def _run(cls, ctx: FunctionCtx, args: tuple) -> Any:
        """The outputs, and what is noted on `ctx`; tangents come from `jvp`."""
        if LevelDevice.made:
            level = max(map(level_of, args), key=lambda level: level.depth if level else 0, default=None)
            if level is not None and (found := level.apply(cls, ctx, args, partial(cls._run, ctx))) is not None:
                return found
        if cls.setup_context is Function.setup_context:
            return cls.forward(ctx, *args)
        output = cls.forward(*args)
        cls.setup_context(ctx, args, output)
        return output


def _holds(tensors, tensor) -> bool:
    return any(t is tensor for t in tensors)


def _alias(tensor: Tensor) -> Tensor:
    """Another tensor over the same memory."""
    result = new(type(tensor))
    result.array, result.dispatch_key, result.version = tensor.array, tensor.dispatch_key, tensor.version
    result.view_info = result.node = None
    return result


def _distinct(raw: tuple, inputs: list[Tensor], ctx: FunctionCtx) -> tuple:
    """The outputs; an input that forward returned as it came becomes another tensor over its memory."""
    return tuple(
        _alias(o)
        if isinstance(o, Tensor)
        and not _holds(ctx.dirty_tensors, o)
        and (_holds(inputs, o) or o.node is not None or o.view_info is not None)
        else o
        for o in raw
    )


def _check_dirty(ctx: FunctionCtx, inputs: list[Tensor], raw: tuple) -> None:
    for tensor in ctx.dirty_tensors:
        if not _holds(raw, tensor):
            raise GradientError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                "are modified inplace must all be outputs of the Function."
            )
        if node_of(tensor) is not None:
            check_writable(tensor)
        if tensor.view_info is not None and (len(raw) > 1 or not _holds(inputs[:1], tensor)):
            raise GradientError(
                "a view was modified in place by a Function with several outputs, or not as its first tensor; clone "
                "the view first"
            )


def _record(cls, ctx: FunctionCtx, inputs, are_tensors, nodes, raw: tuple, recorder) -> tuple:
    """Make the node and give it to the outputs."""
    _check_dirty(ctx, inputs, raw)
    results = _distinct(raw, inputs, ctx)
    node = new(cls._backward_cls)
    node.inputs = tuple(nodes)
    node.hooks = None
    node.sequence = next_sequence()
    node.arguments = are_tensors
    node.ctx = ctx
    infos = tuple((r.array.shape, r.dispatch_key) if isinstance(r, Tensor) else None for r in results)
    node.output_infos = infos
    if len(results) == 1:
        node.shape, node.dispatch_key = infos[0] if infos[0] is not None else (None, None)
    else:
        node.outputs = len(results)
        node.shape, node.dispatch_key = None, tuple(None if info is None else info[1] for info in infos)
    constant = {
        i
        for i, (r, o) in enumerate(zip(results, raw))
        if not isinstance(r, Tensor) or r.dispatch_key.dtype.category < FLOATING or _holds(ctx.non_differentiable, o)
    }
    if constant:
        node.constant_outputs = constant
    ctx._node = weakref.ref(node)
    dirty = ctx.dirty_tensors
    for tensor in dirty:
        tensor.version[0] += 1
    node.save(ctx.to_save, tuple(r if r is o and isinstance(o, Tensor) else None for r, o in zip(results, raw)))
    for notes in (
        "to_save",
        "to_save_forward",
        "dirty_tensors",
        "non_differentiable",
    ):  # the outputs hold the node, the node must not hold them
        ctx.__dict__.pop(notes, None)
    if recorder is not True:
        recorder(node)
    for i, result in enumerate(results):
        if i in constant:
            continue
        if len(results) > 1:
            result.node = output_node(node, i, result.array, result.dispatch_key)
        elif _holds(dirty, result):
            rebase(result, node)
        else:
            result.node = node
    return results


class DelayedError(Node):
    """A node that cannot be differentiated: raises when it is reached."""

    __slots__ = ("message",)
    message: str

    def backward(self, gradient):
        raise GradientError(self.message)


def once_differentiable(backward: Callable) -> Callable:
    """Decorate a `Function.backward` that must not be differentiated itself: a second derivative raises.

    Used below ``@staticmethod``.
    """

    @functools.wraps(backward)
    def decorated(ctx, *gradients):
        with no_recording():
            results = backward(ctx, *gradients)
        if mode.recording is False:
            return results
        nodes = tuple(g.node for g in gradients if isinstance(g, Tensor) and g.requires_grad)
        if not nodes:
            return results
        several = isinstance(results, tuple)
        marked = tuple(
            _undifferentiable(r, nodes) if isinstance(r, Tensor) else r for r in (results if several else (results,))
        )
        return marked if several else marked[0]

    return decorated


def _undifferentiable(tensor: Tensor, nodes: tuple[Node, ...]) -> Tensor:
    result = _alias(tensor)
    node = result.node = new(DelayedError)
    node.inputs, node.saved, node.hooks = nodes, (), None
    node.shape, node.dispatch_key = tensor.array.shape, tensor.dispatch_key
    node.sequence = next_sequence()
    node.message = "trying to differentiate twice a function that was marked with @once_differentiable"
    return result


__all__ = ["Function", "FunctionCtx", "once_differentiable"]
