"""Worker processes of a DataLoader: each fetches batches and sends them back."""

from __future__ import annotations

import os
import pickle
import random
import signal
import sys
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np

from corefw.random import manual_seed, use
from corefw.shared_memory import Sharing
from corefw.utils.data.dataset import Dataset, IterableDataset


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself: its number, how many there are, its seed, its copy of the data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Dataset


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker process of a DataLoader: its WorkerInfo; None in the main process."""
    return _info


class Failure:
    """An exception on its way from a worker, with its traceback as text."""

    def __init__(self, where: str):
        self.where = where
        self.kind: Any
        self.error: Any
        self.kind, self.error = sys.exc_info()[:2]
        self.text = traceback.format_exc()
        try:
            pickle.loads(pickle.dumps(self.error))
        except Exception:
            self.kind, self.error = RuntimeError, None

    def reraise(self) -> None:
        """Raise an exception of the same type that shows the worker's traceback."""
        message = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        try:
            error = self.kind(message)
        except Exception:
            error = RuntimeError(message)
        raise error


@dataclass(frozen=True)
class Exhausted:
    """A worker's stream has ended."""

    worker: int


class Fetcher:
    """Makes a batch from indices, or from the next samples of a stream."""

    def __init__(self, dataset: Dataset, collate, batched: bool, drop_last: bool):
        self.dataset, self.collate, self.batched, self.drop_last = dataset, collate, batched, drop_last
        self.stream = iter(dataset) if isinstance(dataset, IterableDataset) else None

    def __call__(self, indices: Any) -> Any:
        """The batch; StopIteration at a stream's end."""
        if self.stream is not None:
            return self._from_stream(len(indices) if self.batched else None)
        if not self.batched:
            return self.collate(self.dataset[indices])
        if hasattr(self.dataset, "__getitems__"):
            return self.collate(self.dataset.__getitems__(indices))
        return self.collate([self.dataset[i] for i in indices])

    def _from_stream(self, size: int | None) -> Any:
        assert self.stream is not None
        if size is None:
            return self.collate(next(self.stream))
        samples = [sample for _, sample in zip(range(size), self.stream, strict=False)]
        if not samples or (self.drop_last and len(samples) < size):
            raise StopIteration
        return self.collate(samples)


def _left_to_the_main_process(number, frame) -> None:
    """What Ctrl-C does in a worker: nothing, the main process ends it. Programs that it runs do not ignore it."""


def work(number, count, seed, engine, fetch_arguments, init, index_queue, result_queue) -> None:
    """A worker's life: read (epoch, number, indices) until None comes, send (epoch, number, batch or Failure)."""
    global _info
    signal.signal(signal.SIGINT, _left_to_the_main_process)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    Sharing.strategy = "file_system"  # batches are copied: their memory could go with the worker before they are read
    dataset = fetch_arguments[0]
    parent = os.getppid()
    fetcher = failure = None
    try:
        random.seed(seed + number)
        np.random.seed((seed + number) % 2**32)
        use(engine)
        manual_seed(seed + number)
        _info = WorkerInfo(number, count, seed + number, dataset)
        if init is not None:
            init(number)
    except Exception:
        failure = Failure(f"in DataLoader worker process {number} while it started")
    epoch = None
    while True:
        try:
            task = index_queue.get(timeout=5)
        except Exception:  # nothing came: go on unless the main process is gone
            if os.getppid() == parent:
                continue
            task = None
        if task is None:
            result_queue.cancel_join_thread()  # nobody reads what is left in it
            return
        task_epoch, position, indices = task
        try:
            if failure is None and (fetcher is None or task_epoch != epoch):
                fetcher, epoch = Fetcher(*fetch_arguments), task_epoch
            result = failure or fetcher(indices)  # type: ignore[misc]
        except StopIteration:
            result = Exhausted(number)
        except Exception:
            result = Failure(f"in DataLoader worker process {number}")
        result_queue.put((task_epoch, position, result))
