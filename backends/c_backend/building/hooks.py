"""What pip calls to build the distribution: setuptools' hooks, after the compiler, whose progress is shown."""

import os
import shutil
import sys

import compiling
import toolchain
from setuptools import build_meta
from setuptools.build_meta import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Make a wheel with the levels that `pip install --config-settings levels=...` or COREFW_C_LEVELS asks for."""
    _compile(config_settings)
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The same in place, for `pip install --editable`."""
    _compile(config_settings)
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)


def _compile(config_settings) -> None:
    """Compile the kernels, before setuptools prints anything; without a compiler the process ends with three lines."""
    try:
        chosen = toolchain.choose((config_settings or {}).get("levels", ""))
        compiling.compile_kernels(map(compiling.Target, chosen))
    except (toolchain.NoCompiler, compiling.CompileError, ValueError) as error:
        sys.exit(str(error))
    os.environ["COREFW_C_LEVELS"] = ",".join(chosen)  # for setup.py
    for earlier in toolchain.BUILD.glob("lib*"):  # setuptools would pack what an earlier build left there
        shutil.rmtree(earlier)
