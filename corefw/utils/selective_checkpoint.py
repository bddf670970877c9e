"""Selective checkpointing: results of some kernels are kept in the forward, so that they are not computed again.

Both contexts are modes, as PyTorch's are below autograd: what is computed again is recorded as in the forward, but a
kernel whose result was kept gives that.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Self

from corefw import dtypes
from corefw._ops import OpOverload, OpOverloadPacket, ops
from corefw.devices import DispatchKey
from corefw.dispatch.flags import unheard
from corefw.dispatch.modes import Mode
from corefw.dispatch.op import Op
from corefw.sequences import alike
from corefw.tensor import Tensor, wrap
from corefw.versions import receive

_MISMATCH = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that "
    "changed between forward and backward."
)


class CheckpointPolicy(Enum):
    """What is done with a kernel's result: SAVE keeps it, RECOMPUTE and CPU_OFFLOAD leave it to the second call.

    Who compiles may override what is preferred (PREFER), and not what must be (MUST); nobody does here.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is given first: ``op_output``, the result; ``is_recompute``, always False, as it is asked in the
    forward alone."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None):
        self.is_recompute, self.op_output = is_recompute, op_output


Policy = Callable[..., CheckpointPolicy | bool]

# -- kernels by PyTorch's names ---------------------------------------------------------------------------------------
#: kernels that have another name here than the op of which they compute all that costs time
_KERNELS = {
    **{"attention": "scaled_dot_product_attention", "layer_normalization": "layer_norm"},
    **{"group_normalization": "group_norm", "batch_normalization": "batch_norm", "rms_normalization": "rms_norm"},
    **{"functional_embedding": "embedding", "pick_rows": "embedding", "max_dim": "max", "min_dim": "min"},
    **{"cast": "_to_copy"},
}
_PRODUCTS = {(1, 1): "dot", (2, 1): "mv", (2, 2): "mm"}


def _names(op: Op, arguments: Sequence[Any]) -> tuple[str, ...]:
    """What a call of a kernel is called: first as PyTorch calls what it computes in these shapes."""
    if op.name == "linear":
        return "mm" if arguments[2] is None else "addmm", "linear"
    if op.name == "matmul":
        first, second = (len(array.shape) for array in arguments[:2])
        folded = "mm" if first > 2 and second == 2 else "bmm"  # PyTorch folds the batch into the rows
        return _PRODUCTS.get((first, second), folded), "matmul"
    return (_KERNELS.get(op.name, op.name),)


# -- the contexts -----------------------------------------------------------------------------------------------------
_RECOMPUTED, _CONSUMED = object(), object()


class _Kept:
    """A kernel's result, with the versions of the tensors that were made of it."""

    def __init__(self, result: Any):
        self.result = result
        self.versions: list[tuple[list[int], int]] = []
        self.missing = len(result) if isinstance(result, (tuple, list)) else 1

    def receive(self, version: list[int]) -> None:
        """Note the version of a new tensor, if it is one of the result's."""
        if self.missing:
            self.versions.append((version, version[0]))
            self.missing -= 1

    def changed(self) -> bool:
        """Whether the result was changed in place."""
        return any(version[0] != count for version, count in self.versions)


Storage = dict[str, list[Any]]


class _Outermost(Mode):
    """A mode that sees the kernels that its thread calls, and not those that these call in turn."""

    def __init__(self):
        self._local = threading.local()
        self._before: list[Any] = []

    def call(self, op: Op, dispatch_key: DispatchKey, function: Callable, arguments: tuple) -> Any:
        """The result of a call of `function`, or another in its place."""
        raise NotImplementedError

    def wrap(self, op: Op, dispatch_key: DispatchKey, who: str, function: Callable) -> Callable:
        if op.view or op.update or (who == "composite" and not op.gradients):
            return function  # what costs nothing, leaves nothing, or is a function of tensors
        local, call = self._local, self.call

        def called(*arguments, **options):
            if options or not getattr(local, "outside", False):  # into memory that is there; from inside of a kernel
                return function(*arguments, **options)
            local.outside = False
            try:
                return call(op, dispatch_key, function, arguments)
            finally:
                local.outside = True

        return unheard(called)

    def __enter__(self) -> Self:
        self._before.append(getattr(self._local, "outside", False))
        self._local.outside = True
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        self._local.outside = self._before.pop()
        super().__exit__(*exception)


class _Keeping(_Outermost):
    """Around the forward: keeps the results that the policy wants."""

    def __init__(self, policy: Policy | list[str], storage: Storage):
        super().__init__()
        self.policy, self.storage = policy, storage
        self._receivers: list[Any] = []
        self._kept: _Kept | None = None

    def call(self, op: Op, dispatch_key: DispatchKey, function: Callable, arguments: tuple) -> Any:
        result = function(*arguments)
        self._kept = _Kept(result) if self._wanted(op, dispatch_key, result, arguments) else None
        self.storage[op.name].append(self._kept or _RECOMPUTED)
        return result

    def _wanted(self, op: Op, dispatch_key: DispatchKey, result: Any, arguments: tuple) -> bool:
        names = _names(op, arguments)
        if isinstance(self.policy, list):
            return not set(self.policy).isdisjoint(names)
        seen, given = _tensors(dispatch_key, result), [_tensors(dispatch_key, value) for value in arguments]
        named = getattr(ops.aten, names[0]).default
        found = self.policy(SelectiveCheckpointContext(is_recompute=False, op_output=seen), named, *given)
        return found in (True, CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)

    def _receive(self, version: list[int]) -> None:
        if self._kept is not None:
            self._kept.receive(version)
        if self._receivers[-1] is not None:  # of a region around this one
            self._receivers[-1](version)

    def __enter__(self) -> Self:
        self._receivers.append(receive(self._receive))
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        receive(self._receivers.pop())


class _Giving(_Outermost):
    """Around the second call: gives the results that were kept, each once.

    One that was changed since is no error where nothing follows: the result of the whole is not needed for a gradient.
    """

    def __init__(self, storage: Storage, mutable: bool):
        super().__init__()
        self.storage, self.mutable = storage, mutable
        self.counts: Counter[str] = Counter()
        self._spoiled = False

    def call(self, op: Op, dispatch_key: DispatchKey, function: Callable, arguments: tuple) -> Any:
        if self._spoiled:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        index, kept = self.counts[op.name], self.storage[op.name]
        self.counts[op.name] += 1
        if index >= len(kept):
            raise RuntimeError(
                f"{op.name} invocation index {index} encountered during backward but not found in storage. {_MISMATCH}"
            )
        found = kept[index]
        if found is _RECOMPUTED:
            return function(*arguments)
        if found is _CONSUMED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        kept[index] = _CONSUMED
        self._spoiled = not self.mutable and found.changed()
        return function(*arguments) if self._spoiled else found.result

    def __enter__(self) -> Self:
        self.counts.clear()
        self._spoiled = False
        return super().__enter__()


def _tensors(dispatch_key: DispatchKey, value: Any) -> Any:
    """Arrays as tensors; what is none as it is."""
    if isinstance(value, (tuple, list)):
        return alike(value, [_tensors(dispatch_key, item) for item in value])
    if value.__class__ is dispatch_key.runtime.array_type:
        return wrap(value, dispatch_key.with_dtype(dtypes.of_numpy(value.dtype)))
    return value


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Policy | list[OpOverload], allow_cache_entry_mutation: bool = False
) -> tuple[Mode, Mode]:
    """The contexts of a `checkpoint` that keeps some results instead of computing them again.

    Args:
        policy_fn_or_list: ``policy(context, op, *arguments)``, which says of each kernel's result what is done with it
            by a `CheckpointPolicy`; or a list of the ops whose results are kept, such as ``torch.ops.aten.mm.default``.
            Kernels are named as PyTorch names them: a linear layer is ``addmm``, or ``mm`` without a bias. Views are
            taken again, and the policy is not asked.
        allow_cache_entry_mutation: take a kept result although it was changed in place since.

    Raises:
        ValueError: something in the list is no op with its overload.
        TypeError: it is neither a function nor a list.

    >>> import corefw as torch
    >>> from functools import partial
    >>> from corefw.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> contexts = partial(create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
    >>> x = torch.ones(2, 2, requires_grad=True)
    >>> checkpoint(lambda x: (x @ x).sin().sum(), x, use_reentrant=False, context_fn=contexts).backward()
    >>> x.grad
    tensor([[-1.6646, -1.6646],
            [-1.6646, -1.6646]])
    """
    policy: Policy | list[str]
    if isinstance(policy_fn_or_list, list):
        policy = [_op_name(op) for op in policy_fn_or_list]
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: Storage = defaultdict(list)
    return _Keeping(policy, storage), _Giving(storage, allow_cache_entry_mutation)


def _op_name(op: Any) -> str:
    """The name of an op in a list."""
    if not isinstance(op, OpOverload):
        packet = isinstance(op, OpOverloadPacket)
        hint = f"Please update the OpOverloadPacket to a specific OpOverload, such as {op}.default." if packet else ""
        raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. {hint}")
    return op.__qualname__


# -- for `checkpoint(debug=True)` -------------------------------------------------------------------------------------
class Logging(_Outermost):
    """Notes what runs: ``lines``, a kernel each."""

    def __init__(self):
        super().__init__()
        self.lines: list[str] = []

    def call(self, op: Op, dispatch_key: DispatchKey, function: Callable, arguments: tuple) -> Any:
        shown = ", ".join(_shown(dispatch_key, value) for value in arguments)
        result = function(*arguments)
        self.lines.append(f"{_names(op, arguments)[0]}({shown}) -> {_shown(dispatch_key, result)}")
        return result

    def __enter__(self) -> Self:
        self.lines.clear()  # the latest call alone is told of
        return super().__enter__()

    def __str__(self) -> str:
        return "\n".join(self.lines)


def _shown(dispatch_key: DispatchKey, value: Any) -> str:
    seen = _tensors(dispatch_key, value)
    if isinstance(seen, (tuple, list)):
        return f"({', '.join(_shown(dispatch_key, item) for item in value)})"
    return f"{seen.dtype.name}{list(seen.shape)}" if isinstance(seen, Tensor) else repr(seen)
