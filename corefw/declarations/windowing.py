"""Windows: weights that fade a stretch of a signal in and out before it is transformed.

All of them are formulas of the angle ``2 pi n / period`` at the n-th element, or of the distance to the center. The
period is ``M - 1`` for a symmetric window, and ``M`` for a periodic one, whose first element would follow its last. The
formulas are Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform" (1978). They are
computed in double precision and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi

from corefw import dtypes
from corefw.declarations._shared.factories import factory, require_grad, target
from corefw.declarations._shared.families import family
from corefw.dispatch.declare import composite, ops
from corefw.errors import DtypeError, ShapeError
from corefw.layouts import strided
from corefw.tensor import Tensor

_HANN = (0.5, 0.5)
_HAMMING = (0.54, 0.46)
_BLACKMAN = (0.42, 0.5, 0.08)
_NUTTALL = (0.3635819, 0.4891775, 0.1365995, 0.0106411)

Values = Callable[[Tensor, int], Tensor]  # a window from 0, 1, ... and the period


# -- formulas ---------------------------------------------------------------------------------------------------------
def _cosines(weights: Sequence[float]) -> Values:
    """``a[0] - a[1] cos(t) + a[2] cos(2 t) - ...`` of the angle t."""

    def values(n, period):
        angle = n * (2 * pi / period)
        return sum((w * (-1) ** k * (angle * k).cos() for k, w in enumerate(weights)), ops.zeros_like(n))

    return values


def _triangle(n, period):
    return 1 - (n * (2 / period) - 1).abs()


def _kaiser(beta: float) -> Values:
    def values(n, period):
        inside = (1 - (n * (2 / period) - 1).square()).clamp(min=0)
        return (inside.sqrt() * beta).i0() / ops.full((), beta, dtype=n.dtype, device=n.device).i0()

    return values


def _bell(std: float) -> Values:
    return lambda n, period: ((n - period / 2) / std).square().mul(-0.5).exp()


def _decay(center: float | None, tau: float) -> Values:
    return lambda n, period: ((n - (period / 2 if center is None else center)).abs() / -tau).exp()


def _window(values: Values, length: int, periodic: bool, dispatch_key, requires_grad: bool) -> Tensor:
    """The window of `length` elements that `values` gives; a single element is 1."""
    if length <= 1:
        result = ops.ones(length, dtype=dispatch_key.dtype, device=dispatch_key.device)
    else:
        n = ops.arange(length, dtype=dtypes.float64, device=dispatch_key.device)
        result = values(n, length if periodic else length - 1).to(dispatch_key.dtype)
    return require_grad(result) if requires_grad else result


# -- with a period of their length ------------------------------------------------------------------------------------
def _repeating(name: str, window_length: int, values: Values, periodic: bool, requires_grad: bool, **where) -> Tensor:
    if not isinstance(window_length, int):
        found = type(window_length).__name__
        raise TypeError(f"{name}(): argument 'window_length' (position 1) must be int, not {found}")
    if window_length < 0:
        raise ShapeError(f"{name} requires non-negative window_length, got window_length={window_length}")
    dispatch_key = target(name, **where)
    if not dispatch_key.dtype.is_floating_point:
        raise DtypeError(f"{name} expects floating point dtypes, got: {dispatch_key.dtype!r}")
    return _window(values, window_length, periodic, dispatch_key, requires_grad)


@family()
def _repeated(name: str, values: Values):
    """Windows that only their length determines."""

    @factory
    def window(window_length: int, periodic: bool = True, *, dtype, layout, device, requires_grad, pin_memory):
        where = {"dtype": dtype, "layout": layout, "device": device, "pin_memory": pin_memory}
        return _repeating(name, window_length, values, periodic, requires_grad, **where)

    return window


@_repeated(_cosines(_HANN))
def hann_window():
    """Hann's window, ``0.5 - 0.5 cos(t)``.

    Args:
        window_length: the number of elements.
        periodic: whether the window would repeat after them, as transforms assume; else it is symmetric.

    Other arguments as for `zeros`; the dtype is a floating one.

    >>> import corefw as torch
    >>> torch.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """


@_repeated(_cosines(_BLACKMAN))
def blackman_window():
    """Blackman's window, ``0.42 - 0.5 cos(t) + 0.08 cos(2 t)``. Arguments as for `hann_window`.

    >>> import corefw as torch
    >>> torch.blackman_window(4)[1:]
    tensor([0.3400, 1.0000, 0.3400])
    """


@_repeated(_triangle)
def bartlett_window():
    """Bartlett's window: a triangle that begins with 0. Arguments as for `hann_window`.

    >>> import corefw as torch
    >>> torch.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """


@composite()
@factory
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = _HAMMING[0], beta: float = _HAMMING[1], *, dtype, layout,
    device, requires_grad, pin_memory,
):  # fmt: skip
    """Hamming's window, ``alpha - beta cos(t)``. Other arguments as for `hann_window`.

    >>> import corefw as torch
    >>> torch.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    where = {"dtype": dtype, "layout": layout, "device": device, "pin_memory": pin_memory}
    return _repeating("hamming_window", window_length, _cosines((alpha, beta)), periodic, requires_grad, **where)


@composite()
@factory
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype, layout, device, requires_grad, pin_memory,
):  # fmt: skip
    """Kaiser's window, ``i0(beta sqrt(1 - r^2)) / i0(beta)`` at the distance r from the center, 1 at the ends.

    Other arguments as for `hann_window`.

    >>> import corefw as torch
    >>> torch.kaiser_window(4, beta=0.0)
    tensor([1., 1., 1., 1.])
    """
    where = {"dtype": dtype, "layout": layout, "device": device, "pin_memory": pin_memory}
    return _repeating("kaiser_window", window_length, _kaiser(beta), periodic, requires_grad, **where)


# -- of signal.windows ------------------------------------------------------------------------------------------------
def _symmetric(name: str, M: int, values: Values, sym: bool, requires_grad: bool, dtype, layout, device) -> Tensor:
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout not in (None, strided):
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    dispatch_key = target(name, dtype, device)
    if dispatch_key.dtype not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dispatch_key.dtype!r}")
    return _window(values, M, not sym, dispatch_key, requires_grad)


@family()
def _named(name: str, values: Values):
    """Windows that only their length determines."""

    @factory
    def window(M: int, *, sym: bool = True, dtype, layout, device, requires_grad):
        return _symmetric(name.removeprefix("signal_"), M, values, sym, requires_grad, dtype, layout, device)

    return window


@_named(_cosines(_HANN), public="signal.windows.hann")
def signal_hann():
    """Hann's window, ``0.5 - 0.5 cos(t)``.

    Args:
        M: the number of elements.
        sym: whether the window is symmetric; else it would repeat after them, as transforms assume.

    Other arguments as for `zeros`; the dtype is float32 or float64.

    >>> import corefw as torch
    >>> torch.signal.windows.hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """


@_named(_cosines(_HAMMING), public="signal.windows.hamming")
def signal_hamming():
    """Hamming's window, ``0.54 - 0.46 cos(t)``. Arguments as for `signal.windows.hann`.

    >>> import corefw as torch
    >>> torch.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """


@_named(_cosines(_BLACKMAN), public="signal.windows.blackman")
def signal_blackman():
    """Blackman's window, ``0.42 - 0.5 cos(t) + 0.08 cos(2 t)``. Arguments as for `signal.windows.hann`.

    >>> import corefw as torch
    >>> torch.signal.windows.blackman(5)[1:4]
    tensor([0.3400, 1.0000, 0.3400])
    """


@_named(_cosines(_NUTTALL), public="signal.windows.nuttall")
def signal_nuttall():
    """Nuttall's window of four terms whose side lobes stay lowest. Arguments as for `signal.windows.hann`.

    The weights are those of Nuttall, "Some windows with very good sidelobe behavior" (1981), figure 12.

    >>> import corefw as torch
    >>> torch.signal.windows.nuttall(5)[1:4]
    tensor([0.2270, 1.0000, 0.2270])
    """


@_named(_triangle, public="signal.windows.bartlett")
def signal_bartlett():
    """Bartlett's window: a triangle that begins and ends with 0. Arguments as for `signal.windows.hann`.

    >>> import corefw as torch
    >>> torch.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """


@_named(lambda n, period: ((n + 0.5) * (pi / (period + 1))).sin(), public="signal.windows.cosine")
def signal_cosine():
    """Half a wave of the sine, whose ends lie half a step beyond the window. Arguments as for `signal.windows.hann`.

    >>> import corefw as torch
    >>> torch.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """


@composite(public="signal.windows.gaussian")
@factory
def signal_gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype, layout, device, requires_grad):
    """A bell, ``exp(-(d / std)^2 / 2)`` at the distance d from the center. Other arguments as for
    `signal.windows.hann`.

    >>> import corefw as torch
    >>> torch.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _symmetric("gaussian", M, _bell(std), sym, requires_grad, dtype, layout, device)


@composite(public="signal.windows.exponential")
@factory
def signal_exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype, layout, device, requires_grad,
):  # fmt: skip
    """``exp(-d / tau)`` at the distance d from the `center`, which is in the middle unless the window is not symmetric.

    Other arguments as for `signal.windows.hann`.

    >>> import corefw as torch
    >>> torch.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    return _symmetric("exponential", M, _decay(center, tau), sym, requires_grad, dtype, layout, device)


@composite(public="signal.windows.general_cosine")
@factory
def signal_general_cosine(M: int, *, a: Sequence[float], sym: bool = True, dtype, layout, device, requires_grad):
    """``a[0] - a[1] cos(t) + a[2] cos(2 t) - ...``. Other arguments as for `signal.windows.hann`.

    >>> import corefw as torch
    >>> torch.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    if not isinstance(a, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    return _symmetric("general_cosine", M, _cosines(a), sym, requires_grad, dtype, layout, device)


@composite(public="signal.windows.general_hamming")
@factory
def signal_general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype, layout, device, requires_grad):
    """``alpha - (1 - alpha) cos(t)``. Other arguments as for `signal.windows.hann`.

    >>> import corefw as torch
    >>> torch.signal.windows.general_hamming(3, alpha=0.75)
    tensor([0.5000, 1.0000, 0.5000])
    """
    return _symmetric("general_hamming", M, _cosines((alpha, 1 - alpha)), sym, requires_grad, dtype, layout, device)


@composite(public="signal.windows.kaiser")
@factory
def signal_kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype, layout, device, requires_grad):
    """Kaiser's window, ``i0(beta sqrt(1 - r^2)) / i0(beta)`` at the distance r from the center, 1 at the ends.

    Other arguments as for `signal.windows.hann`.

    >>> import corefw as torch
    >>> torch.signal.windows.kaiser(3, beta=0.0)
    tensor([1., 1., 1.])
    """
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _symmetric("kaiser", M, _kaiser(beta), sym, requires_grad, dtype, layout, device)
