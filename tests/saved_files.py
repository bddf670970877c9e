"""Files that tests save, change and load again."""

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np

import corefw as torch
from corefw.serialization.archive import Writer

FIXTURES = Path(__file__).parent / "fixtures"
REFUSALS = (RuntimeError, pickle.UnpicklingError, EOFError)


def saved(obj, **options) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(obj, file, **options)
    file.seek(0)
    return file


def again(obj, **options):
    return torch.load(saved(obj), **options)


def same(a, b) -> bool:
    """Whether two loaded things are equal, tensors also in dtype, strides and requires_grad."""
    if isinstance(a, torch.Tensor):
        return (
            type(a) is type(b)
            and (a.dtype, a.shape, a.requires_grad) == (b.dtype, b.shape, b.requires_grad)
            and (a.numel() == 0 or a.stride() == b.stride())
            and np.array_equal(bits(a), bits(b))
        )
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or (a != a and b != b)


def bits(tensor) -> np.ndarray:
    return np.frombuffer(tensor.array.tobytes(), np.uint8)


def with_pickle(pickled: bytes, records=(("data/0", bytes(16)),)) -> io.BytesIO:
    """An archive with that pickle."""
    file = io.BytesIO()
    with Writer(file) as writer:
        writer.write("data.pkl", pickled)
        for name, content in records:
            writer.write(name, content)
    file.seek(0)
    return file


def located(location: str) -> io.BytesIO:
    """A file with a tensor that was saved on `location`."""
    content = saved(torch.arange(3.0)).getvalue()
    return rewritten(
        content,
        lambda pickled: pickled.replace(b"\x03\0\0\0cpu", len(location).to_bytes(4, "little") + location.encode()),
    )


def rewritten(content: bytes, change=lambda pickled: pickled, drop=(), compression=zipfile.ZIP_STORED) -> io.BytesIO:
    """The archive with another pickle, packed by other means."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(result, "w", compression) as new:
        for name in old.namelist():
            if name not in drop:
                new.writestr(name, change(old.read(name)) if name.endswith("data.pkl") else old.read(name))
    result.seek(0)
    return result
