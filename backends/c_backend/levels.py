"""The levels: which instruction sets the kernels are compiled for here, with which flags, as cffi builders.

The same sources make one extension module per level; `corefw_c.library` loads the best one that the machine has.
`v2`, `v3` and `v4` are the levels of the x86-64 psABI; other processors get `portable` alone.
"""

import platform
from pathlib import Path

from cffi import FFI

FLAGS = ["-O3", "-g0", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden", "-pthread"]
FLAGS += ["-Wall", "-Wextra", "-Wno-unknown-pragmas"]
X86 = {
    "v2": ["-march=x86-64-v2"],
    "v3": ["-march=x86-64-v3"],
    "v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
}
LEVELS = X86 if platform.machine() in ("x86_64", "AMD64") else {"portable": []}

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "corefw_c" / "source"


def sources() -> list[str]:
    """The C files, relative to this folder."""
    return sorted(str(path.relative_to(HERE)) for path in SOURCE.glob("*.c"))


def builder(level: str) -> FFI:
    """The cffi builder of the extension module `corefw_c._<level>`."""
    ffi = FFI()
    header = (SOURCE / "kernels.h").read_text()
    ffi.cdef("".join(line + "\n" for line in header.splitlines() if not line.startswith("#")))
    ffi.set_source(
        f"corefw_c._{level}",
        '#include "kernels.h"',
        sources=sources(),
        include_dirs=[str(SOURCE.relative_to(HERE))],
        extra_compile_args=FLAGS + LEVELS[level],
        extra_link_args=["-pthread", "-lm"],
        py_limited_api=True,
    )
    return ffi


globals().update({level: builder(level) for level in LEVELS})  # setup.py asks for them by name
