"""Takes the barriers out of the CUDA sources, one at a time, and runs the tests that must fail without it.

python -m tests.cuda_barriers [core/matmul.cu ...] prints for each barrier of these files, or of all, the first test
that failed. The exit status is 1 if no test misses a barrier: then the tests are too few, or the barrier too many.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from corefw_cupy import launch

BARRIER = re.compile(r"__syncthreads\(\);")
CONFORMANCE = ("tests/test_ops.py", "--corefw-backend", "emulated", "-k")
#: what runs the functions of a file, or of the files in a folder
TESTS: dict[str, tuple[str, ...]] = {
    "attention": ("tests/test_cuda_attention.py",),
    "convolution": ("tests/test_cuda_convolution.py",),
    "core/block.cuh": ("tests/test_cuda_reduction.py", "tests/test_cuda_normalization.py"),
    "core/matmul.cu": ("tests/test_cuda_linear_algebra.py",),
    "core/rows.cuh": ("tests/test_cuda_activation.py", "tests/test_cuda_normalization.py"),
    "data_movement/repetition.cu": ("tests/test_cuda_joining.py",),
    "data_movement/select.cu": ("tests/test_cuda_sorting.py",),
    "loss": (*CONFORMANCE, "ctc"),
    "pooling": ("tests/test_cuda_pooling.py",),
    "random": (*CONFORMANCE, "multinomial"),
    "recurrent": ("tests/test_cuda_recurrent.py",),
    "reduction": ("tests/test_cuda_reduction.py",),
    "sorting": ("tests/test_cuda_sorting.py",),
}


# -- a plugin of pytest, which runs sources that lie elsewhere ---------------------------------------------------------
def pytest_addoption(parser):
    parser.addoption("--cuda-sources", type=Path, help="the folder that is compiled instead of source/")


def pytest_configure(config):
    launch.FOLDER = config.getoption("--cuda-sources")


# -- the faults --------------------------------------------------------------------------------------------------------
def places(files: list[str]) -> Iterator[tuple[str, int, re.Match]]:
    """(file, line, the barrier in its text) of these files, or of all."""
    for path in sorted(launch.FOLDER.glob("*/*.cu*")):
        file, text = path.relative_to(launch.FOLDER).as_posix(), path.read_text(encoding="utf-8")
        if not files or file in files:
            for found in BARRIER.finditer(text):
                yield file, 1 + text.count("\n", 0, found.start()), found


def failed(file: str, barrier: re.Match) -> str | None:
    """The first test that fails without a barrier, or how its process died; None if all pass."""
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(shutil.copytree(launch.FOLDER, Path(folder) / "source"))
        (sources / file).write_text(barrier.string[: barrier.start()] + barrier.string[barrier.end() :], "utf-8")
        options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "tests.cuda_barriers"]
        tests = TESTS.get(file) or TESTS[file.partition("/")[0]]
        command = [sys.executable, "-m", "pytest", *options, "--cuda-sources", str(sources), *tests]
        found = subprocess.run(command, capture_output=True, text=True)
    if found.returncode == 0:
        return None
    names = re.findall(r"^FAILED (\S+)", found.stdout, re.MULTILINE)
    if not names and found.returncode > 0:
        raise RuntimeError(f"the tests of {file} did not run:\n{found.stdout[-2000:]}{found.stderr[-2000:]}")
    return names[0] if names else f"the process ended with status {found.returncode}"


def main() -> int:
    missed = 0
    for file, line, barrier in places(sys.argv[1:]):
        said = failed(file, barrier)
        missed += said is None
        print(f"{file}:{line}: {said or 'NO TEST FAILS WITHOUT IT'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
