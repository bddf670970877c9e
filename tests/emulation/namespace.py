"""What stands in for the module `cupy`: its array class, and NumPy for the functions that CuPy runs on the device."""

from types import SimpleNamespace

import cupy
import numpy as np

from tests.emulation import capture, cublas, driver, launches, memory

#: what works without a device
_OWN = ("broadcast_to", "ndarray", "float16", "float32", "float64", "int64", "bool_")
#: what NumPy computes here
_HOSTED = (
    "argsort",
    "fft.fftn",
    "fft.ifftn",
    "fft.irfftn",
    "fft.rfftn",
    "linalg.cholesky",
    "linalg.det",
    "linalg.eig",
    "linalg.eigh",
    "linalg.eigvalsh",
    "linalg.inv",
    "linalg.qr",
    "linalg.slogdet",
    "linalg.solve",
    "linalg.svd",
    "matmul",
)


def _to_host(value):
    if isinstance(value, cupy.ndarray):
        return memory.host(value)
    if isinstance(value, list | tuple):
        return type(value)(map(_to_host, value))
    return value


def _to_device(value):
    if isinstance(value, np.ndarray | np.generic):
        return memory.device(value)
    if isinstance(value, list | tuple):
        return tuple(map(_to_device, value))
    return value


def _hosted(own, numpy):
    """NumPy's function, for arrays of CuPy."""

    def call(*arguments, out=None, **keywords):
        launches.launched(numpy.__name__)
        if capture.of(driver.get_current_stream().ptr) is not None:
            raise NotImplementedError(f"calling {numpy.__name__} during stream capture is currently unsupported")
        result = numpy(*map(_to_host, arguments), **{name: _to_host(value) for name, value in keywords.items()})
        if out is None:
            return _to_device(result)
        memory.host(out)[...] = result
        return out

    return call


def _module(own, numpy, own_names, hosted_names):
    """A module with these functions, by their paths below it; each must be in CuPy."""
    found = {}
    for path in (*own_names, *hosted_names):
        name, _, rest = path.partition(".")
        if rest:
            below = [
                [p.partition(".")[2] for p in names if p.startswith(f"{name}.")] for names in (own_names, hosted_names)
            ]
            found[name] = _module(getattr(own, name), getattr(numpy, name, None), *below)
        else:
            found[name] = getattr(own, name) if path in own_names else _hosted(getattr(own, name), getattr(numpy, name))
    return SimpleNamespace(**found)


def namespace():
    """The stand-in; a name that is not listed is not there."""
    made = _module(cupy, np, _OWN, _HOSTED)
    made.empty = memory.empty
    made.cuda = SimpleNamespace(**vars(driver.cuda), cublas=cublas, get_cublas_handle=lambda: 0)
    made.get_default_memory_pool = made.get_default_pinned_memory_pool = driver.Pool
    return made
