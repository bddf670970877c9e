"""The command line: `corefw demo`, `corefw backends`, `corefw explain`, `corefw run`, `corefw info`."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import corefw
from corefw.demo import main as run_demo
from corefw.run import run as run_program

PACKAGES = ("numpy", "pluggy", "ml_dtypes", "safetensors", "opt_einsum")
ENVIRONMENT = ("COREFW_", "OMP_", "OPENBLAS_", "MKL_", "CUDA_VISIBLE_DEVICES")


def demo(arguments: argparse.Namespace) -> int:
    """Train on the digits with every backend."""
    return run_demo(arguments.epochs, arguments.seed, arguments.picture)


def backends(arguments: argparse.Namespace) -> int:
    """List the installed backends, or why one cannot be used."""
    for backend in corefw.backends():
        print(backend)
        if backend.usable:
            print(f"    dtypes: {', '.join(backend.dtypes)}")
    return 0


def explain(arguments: argparse.Namespace) -> int:
    """Say which kernel an op would run, and why."""
    given = [corefw.zeros(1, dtype=getattr(corefw, arguments.dtype), device=arguments.device)] * arguments.tensors
    print(corefw.explain(arguments.op, *given))
    return 0


def run(arguments: argparse.Namespace) -> int:
    """Run a program written for PyTorch, on corefw."""
    return run_program(arguments.target, arguments.arguments, arguments.module)


def info(arguments: argparse.Namespace) -> int:
    """Print versions, threads, processor and the environment that matters."""
    print(f"corefw {corefw.__version__}, Python {platform.python_version()}, {platform.platform()}")
    print("packages: " + ", ".join(f"{name} {_version(name)}" for name in PACKAGES))
    print(f"processor: {_processor()}, {os.cpu_count()} threads, corefw uses {corefw.get_num_threads()}")
    print(f"instruction sets: {', '.join(_instruction_sets()) or 'unknown'}")
    matter = sorted((k, v) for k, v in os.environ.items() if k.startswith(ENVIRONMENT))
    print("environment: " + (", ".join(f"{k}={v}" for k, v in matter) or "nothing set"))
    return backends(arguments)


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="corefw", description="A deep-learning framework whose every kernel is a plug-in."
    )
    parser.add_argument("--version", action="version", version=f"corefw {corefw.__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    command = commands.add_parser("demo", help="train on real handwritten digits with every installed backend")
    command.add_argument("--epochs", type=int, default=15)
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--picture", default="corefw-demo.png", help="where the curves are saved")
    command.set_defaults(run=demo)
    command = commands.add_parser("backends", help="list the installed backends")
    command.set_defaults(run=backends)
    command = commands.add_parser("explain", help="say which kernel an op would run, and why")
    command.add_argument("op")
    command.add_argument("--dtype", default="float32")
    command.add_argument("--device", default="cpu")
    command.add_argument("--tensors", type=int, default=1, help="how many tensors the op is given")
    command.set_defaults(run=explain)
    command = commands.add_parser("run", help="run a program written for PyTorch: torch and torchvision are corefw")
    command.add_argument("-m", dest="module", action="store_true", help="the target is a module, as of python -m")
    command.add_argument("target", help="a script, or with -m a module")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's own arguments")
    command.set_defaults(run=run)
    command = commands.add_parser("info", help="versions, threads, processor and environment")
    command.set_defaults(run=info)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parsed = _parser().parse_args(arguments)
    try:
        return parsed.run(parsed)
    except (RuntimeError, ValueError, TypeError) as error:
        print(f"corefw: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
