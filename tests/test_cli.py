"""The command line, run as a user runs it."""

import subprocess
import sys

import pytest

from corefw.demo import train


def corefw_command(*arguments, check=True, **options):
    command = [sys.executable, "-m", "corefw", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=check, **options)


def test_backends_lists_numpy():
    assert "numpy" in corefw_command("backends").stdout


def test_explain():
    assert "kernel of backend 'numpy'" in corefw_command("explain", "linalg_inv").stdout
    assert "float64" in corefw_command("explain", "add", "--dtype", "float64", "--tensors", "2").stdout


def test_info():
    text = corefw_command("info").stdout
    assert all(word in text for word in ("corefw ", "Python ", "numpy ", "processor:", "environment:"))


def test_errors_are_one_line_and_an_exit_status():
    done = corefw_command("explain", "no_such_op", check=False)
    assert done.returncode == 2 and done.stderr == "corefw: explain: no op is called 'no_such_op'\n"
    assert corefw_command(check=False).returncode == 2


def test_demo_reaches_its_goal_and_draws(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: the demonstration draws nothing")
    done = corefw_command("demo", "--picture", str(tmp_path / "curves.png"), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert "epoch 15/15" in done.stdout


def test_the_same_seed_gives_the_same_curve():
    first, second = (train("numpy", "cpu", epochs=1, progress=False) for _ in range(2))
    assert first.losses == second.losses and first.accuracies == second.accuracies
    assert train("numpy", "cpu", epochs=1, seed=1, progress=False).losses != first.losses
