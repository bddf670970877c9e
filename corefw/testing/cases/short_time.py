"""Transforms of sliding windows: sums over windows, written naively."""

import numpy as np

from corefw.testing.case import Case

OPTIONS = (
    {"n_fft": 4, "return_complex": True},
    {"n_fft": 5, "hop_length": 2, "win_length": 3, "normalized": True, "return_complex": True},
    {"n_fft": 6, "hop_length": 4, "center": False, "onesided": False, "return_complex": True},
    {"n_fft": 6, "hop_length": 1, "win_length": 4, "center": False, "align_to_window": True, "return_complex": True},
)


def _frames(n_fft, win_length):
    """How many elements are transformed before and after a window."""
    left = (n_fft - win_length) // 2
    return left, n_fft - win_length - left


def _stft(
    x, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None,
    return_complex=True, align_to_window=None,
):  # fmt: skip
    hop, width = hop_length or n_fft // 4, win_length or n_fft
    weights = np.pad(np.ones(width) if window is None else window, _frames(n_fft, width))
    if center or align_to_window:
        ends = (n_fft // 2, n_fft // 2) if center else _frames(n_fft, width)
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [ends], mode="reflect" if center else "constant")
    half = not np.iscomplexobj(x) if onesided is None else onesided
    k = np.arange(n_fft // 2 + 1 if half else n_fft)[:, None]
    waves = np.exp(-2j * np.pi * k * np.arange(n_fft) / n_fft) * weights / (np.sqrt(n_fft) if normalized else 1)
    starts = range(0, x.shape[-1] - n_fft + 1, hop)
    return np.stack([(waves * x[..., None, s : s + n_fft]).sum(-1) for s in starts], -1)


def _signals(rng, dtype):
    def draw(*shape):
        values = rng.uniform(-1, 1, shape)
        return (values + 1j * rng.uniform(-1, 1, shape) if dtype.kind == "c" else values).astype(dtype)

    real = np.zeros(0, dtype).real.dtype
    return [
        *(([draw(*shape)], options) for shape in ((9,), (2, 10)) for options in OPTIONS),
        ([draw(2, 10)], {"n_fft": 4, "window": np.array([0.5, 1, 0.75, 0.25], real), "return_complex": True}),
    ]


def _spectra(rng, dtype):
    """Transforms of signals that windows cover to their ends."""
    real = np.zeros(0, dtype).real.dtype
    found = []
    for shape in ((8,), (2, 8)):
        signal = rng.uniform(-1, 1, shape).astype(real)
        for options in ({"n_fft": 4}, {"n_fft": 5, "hop_length": 2, "normalized": True}, {"n_fft": 4, "length": 6}):
            given = {name: value for name, value in options.items() if name != "length"}
            found.append(([_stft(signal, **given).astype(dtype)], options))
    return found


def _back(spectra, n_fft, hop_length=None, normalized=False, length=None):
    """Windows of ones, transformed back, added and divided by how many cover an element."""
    hop = hop_length or n_fft // 4
    mirrored = np.conj(spectra[..., 1 : n_fft - spectra.shape[-2] + 1, :])[..., ::-1, :]
    full = np.concatenate([spectra, mirrored], -2)
    j = np.arange(n_fft)
    waves = np.exp(2j * np.pi * j[:, None] * j / n_fft) / (np.sqrt(n_fft) if normalized else n_fft)
    frames = np.einsum("jk,...km->...jm", waves, full).real
    count = frames.shape[-1]
    extent = n_fft + hop * (count - 1)
    total, covered = np.zeros((*spectra.shape[:-2], extent)), np.zeros(extent)
    for m in range(count):
        total[..., m * hop : m * hop + n_fft] += frames[..., m]
        covered[m * hop : m * hop + n_fft] += 1
    start = n_fft // 2
    end = extent - start if length is None else start + length
    return (total / covered)[..., start:end]


CASES = (
    Case("stft", _stft, make=_signals, dtypes=("float32", "float64", "complex128"), special=False),
    Case("istft", _back, make=_spectra, dtypes=("complex64", "complex128"), special=False),
)
