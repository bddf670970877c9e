"""Discrete Fourier transforms; `corefw.fft` offers them.

All of them are three primitives - complex to complex, real to half a spectrum and back - after the sizes, dimensions
and the norm are settled. Each is linear, so that its gradient is its adjoint: the transform in the other direction with
the same factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from corefw.dispatch.declare import composite, ops, primitive
from corefw.dispatch.rules import complex_of, real, same
from corefw.dtypes import FLOATING, get_default_dtype
from corefw.errors import DimensionError, DtypeError, ShapeError
from corefw.shapes import canonical_dim, same_shape

_ADJOINT = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


# -- primitives -------------------------------------------------------------------------------------------------------
@primitive(dtype=same.without("bool", "integer", "floating"), shape=same_shape, public="", grad_name="FftC2C")
def fft_c2c(input, dim: tuple, norm: str, forward: bool):
    """The transform of a complex tensor along `dim`, or its inverse, scaled as `norm` says."""


fft_c2c.gradients(input=lambda grad, dim, norm, forward: ops.fft_c2c(grad, dim, _ADJOINT[norm], not forward))


def _with_size(shape, dim: int, size: int):
    return (*shape[:dim], size, *shape[dim + 1 :])


def _half_shape(input, dim, norm):
    return _with_size(input, dim[-1], input[dim[-1]] // 2 + 1)


@primitive(dtype=complex_of, shape=_half_shape, public="", grad_name="FftR2C")
def fft_r2c(input, dim: tuple, norm: str):
    """The transform of a real tensor along `dim`; of the last of them only the frequencies that are not negative."""


@fft_r2c.gradient("input")
def fft_r2c_vjp(grad, input_shape, dim, norm):
    last = dim[-1]
    return ops.fft_c2c(_resized(grad, last, input_shape[last]), dim, _ADJOINT[norm], False).real


def _whole_shape(input, dim, norm, size):
    return _with_size(input, dim[-1], size)


@primitive(dtype=real.without("bool", "integer", "floating"), shape=_whole_shape, public="", grad_name="FftC2R")
def fft_c2r(input, dim: tuple, norm: str, size: int):
    """The real tensor of which `input` is half the spectrum: the inverse of `fft_r2c`, `size` long along the last."""


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


# -- one dimension ----------------------------------------------------------------------------------------------------
@composite(out=True)
def fft_fft(input, n: int | None = None, dim: int = -1, norm: str | None = None):
    """The discrete Fourier transform, ``X[k] = sum_j input[j] * exp(-2 pi i j k / n)``.

    Args:
        input: any shape, real or complex.
        n: the size to which `input` is cut off or continued by zeros; None for its own.
        dim: the dimension to transform.
        norm: "backward" (or None) for no factor, "forward" for 1/n, "ortho" for 1/sqrt(n).

    >>> import corefw as torch
    >>> torch.fft.fft(torch.tensor([1.0, 2.0, 3.0]))
    tensor([ 6.0000+0.0000j, -1.5000+0.8660j, -1.5000-0.8660j])
    """
    s, dims = _one(input, n, dim)
    return _c2c("fft", input, s, dims, norm, True)


@composite(out=True)
def fft_ifft(input, n: int | None = None, dim: int = -1, norm: str | None = None):
    """The inverse of `fft.fft`, ``x[j] = 1 / n * sum_k input[k] * exp(2 pi i j k / n)``.

    Args:
        input: any shape, real or complex.
        n: the size to which `input` is cut off or continued by zeros; None for its own.
        dim: the dimension to transform.
        norm: "backward" (or None) for a factor of 1/n, "forward" for none, "ortho" for 1/sqrt(n).

    >>> import corefw as torch
    >>> torch.fft.ifft(torch.tensor([6.0, 0.0, 0.0]))
    tensor([2.+0.j, 2.+0.j, 2.+0.j])
    """
    s, dims = _one(input, n, dim)
    return _c2c("ifft", input, s, dims, norm, False)


@composite(out=True)
def fft_rfft(input, n: int | None = None, dim: int = -1, norm: str | None = None):
    """The first ``n // 2 + 1`` elements of `fft.fft` of real numbers; the others are their conjugates.

    Args:
        input: any shape, real.
        n: the size to which `input` is cut off or continued by zeros; None for its own.
        dim: the dimension to transform.
        norm: "backward" (or None) for no factor, "forward" for 1/n, "ortho" for 1/sqrt(n).

    >>> import corefw as torch
    >>> torch.fft.rfft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """
    s, dims = _one(input, n, dim)
    return _r2c("rfft", input, s, dims, norm, True)


@composite(out=True)
def fft_irfft(input, n: int | None = None, dim: int = -1, norm: str | None = None):
    """The inverse of `fft.rfft`: the real numbers of which `input` is half the spectrum.

    Args:
        input: any shape, half a spectrum along `dim`.
        n: the size of the result; None for ``2 * (input.shape[dim] - 1)``.
        dim: the dimension to transform.
        norm: "backward" (or None) for a factor of 1/n, "forward" for none, "ortho" for 1/sqrt(n).

    >>> import corefw as torch
    >>> torch.fft.irfft(torch.fft.rfft(torch.tensor([1.0, 2.0, 3.0, 4.0])))
    tensor([1., 2., 3., 4.])
    """
    s, dims = _one(input, n, dim)
    return _c2r("irfft", input, s, dims, norm, False)


@composite(out=True)
def fft_hfft(input, n: int | None = None, dim: int = -1, norm: str | None = None):
    """The discrete Fourier transform, which is real, of a signal with ``x[-j] = conj(x[j])``, given by its first half.

    Args:
        input: any shape, the first half of a Hermitian signal along `dim`.
        n: the size of the result; None for ``2 * (input.shape[dim] - 1)``.
        dim: the dimension to transform.
        norm: "backward" (or None) for no factor, "forward" for 1/n, "ortho" for 1/sqrt(n).

    >>> import corefw as torch
    >>> torch.fft.hfft(torch.tensor([2.0, 1.0, 0.0]))
    tensor([4., 2., 0., 2.])
    """
    s, dims = _one(input, n, dim)
    return _c2r("hfft", input, s, dims, norm, True)


@composite(out=True)
def fft_ihfft(input, n: int | None = None, dim: int = -1, norm: str | None = None):
    """The inverse of `fft.hfft`: the first half of the Hermitian signal whose transform `input` is.

    Args:
        input: any shape, real.
        n: the size to which `input` is cut off or continued by zeros; None for its own.
        dim: the dimension to transform.
        norm: "backward" (or None) for a factor of 1/n, "forward" for none, "ortho" for 1/sqrt(n).

    >>> import corefw as torch
    >>> torch.fft.ihfft(torch.tensor([4.0, 2.0, 0.0, 2.0]))
    tensor([2.-0.j, 1.-0.j, 0.-0.j])
    """
    s, dims = _one(input, n, dim)
    return _r2c("ihfft", input, s, dims, norm, False)


# -- several dimensions ------------------------------------------------------------------------------------------------
@composite(out=True)
def fft_fft2(input, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None):
    """The discrete Fourier transform in two dimensions.

    Arguments as for `fft.fftn`.

    >>> import corefw as torch
    >>> torch.fft.fft2(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return _c2c("fft2", input, s, dim, norm, True)


@composite(out=True)
def fft_fftn(input, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None):
    """The discrete Fourier transform in several dimensions.

    Args:
        input: any shape, real or complex.
        s: the sizes of the input along `dim`, cut off or continued by zeros; None or -1 for what they are.
        dim: the dimensions to transform; None for all, or the last ``len(s)``.
        norm: "backward" (or None) for no factor, "forward" for 1/n, "ortho" for 1/sqrt(n).

    >>> import corefw as torch
    >>> torch.fft.fftn(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return _c2c("fftn", input, s, dim, norm, True)


@composite(out=True)
def fft_ifft2(input, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None):
    """The inverse of `fft.fft2`.

    Arguments as for `fft.ifftn`.

    >>> import corefw as torch
    >>> torch.fft.ifft2(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return _c2c("ifft2", input, s, dim, norm, False)


@composite(out=True)
def fft_ifftn(input, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None):
    """The inverse of `fft.fftn`.

    Args:
        input: any shape, real or complex.
        s: the sizes of the input along `dim`, cut off or continued by zeros; None or -1 for what they are.
        dim: the dimensions to transform; None for all, or the last ``len(s)``.
        norm: "backward" (or None) for a factor of 1/n, "forward" for none, "ortho" for 1/sqrt(n).

    >>> import corefw as torch
    >>> torch.fft.ifftn(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return _c2c("ifftn", input, s, dim, norm, False)


@composite(out=True)
def fft_rfft2(input, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None):
    """The discrete Fourier transform of real numbers in two dimensions, half of it along the last.

    Arguments as for `fft.rfftn`.

    >>> import corefw as torch
    >>> torch.fft.rfft2(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return _r2c("rfft2", input, s, dim, norm, True)


@composite(out=True)
def fft_rfftn(input, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None):
    """The discrete Fourier transform of real numbers in several dimensions, half of it along the last.

    Args:
        input: any shape, real.
        s: the sizes of the input along `dim`, cut off or continued by zeros; None or -1 for what they are.
        dim: the dimensions to transform; None for all, or the last ``len(s)``.
        norm: "backward" (or None) for no factor, "forward" for 1/n, "ortho" for 1/sqrt(n).

    >>> import corefw as torch
    >>> torch.fft.rfftn(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return _r2c("rfftn", input, s, dim, norm, True)


@composite(out=True)
def fft_irfft2(input, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None):
    """The inverse of `fft.rfft2`.

    Arguments as for `fft.irfftn`.

    >>> import corefw as torch
    >>> torch.fft.irfft2(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return _c2r("irfft2", input, s, dim, norm, False)


@composite(out=True)
def fft_irfftn(input, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None):
    """The inverse of `fft.rfftn`.

    Args:
        input: any shape, half a spectrum along `dim`.
        s: the sizes of the result along `dim`, cut off or continued by zeros; None or -1 for what they are.
        dim: the dimensions to transform; None for all, or the last ``len(s)``.
        norm: "backward" (or None) for a factor of 1/n, "forward" for none, "ortho" for 1/sqrt(n).

    >>> import corefw as torch
    >>> torch.fft.irfftn(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return _c2r("irfftn", input, s, dim, norm, False)


@composite(out=True)
def fft_hfft2(input, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None):
    """The discrete Fourier transform of a Hermitian signal in two dimensions, given by half of it along the last.

    Arguments as for `fft.hfftn`.

    >>> import corefw as torch
    >>> torch.fft.hfft2(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return _c2r("hfft2", input, s, dim, norm, True)


@composite(out=True)
def fft_hfftn(input, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None):
    """The discrete Fourier transform of a Hermitian signal in several dimensions, given by half of it along the last.

    Args:
        input: any shape, the first half of a Hermitian signal along `dim`.
        s: the sizes of the result along `dim`, cut off or continued by zeros; None or -1 for what they are.
        dim: the dimensions to transform; None for all, or the last ``len(s)``.
        norm: "backward" (or None) for no factor, "forward" for 1/n, "ortho" for 1/sqrt(n).

    >>> import corefw as torch
    >>> torch.fft.hfftn(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return _c2r("hfftn", input, s, dim, norm, True)


@composite(out=True)
def fft_ihfft2(input, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None):
    """The inverse of `fft.hfft2`.

    Arguments as for `fft.ihfftn`.

    >>> import corefw as torch
    >>> torch.fft.ihfft2(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return _r2c("ihfft2", input, s, dim, norm, False)


@composite(out=True)
def fft_ihfftn(input, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None):
    """The inverse of `fft.hfftn`.

    Args:
        input: any shape, real.
        s: the sizes of the input along `dim`, cut off or continued by zeros; None or -1 for what they are.
        dim: the dimensions to transform; None for all, or the last ``len(s)``.
        norm: "backward" (or None) for a factor of 1/n, "forward" for none, "ortho" for 1/sqrt(n).

    >>> import corefw as torch
    >>> torch.fft.ihfftn(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return _r2c("ihfftn", input, s, dim, norm, False)


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


@composite()
def fft_fftfreq(
    n: int,
    d: float = 1.0,
    *,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
    """The frequencies of the elements of `fft.fft`: ``[0, 1, ..., (n - 1) // 2, -(n // 2), ..., -1] / (d * n)``.

    Args:
        n: the size of the transform.
        d: the distance of samples in time.

    >>> import corefw as torch
    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    place = {"dtype": dtype or get_default_dtype(), "layout": layout, "device": device, "pin_memory": pin_memory}
    unit = _frequency_unit("fftfreq", n * d, place["dtype"])
    k = ops.cat([ops.arange(0, (n + 1) // 2, **place), ops.arange(-(n // 2), 0, **place)])
    return _given(k * unit, out, requires_grad)


@composite()
def fft_rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
    """The frequencies of the elements of `fft.rfft`: ``[0, 1, ..., n // 2] / (d * n)``.

    Args:
        n: the size of the real signal.
        d: the distance of samples in time.

    >>> import corefw as torch
    >>> torch.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    place = {"dtype": dtype or get_default_dtype(), "layout": layout, "device": device, "pin_memory": pin_memory}
    unit = _frequency_unit("rfftfreq", n * d, place["dtype"])
    return _given(ops.arange(0, n // 2 + 1, **place) * unit, out, requires_grad)


def _shift_dims(input, dim) -> list[int]:
    if dim is None:
        return list(range(input.ndim))
    return [canonical_dim(d, input.ndim) for d in ([dim] if isinstance(dim, int) else dim)]


@composite()
def fft_fftshift(input, dim: int | Sequence[int] | None = None):
    """The elements of a transform reordered so that the frequency 0 is in the middle.

    Args:
        input: any shape.
        dim: the dimensions to reorder; None for all.

    >>> import corefw as torch
    >>> torch.fft.fftshift(torch.tensor([0, 1, -2, -1]))
    tensor([-2, -1,  0,  1])
    """
    dims = _shift_dims(input, dim)
    return ops.roll(input, [input.shape[d] // 2 for d in dims], dims) if dims else input.clone()


@composite()
def fft_ifftshift(input, dim: int | Sequence[int] | None = None):
    """The inverse of `fft.fftshift`.

    Args:
        input: any shape.
        dim: the dimensions to reorder; None for all.

    >>> import corefw as torch
    >>> torch.fft.ifftshift(torch.tensor([-2, -1, 0, 1]))
    tensor([ 0,  1, -2, -1])
    """
    dims = _shift_dims(input, dim)
    return ops.roll(input, [(input.shape[d] + 1) // 2 for d in dims], dims) if dims else input.clone()
