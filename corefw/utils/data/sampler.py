"""Samplers: the order in which samples are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Generic, TypeVar

from corefw import dtypes
from corefw.dispatch.declare import ops
from corefw.dispatch.random_generator import Generator
from corefw.random import default_generator
from corefw.tensor_api import as_tensor

T_co = TypeVar("T_co", covariant=True)
#: indices that RandomSampler draws at a time with replacement, as many as PyTorch's
_DRAWN = 32


class Sampler(Generic[T_co]):
    """An iterable over indices (or lists of them); subclasses define ``__iter__``."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """Indices in order."""

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices at random.

    Args:
        data_source: what is sampled.
        replacement: whether an index may come again.
        num_samples: how many to draw; the length of the data by default.
        generator: a random generator.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ):
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source, self.replacement, self._num_samples, self.generator = (
            data_source,
            replacement,
            num_samples,
            generator,
        )
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """How many indices an epoch draws."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size, wanted, generator = len(self.data_source), self.num_samples, self.generator
        if generator is None and default_generator.follows_pytorch:  # PyTorch's sampler has one of its own
            generator = Generator().manual_seed(int(ops.empty((), dtype=dtypes.int64).random_()))
        if self.replacement:
            for start in range(0, wanted, _DRAWN):  # not all at once: an epoch may be longer than memory
                count = min(_DRAWN, wanted - start)
                yield from ops.randint(0, size, (count,), generator=generator).tolist()
            return
        while 0 < size <= wanted:
            yield from ops.randperm(size, generator=generator).tolist()
            wanted -= size
        if wanted > 0 or (generator or default_generator).follows_pytorch:  # which draws one more, if only for nothing
            yield from ops.randperm(size, generator=generator).tolist()[:wanted]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None):
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        return (self.indices[i] for i in ops.randperm(len(self.indices), generator=self.generator).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices with probabilities proportional to weights.

    Args:
        weights: one per index.
        num_samples: how many to draw.
        replacement: whether an index may come again.
        generator: a random generator.
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Generator | None = None
    ):
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights).double()
        if self.weights.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        return iter(
            ops.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()
        )

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of indices from another sampler.

    Args:
        sampler: gives the indices.
        batch_size: how many to a list.
        drop_last: leave out a last, shorter list.
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
