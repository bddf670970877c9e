"""The command again, on C kernels built with AddressSanitizer and UndefinedBehaviorSanitizer (see scripts/check_c)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _library(name: str) -> str:
    return subprocess.run(
        ["gcc", f"-print-file-name={name}"], check=True, capture_output=True, text=True
    ).stdout.strip()


def run_sanitized(arguments: Sequence[str], level: str = "v4") -> int:
    """Build the C backend of this checkout under sanitizers and run the command with these arguments on it."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "corefw_c"
        shutil.copytree(ROOT / "backends/c_backend/corefw_c", package, ignore=shutil.ignore_patterns("_*.so"))
        build = [
            sys.executable,
            ROOT / "scripts/build_c",
            level,
            "--sanitize",
            "address,undefined",
            "--output",
            package,
        ]
        subprocess.run(build, check=True)
        environment = os.environ | {
            "LD_PRELOAD": f"{_library('libasan.so')} {_library('libstdc++.so')}",
            # Python does not free everything at its end, and absurd sizes are refused as they are without sanitizers.
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=3000",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            "COREFW_C_LEVEL": level,
            "COREFW_C_CACHE": "0",
            "PYTHONPATH": os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")])),
        }
        command = [sys.executable, ROOT / "scripts/fuzz", "--no-limit", "--against", "numpy", *arguments]
        return subprocess.run(command, env=environment).returncode
