"""Sequences of different lengths in one tensor: padded to one length, or packed one step after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from corefw.dispatch.declare import ops
from corefw.dtypes import dtype, float16, float32, float64, int8, int16, int32, int64, uint8
from corefw.errors import ShapeError
from corefw.tensor import Tensor
from corefw.tensor_api.construction import tensor


def _bind(tensor: Tensor | None, function):
    return None if tensor is None else function(tensor)


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """A batch of sequences packed step after step: what recurrent layers take and give in place of padded tensors.

    Made by `pack_padded_sequence` and `pack_sequence`.

    Attributes:
        data: (rows, ...), the first elements of all sequences, the longest first, then the second ones, and so on.
        batch_sizes: the number of rows of each step; on the CPU.
        sorted_indices: the positions of the sorted sequences in the batch, None if they came sorted.
        unsorted_indices: the inverse permutation.
    """

    __slots__ = ()

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> Any:
        if batch_sizes is None:
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn."
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs) -> PackedSequence:
        """With `data` converted by `Tensor.to`; the indices follow it to its device. Itself where nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = (_bind(t, lambda t: t.to(data.device)) for t in (self.sorted_indices, self.unsorted_indices))
        return type(self)(data, self.batch_sizes, *indices)

    def cpu(self, *args, **kwargs) -> PackedSequence:
        """On the CPU."""
        return self.to(*args, **{"device": "cpu", **kwargs})

    def cuda(self, *args, **kwargs) -> PackedSequence:
        """On a CUDA device, the current one if none is given."""
        return self.to(*args, **kwargs) if args else self.to(**{"device": "cuda", **kwargs})

    def pin_memory(self) -> PackedSequence:
        """In page-locked memory."""
        indices = (_bind(t, lambda t: t.pin_memory()) for t in (self.sorted_indices, self.unsorted_indices))
        return type(self)(self.data.pin_memory(), self.batch_sizes, *indices)

    def is_pinned(self) -> bool:
        """Whether `data` lies in page-locked memory."""
        return self.data.is_pinned()

    @property
    def is_cuda(self) -> bool:
        """Whether `data` is on a CUDA device."""
        return self.data.is_cuda


def _converting(name: str, target: dtype):
    def convert(self):
        return self.to(dtype=target)

    convert.__name__ = name
    convert.__qualname__ = f"PackedSequence.{name}"
    convert.__doc__ = f"With `data` converted to {target.name}."
    return convert


_CONVERSIONS = {
    **{"double": float64, "float": float32, "half": float16},
    **{"long": int64, "int": int32, "short": int16, "char": int8, "byte": uint8},
}
for _name, _dtype in _CONVERSIONS.items():
    setattr(PackedSequence, _name, _converting(_name, _dtype))


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The inverse of a permutation given as a 1-D tensor of positions; None of None.

    >>> import corefw as torch
    >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    positions = ops.arange(0, permutation.numel(), device=permutation.device)
    return ops.empty_like(permutation).scatter_(0, permutation, positions)


_UNSORTED = (
    "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
    "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not "
    "need ONNX exportability."
)


def _check_lengths(lengths: Tensor, steps: int, batch: int) -> None:
    if lengths.ndim != 1 or lengths.device.type != "cpu":
        raise ShapeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.ndim}D {lengths.device.type} tensor"
        )
    if len(lengths) != batch:
        raise ShapeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} (batch_size={batch})"
        )
    if not steps or not batch:
        raise ShapeError("Cannot pack empty tensors.")
    given = lengths.tolist()
    if min(given) <= 0:
        raise ShapeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if given != sorted(given, reverse=True):
        raise ShapeError(_UNSORTED)
    if given[0] > steps:
        raise ShapeError(f"Expected lengths of at most the {steps} steps of the input, but got {given[0]}")


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences of different lengths.

    Args:
        input: (steps, batch, ...), or (batch, steps, ...) with `batch_first`.
        lengths: the length of each sequence; a tensor must be on the CPU.
        batch_first: how `input` is laid out.
        enforce_sorted: whether unsorted lengths are an error; else the sequences are sorted by length, and the result
            remembers how.

    >>> import corefw as torch
    >>> padded = torch.tensor([[1, 4], [2, 0], [3, 0]])
    >>> torch.nn.utils.rnn.pack_padded_sequence(padded, [3, 1]).data
    tensor([1, 4, 2, 3])
    """
    if isinstance(lengths, Tensor):
        lengths = lengths.to(dtype=int64)
    else:
        lengths = tensor(list(lengths), dtype=int64, device="cpu")
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = lengths.sort(descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    if batch_first:
        input = input.transpose(0, 1)
    steps, batch = input.size(0), input.size(1)
    _check_lengths(lengths, steps, batch)
    present = ops.arange(int(lengths[0]), device="cpu").unsqueeze(1) < lengths
    rows = present.flatten().nonzero().flatten().to(input.device)
    return PackedSequence(input.flatten(0, 1).index_select(0, rows), present.sum(1), sorted_indices)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Pad packed sequences to one length; the inverse of `pack_padded_sequence`.

    Args:
        sequence: the packed batch.
        batch_first: whether to give (batch, steps, ...) instead of (steps, batch, ...).
        padding_value: what stands after a sequence's end.
        total_length: the number of steps; by default the longest sequence's length, ValueError if it is less.

    Returns: the padded sequences, in the order in which they were packed, and their lengths.

    >>> import corefw as torch
    >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])])
    >>> torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2, 3],
            [4, 0, 0]]), tensor([3, 1]))
    """
    data, batch_sizes, _, unsorted_indices = sequence
    steps, batch = len(batch_sizes), int(batch_sizes[0])
    if total_length is not None and total_length < steps:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {steps}"
        )
    present = ops.arange(batch, device=batch_sizes.device) < batch_sizes.unsqueeze(1)
    rows = present.flatten().nonzero().flatten().to(data.device)
    size = (steps if total_length is None else total_length, batch)
    padded = data.new_full((size[0] * size[1], *data.shape[1:]), padding_value).index_copy(0, rows, data)
    padded = padded.unflatten(0, size)
    if batch_first:
        padded = padded.transpose(0, 1)
    lengths = present.sum(0)
    if unsorted_indices is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, unsorted_indices), lengths[unsorted_indices.cpu()]


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences of different lengths, padded to the longest one's.

    Args:
        sequences: tensors (length, ...) that differ in their first size only.
        batch_first: whether to give (batch, steps, ...) instead of (steps, batch, ...).
        padding_value: what stands beside the shorter ones.
        padding_side: "right" or "left".

    >>> import corefw as torch
    >>> torch.nn.utils.rnn.pad_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])], batch_first=True)
    tensor([[1, 2, 3],
            [4, 0, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = list(sequences)
    if not sequences:
        raise ShapeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    first = sequences[0]
    trailing = first.shape[1:]
    for sequence in sequences:
        if sequence.ndim == 0 or sequence.shape[1:] != trailing:
            raise ShapeError(
                "pad_sequence: the sequences must have the same sizes after the first, got shapes "
                f"{[list(s.shape) for s in sequences]}"
            )
    steps, batch = max(map(len, sequences)), len(sequences)
    rows: list[int] = []
    for i, sequence in enumerate(sequences):
        start = steps - len(sequence) if padding_side == "left" else 0
        row, stride = (i * steps + start, 1) if batch_first else (start * batch + i, batch)
        rows += range(row, row + len(sequence) * stride, stride)
    positions = tensor(rows, dtype=int64, device=first.device)
    data = ops.cat([sequence.to(first.dtype) for sequence in sequences])
    padded = first.new_full((steps * batch, *trailing), padding_value).index_copy(0, positions, data)
    return padded.unflatten(0, (batch, steps) if batch_first else (steps, batch))


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded batch, each of its own length.

    Args:
        padded_sequences: (steps, batch, ...), or (batch, steps, ...) with `batch_first`.
        lengths: the length of each sequence.
        batch_first: how the batch is laid out.

    >>> import corefw as torch
    >>> torch.nn.utils.rnn.unpad_sequence(torch.tensor([[1, 2], [3, 0]]), torch.tensor([2, 1]))
    [tensor([1, 3]), tensor([2])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    lengths = lengths.tolist() if isinstance(lengths, Tensor) else lengths
    return [sequence[:length].clone() for sequence, length in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of different lengths.

    Args:
        sequences: tensors (length, ...) that differ in their first size only.
        enforce_sorted: whether the longest must come first; else they are sorted, and the result remembers how.

    >>> import corefw as torch
    >>> torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])]).batch_sizes
    tensor([2, 1, 1])
    """
    lengths = [sequence.size(0) for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed batch, in the order in which they were packed.

    >>> import corefw as torch
    >>> rnn = torch.nn.utils.rnn
    >>> rnn.unpack_sequence(rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])]))
    [tensor([1, 2, 3]), tensor([4])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]
