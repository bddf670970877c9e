"""CUDA sources become machine code: compiled by NVRTC, kept on disk by content, loaded on each device that needs them.

CuPy's own compilation is not used because it lets float32 numbers below 2^-126 count as zero (``-ftz=true``).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

OPTIONS = ("-std=c++17",)


def folder() -> Path:
    """Where machine code is kept: COREFW_CUPY_CACHE, or a folder of the user's cache."""
    chosen = os.environ.get("COREFW_CUPY_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "corefw" / "cuda"


@cache
def architecture(capability: str) -> str:
    """The architecture to compile for on a device, such as "sm_90" for "90": the newest one known up to it."""
    from cupy_backends.cuda.libs import nvrtc

    known = [found for found in nvrtc.getSupportedArchs() if found <= int(capability)]
    return f"sm_{max(known, default=int(capability))}"


def compiled(source: str, target: str, options: Sequence[str] = OPTIONS) -> bytes:
    """The machine code of a source; RuntimeError with the compiler's words if it is wrong."""
    from cupy_backends.cuda.libs import nvrtc

    program = nvrtc.createProgram(source, "source.cu", (), ())
    try:
        nvrtc.compileProgram(program, [*options, f"-arch={target}"])
        return nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError as error:
        raise RuntimeError(f"{source[:200]}\n{nvrtc.getProgramLog(program)}") from error
    finally:
        nvrtc.destroyProgram(program)


def machine_code(source: str, target: str) -> bytes:
    """As `compiled`, but a source that was compiled before is read from disk."""
    from cupy_backends.cuda.libs import nvrtc

    about = "\0".join([str(nvrtc.getVersion()), target, *OPTIONS, source])
    path = folder() / f"{hashlib.sha256(about.encode()).hexdigest()[:40]}.cubin"
    try:
        return path.read_bytes()
    except OSError:
        code = compiled(source, target)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made = path.with_suffix(f".{os.getpid()}")
        made.write_bytes(code)
        made.replace(path)  # other processes see all of it or nothing
    except OSError:
        pass  # a disk that is full or not to be written to: it is compiled again next time
    return code


def launcher(xp: Any, source: str, name: str) -> Callable:
    """What launches the function `name` of a source on the current device.

    It is CuPy's own object if there is one device, else what chooses among those of all, loaded when first launched.
    """

    def load(device: int):
        function = _module(xp, source, device).get_function(name)
        _allow_shared(xp, function.ptr, device)
        return function

    if xp.cuda.runtime.getDeviceCount() == 1:
        return load(0)
    functions: dict[int, Any] = {}
    current = xp.cuda.runtime.getDevice

    def launch(grid, block, arguments, **options):
        device = current()
        function = functions.get(device)
        if function is None:
            function = functions[device] = load(device)
        function(grid, block, arguments, **options)

    return launch


def _allow_shared(xp, function: int, device: int) -> None:
    """Let launches of a function ask for all the shared memory that a block may have, beyond 48 KiB."""
    driver, runtime = xp.cuda.driver, xp.cuda.runtime
    most = runtime.deviceGetAttribute(runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin, device)
    own = driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function)
    driver.funcSetAttribute(function, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most - own)


@cache
def _module(xp, source: str, device: int):
    """A source, loaded on a device."""
    module = xp.cuda.function.Module()
    module.load(machine_code(source, architecture(xp.cuda.Device(device).compute_capability)))
    return module
