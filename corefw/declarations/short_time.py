"""The Fourier transform of a signal as it changes: of windows that slide over it, and back."""

from __future__ import annotations

from corefw.dispatch.batching.tensors import all_examples
from corefw.dispatch.declare import composite, ops
from corefw.errors import DtypeError, ShapeError
from corefw.tracebacks import warn

_LEAST_OVERLAP = 1e-11  # of squared windows: what a signal can be divided by


def _described(name: str, input, n_fft: int, hop_length: int, win_length: int) -> str:
    return f"{name}({list(input.shape)}, n_fft={n_fft}, hop_length={hop_length}, win_length={win_length})"


def _margins(n_fft: int, win_length: int) -> tuple[int, int]:
    """What is transformed before and after a window."""
    left = (n_fft - win_length) // 2
    return left, n_fft - win_length - left


def _frame_window(window, like, n_fft: int, win_length: int):
    """The window, in the middle of as many elements as are transformed."""
    if window is None:
        real = like.dtype.to_real() if like.is_complex() else like.dtype
        window = ops.ones(win_length, dtype=real, device=like.device)
    return ops.pad(window, _margins(n_fft, win_length)) if win_length < n_fft else window


@composite()
def stft(
    input, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window=None, center: bool = True,
    pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
    return_complex: bool | None = None, align_to_window: bool | None = None,
):  # fmt: skip
    """The Fourier transforms of windows of a signal, ``X[k, m] = sum_j w[j] x[m hop + j] exp(-2 pi i j k / n_fft)``.

    Args:
        input: the signal: shape (L,), or (B, L) for several.
        n_fft: the number of elements of each transform.
        hop_length: by how much windows lie apart; a quarter of `n_fft` unless given.
        win_length: the size of the window, in the middle of the elements that are transformed; `n_fft` unless given.
        window: the weights, shape (win_length,); ones unless given.
        center: whether windows have their middles at multiples of the hop, for which the signal is continued at both
            ends as `pad_mode` says; else they begin there.
        pad_mode: a mode of `nn.functional.pad`.
        normalized: whether transforms are divided by ``sqrt(n_fft)``.
        onesided: whether only the frequencies that are not negative are returned; of real signals unless given.
        return_complex: complex numbers, or pairs of real ones (deprecated); to be given for real signals.
        align_to_window: of signals that are not centered, whether windows rather than transforms fit in the signal.

    Returns:
        Shape (frequencies, windows), or (B, frequencies, windows).

    Raises:
        RuntimeError: for other shapes and dtypes, and for sizes that do not fit each other.

    >>> import corefw as torch
    >>> torch.stft(torch.ones(8), 4, center=False, return_complex=True)[:, 0]
    tensor([4.+0.j, 0.+0.j, 0.+0.j])
    """
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    whole = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not whole:
            raise ShapeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return_complex = True
    call = _described("stft", input, n_fft, hop_length, win_length)
    if not (input.is_floating_point() or input.is_complex()):
        raise DtypeError(f"{call}: expected a tensor of floating point or complex values")
    if input.ndim not in (1, 2):
        raise ShapeError(f"{call}: expected a 1D or 2D tensor")
    if center and align_to_window is not None:
        raise ShapeError(f"{call}: align_to_window should only be set when center = false")
    signal = input if input.ndim == 2 else input.unsqueeze(0)
    if center and n_fft > 1:
        signal = ops.pad(signal.unsqueeze(1), (n_fft // 2, n_fft // 2), pad_mode).squeeze(1)
    elif align_to_window and n_fft > win_length:
        signal = ops.pad(signal, _margins(n_fft, win_length))
    if not 0 < n_fft <= signal.shape[-1]:
        raise ShapeError(f"{call}: expected 0 < n_fft <= {signal.shape[-1]}, but got n_fft={n_fft}")
    if hop_length <= 0:
        raise ShapeError(f"{call}: expected hop_length > 0, but got hop_length={hop_length}")
    if not 0 < win_length <= n_fft:
        raise ShapeError(f"{call}: expected 0 < win_length <= n_fft, but got win_length={win_length}")
    if window is not None and tuple(window.shape) != (win_length,):
        raise ShapeError(
            f"{call}: expected a 1D window tensor of size equal to win_length={win_length}, but got window with size "
            f"{list(window.shape)}"
        )
    if whole and onesided:
        raise ShapeError("Cannot have onesided output if window or input is complex")
    half = not whole if onesided is None else onesided
    frames = signal.unfold(-1, n_fft, hop_length) * _frame_window(window, signal, n_fft, win_length)
    norm = "ortho" if normalized else "backward"
    result = (ops.fft_rfft if half else ops.fft_fft)(frames, norm=norm).transpose(-1, -2)
    if input.ndim == 1:
        result = result.squeeze(0)
    if return_complex:
        return result
    warn(
        "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors "
        "for all inputs, and return_complex=False will raise an error.\nNote: you can still call torch.view_as_real on "
        "the complex output to recover the old return format."
    )
    return ops.view_as_real(result)


@composite()
def istft(
    input, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window=None, center: bool = True,
    normalized: bool = False, onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
):  # fmt: skip
    """The signal of which `input` is the `stft`: windows added where they were taken, divided by what they weigh there.

    Of transforms that belong to no signal it is the one whose transforms are nearest: Griffin and Lim, "Signal
    estimation from modified short-time Fourier transform" (1984), equation 6.

    Args:
        input: complex, shape (frequencies, windows), or (B, frequencies, windows).
        length: how much of the signal is wanted; the rest is zeros. All that centered windows determine unless given.
        return_complex: whether the signal is complex.

    Other arguments as for `stft`.

    Returns:
        Shape (L,), or (B, L).

    Raises:
        RuntimeError: for other shapes, for sizes that do not fit each other, and for windows that leave out elements.

    >>> import corefw as torch
    >>> torch.istft(torch.stft(torch.arange(4.0), 4, return_complex=True), 4)
    tensor([0., 1., 2., 3.])
    """
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    call = _described("istft", input, n_fft, hop_length, win_length)
    if not input.is_complex():
        raise DtypeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if not input.numel():
        raise ShapeError(f"{call}: input tensor cannot be empty.")
    if input.ndim not in (2, 3):
        raise ShapeError(f"{call}: expected a tensor with 2 or 3 dimensions, but got {input.ndim}")
    frequencies, count = input.shape[-2:]
    half = frequencies != n_fft if onesided is None else onesided
    wanted, meaning = (n_fft // 2 + 1, "n_fft / 2 + 1") if half else (n_fft, "n_fft")
    if frequencies != wanted:
        raise ShapeError(
            f"{call}: expected the frequency dimension (2nd to the last) of the input tensor to match {meaning} when "
            f"onesided={half}, but got {frequencies}"
        )
    if not 0 < hop_length <= win_length:
        raise ShapeError(f"{call}: expected 0 < hop_length <= win_length")
    if not 0 < win_length <= n_fft:
        raise ShapeError(f"{call}: expected 0 < win_length <= n_fft")
    if window is not None and tuple(window.shape) != (win_length,):
        raise ShapeError(f"{call}: Invalid window shape. window has to be 1D and length of `win_length`")
    if half and return_complex:
        raise ShapeError("Cannot have onesided output if window or input is complex")
    if window is not None and window.is_complex() and not return_complex:
        raise ShapeError("Complex windows are incompatible with return_complex=False")

    window = _frame_window(window, input, n_fft, win_length)
    norm = "ortho" if normalized else "backward"
    spectra = (input if input.ndim == 3 else input.unsqueeze(0)).transpose(-1, -2)
    if return_complex:
        frames = ops.fft_ifft(spectra, norm=norm)
    else:
        frames = ops.fft_irfft(spectra.narrow(-1, 0, n_fft // 2 + 1), n_fft, norm=norm)
    extent = n_fft + hop_length * (count - 1)
    signal = ops.unfold_backward(frames * window, (frames.shape[0], extent), 1, n_fft, hop_length)
    squares = window.square().expand(1, count, n_fft)
    weight = ops.unfold_backward(squares, (1, extent), 1, n_fft, hop_length)

    start = n_fft // 2 if center else 0
    end = extent - start if length is None else min(start + length, extent)
    signal, weight = (sums.narrow(1, start, max(end - start, 0)) for sums in (signal, weight))
    least = float(all_examples(weight.abs()).min()) if weight.numel() else 1.0
    if least <= _LEAST_OVERLAP:
        raise ShapeError(
            f"{call}: the windows leave out elements of the signal (window overlap add min: {least}); center them, let "
            "them overlap more, or choose a window without zeros"
        )
    signal = signal / weight
    if length is not None and signal.shape[1] < length:
        warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings."
        )
        signal = ops.pad(signal, (0, length - signal.shape[1]))
    return signal if input.ndim == 3 else signal.squeeze(0)
