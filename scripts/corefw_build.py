"""How pip builds corefw: as setuptools does, but an editable install puts the packages' folders on the path.

Setuptools' own editable install is a finder that Python asks after it has searched the path. Beside a checkout that is
called corefw, a script would be given that folder, as an empty namespace, and not the package in it. With the folders
on the path the package is found wherever they stand: Python takes a package before a namespace.
"""

from __future__ import annotations

import base64
import hashlib
import tempfile
import tomllib
import zipfile
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  (every other hook)

ROOT = Path(__file__).resolve().parent.parent
WHEEL = "Wheel-Version: 1.0\nGenerator: corefw_build\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def folders() -> list[Path]:
    """Where the packages lie, as pyproject.toml says."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    return [ROOT / folder for folder in settings["packages"]["find"]["where"]]


def build_editable(wheel_directory: str, config_settings=None, metadata_directory: str | None = None) -> str:
    """Write a wheel of the metadata and a file of paths; returns its name."""
    with tempfile.TemporaryDirectory() as temporary:
        if metadata_directory is None:
            metadata_directory = str(Path(temporary, build_meta.prepare_metadata_for_build_editable(temporary)))
        information = Path(metadata_directory)
        files = {"__editable__.corefw.pth": "".join(f"{folder}\n" for folder in folders()).encode()}
        for path in sorted(information.rglob("*")):
            if path.is_file():
                files[f"{information.name}/{path.relative_to(information).as_posix()}"] = path.read_bytes()
    files[f"{information.name}/WHEEL"] = WHEEL.encode()
    record = f"{information.name}/RECORD"
    files[record] = "".join([*(_recorded(name, content) for name, content in files.items()), f"{record},,\n"]).encode()
    wheel = information.name.removesuffix(".dist-info") + "-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return wheel


def _recorded(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"
