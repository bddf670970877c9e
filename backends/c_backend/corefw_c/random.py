"""Random numbers: the kinds of docs/random.md, and dropout."""

import numpy as np

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw_c.arrays import FLOATS, dense, empty
from corefw_c.direct import direct
from corefw_c.library import fail

REAL_NUMBERS = frozenset(d for d in dtypes.ALL if d.is_floating_point)
FLOATING = REAL_NUMBERS | {dtypes.complex64, dtypes.complex128}
NUMBERS = frozenset(d for d in dtypes.ALL if not d.is_complex)

_FLOAT32, _FLOAT64, _INT64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)
_ALL, _HALF = 1 << 64, 1 << 63  # numbers of 64 bits, and the signed ones from zero on


def _bounds(low, high, dtype):
    """``low``, ``high - low`` and the largest number below `high`, rounded as the specification says."""
    real = np.empty(0, dtype).real.dtype
    compute = np.float64 if real == np.float64 else np.float32
    bottom, top = (np.asarray(bound, real) for bound in (low, high))
    largest = np.nextafter(top, bottom) if bottom < top else bottom
    return float(bottom), float(top.astype(compute) - bottom.astype(compute)), float(largest)


def kernels(lib):
    """The family's kernels."""

    def drawing(name, draw):
        """The kernel of a kind: `draw` writes the numbers of its parameters and a dtype to the array at an address."""

        def kernel(size, seed, offset, *arguments, out=None):
            output = out if out is not None and out.flags.carray else empty(size, arguments[-1])
            if status := draw(seed, offset, *arguments, id(output)):
                fail(name, status)
            if out is not None and output is not out:
                np.copyto(out, output)
            return output

        return kernel

    def uniform(seed, offset, low, high, dtype, output):
        low, span, largest = (0, 1, 1) if low == 0 and high == 1 else _bounds(low, high, dtype)
        return lib.uniform_at(seed, offset, low, span, largest, output)

    def integers(seed, offset, low, high, dtype, output):
        signed = high <= _HALF
        if not (-_HALF if signed else 0) <= low < high <= _ALL:
            raise ValueError(f"integers_at: [{low}, {high}) is empty, or no type of 64 bits holds it")
        return lib.integers_at(seed, offset, low % _ALL, (high - low) % _ALL, signed, output)

    def of_reals(name):
        """The function of C of a kind with real parameters."""
        draw = getattr(lib, name)
        return lambda seed, offset, *arguments: draw(seed, offset, *arguments[:-2], arguments[-1])

    def bernoulli_at(p, size, seed, offset, dtype):
        output = empty(size, dtype)
        if p.ndim == 0:
            status = lib.bernoulli_at(p, 0, seed, offset, id(output))
        else:
            compared = _FLOAT64 if dtype == _FLOAT64 else _FLOAT32
            if p.dtype != compared:
                p = p.astype(compared)
            p = dense(p if p.shape == size else np.broadcast_to(p, size))
            status = lib.bernoulli_at(0, id(p), seed, offset, id(output))
        if status:
            fail("bernoulli_at", status)
        return output

    def permutation_at(n, seed, offset, dtype):
        output = empty(n, _INT64)
        if status := lib.permutation_at(seed, offset, id(output)):
            fail("permutation_at", status)
        return output if dtype == _INT64 else output.astype(dtype)

    def multinomial_at(input, num_samples, replacement, seed, offset):
        weights = dense(input.astype(np.float64, copy=False))
        output = empty((*input.shape[:-1], num_samples), np.int64)
        if status := lib.multinomial_at(id(weights), num_samples, replacement, seed, offset, id(output)):
            fail("multinomial_at", status)
        return output

    def masked_dropout(input, p, seed, offset):
        input = dense(input)
        output, mask = empty(input.shape, input.dtype), empty(input.shape, bool)
        if status := lib.masked_dropout(id(input), p, seed, offset, id(output), id(mask)):
            fail("masked_dropout", status)
        return output, mask

    def masked_dropout_backward(output_grad, mask, p):
        output_grad, mask = dense(output_grad), dense(mask)
        output = empty(output_grad.shape, output_grad.dtype)
        if status := lib.masked_dropout_backward(id(output_grad), id(mask), p, id(output)):
            fail("masked_dropout_backward", status)
        return output

    def numbers(name, dtypes, draw=None, number=None):
        """The kernel of a kind, before it the shim in C of this `number`, if there is one."""
        kernel = drawing(name, draw or of_reals(name))
        return Kernel(name, kernel if number is None else direct(lib, "random", kernel, number), dtypes, out=True)

    return [
        Kernel("bernoulli_at", bernoulli_at, NUMBERS),
        numbers("cauchy_at", REAL_NUMBERS),
        numbers("exponential_at", REAL_NUMBERS),
        numbers("geometric_at", NUMBERS - {dtypes.bool_}),
        numbers("integers_at", NUMBERS, integers, 2),
        numbers("log_normal_at", REAL_NUMBERS),
        Kernel("masked_dropout", masked_dropout, FLOATS),
        Kernel("masked_dropout_backward", masked_dropout_backward, FLOATS),
        Kernel("multinomial_at", multinomial_at, REAL_NUMBERS),
        numbers("normal_at", FLOATING, number=1),
        Kernel("permutation_at", direct(lib, "permutation", permutation_at), NUMBERS - {dtypes.bool_}),
        numbers("uniform_at", FLOATING, uniform, 0),
    ]
