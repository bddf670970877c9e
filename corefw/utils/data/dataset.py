"""Data sets: things with samples, and ways to combine them."""

from __future__ import annotations

import bisect
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, Protocol, TypeVar

from corefw.dispatch.declare import ops
from corefw.dispatch.random_generator import Generator
from corefw.tensor import Tensor

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Indexed(Protocol[T_co]):
    """What samples are taken from: a Dataset, a list, anything with ``__getitem__``."""

    def __getitem__(self, index: Any, /) -> T_co: ...


class Dataset(Generic[T_co]):
    """A data set with samples by index: subclasses define ``__getitem__`` and ``__len__`` (and may define
    ``__getitems__`` to fetch a whole batch)."""

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """A data set that is a stream of samples: subclasses define ``__iter__``. With several workers each iterates a
    copy; `get_worker_info` tells which part is its own."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Samples along the first dimension of tensors.

    Args:
        tensors: tensors of the same first size.

    >>> import corefw as torch
    >>> data = torch.utils.data.TensorDataset(torch.arange(3), torch.arange(3) * 2)
    >>> data[1]
    (tensor(1), tensor(2))
    """

    def __init__(self, *tensors: Tensor):
        if len({t.shape[0] for t in tensors}) > 1:
            raise AssertionError(f"Size mismatch between tensors: first sizes are {[t.shape[0] for t in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class StackDataset(Dataset[Any]):
    """Several data sets of one length side by side: samples are tuples, or dicts for keyword arguments."""

    def __init__(self, *args: Dataset, **kwargs: Dataset):
        if args and kwargs:
            raise ValueError(
                "Supported either tuple- (via args) or dict- (via kwargs) like input, but both types are given."
            )
        self.datasets: Any = args or kwargs
        parts: list[Any] = list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)
        if not parts:
            raise ValueError("At least one dataset should be passed")
        if len({len(d) for d in parts}) > 1:
            raise ValueError("Size mismatch between datasets")
        self._length = len(parts[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Data sets one after the other.

    Args:
        datasets: data sets with lengths.
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(accumulate(len(d) for d in self.datasets))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: Any) -> Any:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        if which == len(self.datasets):
            raise IndexError(f"index {index} is out of range for a data set of {len(self)} samples")
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset):
    """Streams one after the other.

    Args:
        datasets: iterable data sets.
    """

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self.datasets)  # type: ignore[arg-type, misc]


class Subset(Dataset[T_co]):
    """Chosen samples of a data set.

    Args:
        dataset: the whole.
        indices: positions in it.
    """

    def __init__(self, dataset: Indexed[T_co], indices: Sequence[int]):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Indexed[T], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[T]]:
    """Split a data set at random.

    Args:
        lengths: sizes that add up to the whole, or fractions that add up to 1 (what rounding leaves goes to the first).
        generator: a random generator.

    >>> import corefw as torch
    >>> [len(part) for part in torch.utils.data.random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    whole = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        if any(f < 0 or f > 1 for f in lengths):
            raise ValueError("Fractions must be between 0 and 1")
        sizes = [math.floor(whole * fraction) for fraction in lengths]
        for i in range(whole - sum(sizes)):
            sizes[i % len(sizes)] += 1
        if 0 in sizes:
            warnings.warn(
                f"Length of split at index {sizes.index(0)} is 0. This might result in an empty dataset.", stacklevel=2
            )
    else:
        sizes = [int(n) for n in lengths]
    if sum(sizes) != whole:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = ops.randperm(whole, generator=generator).tolist()
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, accumulate(sizes), strict=True)]
