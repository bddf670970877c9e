"""The command line, run as a user runs it."""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest

import corefw
from corefw import cli
from corefw.demo import draw, train

PATH = os.pathsep.join(sys.path)  # for commands that run elsewhere


def corefw_command(*arguments, check=True, **options):
    command = [sys.executable, "-m", "corefw", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=check, **options)


def test_backends_lists_numpy():
    assert "numpy" in corefw_command("backends").stdout


def test_backends_shows_what_is_declared(plugin_site):
    """What a runtime stores, how wrong kernels may be, and which ones are not deterministic."""
    path = os.pathsep.join([str(plugin_site("cpu.planted", "sparing.sparing")), PATH])
    said = corefw_command("backends", env={**os.environ, "PYTHONPATH": path}).stdout
    planted, sparing = (said[said.index(f"{name} 1") :].splitlines() for name in ("planted", "sparing"))
    assert planted[2:4] == [
        "    kernels with a declared error: 2, up to 100000 units of the last place",
        "    not deterministic: log2",
    ]
    assert sparing[2:4] == ["    sparing stores: bool, int64, float32", "    deterministic if asked: index_add"]


def test_explain():
    assert "kernel of backend 'numpy'" in corefw_command("explain", "linalg_inv").stdout
    assert "float64" in corefw_command("explain", "add", "--dtype", "float64", "--tensors", "2").stdout


def test_explain_follows_a_composition_on_given_shapes():
    said = corefw_command("explain", "conv2d", "--shape", "1,3,8,8", "--shape", "4,3,3,3").stdout
    assert "convolution at cpu/float32: kernel of backend" in said


def test_info():
    text = corefw_command("info", env={**os.environ, "COREFW_DISABLE": "absent"}).stdout
    lines = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    assert text.startswith(f"corefw {corefw.__version__}, Python 3.")
    assert "numpy " in lines["packages"] and "instruction sets: " in lines["processor"]
    assert lines["threads"] == f"corefw uses {corefw.get_num_threads()} of {os.cpu_count()}"
    assert "COREFW_DISABLE=absent" in lines["environment"]
    assert all(str(backend) in text for backend in corefw.backends() if backend.name == "numpy")
    assert "absent ?: serves nothing; 0 kernels; priority 0; not usable: disabled" in text


def failed(*arguments, status, **options):
    """What a command said that failed: one line, which begins with the command."""
    done = corefw_command(*arguments, check=False, **options)
    begin = f"corefw {arguments[0]}: " if arguments and arguments[0].isidentifier() else "corefw: "
    assert done.returncode == status and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith(begin)
    return done.stderr.removeprefix(begin).rstrip("\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "the following arguments are required: command; see corefw --help"),
        (("explan", "sum"), "no command is called 'explan' (did you mean 'explain'?)"),
        (("explain",), "the following arguments are required: op; see corefw explain --help"),
        (("explain", "sofmax"), "no op is called 'sofmax' (did you mean 'softmax'?)"),
        (("explain", "sum", "--dtype", "flaot32"), "no dtype is called 'flaot32' (did you mean 'float32'?)"),
        (("explain", "sum", "--dtype", "nn"), "no dtype is called 'nn'"),
        (("explain", "sum", "--device", "cpuu"), "string: cpuu (did you mean 'cpu'?)"),
        (("explain", "sum", "--tensors", "-1"), "argument --tensors: expected 0 or more, got -1"),
        (("explain", "sum", "--shape", "2x3"), "argument --shape: expected sizes such as 2,3, got '2x3'"),
        (("demo", "--epochs", "0"), "argument --epochs: expected 1 or more, got 0"),
        (("demo", "--epochs", "many"), "argument --epochs: expected a number, got 'many'"),
        (("backends", "--all"), "unrecognized arguments: --all"),
    ],
    ids=" ".join,
)
def test_a_wrong_request_is_one_line(arguments, said):
    assert said in failed(*arguments, status=2)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("COREFW_BACKENDS", "cpu:numpy", "cannot read 'cpu:numpy'; the form is"),
        ("COREFW_BACKENDS", "cpu=nunpy", "(did you mean 'numpy'?)"),
        ("COREFW_OPS", "conv2d@cpu=numpy", "convolution"),
    ],
)
@pytest.mark.parametrize("command", [("info",), ("backends",), ("explain", "sum")], ids=" ".join)
def test_a_wrong_setting_is_one_line(command, variable, value, said):
    assert said in failed(*command, status=2, env={**os.environ, variable: value})


def test_what_cannot_be_written_is_said_before_the_work(tmp_path):
    assert "cannot write" in failed("demo", "--picture", str(tmp_path / "absent" / "x.png"), status=1)
    assert "it is a folder" in failed("demo", "--picture", str(tmp_path), status=1)


def test_a_device_that_is_not_there_is_a_failure():
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    assert "cuda" in failed("explain", "sum", "--device", "cuda", status=1, env=environment)


def test_a_script_that_is_not_there(tmp_path):
    (tmp_path / "train.py").write_text("")
    said = failed("run", "trian.py", status=2, cwd=tmp_path, env={**os.environ, "PYTHONPATH": PATH})
    assert said == "can't open trian.py: No such file or directory (did you mean 'train.py'?)"


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("command", ["info", "explain sum", "--help", "run many.py"])
def test_a_reader_that_has_gone_is_no_news(command, unbuffered, tmp_path):
    source = (
        "try:\n    print('line')\nexcept OSError:\n    pass\n"  # in a program of the user's it is the user's affair
    )
    (tmp_path / "many.py").write_text(source)
    read, write = os.pipe()
    os.close(read)
    environment = {**os.environ, "PYTHONPATH": PATH, "PYTHONUNBUFFERED": unbuffered}
    called = [sys.executable, "-m", "corefw", *command.split()]
    done = subprocess.run(called, stdout=write, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment)
    os.close(write)
    assert done.stderr == ""
    assert done.returncode == 141 or (unbuffered and command in ("--help", "run many.py"))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")
def test_output_that_cannot_be_written():
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "corefw", "info"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and done.stderr == "corefw info: [Errno 28] No space left on device\n"


def test_closed_output_is_no_failure():
    code = "import sys; from corefw.cli import main; sys.stdout = None; sys.exit(main(['backends']))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def raising(error):
    """A program whose command `info` fails."""
    return f"""
import sys
from corefw import cli
from corefw.commands import info
def failing(arguments):
    print("begun")
    raise {error}
info.info = failing
sys.exit(cli.main(["info"]))
"""


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        ("KeyboardInterrupt", 130, "corefw info: interrupted\n"),
        ("OSError('no disk')", 1, "corefw info: no disk\n"),
        ("KeyError('x')", 1, "corefw info: KeyError: 'x' (COREFW_FULL_TRACEBACK=1 shows where)\n"),
        ("ValueError('two\\nlines')", 1, "corefw info: ValueError: two lines (COREFW_FULL_TRACEBACK=1 shows where)\n"),
    ],
)
def test_no_failure_ends_in_a_traceback(error, status, said):
    done = subprocess.run([sys.executable, "-c", raising(error)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (status, "begun\n", said)


def test_the_whole_traceback_on_request():
    environment = {**os.environ, "COREFW_FULL_TRACEBACK": "1"}
    done = subprocess.run([sys.executable, "-c", raising("KeyError")], capture_output=True, text=True, env=environment)
    assert done.returncode == 1 and "Traceback (most recent call last)" in done.stderr and "in failing" in done.stderr


def test_version():
    assert corefw_command("--version").stdout == f"corefw {corefw.__version__}\n"


def test_every_command_shows_examples_that_parse(capsys):
    assert cli._parse(["--help"]) == 0
    overview = capsys.readouterr().out
    for module in cli.COMMANDS:
        function = module.__name__.rpartition(".")[2]
        command = function.replace("_", "-")
        assert f"\n    {command}" in overview and cli._parse([command, "--help"]) == 0
        examples = re.findall(r"^  corefw (.*)$", capsys.readouterr().out.partition("example")[2], re.MULTILINE)
        assert examples
        for example in examples:
            assert cli._parse(shlex.split(example)).run is getattr(module, function)


def test_demo_reaches_its_goal_and_draws(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: the demonstration draws nothing")
    done = corefw_command("demo", "--picture", str(tmp_path / "curves.png"), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert "epoch 15/15" in done.stdout


def test_without_matplotlib_nothing_is_drawn(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert draw([], tmp_path / "curves.png") is False


def test_the_same_seed_gives_the_same_curve():
    first, second = (train("numpy", "cpu", epochs=1, progress=False) for _ in range(2))
    assert first.losses == second.losses and first.accuracies == second.accuracies
    assert train("numpy", "cpu", epochs=1, seed=1, progress=False).losses != first.losses


def test_info_for_programs():
    facts = json.loads(corefw_command("info", "--json").stdout)
    assert facts["corefw"] == corefw.__version__
    assert facts["threads"]["used"] == corefw.get_num_threads()
    (numpy,) = [b for b in facts["backends"] if b["name"] == "numpy"]
    assert numpy["usable"]
    assert "float32" in numpy["dtypes"]


def test_completion():
    pytest.importorskip("shtab")
    text = corefw_command("completion", "bash").stdout
    for word in ("demo", "explain", "--shape", "new-backend"):
        assert word in text
