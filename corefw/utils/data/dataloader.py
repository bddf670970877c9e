"""DataLoader: batches from a data set, in this process or from worker processes."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import queue
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Generic

from corefw.dispatch.declare import ops
from corefw.random import default_generator
from corefw.tensor import Tensor
from corefw.tensor_api.memory import accelerator
from corefw.utils.data.collate import default_collate, default_convert
from corefw.utils.data.dataset import Indexed, IterableDataset, T_co
from corefw.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from corefw.utils.data.worker import Exhausted, Failure, Fetcher, work

_CAN_BLOCK = hasattr(signal, "pthread_sigmask")  # Windows cannot


class _Endless:
    """The "indices" of a stream: there are none, and it says itself when it ends."""

    def __iter__(self):
        return itertools.repeat(None)


class DataLoader(Generic[T_co]):
    """Iterates over batches of a data set.

    Args:
        dataset: a Dataset, any object with ``__getitem__`` and ``__len__``, or an IterableDataset.
        batch_size: samples per batch; None gives single samples.
        shuffle: draw the samples at random, anew in each epoch.
        sampler, batch_sampler: another order, or other batches.
        num_workers: worker processes; 0 loads in this one.
        collate_fn: makes a batch from a list of samples.
        pin_memory: page-lock the batches, where a device needs that.
        drop_last: leave out a last, shorter batch.
        timeout: seconds to wait for a worker's batch; 0 waits as long as the workers live.
        worker_init_fn: called in each worker with its number.
        multiprocessing_context: a context or its name: "fork", "spawn", "forkserver".
        generator: for the order and the workers' seeds.
        prefetch_factor: batches each worker prepares ahead.
        persistent_workers: keep the workers for the next epoch.

    >>> import corefw as torch
    >>> data = torch.utils.data.TensorDataset(torch.arange(5))
    >>> [batch[0].tolist() for batch in torch.utils.data.DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Indexed[T_co],  # with a length unless it is a stream
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable | None = None,
        batch_sampler: Iterable | None = None,
        num_workers: int = 0,
        collate_fn: Callable | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError("prefetch_factor option could only be specified in multiprocessing. Let num_workers > 0.")
        if prefetch_factor is not None and prefetch_factor < 1:
            raise ValueError("prefetch_factor option should be positive")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        self.dataset: Any = dataset
        self.streaming = isinstance(dataset, IterableDataset)
        if self.streaming and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError(
                "DataLoader with IterableDataset: expected unspecified shuffle, sampler and batch_sampler options"
            )
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            samples: Any = dataset
            sampler = (
                _Endless()
                if self.streaming
                else RandomSampler(samples, generator=generator)
                if shuffle
                else SequentialSampler(samples)
            )
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last, self.timeout = batch_size, drop_last, timeout
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator
        self.num_workers, self.worker_init_fn = num_workers, worker_init_fn
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers, self.pin_memory, self.pin_memory_device = (
            persistent_workers,
            pin_memory,
            pin_memory_device,
        )
        self.in_order = in_order
        self.multiprocessing_context = multiprocessing_context
        self.collate_fn = collate_fn or (default_collate if self._batched else default_convert)
        self._workers: _Workers | None = None

    @property
    def _batched(self) -> bool:
        return self.batch_sampler is not None

    def _order(self) -> Iterable:
        return self.batch_sampler if self.batch_sampler is not None else self.sampler

    def _fetch_arguments(self) -> tuple:
        return self.dataset, self.collate_fn, self._batched, self.drop_last

    def __iter__(self) -> _Batches:
        if self.num_workers == 0:
            if (self.generator or default_generator).follows_pytorch:
                self._draw_seed()  # as PyTorch does without need
            return _Batches(self, self._load_here())
        workers = self._workers
        if workers is None or not workers.usable:
            workers = _Workers(self)
            self._workers = workers if self.persistent_workers else None
        return _Batches(self, workers.epoch(self, close=not self.persistent_workers))

    def _draw_seed(self) -> int:
        """What the workers' seeds follow from."""
        generator = self.generator or default_generator
        return int(ops.randint(0, 2**63 if generator.follows_pytorch else 2**62, (), generator=generator).item())

    def _load_here(self) -> Iterator[Any]:
        fetch = Fetcher(*self._fetch_arguments())
        for indices in self._order():
            try:
                batch = fetch(indices)
            except StopIteration:
                return
            yield batch

    def __len__(self) -> int:
        if self.streaming:
            samples = len(self.dataset)
            if self.batch_size is None:
                return samples
            return samples // self.batch_size if self.drop_last else -(-samples // self.batch_size)
        return len(self._order())  # type: ignore[arg-type]


class _Batches:
    """One epoch's batches: an iterator that also has the old method ``next()``."""

    def __init__(self, loader: DataLoader, batches: Iterator[Any]):
        self._loader, self._batches = loader, batches
        self._pins = _can_pin(loader.pin_memory)

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> Any:
        batch = next(self._batches)
        return _pin(batch) if self._pins else batch

    next = __next__

    def __len__(self) -> int:
        return len(self._loader)


def _can_pin(wanted: bool) -> bool:
    """Whether batches are to be page-locked; a warning, as PyTorch's, where they are but no device needs it."""
    if not wanted:
        return False
    try:
        accelerator()
    except RuntimeError:
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
            "used.",
            UserWarning,
            stacklevel=4,
        )
        return False
    return True


def _pin(batch: Any) -> Any:
    if isinstance(batch, Tensor):
        return batch.pin_memory()
    if isinstance(batch, dict):
        return {key: _pin(value) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(_pin, batch))
    if isinstance(batch, list | tuple):
        return type(batch)(map(_pin, batch))
    return batch.pin_memory() if hasattr(batch, "pin_memory") else batch


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """A Ctrl-C in the block is raised after it, and never in a process that the block starts, until that lets it in."""
    came: list[int] = []
    previous = None  # only the main thread is interrupted
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is not None:
        previous = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if _CAN_BLOCK else set()  # is inherited
    try:
        yield
    finally:
        if _CAN_BLOCK:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if previous is not None:
            signal.signal(signal.SIGINT, previous)
        if came:
            signal.raise_signal(signal.SIGINT)


class _Workers:
    """The worker processes of one loader, for the process that started them; they end when nobody holds this object.

    Forked processes have copies of it, and must leave the workers alone. It does not hold its loader, which holds it.
    """

    _open = False  # until there is something to close

    def __init__(self, loader: DataLoader):
        self._owner = os.getpid()
        context: Any = loader.multiprocessing_context
        context = multiprocessing.get_context(context) if context is None or isinstance(context, str) else context
        seed, engine = loader._draw_seed(), default_generator.engine
        self.results = context.Queue()
        self.index_queues = [context.Queue() for _ in range(loader.num_workers)]
        for index_queue in self.index_queues:
            index_queue.cancel_join_thread()  # a program ends without waiting for workers to take what nobody wants
        self.processes = [
            context.Process(
                target=work,
                args=(
                    i,
                    loader.num_workers,
                    seed,
                    engine,
                    loader._fetch_arguments(),
                    loader.worker_init_fn,
                    q,
                    self.results,
                ),
                daemon=True,
            )
            for i, q in enumerate(self.index_queues)
        ]
        self.epochs = itertools.count()
        self._open = True
        with _interrupts_later():
            for process in self.processes:
                process.start()

    @property
    def usable(self) -> bool:
        """Whether this process may give them work."""
        return self._open and os.getpid() == self._owner

    def epoch(self, loader: DataLoader, close: bool) -> Iterator[Any]:
        """The batches of one epoch, in the order of the sampler, each worker keeping `prefetch_factor` of them in
        hand."""
        try:
            yield from self._run(loader, next(self.epochs))
        except GeneratorExit:
            raise
        except BaseException:  # an error, or Ctrl-C
            self.close(patience=0)
            raise
        finally:
            if close:
                self.close()

    def _run(self, loader: DataLoader, epoch: int) -> Iterator[Any]:
        tasks = enumerate(loader._order())
        active = list(range(loader.num_workers))
        turns: dict[int, int] = {}  # position -> worker
        ready: dict[int, Any] = {}
        following = 0
        for _ in range((loader.prefetch_factor or 2) * loader.num_workers):
            self._give(epoch, tasks, active, turns)
        while turns or ready:
            while following not in turns and following not in ready and following < max(turns | ready, default=0) + 1:
                following += 1  # positions that an exhausted stream was asked for in vain
            if following in ready:
                result, position = ready.pop(following), following
            elif not loader.in_order and ready:
                position, result = ready.popitem()
            else:
                position, result = self._receive(loader.timeout, epoch)
                worker = turns.pop(position)
                if isinstance(result, Exhausted):
                    if worker in active:
                        active.remove(worker)
                    continue
                self._give(epoch, tasks, active, turns, worker)
                if position != following and loader.in_order:
                    ready[position] = result
                    continue
            if isinstance(result, Failure):
                result.reraise()
            yield result

    def _give(self, epoch: int, tasks, active: list[int], turns: dict[int, int], worker: int | None = None) -> None:
        """Hand the next task to the worker that just finished one, or to each in turn."""
        if not active:
            return
        task = next(tasks, None)
        if task is None:
            return
        position, indices = task
        if worker is None or worker not in active:
            worker = active[position % len(active)]
        turns[position] = worker
        self.index_queues[worker].put((epoch, position, indices))

    def _receive(self, timeout: float, epoch: int) -> tuple[int, Any]:
        waited_since = time.monotonic()
        while True:
            try:
                came, position, result = self.results.get(timeout=0.5)
            except queue.Empty:
                dead = [p for p in self.processes if not p.is_alive()]
                if dead:
                    text = ", ".join(f"{p.pid} (exit code {p.exitcode})" for p in dead)
                    raise RuntimeError(f"DataLoader worker (pid(s) {text}) exited unexpectedly") from None
                if timeout and time.monotonic() - waited_since > timeout:
                    raise RuntimeError(f"DataLoader timed out after {timeout} seconds") from None
                continue
            if came == epoch:  # else it was left from an epoch that was not read to its end
                return position, result

    def close(self, patience: float = 0.5) -> None:
        """End the workers: each when it is through with its batch, or after `patience` seconds."""
        if not self.usable:
            return
        self._open = False
        started = [process for process in self.processes if process.pid is not None]
        for process, index_queue in zip(self.processes, self.index_queues, strict=True):
            if process in started and process.is_alive():  # else a queue might start its thread while Python ends
                index_queue.put(None)
        end = time.monotonic() + patience
        for process in started:
            process.join(timeout=max(0.0, end - time.monotonic()))
            if process.is_alive():
                process.terminate()
        for process in started:
            process.join()
        for q in (*self.index_queues, self.results):
            q.cancel_join_thread()
            q.close()
        for q in self.index_queues:  # a thread that Python's end cuts off while it frees a queue's semaphore leaks it
            if (thread := getattr(q, "_thread", None)) is not None:
                thread.join(timeout=0.5)  # for ever, where a full pipe is read by nobody

    def __del__(self):
        self.close()


# PyTorch's names, by which libraries know what iterates over a loader
_BaseDataLoaderIter, _MultiProcessingDataLoaderIter = _Batches, _Workers
