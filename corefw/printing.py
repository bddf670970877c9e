"""The text of a tensor, character for character as PyTorch prints it, made from a host array and metadata.

Three steps, each a function: every number becomes a cell of text (`_cells`), the cells become bracketed lines
(`_nest`), and what the numbers cannot show (device, size, dtype, gradient) follows as suffixes (`_with_suffixes`).
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

__all__ = [
    "MODULE",
    "PrintOptions",
    "format_sparse",
    "format_tensor",
    "get_printoptions",
    "numbers",
    "printoptions",
    "set_printoptions",
    "shows_dtype",
]

MODULE = "torch"
"""The module name in front of a printed dtype: programs say `import corefw as torch`."""


@dataclass(frozen=True)
class PrintOptions:
    """How numbers are shown; `set_printoptions` explains the fields."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: float = 80
    sci_mode: bool | None = None


_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}

_options = PrintOptions()  # swapped whole, so a reader always sees one consistent setting
_options_lock = threading.Lock()  # one writer at a time, so that no update is lost


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: float | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors are printed, for the whole process.

    Args:
        precision: digits after the decimal point.
        threshold: tensors with more elements than this are shortened with `...`; `math.inf` never shortens.
        edgeitems: entries kept at each end of a shortened dimension.
        linewidth: characters per line.
        profile: `"default"`, `"short"` or `"full"`, taken first; the other arguments then override it.
        sci_mode: scientific notation always (True), never (False) or where the values need it (None).
            Unlike the other arguments, None is a value here: each call that leaves it out goes back to it.

    Raises:
        ValueError: the profile has none of the three names.

    Example:
        >>> set_printoptions(precision=2)
        >>> format_tensor(np.array([1.25, 2.0]))
        'tensor([1.25, 2.00])'
        >>> set_printoptions(profile="default")
    """
    global _options
    changes: dict[str, Any] = {}
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: profile {profile!r} is unknown; use one of {', '.join(_PROFILES)}")
        changes |= _PROFILES[profile]
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes |= {name: value for name, value in given.items() if value is not None}
    with _options_lock:
        _options = replace(_options, **changes, sci_mode=sci_mode)


def get_printoptions() -> dict[str, Any]:
    """Return the current options by name, as `set_printoptions` takes them.

    Returns:
        A new dictionary with `precision`, `threshold`, `edgeitems`, `linewidth` and `sci_mode`.

    Example:
        >>> get_printoptions()
        {'precision': 4, 'threshold': 1000, 'edgeitems': 3, 'linewidth': 80, 'sci_mode': None}
    """
    return asdict(_options)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Apply `set_printoptions(**options)` inside a `with` block, then restore what was set before.

    Args:
        options: the arguments of `set_printoptions`.

    Example:
        >>> with printoptions(sci_mode=True):
        ...     format_tensor(np.array([1.5]))
        'tensor([1.5000e+00])'
        >>> format_tensor(np.array([1.5]))
        'tensor([1.5000])'
    """
    global _options
    before = _options
    set_printoptions(**options)
    try:
        yield
    finally:
        with _options_lock:
            _options = before


def shows_dtype(dtype_name: str, default_dtype_name: str, *, has_values: bool = True) -> bool:
    """Tell whether a tensor's text must name its dtype, because a reader could not infer it from the values.

    Args:
        dtype_name: dtype of the tensor, such as `"float64"`; a leading module name is ignored.
        default_dtype_name: the default float dtype, such as `"float32"`.
        has_values: whether numbers are printed. A tensor without elements or on the `meta` device shows none,
            and then only the default float dtype goes without saying.

    Returns:
        True when `dtype=` belongs in the text.

    Example:
        >>> shows_dtype("int64", "float32"), shows_dtype("int64", "float32", has_values=False)
        (False, True)
        >>> shows_dtype("complex64", "float32"), shows_dtype("complex64", "float64")
        (False, True)
    """
    dtype, default = _bare(dtype_name), _bare(default_dtype_name)
    if not has_values:
        return dtype != default
    default_complex = "complex128" if default == "float64" else "complex64"
    return dtype not in (default, "int64", "bool", default_complex)


def format_tensor(
    values: np.ndarray | None,
    *,
    dtype_name: str | None = None,
    device: str | None = None,
    requires_grad: bool = False,
    grad_fn: str | None = None,
    size: Sequence[int] | None = None,
    prefix: str = "tensor(",
) -> str:
    """Return the text PyTorch prints for a tensor.

    Args:
        values: the elements, of any shape and of a NumPy or ml_dtypes dtype; None for a tensor that has a shape
            but no data (the `meta` device).
        dtype_name: dtype to name in the text, such as `"float64"`, or None to leave it out; `shows_dtype` decides.
            A leading module name is replaced by `MODULE`.
        device: device to name, such as `"cuda:0"`, or None to leave it out.
        requires_grad: whether to say `requires_grad=True`; `grad_fn` says so already and takes its place.
        grad_fn: name of the function that made the tensor, such as `"AddBackward0"`, or None.
        size: shape of the tensor where `values` is None; otherwise `values` knows it.
        prefix: what opens the text; lines after the first are indented by its length.

    Returns:
        The text, without a trailing newline.

    Raises:
        ValueError: neither `values` nor `size` is given.

    Example:
        >>> print(format_tensor(np.array([[1.5, -2.0], [np.nan, 0.25]]), dtype_name="float64", grad_fn="MulBackward0"))
        tensor([[ 1.5000, -2.0000],
                [    nan,  0.2500]], dtype=torch.float64, grad_fn=<MulBackward0>)
        >>> format_tensor(None, size=(2, 3), device="meta")
        "tensor(..., device='meta', size=(2, 3))"
    """
    options = _options
    if values is None:
        if size is None:
            raise ValueError("format_tensor: neither values nor size is given; a tensor without values needs its size")
        shape = tuple(int(n) for n in size)
        body, shows_size = "...", True
    elif values.size == 0:
        shape = values.shape
        body, shows_size = "[]", shape != (0,)
    else:
        shape = values.shape
        # With no edge items not even the nesting is left to tell the shape.
        body, shows_size = _body(values, len(prefix), options), options.edgeitems == 0

    suffixes = []
    if device is not None:
        suffixes.append(f"device='{device}'")
    if shows_size:
        suffixes.append(f"size={shape}")
    if dtype_name is not None:
        suffixes.append(f"dtype={MODULE}.{_bare(dtype_name)}")
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    return _with_suffixes(prefix + body, suffixes, len(prefix), options.linewidth) + ")"


def format_sparse(parts: dict[str, np.ndarray], suffixes: Sequence[str], *, breaks_line: bool) -> str:
    """Return the text PyTorch prints for a sparse tensor.

    Args:
        parts: by their names the positions and the values.
        suffixes: what is said of the tensor after these.
        breaks_line: whether the suffixes begin on a line of their own.

    Returns:
        The text, without a trailing newline.

    Example:
        >>> print(format_sparse({"indices": np.array([[0, 2]]), "values": np.ones(2)}, ["nnz=2"], breaks_line=True))
        tensor(indices=tensor([[0, 2]]),
               values=tensor([1., 1.]),
               nnz=2)
    """
    indent = len("tensor(")
    texts = [
        format_tensor(values, prefix=" " * indent + f"{name}=tensor(")
        if values.size
        else " " * indent + f"{name}=tensor([], size={values.shape})"
        for name, values in parts.items()
    ]
    text = "tensor(" + ",\n".join(texts)[indent:]
    if breaks_line:
        text, suffixes = text + ",\n" + " " * indent + suffixes[0], suffixes[1:]
    return _with_suffixes(text, suffixes, indent, _options.linewidth) + ")"


def _bare(dtype_name: str) -> str:
    """`"torch.float64"` -> `"float64"`."""
    return dtype_name.rpartition(".")[2]


def _with_suffixes(text: str, suffixes: Sequence[str], indent: int, linewidth: float) -> str:
    """Append each suffix after `, ` to the last line of `text`, or to a new line where that would not fit.

    PyTorch keeps two columns free on the line the numbers end on, and none on the lines after it.
    """
    column = len(text) - (text.rfind("\n") + 1) + 2
    for suffix in suffixes:
        if column + len(suffix) + 2 > linewidth:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text


# ---- layout: cells to lines ----


def numbers(values: np.ndarray, indent: int) -> str:
    """The numbers of an array with brackets, the lines after the first indented."""
    return _body(values, indent, _options)


def _body(values: np.ndarray, indent: int, options: PrintOptions) -> str:
    """The bracketed numbers of a tensor that has some, on lines indented by `indent`."""
    edge = options.edgeitems
    shortened = [values.size > options.threshold and n > 2 * edge for n in values.shape]
    if any(shortened):
        kept = [[*range(edge), *range(n - edge, n)] if cut else range(n) for n, cut in zip(values.shape, shortened)]
        values = values[np.ix_(*kept)]
    texts, width = _cells(_widened(values), options)
    cells = np.empty(values.size, dtype=object)
    cells[:] = texts
    # The innermost lines start one column further per bracket; a cell is followed by ", ".
    room = min(options.linewidth, 1 << 30) - (indent + max(values.ndim - 1, 0))
    per_line = max(1, math.floor(room / (width + 2)))
    return _nest(cells.reshape(values.shape), shortened, edge, indent, per_line)


def _nest(cells: np.ndarray, shortened: Sequence[bool], edge: int, indent: int, per_line: int) -> str:
    """Cells of any number of dimensions in brackets; `...` stands in the middle of each shortened dimension."""
    if cells.ndim == 0:
        return str(cells[()])
    innermost = cells.ndim == 1
    if innermost:
        items = list(cells)
    else:
        items = [_nest(part, shortened[1:], edge, indent + 1, per_line) for part in cells]
    if shortened[0]:
        items.insert(edge, " ..." if innermost and edge else "...")
    newline = ",\n" + " " * (indent + 1)
    if innermost:
        lines = [", ".join(items[start : start + per_line]) for start in range(0, len(items), per_line)]
        return "[" + newline.join(lines) + "]"
    # One empty line between matrices, two between stacks of matrices, and so on.
    return "[" + newline.replace("\n", "\n" * (cells.ndim - 1)).join(items) + "]"


# ---- cells: numbers to text ----


def _widened(values: np.ndarray) -> np.ndarray:
    """The same numbers in a dtype of NumPy itself that holds them exactly; ml_dtypes has many that are not."""
    if values.dtype.kind in "biu":
        return values
    name = values.dtype.name
    wide: type[np.number] = np.float64
    if "complex" in name:
        wide = np.complex128
    elif name.startswith(("int", "uint")):
        wide = np.int64
    with np.errstate(all="ignore"):  # a signalling NaN
        return values.astype(wide)


def _cells(values: np.ndarray, options: PrintOptions) -> tuple[list[str], int]:
    """The text of each number, in row-major order, and the width of a cell for the purpose of breaking lines."""
    if values.dtype.kind == "c":
        real, real_width = _float_cells(values.real, options)
        imag, imag_width = _float_cells(values.imag, options)
        return [_complex_cell(re, im) for re, im in zip(real, imag)], real_width + imag_width + 1
    if values.dtype.kind == "f":
        return _float_cells(values, options)
    texts = [str(value) for value in values.ravel().tolist()]
    width = max(map(len, texts), default=1)
    return [text.rjust(width) for text in texts], width


def _complex_cell(real: str, imag: str) -> str:
    imag = imag.lstrip()
    return f"{real}{imag}j" if imag[0] == "-" else f"{real}+{imag}j"


def _float_cells(values: np.ndarray, options: PrintOptions) -> tuple[list[str], int]:
    """Cells of float64 numbers, all in one notation, right-justified to the widest finite nonzero number.

    Zeros, infinities and NaN take no part in choosing notation and width, and may be wider.
    """
    values = values.ravel()
    telling = np.isfinite(values) & (values != 0)
    notation = _notation(values[telling], options)
    texts = [notation(value) for value in values.tolist()]
    width = max((len(text) for text, counts in zip(texts, telling.tolist()) if counts), default=1)
    return [text.rjust(width) for text in texts], width


def _notation(values: np.ndarray, options: PrintOptions) -> Callable[[float], str]:
    """How to write numbers of which `values` are the finite nonzero ones: `1.`, `1.0000` or `1.0000e+00`."""
    if values.size == 0:
        return _whole
    magnitudes = np.abs(values)
    smallest, largest = float(magnitudes.min()), float(magnitudes.max())
    all_whole = bool((values == np.ceil(values)).all())
    scientific = options.sci_mode
    if scientific is None:
        scientific = largest / smallest > 1000 or largest > 1e8 or (smallest < 1e-4 and not all_whole)
    if scientific:
        return f"{{:.{options.precision}e}}".format
    if all_whole:
        return _whole
    return f"{{:.{options.precision}f}}".format


def _whole(value: float) -> str:
    """`1.` for 1.0, `nan` and `inf` as they are."""
    return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
