"""Collectives by PyTorch's names: tensors of all ranks of a group are reduced, gathered, scattered, exchanged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from corefw.dispatch.declare import ops
from corefw.distributed.groups import ProcessGroup, chosen_group, get_group_rank
from corefw.distributed.reduce_op import PremulSum, ReduceOp
from corefw.distributed.work import Work
from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor


def checked(what: str, *tensors: Any) -> None:
    """Raise TypeError if one of the arguments is no tensor."""
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"Invalid function argument. Expected parameter `{what}` of type torch.Tensor, but got "
                            f"{type(tensor).__name__}")  # fmt: skip


def _checked_list(what: str, tensors: Any, size: int | None = None) -> list[Tensor]:
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"Invalid function argument. Expected parameter `{what}` of type List[torch.Tensor]")
    checked(what, *tensors)
    if size is not None and len(tensors) != size:
        raise ValueError(f"{what}: expected a tensor for each of {size} ranks, but got {len(tensors)}")
    return list(tensors)


def _reduction(op: Any, group: ProcessGroup) -> tuple[str, Callable | None, Callable | None]:
    """The reduction of an engine, what is done to each tensor before it, and after it."""
    if isinstance(op, ReduceOp):
        if op is ReduceOp.AVG:
            return "sum", None, lambda tensor: tensor.div_(group.size())
        return op.word, None, None
    if not isinstance(op, PremulSum):
        raise TypeError(f"op: expected a ReduceOp, but got {op!r}")
    return "sum", lambda tensor: tensor.mul_(op.factor), None


def _ended(work: Work, async_op: bool) -> Work | None:
    if async_op:
        return work.left_going()
    work.wait()
    return None


def _in_place(
    name: str, tensors: list[Tensor], group: ProcessGroup, *options: Any, before: Callable | None = None,
    after: Callable | None = None,
) -> Work:  # fmt: skip
    """Begin a collective that changes tensors, whatever their strides."""
    if before is None and after is None and all([tensor.is_contiguous() for tensor in tensors]):  # noqa: C419
        return Work(group, name, tensors, group.start(name, tensors, *options))
    with no_recording():
        held = [tensor.detach() if tensor.is_contiguous() else tensor.contiguous() for tensor in tensors]
        for tensor in held if before else ():
            before(tensor)  # type: ignore[misc]

    def finish() -> None:
        with no_recording():
            for tensor, own in zip(tensors, held):
                if after is not None:
                    after(own)
                if not tensor.is_contiguous():
                    tensor.detach().copy_(own)

    return Work(group, name, tensors, group.start(name, held, *options), finish)


def _into(
    name: str, outputs: list[Tensor], inputs: list[Tensor], group: ProcessGroup, *options: Any,
    after: Callable | None = None, before: Callable | None = None, results: Sequence[Tensor] | None = None,
) -> Work:  # fmt: skip
    """Begin a collective from some tensors into others, whatever their strides."""
    with no_recording():
        sources = [tensor.detach().contiguous() for tensor in inputs]
        if before:
            sources = [source.clone() for source in sources]
            for source in sources:
                before(source)
        held = [output.detach() if output.is_contiguous() else output.contiguous() for output in outputs]

    def finish() -> None:
        with no_recording():
            for output, own in zip(outputs, held):
                if after is not None:
                    after(own)
                if not output.is_contiguous():
                    output.detach().copy_(own)

    started = group.start(name, held, sources, *options)
    return Work(group, name, inputs, started, finish, outputs if results is None else results)


def _root(group: ProcessGroup, rank: int | None, group_rank: int | None, name: str) -> int:
    """The rank in the group of what is given as a rank of the world, or as one of the group."""
    if (rank is None) == (group_rank is None):
        if rank is None:
            return 0
        raise ValueError(f"Can't specify both {name} and group_{name}")
    return get_group_rank(group, rank) if rank is not None else int(group_rank)  # type: ignore[arg-type]


# -- the same on all ranks --------------------------------------------------------------------------------------------
def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """`tensor` becomes the sum (or another reduction) of the tensors of all ranks.

    Args:
        tensor: of the same shape and dtype on all ranks.
        op: the reduction.
        group: the processes; all if missing.
        async_op: return at once, with a Work to wait for.

    Raises:
        DistBackendError: a rank died, hangs, or called something else.
    """
    checked("tensor", tensor)
    if (found := chosen_group(group)) is None:
        return None
    word, before, after = _reduction(op, found)
    return _ended(_in_place("all_reduce", [tensor], found, word, before=before, after=after), async_op)


def all_reduce_coalesced(
    tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_reduce` of several tensors."""
    listed = _checked_list("tensors", [tensors] if isinstance(tensors, Tensor) else tensors)
    if (found := chosen_group(group)) is None:
        return None
    word, before, after = _reduction(op, found)
    return _ended(_in_place("all_reduce", listed, found, word, before=before, after=after), async_op)


def reduce(
    tensor: Tensor, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """As `all_reduce`, on rank `dst` alone; what `tensor` holds elsewhere afterwards is undefined."""
    checked("tensor", tensor)
    if (found := chosen_group(group)) is None:
        return None
    root = _root(found, dst, group_dst, "dst")
    word, before, after = _reduction(op, found)
    after = after if found.rank() == root else None
    return _ended(_in_place("reduce", [tensor], found, word, root, before=before, after=after), async_op)


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """`tensor` becomes that of rank `src`."""
    checked("tensor", tensor)
    if (found := chosen_group(group)) is None:
        return None
    return _ended(_in_place("broadcast", [tensor], found, _root(found, src, group_src, "src")), async_op)


# -- gathering and scattering -----------------------------------------------------------------------------------------
def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """`output_tensor` holds the inputs of all ranks, joined along the first dimension or stacked along a new one."""
    checked("output_tensor", output_tensor)
    checked("input_tensor", input_tensor)
    if (found := chosen_group(group)) is None:
        return None
    _check_sizes("all_gather_into_tensor", output_tensor, input_tensor, found.size())
    return _ended(_into("all_gather", [output_tensor], [input_tensor], found), async_op)


def _check_sizes(name: str, large: Tensor, small: Tensor, size: int) -> None:
    if large.numel() != small.numel() * size:
        raise ValueError(
            f"{name}: {list(large.shape)} has {large.numel()} elements, but {size} ranks with {list(small.shape)} have "
            f"{small.numel() * size}"
        )
    if large.dtype is not small.dtype:
        raise ValueError(f"{name}: the tensors have different dtypes, {large.dtype} and {small.dtype}")


all_gather_single = all_gather_into_tensor


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """`tensor_list` becomes the tensors of all ranks, which may have different shapes if they are known to all."""
    checked("tensor", tensor)
    if (found := chosen_group(group)) is None:
        return None
    listed = _checked_list("tensor_list", tensor_list, found.size())
    if any(t.shape != tensor.shape for t in listed):
        if listed[found.rank()].shape != tensor.shape:
            raise ValueError("all_gather: this rank's tensor and its place in tensor_list have different shapes")
        return _uneven_all_gather(listed, tensor, found, async_op)
    return _ended(_stacked("all_gather", listed, tensor, found), async_op)


def _stacked(name: str, listed: list[Tensor], tensor: Tensor, group: ProcessGroup, *options: Any) -> Work:
    """Begin a collective whose result are rows, which go to the tensors of a list."""
    stack = tensor.new_empty((len(listed), *tensor.shape)) if listed else tensor.new_empty(0)
    work = _into(name, [stack], [tensor], group, *options, results=listed)
    into_rows(work, stack, listed)
    return work


def into_rows(work: Work, stack: Tensor, listed: list[Tensor]) -> None:
    """Let the end of a work copy the rows of its result into tensors."""

    def copy() -> None:
        with no_recording():
            for target, row in zip(listed, stack):
                target.detach().copy_(row)

    work.then(copy)


def _uneven_all_gather(listed: list[Tensor], tensor: Tensor, group: ProcessGroup, async_op: bool) -> Work | None:
    parts = []
    for root, target in enumerate(listed):
        if root == group.rank():
            with no_recording():
                target.detach().copy_(tensor)
        parts.append(_in_place("broadcast", [target], group, root))
    return _ended(_together("all_gather", parts, group, listed), async_op)


def _together(name: str, works: Sequence[Work], group: ProcessGroup, results: Sequence[Tensor] = ()) -> Work:
    """Several works as one."""

    def finish() -> None:
        for work in works:
            work.wait()

    return Work(group, name, results, [request for work in works for request in work.requests], finish)


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_gather` of several tensors: ``output_tensor_lists[rank][i]`` becomes tensor i of that rank."""
    if (found := chosen_group(group)) is None:
        return None
    inputs = _checked_list("input_tensor_list", input_tensor_list)
    works = [
        _stacked("all_gather", [outputs[i] for outputs in output_tensor_lists], tensor, found)
        for i, tensor in enumerate(inputs)
    ]
    return _ended(_together("all_gather", works, found), async_op)


def gather(
    tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None, group: Any = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """`gather_list`, on rank `dst` alone, becomes the tensors of all ranks."""
    checked("tensor", tensor)
    if (found := chosen_group(group)) is None:
        return None
    root = _root(found, dst, group_dst, "dst")
    if found.rank() == root:
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        listed = _checked_list("gather_list", gather_list, found.size())
        if any(t.shape != tensor.shape for t in listed):
            raise ValueError("gather: all tensors of gather_list must have the shape of tensor")
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    else:
        listed = []
    return _ended(_stacked("gather", listed, tensor, found, root), async_op)


def scatter(
    tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None, group: Any = None,
    async_op: bool = False, group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """`tensor` becomes this rank's of `scatter_list`, which rank `src` alone gives."""
    checked("tensor", tensor)
    if (found := chosen_group(group)) is None:
        return None
    root = _root(found, src, group_src, "src")
    if found.rank() == root:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        listed = _checked_list("scatter_list", scatter_list, found.size())
        with no_recording():
            source = ops.stack(listed)
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    else:
        source = tensor.detach().new_empty(0)
    return _ended(_into("scatter", [tensor], [source], found, root), async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`output` becomes this rank's part of the reduction of `input`, which all ranks give."""
    checked("output", output)
    checked("input", input)
    if (found := chosen_group(group)) is None:
        return None
    _check_sizes("reduce_scatter_tensor", input, output, found.size())
    word, before, after = _reduction(op, found)
    return _ended(_into("reduce_scatter", [output], [input], found, word, before=before, after=after), async_op)


reduce_scatter_single = reduce_scatter_tensor


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`output` becomes the reduction of what all ranks have for this one in `input_list`."""
    checked("output", output)
    if (found := chosen_group(group)) is None:
        return None
    listed = _checked_list("input_list", input_list, found.size())
    with no_recording():
        return reduce_scatter_tensor(output, ops.stack(listed), op, found, async_op)


# -- exchanging -------------------------------------------------------------------------------------------------------
def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Any = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Part i of `input` goes to rank i, part i of `output` comes from there.

    Args:
        output, input: parts along the first dimension.
        output_split_sizes, input_split_sizes: the parts' sizes; equal ones if missing.
    """
    checked("output", output)
    checked("input", input)
    if (found := chosen_group(group)) is None:
        return None
    received = _counts("output", output, output_split_sizes, found.size())
    sent = _counts("input", input, input_split_sizes, found.size())
    return _ended(_into("all_to_all", [output], [input], found, received, sent), async_op)


def _counts(name: str, tensor: Tensor, sizes: Sequence[int] | None, ranks: int) -> tuple[int, ...]:
    """The numbers of elements of a tensor's parts."""
    first = tensor.shape[0] if tensor.ndim else 1
    if not sizes:
        if first % ranks:
            raise ValueError(f"all_to_all_single: {name}'s first size {first} is not divisible by {ranks} ranks")
        sizes = [first // ranks] * ranks
    if len(sizes) != ranks or sum(sizes) != first:
        raise ValueError(
            f"all_to_all_single: {name}_split_sizes {list(sizes)} must be {ranks} sizes that sum to {first}"
        )
    row = tensor.numel() // first if first else 0
    return tuple(size * row for size in sizes)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """Tensor i of `input_tensor_list` goes to rank i, tensor i of `output_tensor_list` comes from there."""
    if (found := chosen_group(group)) is None:
        return None
    outputs = _checked_list("output_tensor_list", output_tensor_list, found.size())
    inputs = _checked_list("input_tensor_list", input_tensor_list, found.size())
    with no_recording():
        source = ops.cat([tensor.detach().reshape(-1) for tensor in inputs])
        target = source.new_empty(sum(tensor.numel() for tensor in outputs))
    received = tuple(tensor.numel() for tensor in outputs)
    sent = tuple(tensor.numel() for tensor in inputs)
    work = _into("all_to_all", [target], [source], found, received, sent, results=outputs)

    def copy() -> None:
        with no_recording():
            for output, part in zip(outputs, target.split(received)):
                output.detach().copy_(part.view(output.shape))

    work.then(copy)
    return _ended(work, async_op)


# -- meeting ----------------------------------------------------------------------------------------------------------
def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None
) -> Work | None:
    """Return when all ranks have called this.

    Args:
        group: the processes; all if missing.
        async_op: return at once, with a Work to wait for.
        device_ids: accepted for PyTorch's sake.
        timeout: how long to wait; the group's if missing.
    """
    if (found := chosen_group(group)) is None:
        return None
    request = found.any_communicator().barrier()
    work = Work(found, "barrier", [], [] if request is None else [request])
    if timeout is not None and not async_op:
        work.wait(timeout)
    return _ended(work, async_op)
