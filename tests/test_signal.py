"""Windows of signals and transforms of sliding windows: options and errors beyond the rows, and the way back."""

import itertools

import numpy as np
import pytest

import corefw as torch

x = torch.arange(12.0)
spectra = torch.stft(x, 4, return_complex=True)
hann = torch.hann_window(4)
windows = torch.signal.windows


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize(("n_fft", "hop_length", "win_length"), [(8, None, None), (7, 2, 5), (6, 3, None)])
@pytest.mark.parametrize("kind", [torch.float64, torch.complex128])
def test_there_and_back(n_fft, hop_length, win_length, normalized, center, kind):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 31)) + (1j * rng.normal(size=(2, 31)) if kind is torch.complex128 else 0)
    signal = torch.tensor(values, dtype=kind, requires_grad=True)
    window = torch.tensor(rng.uniform(0.5, 1.5, win_length or n_fft))  # without zeros, so that the ends are known too
    how = {"hop_length": hop_length, "win_length": win_length, "window": window, "normalized": normalized}
    found = torch.stft(signal, n_fft, center=center, return_complex=True, **how)
    if win_length and not center:
        with pytest.raises(RuntimeError, match="leave out elements"):
            torch.istft(found, n_fft, center=center, return_complex=kind.is_complex, **how)
        return
    back = torch.istft(found, n_fft, center=center, return_complex=kind.is_complex, **how)
    length = back.shape[1]
    assert length >= 24 and torch.allclose(back, signal[:, :length])
    gradient, *_ = torch.autograd.grad(back.abs().square().sum(), signal)
    assert torch.allclose(gradient, 2 * back.new_zeros(signal.shape).slice_scatter(back, 1, 0, length))


def _both_ways(module, values, weights, center, normalized, sizes, pad_mode):
    """The transform of a signal by `module`, and the signal that it gives back where windows are centered."""
    n_fft, win_length, hop_length = sizes
    options = (n_fft, hop_length, win_length, None if weights is None else module.tensor(weights), center)
    found = module.stft(module.tensor(values), *options, pad_mode, normalized, None, True)
    results = [found]
    if center:
        results.append(module.istft(found, *options, normalized, None, 17, np.iscomplexobj(values)))
    return [result.resolve_conj().numpy() for result in results]


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:A window was not provided")
@pytest.mark.parametrize("sizes", [(6, None, None), (7, 4, 2), (8, 5, 3)])
def test_every_option_means_what_it_means_in_pytorch(sizes):
    oracle = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    signals = (rng.normal(size=(2, 20)), rng.normal(size=(2, 20)) + 1j * rng.normal(size=(2, 20)))
    windows = (None, rng.uniform(0.5, 1, sizes[1] or sizes[0]))
    modes = ("reflect", "constant")
    for values, weights, center, normalized, mode in itertools.product(
        signals, windows, (True, False), (True, False), modes
    ):
        given = (values, weights, center, normalized, sizes, mode)
        for ours, theirs in zip(_both_ways(torch, *given), _both_ways(oracle, *given), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_a_signal_is_continued_with_a_warning():
    with pytest.warns(UserWarning, match="shorter than the length parameter"):
        found = torch.istft(spectra, 4, length=20)
    assert torch.allclose(found[:12], x, atol=1e-5) and not found[14:].any()


def test_pairs_of_real_numbers_are_deprecated():
    with pytest.warns(UserWarning, match="return_complex=False is deprecated"):
        found = torch.stft(x, 4, return_complex=False)
    assert torch.equal(torch.view_as_complex(found), spectra)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: torch.stft(x, 4), RuntimeError, "requires the return_complex parameter"),
        (lambda: torch.stft(x.int(), 4, return_complex=True), RuntimeError, "floating point or complex values"),
        (lambda: torch.stft(x[None, None], 4, return_complex=True), RuntimeError, "expected a 1D or 2D tensor"),
        (lambda: torch.stft(x, 0, return_complex=True), RuntimeError, "expected 0 < n_fft <= 12, but got n_fft=0"),
        (lambda: torch.stft(x, 40, center=False, return_complex=True), RuntimeError, "but got n_fft=40"),
        (lambda: torch.stft(x, 4, 0, return_complex=True), RuntimeError, "expected hop_length > 0"),
        (lambda: torch.stft(x, 4, win_length=5, return_complex=True), RuntimeError, "expected 0 < win_length <= n_fft"),
        (lambda: torch.stft(x, 4, window=torch.ones(3), return_complex=True), RuntimeError, "window with size"),
        (lambda: torch.stft(x + 0j, 4, onesided=True), RuntimeError, "Cannot have onesided output"),
        (lambda: torch.stft(x, 4, return_complex=True, align_to_window=True), RuntimeError, "when center = false"),
        (lambda: torch.istft(spectra.real, 4), RuntimeError, "requires a complex-valued input"),
        (lambda: torch.istft(spectra[:, :0], 4), RuntimeError, "cannot be empty"),
        (lambda: torch.istft(spectra[None, None], 4), RuntimeError, "2 or 3 dimensions, but got 4"),
        (lambda: torch.istft(spectra, 8), RuntimeError, "n_fft / 2 \\+ 1 when onesided=True, but got 3"),
        (lambda: torch.istft(spectra, 4, onesided=False), RuntimeError, "n_fft when onesided=False, but got 3"),
        (lambda: torch.istft(spectra, 4, 5), RuntimeError, "expected 0 < hop_length <= win_length"),
        (lambda: torch.istft(spectra, 4, win_length=5), RuntimeError, "expected 0 < win_length <= n_fft"),
        (lambda: torch.istft(spectra, 4, window=torch.ones(3)), RuntimeError, "Invalid window shape"),
        (lambda: torch.istft(spectra, 4, return_complex=True), RuntimeError, "Cannot have onesided output"),
        (lambda: torch.istft(spectra, 4, window=hann, center=False), RuntimeError, "leave out elements"),
        (lambda: torch.hann_window(-1), RuntimeError, "non-negative window_length, got window_length=-1"),
        (lambda: torch.hann_window(3.0), TypeError, "must be int, not float"),
        (lambda: torch.hann_window(3, dtype=torch.int32), RuntimeError, "expects floating point dtypes"),
        (lambda: windows.hann(-1), ValueError, "hann requires non-negative window length, got M=-1"),
        (lambda: windows.hann(3, dtype=torch.float16), ValueError, "expects float32 or float64 dtypes"),
        (lambda: windows.hann(3, layout="coo"), ValueError, "strided tensors only"),
        (lambda: windows.gaussian(3, std=0), ValueError, "must be positive, got: 0"),
        (lambda: windows.exponential(3, tau=0), ValueError, "must be positive, got: 0"),
        (lambda: windows.exponential(3, center=1.0), ValueError, "must be None for symmetric windows"),
        (lambda: windows.general_cosine(3, a=[]), ValueError, "cannot be empty"),
        (lambda: windows.general_cosine(3, a=3), TypeError, "must be a list/tuple"),
        (lambda: windows.kaiser(3, beta=-1), ValueError, "must be non-negative, got: -1"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_windows_of_other_places():
    window = torch.hann_window(4, dtype=torch.float16, requires_grad=True)
    assert window.dtype is torch.float16 and window.requires_grad
    assert windows.exponential(4, center=1.0, sym=False).tolist() == pytest.approx(np.exp([-1, 0, -1, -2]))


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize(
    ("name", "options", "formula"),
    [
        ("bartlett_window", {}, lambda t: 1 - abs(2 * t - 1)),
        ("blackman_window", {}, lambda t: 0.42 - 0.5 * np.cos(2 * np.pi * t) + 0.08 * np.cos(4 * np.pi * t)),
        ("hamming_window", {}, lambda t: 0.54 - 0.46 * np.cos(2 * np.pi * t)),
        ("hamming_window", {"alpha": 0.6, "beta": 0.3}, lambda t: 0.6 - 0.3 * np.cos(2 * np.pi * t)),
        ("kaiser_window", {}, lambda t: np.i0(12 * np.sqrt(1 - (2 * t - 1) ** 2)) / np.i0(12)),
        ("kaiser_window", {"beta": 3.0}, lambda t: np.i0(3 * np.sqrt(1 - (2 * t - 1) ** 2)) / np.i0(3)),
    ],
)
def test_windows_by_their_formulas(name, options, formula, periodic):
    """t runs from 0 to 1 over the window, or over one element more of a periodic one."""
    window = getattr(torch, name)
    for length in (2, 7, 8):
        t = np.arange(length) / (length if periodic else length - 1)
        found = window(length, periodic=periodic, dtype=torch.float64, **options)
        np.testing.assert_allclose(found.numpy(), formula(t), rtol=1e-9, atol=1e-12)
    assert window(1, periodic=periodic, **options).tolist() == [1.0] and window(0, periodic=periodic).shape == (0,)
    assert window(4, dtype=torch.float64, requires_grad=True).requires_grad and window(4).dtype is torch.float32
    with pytest.raises(RuntimeError, match="non-negative"):
        window(-1)
