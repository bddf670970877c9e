"""Generators: the state of random streams, a seed and an offset, and how numbers are drawn from it (docs/random.md)."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from math import prod
from typing import Any, ClassVar

import numpy as np

from corefw.devices import DispatchKey, device
from corefw.dispatch.batching.arrays import BatchingError, LevelDevice, at_depths, base_of, depths, levels
from corefw.dispatch.batching.tensors import into
from corefw.dispatch.registry import dispatch_key_of, ops
from corefw.dtypes import ALL, dtype, float64, uint8
from corefw.errors import CaptureError, CorefwError, DeviceError
from corefw.graph.grad_mode import mode as grad_mode
from corefw.shapes import Shape
from corefw.tensor import Tensor, new, wrap
from corefw.versions import fresh_version, inferring

_functions: dict[str, Any] = vars(ops)
_MASK = (1 << 64) - 1
DEFAULT_SEED = 67280421310721  # PyTorch's, before anything is seeded

# 32-bit words per value: one per real number, two where the dtype has 53 bits; of some kinds always two.
_DTYPE_WORDS = {d: (2 if d.to_real() is float64 else 1) * (2 if d.is_complex else 1) for d in ALL}
_TWO_WORDS = dict.fromkeys(ALL, 2)
_WORDS = defaultdict(lambda: _DTYPE_WORDS, dict.fromkeys(("integers_at", "geometric_at", "permutation_at"), _TWO_WORDS))
_ORDER_WORDS = 2  # of a place in a permutation, and of a choice


def words_of(kind: str) -> dict[dtype, int]:
    """How many words a number of a kind takes, by its dtype."""
    return _WORDS[kind]


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

    This class is the engine Philox. Another engine is a subclass with a state, and ways of drawing, of its own;
    `corefw.random.use` says which one a new generator of a device belongs to.

    >>> import corefw as torch
    >>> g = torch.Generator().manual_seed(0)
    >>> torch.rand(2, generator=g)
    tensor([0.3990, 0.8805])
    """

    __slots__ = ("_before", "_lock", "_offset", "_seed", "device")

    engine: ClassVar[str] = "philox"
    follows_pytorch: ClassVar[bool] = False  # whether samplers draw what PyTorch's do, beside what they use
    engines: ClassVar[dict[str, type[Generator]]] = {}  # by device type, where it is another one than Philox
    _state_size: ClassVar[int] = 16

    def __new__(cls, device: str | device | int = "cpu"):
        """A generator of the engine that is in use on the device, unless that is told by the class."""
        if cls is Generator and cls.engines:
            cls = cls.engines.get(_as_device(device).type, cls)
        return object.__new__(cls)

    def __init__(self, device: str | device | int = "cpu"):
        self.device = _as_device(device)
        self._seed: Any = DEFAULT_SEED  # while a graph is captured, the device's state
        self._offset: Any = self._start(DEFAULT_SEED)
        self._before: tuple[int, int] | None = None  # seed and offset, while a graph is captured
        self._lock = threading.Lock()

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of `seed`; returns the generator."""
        seed = _seed(seed)
        self._outside_captures("manual_seed")
        start = self._start(seed)
        with self._lock:
            self._seed, self._offset = seed, start
        return self

    def _start(self, seed: int) -> Any:
        """Where the stream of a seed starts."""
        return 0

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

    def take(self, count: int, words: int = 4, where: device | None = None) -> tuple[Any, int]:
        """Reserve the blocks of the stream that `count` values take, of so many words each: without `words`, `count`
        blocks. On a device `where`, each of the examples that draw numbers of their own has as many.

        Returns the seed and the first block's number (while a graph is captured the device's state, and the number from
        the capture's start).
        """
        blocks = (count * words + 3) >> 2
        if LevelDevice.made and where is not None:
            blocks *= drawn_by_examples(where)
        lock = self._lock
        lock.acquire()  # in a with-block it costs twice as much
        try:
            seed, offset = self._seed, self._offset
            self._offset = (offset + blocks) & _MASK
        finally:
            lock.release()
        return seed, offset

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
        """The state, a uint8 tensor on the CPU: 16 bytes, seed and offset, little-endian."""
        self._outside_captures("get_state")
        with self._lock:
            return wrap(np.frombuffer(self._packed(), np.uint8), dispatch_key_of(_CPU, uint8))

    def set_state(self, new_state: Tensor) -> None:
        """Go on from a state that `get_state` gave."""
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        if new_state.dispatch_key.dtype is not uint8 or new_state.dispatch_key.device is not _CPU:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if new_state.array.shape != (self._state_size,):
            raise StateError(
                f"Expected a Generator state of size {self._state_size} but found the input RNG state size to be "
                f'{new_state.array.size}; states of corefw.random.use("philox") have 16 bytes, of "mt19937" 5056'
            )
        self._outside_captures("set_state")
        with self._lock:
            self._unpack(new_state.array.tobytes())

    def clone_state(self) -> Generator:
        """A generator of its own that goes on as this one would."""
        clone = _empty(self.__class__)
        clone.__setstate__(self.__getstate__())
        return clone

    def __reduce__(self):
        return _empty, (self.__class__,), self.__getstate__()

    def __getstate__(self):
        self._outside_captures("clone_state")
        with self._lock:
            return self.device, bytes(self._packed())

    def __setstate__(self, state):
        self.__init__(state[0])  # type: ignore[misc]
        self._unpack(state[1])

    def change_engine(self, engine: type[Generator], state: bytes | None = None) -> bytes:
        """Go on as a generator of an engine: from a state, else, if it is another one, at the start of the same seed's
        stream; returns the state before."""
        before, changes = self.__getstate__()[1], self.__class__ is not engine
        self.__class__ = engine
        if state is not None:
            self.__setstate__((self.device, state))
        elif changes:
            self.manual_seed(self._seed)
        return before

    def _packed(self) -> bytearray:
        return bytearray(np.array([self._seed, self._offset], "<u8"))

    def _unpack(self, state: bytes) -> None:
        self._seed, self._offset = (int.from_bytes(state[i : i + 8], "little") for i in (0, 8))

    # -- drawing --------------------------------------------------------------------------------------------------
    def draw(
        self, kind: str, dispatch_key: DispatchKey, shape: Shape, parameters: tuple, over: Tensor | None = None
    ) -> Tensor:
        """A tensor of numbers of a kind.

        Args:
            kind: the op that computes them from a seed and an offset.
            parameters: those of the distribution.
            over: the tensor that the numbers are written to, for engines that heed its order in memory; Philox's do
                not.
        """
        if LevelDevice.made:
            dispatch_key = in_examples(dispatch_key)
        seed, offset = self.take(prod(shape), _WORDS[kind][dispatch_key.dtype], dispatch_key.device)
        function, dtype = _functions[kind], dispatch_key.dtype.numpy
        try:
            kernel, dispatch_key, array_type, _ = function.op.table[dispatch_key]
            if len(parameters) == 2:  # most kinds; a call with the items of a sequence takes longer
                low, high = parameters
                array = kernel(shape, seed, offset, low, high, dtype)
            else:
                array = kernel(shape, seed, offset, *parameters, dtype)
        except Exception:  # which the op's function explains
            return function(dispatch_key, shape, seed, offset, *parameters, dtype)
        result = new(Tensor)
        result.array = array if array.__class__ is array_type else dispatch_key.runtime.wrap(array)
        result.dispatch_key = dispatch_key
        result.node = result.view_info = None
        result.version = fresh_version() if inferring else [0]
        return result

    def fill(self, kind: str, tensor: Tensor, parameters: tuple) -> Tensor:
        """Numbers of a kind, written over a tensor; as for `draw`."""
        dispatch_key, array = tensor.dispatch_key, tensor.array
        if LevelDevice.made or tensor.view_info is not None or (tensor.node is not None and grad_mode.recording):
            drawn = self.draw(kind, dispatch_key, tuple(array.shape), parameters, tensor)
            return _functions["copy"].op.inplace_function(tensor, drawn)
        seed, offset = self.take(prod(array.shape), _WORDS[kind][dispatch_key.dtype])
        function, dtype = _functions[kind], dispatch_key.dtype.numpy
        try:
            into = function.op.inplace_table[dispatch_key]
            if len(parameters) == 2:
                low, high = parameters
                into(array.shape, seed, offset, low, high, dtype, out=array)
            else:
                into(array.shape, seed, offset, *parameters, dtype, out=array)
        except Exception:  # which a copy explains
            drawn = function(dispatch_key, tuple(array.shape), seed, offset, *parameters, dtype)
            return _functions["copy"].op.inplace_function(tensor, drawn)
        tensor.version[0] += 1
        return tensor

    def bernoulli(self, dispatch_key: DispatchKey, p: Tensor, shape: Shape, over: Tensor | None = None) -> Tensor:
        """Ones with the probabilities `p`, which broadcast to `shape`, and zeros; `over` as for `draw`."""
        if LevelDevice.made:
            dispatch_key = in_examples(dispatch_key)
        seed, offset = self.take(prod(shape), _DTYPE_WORDS[dispatch_key.dtype], dispatch_key.device)
        return ops.bernoulli_at(dispatch_key, p, shape, seed, offset, dispatch_key.dtype.numpy)

    def permutation(self, dispatch_key: DispatchKey, n: int) -> Tensor:
        """A permutation of the numbers below `n`."""
        if LevelDevice.made:
            dispatch_key = in_examples(dispatch_key)
        seed, offset = self.take(n, _ORDER_WORDS, dispatch_key.device)
        return ops.permutation_at(dispatch_key, n, seed, offset, dispatch_key.dtype.numpy)

    def multinomial(self, input: Tensor, num_samples: int, replacement: bool) -> Tensor:
        """Positions along the last dimension, in proportion to the weights there."""
        shape = tuple(input.array.shape)
        count = prod(shape[:-1]) * (num_samples if replacement else shape[-1])
        seed, offset = self.take(count, _ORDER_WORDS, input.dispatch_key.device)
        return ops.multinomial_at(input, num_samples, replacement, seed, offset)

    def dropout(self, input: Tensor, p: float) -> tuple[Tensor, Tensor]:
        """`input` with each element zero with probability `p`, else scaled by ``1 / (1 - p)``; and where it was
        kept."""
        dispatch_key = input.dispatch_key
        seed, offset = self.take(prod(input.array.shape), _DTYPE_WORDS[dispatch_key.dtype], dispatch_key.device)
        return ops.masked_dropout(input, p, seed, offset)


def _empty(cls: type[Generator]) -> Generator:
    """A generator of an engine, not yet made."""
    return object.__new__(cls)


_as_device = device  # the constructor's argument has this name too
_CPU = device("cpu")


class _Defaults(dict):
    """{device: the generator that is used when none is given}, made when first asked for."""

    seed = DEFAULT_SEED

    def __missing__(self, where: device) -> Generator:
        if isinstance(where, LevelDevice):
            return self[base_of(where)]
        return self.setdefault(where, Generator(where).manual_seed(self.seed))

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of `seed` on every device."""
        self.seed = _seed(seed)
        for generator in self.values():
            generator.manual_seed(self.seed)
        return self[_CPU]


defaults = _Defaults()


def drawn_by_examples(where: device) -> int:
    """How many examples of running `vmap`s draw numbers of their own; RuntimeError where none was allowed to."""
    if not levels.running and not isinstance(where, LevelDevice):
        return 1
    if any(level.randomness == "error" for level in levels.running.values()):
        raise BatchingError(
            "vmap: called random operation while in randomness error mode. Say randomness='same' for the same numbers "
            "in all examples, 'different' for others in each"
        )
    found = 1
    for depth, level in depths(where).items():
        if level.examples > 1 and levels.running[depth].randomness == "different":
            found *= level.examples
    return found


def in_examples(dispatch_key: DispatchKey) -> DispatchKey:
    """Where numbers are drawn that differ between the examples of running `vmap`s: in batches of them."""
    if not levels.running:
        return dispatch_key
    wanted = depths(dispatch_key.device)
    for depth, level in levels.running.items():
        if level.randomness == "different":
            wanted.setdefault(depth, level)
    return dispatch_key_of(at_depths(base_of(dispatch_key.device), wanted, dispatch_key.dtype), dispatch_key.dtype)


def differing(tensor: Tensor) -> Tensor:
    """A tensor beside which, or with which as parameters, numbers are drawn: in batches of the examples of running
    `vmap`s between which these differ."""
    if not LevelDevice.made or not levels.running:
        return tensor
    return into(tensor, in_examples(tensor.dispatch_key).device)


def source(generator: Generator | None, where: device) -> Generator:
    """The generator to draw from on a device: `generator`, or the device's default one."""
    if generator is None:
        return defaults[where]
    if not isinstance(generator, Generator):
        raise TypeError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    if generator.device.type != where.type and where.type != "meta":
        raise DeviceError(f"Expected a '{where.type}' device type for generator but found '{generator.device.type}'")
    return generator
