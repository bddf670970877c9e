"""Generators: the state of random streams, a seed and an offset, as specified in docs/random.md."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from corefw.devices import DispatchKey, device
from corefw.dispatch.batching.arrays import BatchedDevice, BatchingError, at_depths, base_of, depths, levels
from corefw.dispatch.batching.tensors import into
from corefw.dispatch.registry import dispatch_key_of
from corefw.dtypes import uint8
from corefw.errors import CaptureError, CorefwError, DeviceError
from corefw.tensor import Tensor, wrap

_MASK = (1 << 64) - 1
DEFAULT_SEED = 67280421310721  # PyTorch's, before anything is seeded


class StateError(CorefwError, RuntimeError):
    """What should be a generator's state is none."""


class SeedError(CorefwError, ValueError, RuntimeError):
    """A seed is not a number of 64 bits."""


def _seed(seed) -> int:
    seed = int(seed)
    if not -(1 << 63) <= seed <= _MASK:
        raise SeedError(f"Overflow when unpacking long long: seed {seed} is not in [-2**63, 2**64)")
    return seed & _MASK


class Generator:
    """A stream of random numbers on a device.

    Args:
        device: where the tensors lie that are filled from it.

    >>> import corefw as torch
    >>> g = torch.Generator().manual_seed(0)
    >>> torch.rand(2, generator=g)
    tensor([0.3990, 0.8805])
    """

    __slots__ = ("_before", "_lock", "_offset", "_seed", "device")

    def __init__(self, device: str | device | int = "cpu"):
        self.device = _as_device(device)
        self._seed: Any = DEFAULT_SEED  # while a graph is captured, the device's state
        self._offset = 0
        self._before: tuple[int, int] | None = None  # seed and offset, while a graph is captured
        self._lock = threading.Lock()

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of `seed`; returns the generator."""
        seed = _seed(seed)
        self._outside_captures("manual_seed")
        with self._lock:
            self._seed, self._offset = seed, 0
        return self

    def seed(self) -> int:
        """Start a stream that cannot be foreseen; returns its seed."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """The seed of the stream."""
        self._outside_captures("initial_seed")
        return self._seed

    def get_offset(self) -> int:
        """The number of the stream's next block."""
        self._outside_captures("get_offset")
        return self._offset

    def set_offset(self, offset: int) -> None:
        """Go on with block `offset` of the stream."""
        self._outside_captures("set_offset")
        self._offset = int(offset) & _MASK

    def take(self, blocks: int) -> tuple[Any, int]:
        """Reserve `blocks` blocks of the stream; returns the seed and the first block's number (while a graph is
        captured the device's state, and the number from the capture's start)."""
        with self._lock:
            offset = self._offset
            self._offset = (offset + blocks) & _MASK
            return self._seed, offset

    def begin_capture(self, state: Any) -> None:
        """Let kernels find seed and offset in `state`, of the device's runtime, as long as a graph is captured."""
        self._outside_captures("capture_begin")
        with self._lock:
            self._before = self._seed, self._offset
            self._seed, self._offset = state, 0

    def end_capture(self) -> int:
        """Go on as before the capture; returns how many blocks the graph takes in a replay."""
        with self._lock:
            assert self._before is not None, "end_capture comes after begin_capture"
            blocks = self._offset
            (self._seed, self._offset), self._before = self._before, None
        return blocks

    def _outside_captures(self, method: str) -> None:
        if self._before is not None:
            raise CaptureError(f"Generator.{method}: not possible while a graph that draws from it is captured")

    def get_state(self) -> Tensor:
        """The state, a uint8 tensor of 16 bytes on the CPU: seed and offset, little-endian."""
        self._outside_captures("get_state")
        host = np.array([self._seed, self._offset], "<u8").view(np.uint8)
        return wrap(host, dispatch_key_of(_CPU, uint8))

    def set_state(self, new_state: Tensor) -> None:
        """Go on from a state that `get_state` gave."""
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        if new_state.dispatch_key.dtype is not uint8 or new_state.dispatch_key.device is not _CPU:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if new_state.array.shape != (16,):
            raise StateError(
                f"Expected a Generator state of size 16 but found the input RNG state size to be {new_state.array.size}"
            )
        self._outside_captures("set_state")
        seed, offset = new_state.array.tobytes()[:8], new_state.array.tobytes()[8:]
        with self._lock:
            self._seed, self._offset = int.from_bytes(seed, "little"), int.from_bytes(offset, "little")

    def clone_state(self) -> Generator:
        """A generator of its own that goes on as this one would."""
        self._outside_captures("clone_state")
        clone = Generator(self.device)
        clone._seed, clone._offset = self._seed, self._offset
        return clone

    def __getstate__(self):
        self._outside_captures("__getstate__")
        return self.device, self._seed, self._offset

    def __setstate__(self, state):
        self.__init__(state[0])  # type: ignore[misc]
        self._seed, self._offset = state[1:]


_as_device = device  # the constructor's argument has this name too
_CPU = device("cpu")


class _Defaults:
    """The generator of each device that is used when none is given, made when first asked for."""

    def __init__(self):
        self.seed = DEFAULT_SEED
        self.generators: dict[device, Generator] = {}

    def of(self, where: device) -> Generator:
        found = self.generators.get(where)
        if found is None:
            found = self.generators.setdefault(where, Generator(where).manual_seed(self.seed))
        return found

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of `seed` on every device."""
        self.seed = _seed(seed)
        for generator in self.generators.values():
            generator.manual_seed(self.seed)
        return self.of(_CPU)


defaults = _Defaults()


def _drawn_by_examples(where: device) -> int:
    """How many examples of running `vmap`s draw numbers of their own; RuntimeError where none was allowed to."""
    if any(level.randomness == "error" for level in levels.running.values()):
        raise BatchingError(
            "vmap: called random operation while in randomness error mode. Say randomness='same' for the same numbers "
            "in all examples, 'different' for others in each"
        )
    found = 1
    for depth, size in depths(where).items():
        if levels.running[depth].randomness == "different":
            found *= size
    return found


def in_examples(dispatch_key: DispatchKey) -> DispatchKey:
    """Where numbers are drawn that differ between the examples of running `vmap`s: in batches of them."""
    if not levels.running:
        return dispatch_key
    wanted = depths(dispatch_key.device)
    for depth, level in levels.running.items():
        if level.randomness == "different":
            wanted.setdefault(depth, level.size)
    return dispatch_key_of(at_depths(base_of(dispatch_key.device), wanted, dispatch_key.dtype), dispatch_key.dtype)


def differing(tensor: Tensor) -> Tensor:
    """A tensor beside which, or with which as parameters, numbers are drawn: in batches of the examples of running
    `vmap`s between which these differ."""
    if not BatchedDevice.made or not levels.running:
        return tensor
    return into(tensor, in_examples(tensor.dispatch_key).device)


def take(generator: Generator | None, where: device, blocks: int) -> tuple[Any, int]:
    """Seed and first block for `blocks` blocks on a device, from `generator` or the device's default one."""
    if BatchedDevice.made and (levels.running or where.__class__ is BatchedDevice):
        blocks *= _drawn_by_examples(where)
        where = base_of(where)
    if generator is None:
        return (defaults.generators.get(where) or defaults.of(where)).take(blocks)
    if generator.__class__ is not Generator:
        raise TypeError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    if generator.device.type != where.type and where.type != "meta":
        raise DeviceError(f"Expected a '{where.type}' device type for generator but found '{generator.device.type}'")
    return generator.take(blocks)
