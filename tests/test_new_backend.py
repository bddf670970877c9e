"""Packages that `corefw new-backend` writes: each is installed as a stranger would, and its own tests run."""

import os
import subprocess
import sys

import pytest

from corefw.cli import main


def install(package, site):
    """Install a package with pip into a folder."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", str(site), str(package)], check=True, capture_output=True)


def run(site, folder, *command):
    """Run a Python command in a folder, beside what is installed in another one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COREFW_")}
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = kept | {"PYTHONPATH": path}
    return subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu-guest", "numpy-like", "functional"])
def test_what_is_written_passes_its_own_tests_at_once(kind, tmp_path, capsys):
    package = tmp_path / "package"
    assert main(["new-backend", "acme", "--kind", kind, "--folder", str(package)]) == 0
    assert f"wrote {package / 'corefw_acme' / '__init__.py'}" in capsys.readouterr().out
    install(package, tmp_path / "site")
    done = run(tmp_path / "site", package, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["my-device", "--kind", "functional"], "'my-device' cannot name a module"),
        (["class", "--kind", "functional"], "'class' cannot name a module"),
        (["numpy", "--kind", "functional"], "a backend called 'numpy' is installed already"),
        (["acme", "--kind", "quantum"], "invalid choice: 'quantum'"),
        (["acme", "--kind", "functional", "--folder", "."], "there already, and not empty"),
    ],
)
def test_what_cannot_be_written_is_refused(arguments, words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").write_text("")
    assert main(["new-backend", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
