"""`corefw info`."""

from __future__ import annotations

import argparse
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version

import corefw
from corefw.commands.backends import backends
from corefw.commands.parsing import Commands
from corefw.processor import cpuinfo, processor

PACKAGES = ("numpy", "pluggy", "ml_dtypes", "safetensors", "opt_einsum")
ENVIRONMENT = ("COREFW_", "OMP_", "OPENBLAS_", "MKL_", "ONEDNN_", "ATEN_", "CUDA_VISIBLE_DEVICES")


def add(commands: Commands) -> None:
    """Its parser."""
    parser = commands.add(
        "info",
        info,
        "print versions, processor, threads, environment and backends",
        "corefw info",
        "corefw info --json",
    )
    parser.add_argument("--json", action="store_true", help="as one object in JSON, for programs")


def info(arguments: argparse.Namespace) -> int:
    """Print versions, processor, threads, the environment that matters, and the backends."""
    if arguments.json:
        print(json.dumps(facts(), indent=2))
        return 0
    print(f"corefw {corefw.__version__}, Python {platform.python_version()}, {platform.platform()}")
    print("packages: " + ", ".join(f"{name} {_version(name)}" for name in PACKAGES))
    print(f"processor: {processor()}; instruction sets: {', '.join(_instruction_sets()) or 'unknown'}")
    print(f"threads: corefw uses {corefw.get_num_threads()} of {os.cpu_count()}")
    matter = sorted((k, v) for k, v in os.environ.items() if k.startswith(ENVIRONMENT))
    print("environment: " + (", ".join(f"{k}={v}" for k, v in matter) or "nothing set"))
    print("backends:")
    return backends(arguments)


def facts() -> dict:
    """The same as one object."""
    return {
        "corefw": corefw.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "processor": processor(),
        "instruction_sets": _instruction_sets(),
        "threads": {"used": corefw.get_num_threads(), "there": os.cpu_count()},
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith(ENVIRONMENT)},
        "backends": [
            {"name": b.name, "usable": b.usable, "described": str(b), "dtypes": [*b.dtypes] if b.usable else []}
            for b in corefw.backends()
        ],
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _instruction_sets() -> list[str]:
    flags = set(cpuinfo("flags").split())
    levels = {
        "x86-64-v2": {"sse4_2", "ssse3", "popcnt"},
        "x86-64-v3": {"avx2", "fma", "bmi2"},
        "x86-64-v4": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
        "avx512_bf16": {"avx512_bf16"},
    }
    return [name for name, needed in levels.items() if needed <= flags]
