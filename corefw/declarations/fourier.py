"""Discrete Fourier transforms; `corefw.fft` offers them.

All of them are three primitives - complex to complex, real to half a spectrum and back - after the sizes, dimensions
and the norm are settled. Each is linear, so that its gradient is its adjoint: the transform in the other direction with
the same factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from corefw.declarations._shared.batching import example_dims
from corefw.declarations._shared.factories import factory
from corefw.declarations._shared.families import declare_as, family
from corefw.dispatch.declare import ops, primitive
from corefw.dispatch.rules import complex_of, real, same
from corefw.dtypes import FLOATING, get_default_dtype
from corefw.errors import DimensionError, DtypeError, ShapeError
from corefw.shapes import canonical_dim, same_shape

_ADJOINT = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


# -- primitives -------------------------------------------------------------------------------------------------------
@primitive(dtype=same.without("bool", "integer", "floating"), shape=same_shape, public="")
def fft_c2c(input, dim: tuple, norm: str, forward: bool):
    """The transform of a complex tensor along `dim`, or its inverse, scaled as `norm` says."""


@fft_c2c.batching
def transform_batching(call, examples, input, dim, *rest):
    return call(input, tuple(d % example_dims(input) + 1 for d in dim), *rest)


fft_c2c.gradients(input=lambda grad, dim, norm, forward: ops.fft_c2c(grad, dim, _ADJOINT[norm], not forward))


def _with_size(shape, dim: int, size: int):
    return (*shape[:dim], size, *shape[dim + 1 :])


def _half_shape(input, dim, norm):
    return _with_size(input, dim[-1], input[dim[-1]] // 2 + 1)


@primitive(dtype=complex_of, shape=_half_shape, public="")
def fft_r2c(input, dim: tuple, norm: str):
    """The transform of a real tensor along `dim`; of the last of them only the frequencies that are not negative."""


fft_r2c.batching(transform_batching)


@fft_r2c.gradient("input")
def fft_r2c_vjp(grad, input_shape, dim, norm):
    last = dim[-1]
    return ops.fft_c2c(_resized(grad, last, input_shape[last]), dim, _ADJOINT[norm], False).real


def _whole_shape(input, dim, norm, size):
    return _with_size(input, dim[-1], size)


@primitive(dtype=real.without("bool", "integer", "floating"), shape=_whole_shape, public="")
def fft_c2r(input, dim: tuple, norm: str, size: int):
    """The real tensor of which `input` is half the spectrum: the inverse of `fft_r2c`, `size` long along the last."""


fft_c2r.batching(transform_batching)


@fft_c2r.gradient("input")
def fft_c2r_vjp(grad, dim, norm):
    # every frequency but the first, and the last of an even size, stands for its negative too
    last, size = dim[-1], grad.shape[dim[-1]]
    half = ops.fft_r2c(grad, dim, _ADJOINT[norm])
    doubled = (size - 1) // 2
    first, middle, rest = half.split([1, doubled, half.shape[last] - 1 - doubled], last)
    return ops.cat([first, middle * 2, rest], last)


# -- arguments --------------------------------------------------------------------------------------------------------
def _resized(tensor, dim: int, size: int):
    """`tensor` cut off or continued by zeros to `size` along `dim`."""
    present = tensor.shape[dim]
    if size <= present:
        return tensor if size == present else tensor.narrow(dim, 0, size)
    return ops.cat([tensor, tensor.new_zeros(_with_size(tensor.shape, dim, size - present))], dim)


def _norm(norm: str | None) -> str:
    norm = "backward" if norm is None else norm
    if norm not in _ADJOINT:
        raise ShapeError(f'Invalid normalization mode: "{norm}"')
    return norm


def _floating(name: str, input, only_real: bool = False):
    """`input` in a dtype that can be transformed."""
    d = input.dtype
    if d.is_complex and only_real:
        raise DtypeError(f"{name} expects a real input tensor, but got {d.title}")
    if not d.is_complex and not d.is_floating_point:
        return input.to(get_default_dtype())
    if d.to_real().itemsize == 2:
        raise DtypeError(f"{name}: Unsupported dtype {d.title}; transform float32 or float64")
    return input


def _complex(name: str, input):
    input = _floating(name, input)
    return input if input.is_complex() else input.to(input.dtype.to_complex())


def _dims(name: str, input, s, dim) -> tuple[list[int], list[int]]:
    """The dimensions to transform, in order, and their sizes (-1 as the input has it)."""
    ndim = input.ndim
    if s is not None:
        s = [s] if isinstance(s, int) else list(s)
    if dim is not None:
        dims = [canonical_dim(d, ndim) for d in ([dim] if isinstance(dim, int) else dim)]
        if len(set(dims)) != len(dims):
            raise ShapeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise ShapeError("When given, dim and shape arguments must have the same length")
    elif s is not None:
        if len(s) > ndim:
            raise ShapeError(f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions.")
        dims = list(range(ndim - len(s), ndim))
    else:
        dims = list(range(ndim))
    return dims, [-1] * len(dims) if s is None else s


def _sized(input, dims, sizes):
    """`input` with the sizes that were asked for; none may be below 1."""
    for d, size in zip(dims, sizes, strict=True):
        size = input.shape[d] if size == -1 else size
        if size < 1:
            raise ShapeError(f"Invalid number of data points ({size}) specified")
        input = _resized(input, d, size)
    return input


def _one(input, n: int | None, dim: int):
    """The arguments of a one-dimensional transform as those of one of several dimensions."""
    if input.ndim == 0:
        raise DimensionError(f"Dimension specified as {dim} but tensor has no dimensions")
    if n is not None and n < 1:
        raise ShapeError(f"Invalid number of data points ({n}) specified")
    return None if n is None else (n,), (dim,)


def _c2c(name: str, input, s, dim, norm, forward: bool):
    norm = _norm(norm)
    input = _complex(name, input)
    dims, sizes = _dims(name, input, s, dim)
    input = _sized(input, dims, sizes)
    return ops.fft_c2c(input, tuple(dims), norm, forward) if dims else input.clone()


def _r2c(name: str, input, s, dim, norm, forward: bool):
    norm = _norm(norm)
    input = _floating(name, input, only_real=True)
    dims, sizes = _dims(name, input, s, dim)
    if not dims:
        raise ShapeError(f"{name} must transform at least one axis")
    input = _sized(input, dims, sizes)
    # the inverse transform of real numbers is the conjugate of the forward one with the inverse's factor
    if forward:
        return ops.fft_r2c(input, tuple(dims), norm)
    return ops.conj_physical(ops.fft_r2c(input, tuple(dims), _ADJOINT[norm]))


def _c2r(name: str, input, s, dim, norm, forward: bool):
    norm = _norm(norm)
    input = _complex(name, input)
    dims, sizes = _dims(name, input, s, dim)
    if not dims:
        raise ShapeError(f"{name} must transform at least one axis")
    size = 2 * (input.shape[dims[-1]] - 1) if sizes[-1] == -1 else sizes[-1]
    if size < 1:
        raise ShapeError(f"Invalid number of data points ({size}) specified")
    input = _sized(input, dims, [*sizes[:-1], size // 2 + 1])
    if forward:
        input, norm = input.conj(), _ADJOINT[norm]
    return ops.fft_c2r(input, tuple(dims), norm, size)


# -- transforms -------------------------------------------------------------------------------------------------------
_ALONG_ONE = """{summary}

    Args:
        input: any shape, {input}.
        n: {size}.
        dim: the dimension to transform.
        norm: {norm}, "ortho" for 1/sqrt(n).

    >>> import corefw as torch
    {example}
    """
_ALONG_TWO = """{summary}

    Arguments as for `fft.{name}n`.

    >>> import corefw as torch
    >>> torch.fft.{name}2(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
_ALONG_SEVERAL = """{summary}

    Args:
        input: any shape, {input}.
        s: the sizes of the {sized} along `dim`, cut off or continued by zeros; None or -1 for what they are.
        dim: the dimensions to transform; None for all, or the last ``len(s)``.
        norm: {norm}, "ortho" for 1/sqrt(n).

    >>> import corefw as torch
    >>> torch.fft.{name}n(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
_OF_INPUT = {"sized": "input", "size": "the size to which `input` is cut off or continued by zeros; None for its own"}
_OF_RESULT = {"sized": "result", "size": "the size of the result; None for ``2 * (input.shape[dim] - 1)``"}


def _declare(name: str, run, *, forward: bool, input: str, one: str, several: str, example: str) -> None:
    """Declare the transform `name` along one dimension, `name` + "2" along two and `name` + "n" along several.

    Args:
        name: such as "rfft".
        run: which numbers it transforms: `_c2c`, `_r2c` or `_c2r`.
        forward: whether it is the transform or the inverse.
        input: what the input is.
        one: what the transform along one dimension is.
        several: what those along two and several are, with ``{}`` for how many (for an inverse, "2" and "n").
        example: the example along one dimension.
    """
    norm = ("no factor", "1/n") if forward else ("a factor of 1/n", "none")
    words = {
        **(_OF_RESULT if run is _c2r else _OF_INPUT),
        "name": name,
        "input": input,
        "norm": f'"backward" (or None) for {norm[0]}, "forward" for {norm[1]}',
        "example": example,
    }

    def along_one(input, n: int | None = None, dim: int = -1, norm: str | None = None):
        s, dims = _one(input, n, dim)
        return run(name, input, s, dims, norm, forward)

    def along_two(input, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None):
        return run(f"{name}2", input, s, dim, norm, forward)

    def along_several(input, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None):
        return run(f"{name}n", input, s, dim, norm, forward)

    declare_as(f"fft_{name}", _ALONG_ONE.format(summary=one, **words), along_one, out=True)
    two, more = ("two dimensions", "several dimensions") if forward else ("2", "n")
    declare_as(f"fft_{name}2", _ALONG_TWO.format(summary=several.format(two), **words), along_two, out=True)
    declare_as(f"fft_{name}n", _ALONG_SEVERAL.format(summary=several.format(more), **words), along_several, out=True)


_declare(
    "fft",
    _c2c,
    forward=True,
    input="real or complex",
    one="The discrete Fourier transform, ``X[k] = sum_j input[j] * exp(-2 pi i j k / n)``.",
    several="The discrete Fourier transform in {}.",
    example=""">>> torch.fft.fft(torch.tensor([1.0, 2.0, 3.0]))
    tensor([ 6.0000+0.0000j, -1.5000+0.8660j, -1.5000-0.8660j])""",
)
_declare(
    "ifft",
    _c2c,
    forward=False,
    input="real or complex",
    one="The inverse of `fft.fft`, ``x[j] = 1 / n * sum_k input[k] * exp(2 pi i j k / n)``.",
    several="The inverse of `fft.fft{}`.",
    example=""">>> torch.fft.ifft(torch.tensor([6.0, 0.0, 0.0]))
    tensor([2.+0.j, 2.+0.j, 2.+0.j])""",
)
_declare(
    "rfft",
    _r2c,
    forward=True,
    input="real",
    one="The first ``n // 2 + 1`` elements of `fft.fft` of real numbers; the others are their conjugates.",
    several="The discrete Fourier transform of real numbers in {}, half of it along the last.",
    example=""">>> torch.fft.rfft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])""",
)
_declare(
    "irfft",
    _c2r,
    forward=False,
    input="half a spectrum along `dim`",
    one="The inverse of `fft.rfft`: the real numbers of which `input` is half the spectrum.",
    several="The inverse of `fft.rfft{}`.",
    example=""">>> torch.fft.irfft(torch.fft.rfft(torch.tensor([1.0, 2.0, 3.0, 4.0])))
    tensor([1., 2., 3., 4.])""",
)
_declare(
    "hfft",
    _c2r,
    forward=True,
    input="the first half of a Hermitian signal along `dim`",
    one="The discrete Fourier transform, which is real, of a signal with ``x[-j] = conj(x[j])``, given by its first "
    "half.",
    several="The discrete Fourier transform of a Hermitian signal in {}, given by half of it along the last.",
    example=""">>> torch.fft.hfft(torch.tensor([2.0, 1.0, 0.0]))
    tensor([4., 2., 0., 2.])""",
)
_declare(
    "ihfft",
    _r2c,
    forward=False,
    input="real",
    one="The inverse of `fft.hfft`: the first half of the Hermitian signal whose transform `input` is.",
    several="The inverse of `fft.hfft{}`.",
    example=""">>> torch.fft.ihfft(torch.tensor([4.0, 2.0, 0.0, 2.0]))
    tensor([2.-0.j, 1.-0.j, 0.-0.j])""",
)


# -- frequencies ------------------------------------------------------------------------------------------------------
def _given(result, out, requires_grad: bool):
    if out is not None:
        return out.resize_(result.shape).copy_(result)
    return result.requires_grad_() if requires_grad else result


def _frequency_unit(name: str, duration: float, dtype) -> float:
    """The lowest frequency of a signal; infinite if it has no duration."""
    if dtype.category < FLOATING:
        raise DtypeError(f"{name} requires a floating point or complex dtype, got {dtype!r}")
    return 1.0 / duration if duration else inf


@family()
def _frequencies(name: str, count: Callable):
    """Functions that give the frequencies of a transform's elements, in units of the lowest one as `count` says."""
    title = name.removeprefix("fft_")

    @factory
    def frequencies(n: int, d: float = 1.0, *, out, dtype, layout, device, requires_grad, pin_memory):
        place = {"dtype": dtype or get_default_dtype(), "layout": layout, "device": device, "pin_memory": pin_memory}
        unit = _frequency_unit(title, n * d, place["dtype"])
        return _given(count(n, place) * unit, out, requires_grad)

    return frequencies


@_frequencies(lambda n, place: ops.cat([ops.arange(0, (n + 1) // 2, **place), ops.arange(-(n // 2), 0, **place)]))
def fft_fftfreq():
    """The frequencies of the elements of `fft.fft`: ``[0, 1, ..., (n - 1) // 2, -(n // 2), ..., -1] / (d * n)``.

    Args:
        n: the size of the transform.
        d: the distance of samples in time.

    >>> import corefw as torch
    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """


@_frequencies(lambda n, place: ops.arange(0, n // 2 + 1, **place))
def fft_rfftfreq():
    """The frequencies of the elements of `fft.rfft`: ``[0, 1, ..., n // 2] / (d * n)``.

    Args:
        n: the size of the real signal.
        d: the distance of samples in time.

    >>> import corefw as torch
    >>> torch.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """


@family(other_names=True)
def _rolled(name: str, amount: Callable[[int], int]):
    """Functions that roll dimensions.

    Args:
        amount: by how much, from the size.
    """

    def rolled(input, dim: int | Sequence[int] | None = None):
        if dim is None:
            dims = list(range(input.ndim))
        else:
            dims = [canonical_dim(d, input.ndim) for d in ([dim] if isinstance(dim, int) else dim)]
        return ops.roll(input, [amount(input.shape[d]) for d in dims], dims) if dims else input.clone()

    return rolled


@_rolled(lambda size: size // 2)
def fft_fftshift():
    """The elements of a transform reordered so that the frequency 0 is in the middle.

    Args:
        input: any shape.
        dim: the dimensions to reorder; None for all.

    >>> import corefw as torch
    >>> torch.fft.fftshift(torch.tensor([0, 1, -2, -1]))
    tensor([-2, -1,  0,  1])
    """


@_rolled(lambda size: (size + 1) // 2)
def fft_ifftshift():
    """The inverse of `fft.fftshift`. Arguments as for it.

    >>> import corefw as torch
    >>> torch.fft.ifftshift(torch.tensor([-2, -1, 0, 1]))
    tensor([ 0,  1, -2, -1])
    """
