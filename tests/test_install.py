"""Building and installing the C backend: what is compiled, what is said, and what is packed."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOME = Path("backends", "c_backend")
#: enough of the C files, for a compiler that does not read them
NAMES = ("array", "attention", "convolution", "gemm", "lists", "machine", "masks", "reductions")
SOURCES = {f"{name}.c" for name in NAMES}

COMPILER = ROOT / "tests" / "fixtures" / "compiler.sh"
#: The levels are those of x86-64, on whatever machine this runs.
RUN = "import platform, runpy, sys; platform.machine = lambda: 'x86_64'; sys.argv.pop(0); "
SCRIPT = RUN + "runpy.run_path('scripts/build_c', run_name='__main__')"
HOOK = RUN + "sys.path.insert(0, 'building'); import hooks; getattr(hooks, sys.argv[0])(*map(eval, sys.argv[1:]))"
THREE = re.compile(
    r"corefw_c was not built: (.+)\n"
    r"NumPy computes instead: everything works, and is slower\n"
    r"For the faster kernels, install .+, and repeat this\n"
)


class Checkout:
    """A copy of what building the C backend needs, in a folder whose name has a space."""

    def __init__(self, folder: Path):
        self.folder, self.log = folder / "a checkout", folder / "calls"
        self.source = self.folder / HOME / "corefw_c" / "source"
        leave = {path.name for path in (ROOT / HOME / "corefw_c" / "source").glob("*/*.c")} - SOURCES
        leave |= {"build", "dist", "*.so", "*.egg-info", "__pycache__"}
        shutil.copytree(ROOT / HOME, self.folder / HOME, ignore=shutil.ignore_patterns(*leave))
        for name in (
            "Makefile",
            "pyproject.toml",
            "scripts/build_c",
            "backends/cupy_backend/pyproject.toml",
            "backends/mpi_backend/pyproject.toml",
        ):
            (self.folder / name).parent.mkdir(exist_ok=True)
            shutil.copy2(ROOT / name, self.folder / name)
        ours = ("COREFW_C", "CFLAGS", "LDFLAGS", "MAKE", "MFLAGS")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        header = str(self.source / "core" / "array.h")
        self.environment = {**kept, "CC": str(COMPILER), "CALLS": str(self.log), "HEADER": header, "MAX_JOBS": "2"}

    def run(self, *command, cwd=".", **variables) -> subprocess.CompletedProcess:
        """Run a command, without a terminal."""
        self.log.write_text("")
        done = subprocess.run(
            command,
            cwd=self.folder / cwd,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            start_new_session=True,
        )
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        return done

    def build(self, *arguments, **variables) -> subprocess.CompletedProcess:
        """Run scripts/build_c for the kernels alone."""
        return self.run(sys.executable, "-c", SCRIPT, "build_c", "--objects", *arguments, **variables)

    def hook(self, *arguments, **variables) -> subprocess.CompletedProcess:
        """Call one of the hooks that pip calls."""
        return self.run(sys.executable, "-W", "ignore", "-c", HOOK, *arguments, cwd=HOME, **variables)

    def compiled(self) -> list[tuple[str, str]]:
        """The files that the last command compiled, in this order, and the level whose instructions they may use."""
        begun = [line.split(" ", 2)[1:] for line in self.log.read_text().splitlines() if line.startswith("begin")]
        return [(name, "".join(re.findall(r"-march=x86-64-(\w+)", arguments))) for name, arguments in begun]

    def levels(self) -> set[str]:
        """The levels of the kernels that the last command compiled."""
        return {level for _, level in self.compiled()} - {""}


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


# -- levels -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("machine", [2, 3, 4])
def test_only_the_best_level_of_the_machine_is_compiled(checkout, machine):
    done = checkout.build(LEVEL=str(machine))
    assert done.returncode == 0, done.stderr
    assert checkout.levels() == {f"v{machine}"} and {name for name, _ in checkout.compiled()} == SOURCES
    assert done.stderr == f"corefw_c: compiling {len(SOURCES)} files for v{machine} on 2 cores\n", "quiet in a log"


@pytest.mark.parametrize("arguments, variables", [(["all"], {}), ([], {"COREFW_C_LEVELS": "all"})])
def test_all_levels_can_be_asked_for(checkout, arguments, variables):
    assert f"{3 * len(SOURCES)} files for v2, v3, v4" in checkout.build(*arguments, **variables).stderr
    assert checkout.levels() == {"v2", "v3", "v4"}


def test_levels_can_be_named(checkout):
    assert checkout.build(COREFW_C_LEVELS="v2, v3", LEVEL="4").returncode == 0
    assert checkout.levels() == {"v2", "v3"}
    done = checkout.build("v9")
    assert done.returncode == 1 and "'v9' is none of v2, v3, v4, best, all" in done.stderr


def test_a_level_that_the_compiler_does_not_know_is_left_out(checkout):
    assert checkout.build(UNKNOWN="v4").returncode == 0
    assert checkout.levels() == {"v3"}
    done = checkout.build("v4", UNKNOWN="v4")
    assert done.returncode == 3 and "does not take -march=x86-64-v4" in THREE.fullmatch(done.stderr)[1]


def test_what_asks_the_machine_is_compiled_for_every_machine(checkout):
    pytest.importorskip("cffi")
    done = checkout.run(sys.executable, "-c", SCRIPT, "build_c", "v4")
    assert done.returncode == 0, done.stderr
    general = {name for name, level in checkout.compiled() if not level}
    assert general == {"machine.c", "_v4.c"}, "a module is imported before the machine is known to have its level"


def test_a_module_for_better_machines_says_so(monkeypatch):
    from tests.compiled import library

    class Module:
        class lib:
            machine_level = staticmethod(lambda: 2)

    monkeypatch.setattr(library, "is_built", ("v3", "v4").__contains__)
    monkeypatch.setattr(library, "import_module", lambda name: Module)
    with pytest.raises(ImportError, match=r"compiled for v4, v3, and this machine has v2: .*COREFW_C_LEVELS=all"):
        library.best_level()


# -- work -------------------------------------------------------------------------------------------------------------
def test_files_are_compiled_at_the_same_time_the_slowest_first(checkout):
    checkout.build(MAX_JOBS="3")
    running, most = 0, 0
    for line in checkout.log.read_text().splitlines():
        running += 1 if line.startswith("begin") else -1
        most = max(most, running)
    assert 1 < most <= 3
    assert {name for name, _ in checkout.compiled()[:2]} <= {"attention.c", "convolution.c", "reductions.c", "gemm.c"}


def test_only_what_changed_is_compiled(checkout):
    assert checkout.build().returncode == 0
    assert checkout.build().stderr == "" and not checkout.compiled()
    os.utime(checkout.source / "core" / "lists.c")
    assert "compiling 1 files" in checkout.build().stderr and checkout.compiled() == [("lists.c", "v4")]
    os.utime(checkout.source / "core" / "array.h")
    checkout.build()
    assert {name for name, _ in checkout.compiled()} == SOURCES, "all include it"
    checkout.build(CFLAGS="-DX")
    assert {name for name, _ in checkout.compiled()} == SOURCES, "other flags make other files"
    os.utime(checkout.source / "core" / "lists.c", (2e9, 2e9))
    for _ in range(2):
        checkout.build(CFLAGS="-DX")
        assert checkout.compiled() == [("lists.c", "v4")], "what was saved while it was compiled is compiled again"


def test_a_refused_file_ends_the_work_with_what_the_compiler_said(checkout):
    done = checkout.build(REFUSED="reductions.c", MAX_JOBS="1")
    assert done.returncode == 1 and "reductions.c:1:2: error: no" in done.stderr
    first = [name for name, _ in checkout.compiled()]
    assert set(first) < SOURCES, "the others are not begun"
    assert checkout.build().returncode == 0
    again = {name for name, _ in checkout.compiled()}
    assert "reductions.c" in again and again | set(first) == SOURCES and len(again) < len(SOURCES)


def test_warnings_are_shown(checkout):
    done = checkout.build(DOUBTED="gemm.c")
    assert done.returncode == 0 and "gemm.c:3:4: warning: hm" in done.stderr


def test_sanitized_kernels_lie_apart(checkout):
    checkout.build("v4")
    assert checkout.build("v4", "--sanitize", "address,undefined").returncode == 0
    begun = [line for line in checkout.log.read_text().splitlines() if line.startswith("begin")]
    assert len(begun) == len(SOURCES) and all("-fsanitize=address,undefined" in line for line in begun)
    assert checkout.build("v4").returncode == 0 and not checkout.compiled()


# -- what a person sees -----------------------------------------------------------------------------------------------
TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


def test_a_terminal_shows_a_counter(checkout):
    done = checkout.run(sys.executable, "-c", TERMINAL, sys.executable, "-c", SCRIPT, "build_c", "--objects")
    line = f"corefw_c: compiling {len(SOURCES)} files for v4 on 2 cores"
    assert f"\r{line}: 3\r" in done.stdout and re.search(rf"{line}: {len(SOURCES)} in \d+ s\r\n$", done.stdout)


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_pip_that_hides_the_build_leaves_the_counter_on_the_terminal(checkout, term):
    inner = f"exec {sys.executable} -c \"{SCRIPT}\" build_c --objects > '{checkout.log}.out' 2>&1"
    done = checkout.run(sys.executable, "-c", TERMINAL, "sh", "-c", inner, TERM=term)
    hidden = Path(f"{checkout.log}.out").read_text()
    assert hidden == f"corefw_c: compiling {len(SOURCES)} files for v4 on 2 cores\n"
    if term == "dumb":
        assert done.stdout == ""
    else:
        assert f" 3/{len(SOURCES)} files, v4, 2 cores" in done.stdout
        assert done.stdout.endswith("\0337\033[?7l\033[K\033[?7h\0338"), "wiped away, the cursor where it was"


@pytest.mark.parametrize(
    "variables, reason",
    [
        ({"CC": "false"}, "false cannot compile a small program (exit status 1)"),
        ({"CC": "no-such-cc -m32"}, "'no-such-cc' (from CC) is not on the PATH"),
        ({"CC": "", "PATH": ""}, "no cc, gcc or clang is on the PATH"),
        ({"LEVEL": "4; exit 3"}, "does not run here (exit status 3)"),
    ],
)
def test_without_a_compiler_three_lines_say_so(checkout, variables, reason):
    done = checkout.build(**variables)
    assert done.returncode == 3 and reason in THREE.fullmatch(done.stderr)[1] and done.stdout == ""
    done = checkout.hook("build_wheel", "'.'", **variables)
    assert done.returncode == 1 and reason in THREE.fullmatch(done.stderr)[1] and done.stdout == ""


# -- packages ---------------------------------------------------------------------------------------------------------
def test_a_wheel_has_the_modules_and_no_sources(checkout):
    pytest.importorskip("cffi")
    contents = []
    for settings in ("{'levels': 'all'}", "None"):
        done = checkout.hook("build_wheel", "'.'", settings)
        assert done.returncode == 0, done.stderr
        (wheel,) = (checkout.folder / HOME).glob("*.whl")
        assert wheel.name.startswith("corefw_c-") and "-cp311-abi3-" in wheel.name
        contents.append(set(zipfile.ZipFile(wheel).namelist()))
        wheel.unlink()
    modules = [{name for name in names if name.endswith(".so")} for names in contents]
    assert modules[0] == {f"corefw_c/_v{level}.abi3.so" for level in (2, 3, 4)}
    assert modules[1] == {"corefw_c/_v4.abi3.so"}, "nothing of an earlier build is packed"
    package = ROOT / HOME / "corefw_c"
    python = {f"corefw_c/{path.relative_to(package).as_posix()}" for path in package.rglob("*.py")}
    python.add("corefw_c/py.typed")
    headers = {"bits.h", "halves.h", "mathematics.h", "mathematics_f32.h", "mathematics_f64.h"}
    others = {name for name in contents[1] - modules[1] if ".dist-info/" not in name}
    assert others == python | {f"corefw_c/source/core/{name}" for name in headers}, "but for what fusions need"


def test_a_source_distribution_has_all_that_building_needs(checkout):
    done = checkout.hook("build_sdist", "'.'")
    assert done.returncode == 0, done.stderr
    (archive,) = (checkout.folder / HOME).glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    for folder in ("corefw_c/source", "corefw_c", "building"):
        files = (checkout.folder / HOME / folder).iterdir()
        assert {f"{folder}/{path.name}" for path in files if path.suffix in (".py", ".c", ".h", ".inc")} <= names
    assert {"setup.py", "pyproject.toml", "README.md", "LICENSE"} <= names


# -- make -------------------------------------------------------------------------------------------------------------
def test_make_installs_what_the_build_needs():
    needed = tomllib.loads((ROOT / HOME / "pyproject.toml").read_text())["build-system"]["requires"]
    assert "TOOLS := " + " ".join(f"'{package}'" for package in needed) in (ROOT / "Makefile").read_text()


def test_make_builds_again_what_changed(checkout):
    stamps = [checkout.folder / ".venv" / name for name in (".made", ".demo", ".kernels-best")]
    compiled = checkout.folder / HOME / "build" / ".best"
    for file in (stamps[0], stamps[1], compiled, stamps[2]):
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    assert "build_c" not in checkout.run("make", "-n", "kernels").stdout
    for changed in ("corefw_c/source/reduction/reduce.inc", "building/levels.py", "setup.py", "pyproject.toml"):
        for file in (compiled, stamps[2]):
            os.utime(file)
        os.utime(checkout.folder / HOME / changed, (2e9, 2e9))
        said = checkout.run("make", "-n", "kernels").stdout
        assert "build_c best --objects" in said and "COREFW_C_LEVELS=best" in said, changed
        os.utime(checkout.folder / HOME / changed, (1e9, 1e9))
    assert "build_c all --objects" in checkout.run("make", "-n", "test").stdout, "the tests are of all levels"
