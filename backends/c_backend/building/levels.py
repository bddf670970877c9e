"""The levels: which instruction sets the kernels are compiled for here, and with which flags.

The same sources make one extension module per level; `corefw_c.library` loads the best one that the machine has.
`v2`, `v3` and `v4` are the levels of the x86-64 psABI; other processors get `portable` alone.
"""

import platform
from contextlib import redirect_stdout
from pathlib import Path

from trampolines import trampolines

FLAGS = ["-O3", "-g0", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden", "-pthread"]
FLAGS += ["-Wall", "-Wextra", "-Wno-unknown-pragmas", "-fPIC"]
X86 = {
    "v2": ["-march=x86-64-v2"],
    "v3": ["-march=x86-64-v3"],
    "v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
}
LEVELS = X86 if platform.machine() in ("x86_64", "AMD64") else {"portable": []}

HOME = Path(__file__).resolve().parent.parent
SOURCE = HOME / "corefw_c" / "source"
# What runs before the machine is known to have the level: asking it, and the import of the module.
MACHINE = SOURCE / "core" / "machine.c"
# The slowest to compile come first, so that no core waits for one of them at the end.
SLOWEST = ("gemm.c", "convolution.c", "reductions.c", "elementwise_f64.c", "attention.c")


def sources() -> list[Path]:
    """The C files, in the order in which they are compiled."""
    return sorted(SOURCE.glob("*/*.c"), key=lambda path: (path.name not in SLOWEST, path.name))


def write_module(level: str, target: Path) -> None:
    """Write the C file of the extension module `corefw_c._<level>`: what Python calls, made by cffi from kernels.h."""
    from cffi import FFI  # the kernels are compiled without it

    ffi = FFI()
    header = (SOURCE / "kernels.h").read_text()
    ffi.cdef("".join(line + "\n" for line in header.splitlines() if not line.startswith("#")))
    ffi.set_source(f"corefw_c._{level}", f'#include "kernels.h"\n{trampolines(header)}', py_limited_api=True)
    with redirect_stdout(None):  # it says that it generates
        ffi.emit_c_code(str(target))
