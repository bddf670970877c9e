"""An editable install: the package is found also beside a folder that has its name, as its own checkout may have."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = """
import importlib.util, site, sys
site.addsitedir(sys.argv[1])
for name in sys.argv[2:]:
    print(importlib.util.find_spec(name).origin)
"""


def python(*arguments, **environment):
    """Run Python without the packages that are installed for these tests; returns the lines that it printed."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | environment
    return subprocess.run(
        [sys.executable, *arguments], env=env, capture_output=True, text=True, check=True
    ).stdout.splitlines()


@pytest.fixture
def site(tmp_path):
    """A folder with what pip installs of the checkout in editable form."""
    metadata, wheels = tmp_path / "corefw-0.0.dist-info", tmp_path / "wheels"
    metadata.mkdir()
    wheels.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: corefw\nVersion: 0.0\n")
    build = "import sys, corefw_build; print(corefw_build.build_editable(sys.argv[1], metadata_directory=sys.argv[2]))"
    (wheel,) = python("-c", build, str(wheels), str(metadata), PYTHONPATH=str(ROOT / "scripts"))
    assert wheel == "corefw-0.0-py3-none-any.whl"
    with zipfile.ZipFile(wheels / wheel) as archive:
        archive.extractall(tmp_path / "site")
    return tmp_path / "site"


def test_a_script_beside_the_checkout_finds_the_package(site, tmp_path):
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "corefw").symlink_to(ROOT)
    (tmp_path / "beside" / "train.py").write_text(SCRIPT)
    found = python("-S", str(tmp_path / "beside" / "train.py"), str(site), "corefw", "corefw_numpy")
    wanted = [ROOT / "corefw" / "__init__.py", ROOT / "backends" / "numpy_backend" / "corefw_numpy" / "__init__.py"]
    assert list(map(Path, found)) == wanted


def test_the_wheel_is_complete(site):
    listed = {line.split(",")[0] for line in (site / "corefw-0.0.dist-info" / "RECORD").read_text().splitlines()}
    assert listed == {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    assert {"__editable__.corefw.pth", "corefw-0.0.dist-info/METADATA", "corefw-0.0.dist-info/WHEEL"} <= listed
