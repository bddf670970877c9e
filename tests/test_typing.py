"""Annotations as users' type checkers see them; mypy reads tests/typed as a part of `make lint`."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.typed import program

TYPED = Path(__file__).parent / "typed"


def test_the_typed_program_runs(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    program.main()
    assert (tmp_path / "model.pt").exists()
    assert "-> kernel of backend" in capsys.readouterr().out


def test_pyright_finds_nothing_in_the_typed_program():
    pytest.importorskip("pyright")
    done = subprocess.run([sys.executable, "-m", "pyright", str(TYPED / "program.py")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
