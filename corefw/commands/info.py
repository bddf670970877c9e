"""`corefw info`."""

from __future__ import annotations

import argparse
import os
import platform
from importlib.metadata import PackageNotFoundError, version

import corefw
from corefw.commands.backends import backends
from corefw.commands.parsing import Commands
from corefw.processor import cpuinfo, processor

PACKAGES = ("numpy", "pluggy", "ml_dtypes", "safetensors", "opt_einsum")
ENVIRONMENT = ("COREFW_", "OMP_", "OPENBLAS_", "MKL_", "CUDA_VISIBLE_DEVICES")


def add(commands: Commands) -> None:
    """Its parser."""
    commands.add("info", info, "print versions, processor, threads, environment and backends", "corefw info")


def info(arguments: argparse.Namespace) -> int:
    """Print versions, processor, threads, the environment that matters, and the backends."""
    print(f"corefw {corefw.__version__}, Python {platform.python_version()}, {platform.platform()}")
    print("packages: " + ", ".join(f"{name} {_version(name)}" for name in PACKAGES))
    print(f"processor: {processor()}; instruction sets: {', '.join(_instruction_sets()) or 'unknown'}")
    print(f"threads: corefw uses {corefw.get_num_threads()} of {os.cpu_count()}")
    matter = sorted((k, v) for k, v in os.environ.items() if k.startswith(ENVIRONMENT))
    print("environment: " + (", ".join(f"{k}={v}" for k, v in matter) or "nothing set"))
    print("backends:")
    return backends(arguments)


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
