"""The command line: `corefw demo`, `corefw backends`, `corefw explain`, `corefw run`, `corefw info`.

Whatever goes wrong ends in `main`: one line on stderr and an exit status, 2 for a wrong request, 1 for a failure, 130
for Ctrl-C, and 141 without a word where the reader of the output has gone, as after `| head`.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NoReturn

import corefw
from corefw import dtypes
from corefw.demo import main as run_demo
from corefw.dispatch.registry import registry
from corefw.errors import CorefwError, SettingError, did_you_mean
from corefw.run import run as run_program
from corefw.tracebacks import full_tracebacks

PACKAGES = ("numpy", "pluggy", "ml_dtypes", "safetensors", "opt_einsum")
ENVIRONMENT = ("COREFW_", "OMP_", "OPENBLAS_", "MKL_", "CUDA_VISIBLE_DEVICES")
USAGE, FAILURE, INTERRUPTED, NO_READER = 2, 1, 130, 141  # the last two as shells number signals


class UsageError(Exception):
    """The command was given what it does not take."""


# -- commands ---------------------------------------------------------------------------------------------------------
def demo(arguments: argparse.Namespace) -> int:
    """Train on the digits with every backend."""
    picture = Path(arguments.picture).resolve()
    if picture.is_dir() or not os.access(picture.parent, os.W_OK):
        raise OSError(
            f"cannot write {picture}: " + ("it is a folder" if picture.is_dir() else "no such folder, or not yours")
        )
    return run_demo(arguments.epochs, arguments.seed, arguments.picture)


def backends(arguments: argparse.Namespace) -> int:
    """List the installed backends, or why one cannot be used."""
    for backend in corefw.backends():
        print(backend)
        if backend.usable:
            print(f"    dtypes: {', '.join(backend.dtypes)}")
    for kind in [*registry.runtimes]:
        registry.runtime(kind)  # raises what is wrong with the user's preferences for it
    return 0


def explain(arguments: argparse.Namespace) -> int:
    """Say which kernel an op would run, and why."""
    names = [d.name for d in dtypes.ALL]
    if arguments.dtype not in names:
        raise UsageError(f"no dtype is called '{arguments.dtype}'{did_you_mean(arguments.dtype, names)}")
    try:
        device = corefw.device(arguments.device)
    except RuntimeError as error:
        raise UsageError(str(error)) from error
    if arguments.op.removesuffix("_") not in registry.declared and arguments.op not in registry.declared:
        raise UsageError(f"no op is called '{arguments.op}'{did_you_mean(arguments.op, registry.declared)}")
    shapes = arguments.shape or [(1,)] * arguments.tensors
    given = [corefw.zeros(shape, dtype=dtypes.of_name(arguments.dtype), device=device) for shape in shapes]
    print(corefw.explain(arguments.op, *given))
    return 0


def run(arguments: argparse.Namespace) -> int:
    """Run a program written for PyTorch, on corefw."""
    return run_program(arguments.target, arguments.arguments, arguments.module)


def info(arguments: argparse.Namespace) -> int:
    """Print versions, processor, threads, the environment that matters, and the backends."""
    print(f"corefw {corefw.__version__}, Python {platform.python_version()}, {platform.platform()}")
    print("packages: " + ", ".join(f"{name} {_version(name)}" for name in PACKAGES))
    print(f"processor: {_processor()}; instruction sets: {', '.join(_instruction_sets()) or 'unknown'}")
    print(f"threads: corefw uses {corefw.get_num_threads()} of {os.cpu_count()}")
    matter = sorted((k, v) for k, v in os.environ.items() if k.startswith(ENVIRONMENT))
    print("environment: " + (", ".join(f"{k}={v}" for k, v in matter) or "nothing set"))
    print("backends:")
    return backends(arguments)


# -- the machine ------------------------------------------------------------------------------------------------------
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _cpuinfo(field: str) -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next((line.partition(":")[2].strip() for line in file if line.startswith(field)), "")
    except OSError:
        return ""


def _processor() -> str:
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def _instruction_sets() -> list[str]:
    flags = set(_cpuinfo("flags").split())
    levels = {
        "x86-64-v2": {"sse4_2", "ssse3", "popcnt"},
        "x86-64-v3": {"avx2", "fma", "bmi2"},
        "x86-64-v4": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
        "avx512_bf16": {"avx512_bf16"},
    }
    return [name for name, needed in levels.items() if needed <= flags]


# -- arguments --------------------------------------------------------------------------------------------------------
class _Parser(argparse.ArgumentParser):
    """A parser whose errors are for `main`."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def _count(least: int) -> Callable[[str], int]:
    """The type of an argument that is a number of things."""

    def count(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected a number, got '{text}'") from None
        if number < least:
            raise argparse.ArgumentTypeError(f"expected {least} or more, got {number}")
        return number

    return count


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(_count(0)(size) for size in text.split(",") if size)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"expected sizes such as 2,3, got '{text}'") from None


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="corefw",
        description="A deep-learning framework whose every kernel is a plug-in.",
        epilog="example:\n  corefw backends",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"corefw {corefw.__version__}")
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")

    def add(function: Callable[[argparse.Namespace], int], text: str, *examples: str) -> argparse.ArgumentParser:
        command = commands.add_parser(
            function.__name__,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog="\n  ".join(["example:" if len(examples) == 1 else "examples:", *examples]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(run=function)
        return command

    command = add(
        demo,
        "train on real handwritten digits with every installed backend",
        "corefw demo --epochs 3 --picture /tmp/curves.png",
    )
    command.add_argument("--epochs", type=_count(1), default=15, help="passes over the digits (default: 15)")
    command.add_argument("--seed", type=int, default=0, help="of weights, order and noise (default: 0)")
    command.add_argument("--picture", default="corefw-demo.png", help="where the curves are saved")
    add(backends, "list the installed backends, and why one cannot be used", "corefw backends")
    command = add(
        explain,
        "say which kernel an op would run, and why",
        "corefw explain softmax --dtype float16",
        "corefw explain conv2d --shape 1,3,8,8 --shape 4,3,3,3",
    )
    command.add_argument("op", help="its name, such as softmax, conv2d or linalg_inv")
    command.add_argument("--dtype", default="float32", help="of the tensors it is given (default: float32)")
    command.add_argument("--device", default="cpu", help="where they lie (default: cpu)")
    command.add_argument("--tensors", type=_count(0), default=1, help="how many there are (default: 1)")
    command.add_argument("--shape", type=_shape, action="append", help="the shape of one, for each; for compositions")
    command = add(
        run,
        "run a program written for PyTorch: torch and torchvision are corefw",
        "corefw run train.py --epochs 3",
        "corefw run -m package.train",
    )
    command.add_argument("-m", dest="module", action="store_true", help="the target is a module, as of python -m")
    command.add_argument("target", help="a script, or with -m a module")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's own arguments")
    add(info, "print versions, processor, threads, environment and backends", "corefw info")
    return parser


def _parse(arguments: list[str]) -> argparse.Namespace | int:
    """The command to run, or the exit status where parsing did all, as for --help."""
    parser = _parser()
    (commands,) = (action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    if arguments and not arguments[0].startswith("-") and arguments[0] not in commands:
        guess = did_you_mean(arguments[0], commands)
        raise UsageError(f"no command is called '{arguments[0]}'{guess}; there are {', '.join(commands)}")
    try:
        return parser.parse_args(arguments)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0


# -- endings ----------------------------------------------------------------------------------------------------------
def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status. A program's own `SystemExit` passes."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        parsed = _parse(arguments)
        status = parsed if isinstance(parsed, int) else parsed.run(parsed)
        _flush()
        return status
    except BrokenPipeError:
        _drop_output()
        return NO_READER
    except KeyboardInterrupt:
        return _fail(arguments, "interrupted", INTERRUPTED)
    except (UsageError, SettingError) as error:
        return _fail(arguments, str(error), USAGE)
    except Exception as error:
        if full_tracebacks():
            raise
        expected = isinstance(error, CorefwError | OSError | ImportError) and str(error)
        text = str(error) if expected else f"{type(error).__name__}: {error} (COREFW_FULL_TRACEBACK=1 shows where)"
        return _fail(arguments, text, FAILURE)


def _fail(arguments: list[str], text: str, status: int) -> int:
    """Say in one line what went wrong, after what has been printed; returns the exit status."""
    try:
        _flush()
    except OSError:
        _drop_output()
    command = f" {arguments[0]}" if arguments and arguments[0].isidentifier() else ""
    print(f"corefw{command}: {' '.join(text.split())}", file=sys.stderr)
    return status


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _drop_output() -> None:
    """Let what could not be written go nowhere, or Python would try, and complain, once more when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
