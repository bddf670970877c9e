"""The engine MT19937: the generator that PyTorch has on the CPU, and how PyTorch draws its numbers from it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from corefw.devices import DispatchKey
from corefw.dispatch.batching.arrays import BatchingError, LevelDevice
from corefw.dispatch.random_generator import Generator, StateError, drawn_by_examples, in_examples
from corefw.dispatch.registry import ops
from corefw.dtypes import ALL, bfloat16, bool_, dtype, float16, float64, int32
from corefw.shapes import Shape
from corefw.tensor import Tensor, wrap

_LENGTH = 624  # words of the generator's state
#: the bytes of PyTorch's state of a generator
_STATE = np.dtype(
    [
        ("seed", "<u8"),
        ("left", "<i4"),  # words before the next ones are made, and one
        ("seeded", "<i4"),
        ("next", "<u8"),
        ("words", "<u8", _LENGTH),
        ("normal_x", "<f8"),
        ("normal_y", "<f8"),  # the second number of a pair of normal ones
        ("normal_rho", "<f8"),
        ("normal_is_valid", "<i4"),
        ("padding", "<i4"),
        ("float_normal", "<f4"),
        ("float_normal_is_valid", "<i4"),
    ]
)
# 32-bit words per uniform number, and those of the kinds that draw them in float64 whatever the result's dtype is.
_WORDS = {d: 2 if d.to_real() is float64 else 1 for d in ALL}
_PAIRS = {"normal_at", "log_normal_at"}
_WIDE_KINDS = {"exponential_at", "cauchy_at", "geometric_at"}
_WIDE_RANGE = 1 << 28  # from here on integers take 64 bits, so that the remainder is even enough
_WHOLE_RANGE = (int32, 0, 1 << 31)  # that of `random_()` without bounds, which takes 32 all the same
_BLOCK = 16  # normal numbers are made in blocks where there are so many, side by side in memory
_BLOCKS_IN_TURN = {float16, bfloat16}  # where the last block, which overlaps the one before, takes its words after all
_LARGE = (2**32 - 1) // 20  # permutations from here on draw 64 bits for each place


class _Position:
    """Where a stream of words stands, and the second number of a pair of normal ones, if it waits to be used."""

    __slots__ = ("bits", "waiting")

    def __init__(self, seed: int):
        self.bits = np.random.MT19937()
        np.random.RandomState(self.bits).seed(seed & 0xFFFFFFFF)  # init_genrand of Matsumoto and Nishimura
        self.waiting: float | None = None

    def words(self, count: int) -> np.ndarray:
        """The next words: uint32."""
        return self.bits.random_raw(count).astype(np.uint32)


class MersenneTwister(Generator):
    """A generator with PyTorch's numbers: MT19937 (Matsumoto and Nishimura, "Mersenne Twister", 1998).

    Words are drawn here, one after another; what an op is given, in place of a seed and an offset, are words, which its
    kernel turns into numbers.

    >>> import corefw as torch
    >>> torch.rand(2, generator=MersenneTwister().manual_seed(0))
    tensor([0.4963, 0.7682])
    """

    __slots__ = ()  # the layout of its base, so that a generator can change its engine; `_offset` is a `_Position`

    engine = "mt19937"
    follows_pytorch = True
    _state_size = _STATE.itemsize  # the state is PyTorch's

    def _start(self, seed: int) -> _Position:
        return _Position(seed)

    def get_offset(self) -> int:
        """RuntimeError: the stream has no numbered blocks."""
        raise StateError("CPU Generator does not use offset")

    def set_offset(self, offset: int) -> None:
        """RuntimeError: the stream has no numbered blocks."""
        raise StateError("CPU Generator does not use offset")

    def _packed(self) -> bytearray:
        position, state = self._offset, np.zeros((), _STATE)
        inner = position.bits.state["state"]
        used = int(inner["pos"])
        state["seed"], state["seeded"], state["left"] = self._seed, 1, _LENGTH + 1 - used
        state["words"] = inner["key"]
        fresh = used == _LENGTH and inner["key"][0] == self._seed & 0xFFFFFFFF  # nothing was drawn since the seed
        state["next"] = 0 if fresh else used
        if position.waiting is not None:
            state["normal_y"], state["normal_is_valid"] = position.waiting, 1
        return bytearray(state.tobytes())

    def _unpack(self, state: bytes) -> None:
        given = np.frombuffer(state, _STATE)[0]
        used = _LENGTH + 1 - int(given["left"])
        if not (given["seeded"] and 0 <= used <= _LENGTH):
            raise StateError("Invalid mt19937 state: it is no state of a seeded generator")
        position = _Position(0)
        position.bits.state = {
            "bit_generator": "MT19937",
            "state": {"key": given["words"].astype(np.uint32), "pos": used},
        }
        position.waiting = float(given["normal_y"]) if given["normal_is_valid"] else None
        self._seed, self._offset = int(given["seed"]), position

    # -- drawing --------------------------------------------------------------------------------------------------
    def draw(
        self, kind: str, dispatch_key: DispatchKey, shape: Shape, parameters: tuple, over: Tensor | None = None
    ) -> Tensor:
        """A tensor of numbers of a kind: in the order in memory of `over`, the tensor that they are written to."""
        dispatch_key = _one_stream(dispatch_key)
        order = _memory_order(over)
        d, count = dispatch_key.dtype, math.prod(shape) * (2 if dispatch_key.dtype.is_complex else 1)
        blocks = kind == "normal_at" and count >= _BLOCK and order is None
        drawn: tuple
        with self._lock:
            if blocks:
                drawn = (self._words_of_blocks(d, count),)
            elif kind in _PAIRS:
                drawn = self._words_of_pairs(count)
            else:
                drawn = (self._words(kind, d, count, parameters),)
        op = getattr(ops, "normal_blocks_of_words" if blocks else _OF_WORDS[kind])

        return _in_order(lambda laid: op(dispatch_key, laid, *drawn, *parameters, d.numpy), shape, order)

    def fill(self, kind: str, tensor: Tensor, parameters: tuple) -> Tensor:
        """Numbers of a kind, written over a tensor, in its order in memory."""
        drawn = self.draw(kind, tensor.dispatch_key, tuple(tensor.array.shape), parameters, tensor)
        return ops.copy.op.inplace_function(tensor, drawn)

    def bernoulli(self, dispatch_key: DispatchKey, p: Tensor, shape: Shape, over: Tensor | None = None) -> Tensor:
        """Ones with the probabilities `p`, which broadcast to `shape`, and zeros; `over` as for `draw`."""
        dispatch_key = _one_stream(dispatch_key)
        with self._lock:
            words = self._offset.words(math.prod(shape) * _WORDS[p.dispatch_key.dtype])
        order = _memory_order(over)
        if order is not None:
            p = ops.permute(ops.broadcast_to(p, shape), order)
        return _in_order(
            lambda laid: ops.bernoulli_of_words(dispatch_key, p, laid, words, dispatch_key.dtype.numpy), shape, order
        )

    def permutation(self, dispatch_key: DispatchKey, n: int) -> Tensor:
        """A permutation of the numbers below `n`."""
        dispatch_key = _one_stream(dispatch_key)
        with self._lock:
            words = self._offset.words(max(n - 1, 0) * (1 if n < _LARGE else 2))
        return ops.permutation_of_words(dispatch_key, n, words, dispatch_key.dtype.numpy)

    def multinomial(self, input: Tensor, num_samples: int, replacement: bool) -> Tensor:
        """Positions along the last dimension, in proportion to the weights there."""
        _one_stream(input.dispatch_key)
        shape = tuple(input.array.shape)
        if replacement and num_samples > 1:
            with self._lock:
                words = self._offset.words(math.prod(shape[:-1]) * num_samples * 2)
            return ops.multinomial_of_words(input, num_samples, words)
        arrivals = self.draw("exponential_at", input.dispatch_key, shape, (1.0,), ops.empty_like(input))
        ratio = input / arrivals
        return ops.argmax(ratio, -1, True) if num_samples == 1 else ops.topk(ratio, num_samples, -1)[1]

    def dropout(self, input: Tensor, p: float) -> tuple[Tensor, Tensor]:
        """`input` with each element zero with probability `p`, else scaled by ``1 / (1 - p)``; and where it was
        kept."""
        dispatch_key = input.dispatch_key
        wide = dispatch_key.with_dtype(float64)
        keep = wrap(dispatch_key.runtime.constant(1 - p, float64, dispatch_key.device.index), wide)
        kept = self.bernoulli(dispatch_key, keep, tuple(input.array.shape), input)
        return input * (kept if p == 1 else kept / (1 - p)), kept.to(bool_)

    # -- words, with the lock held --------------------------------------------------------------------------------
    def _words(self, kind: str, d: dtype, count: int, parameters: tuple) -> np.ndarray:
        if kind == "integers_at":
            low, high = parameters
            wide = high - low >= _WIDE_RANGE and (d, low, high) != _WHOLE_RANGE
            return self._offset.words(count * (2 if wide else 1))
        return self._offset.words(count * (2 if kind in _WIDE_KINDS else _WORDS[d]))

    def _words_of_blocks(self, d: dtype, count: int) -> np.ndarray:
        """Words for blocks of normal numbers; the last block is drawn anew where it is not whole."""
        last = _BLOCK if count % _BLOCK else 0
        if d in _BLOCKS_IN_TURN:
            count -= count % _BLOCK
        return self._offset.words((count + last) * _WORDS[d])

    def _words_of_pairs(self, count: int) -> tuple[np.ndarray, float | None]:
        """Words for pairs of normal numbers, and the number that comes first because it was left over before."""
        position = self._offset
        first = position.waiting if count else None
        fresh = count - (first is not None)
        words = position.words((fresh + fresh % 2) * 2)
        if count:
            position.waiting = _second_of_pair(words[-4:]) if fresh % 2 else None
        return words, first


def _second_of_pair(words: np.ndarray) -> float:
    """The second normal number that four words give."""
    angle, radius = ((int(high) << 32 | int(low)) % 2**53 / 2**53 for high, low in words.reshape(2, 2))
    return math.sqrt(-2 * math.log1p(-radius)) * math.sin(2 * math.pi * angle)


#: the ops that make numbers of words, by the name of those that make them of a seed and an offset
_OF_WORDS = {
    f"{kind}_at": f"{kind}_of_words"
    for kind in ("uniform", "integers", "exponential", "cauchy", "geometric", "log_normal")
} | {"normal_at": "normal_pairs_of_words"}


def _one_stream(dispatch_key: DispatchKey) -> DispatchKey:
    """Where numbers are drawn; refused where they are to differ between the examples of a running `vmap`."""
    if not LevelDevice.made:
        return dispatch_key
    dispatch_key = in_examples(dispatch_key)
    if drawn_by_examples(dispatch_key.device) > 1:
        raise BatchingError(
            "vmap: the generator MT19937 has one stream for all examples. Draw outside of vmap, say randomness='same', "
            'or choose corefw.random.use("philox")'
        )
    return dispatch_key


def _memory_order(over: Tensor | None) -> tuple[int, ...] | None:
    """The dimensions of a tensor as they follow in memory, the slowest first; None if that is their order."""
    if over is None or over.is_contiguous():
        return None
    strides = over.stride()
    return tuple(sorted(range(len(strides)), key=lambda i: -strides[i]))


def _in_order(numbers: Callable[[Shape], Tensor], shape: Shape, order: tuple[int, ...] | None) -> Tensor:
    """Numbers in a shape, made with the dimensions in the given order."""
    if order is None:
        return numbers(shape)
    made = numbers(tuple(shape[i] for i in order))
    return ops.permute(made, tuple(order.index(i) for i in range(len(order))))
