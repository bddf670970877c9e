"""`corefw run`: programs written for PyTorch run on corefw, with Python's arguments, tracebacks and exit statuses."""

import multiprocessing
import os
import subprocess
import sys

import pytest

from corefw.run import AliasFinder, target_of

WORKERS = """
import os
import torch
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        assert torch.__spec__.name == "corefw"
        return torch.tensor(index), os.getpid()

if __name__ == "__main__":
    import sys
    numbers, pids = [], []
    for number, pid in DataLoader(Numbers(), num_workers=2, multiprocessing_context=sys.argv[1]):
        numbers += number.tolist()
        pids += pid.tolist()
    print(numbers, os.getpid() in pids)
"""


@pytest.fixture
def program(tmp_path):
    """Writes a program beside a helper module and runs it: `program(source, *arguments)`."""
    (tmp_path / "helper.py").write_text("from torch import nn\nname = nn.__name__\n")

    def run(source, *arguments, module=False, python=(), check=True):
        (tmp_path / "program.py").write_text(source)
        target = ("-m", "program") if module else (str(tmp_path / "program.py"),)
        command = [sys.executable, *python, "-m", "corefw", "run", *target, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=check, cwd=tmp_path, timeout=120)

    return run


def test_names_of_modules():
    assert target_of("torch") == "corefw"
    assert target_of("torchvision.datasets") == "corefw.vision.datasets"
    assert target_of("torchtext") is None and target_of("numpy.torch") is None


def test_this_process_is_left_alone():
    assert not any(isinstance(finder, AliasFinder) for finder in sys.meta_path)


def test_paths_into_torchvision(program):
    done = program(
        "import torchvision\n"
        "assert torchvision.models.resnet18.__module__ == 'corefw.vision.models.resnet'\n"
        "import torchvision.models.googlenet, torchvision.ops.roi_align\n"
        "from torchvision.models.googlenet import GoogLeNet\n"
        "from torchvision.models.resnet import BasicBlock, Bottleneck, resnet50\n"
        "from torchvision.models.mobilenet import MobileNetV3\n"
        "from torchvision.models._utils import IntermediateLayerGetter, _make_divisible\n"
        "from torchvision.models._api import WeightsEnum\n"
        "from torchvision.models import googlenet, mobilenet_v2, MobileNet_V2_Weights\n"
        "from torchvision.ops import boxes, roi_align\n"
        "from torchvision.ops.misc import Conv2dNormActivation, FrozenBatchNorm2d\n"
        "from torchvision.ops.feature_pyramid_network import LastLevelMaxPool\n"
        "from torchvision.ops.poolers import MultiScaleRoIAlign\n"
        "assert boxes.__name__ == 'corefw.vision.ops.boxes'\n"
        "assert callable(torchvision.models.googlenet) and callable(torchvision.ops.roi_align)\n"
        "print(googlenet.__name__, roi_align.__name__)\n"
    )
    assert done.stdout == "googlenet roi_align\n"


PATHS = {
    "torch.cpu.amp.autocast_mode": "autocast",
    "torch.cuda.amp.autocast_mode": "autocast",
    "torch.cuda.amp.grad_scaler": "GradScaler",
    "torch.cuda.memory": "memory_allocated",
    "torch.cuda.random": "manual_seed_all",
    "torch.cuda.streams": "Stream",
    "torch.functional": "einsum",
    "torch.multiprocessing.reductions": "_rebuild",
    "torch.multiprocessing.spawn": "ProcessRaisedException",
    "torch.nn.common_types": "_size_2_t",
    "torch.nn.modules.batchnorm": "_BatchNorm",
    "torch.nn.modules.conv": "_ConvNd",
    "torch.nn.modules.flatten": "Flatten",
    "torch.nn.modules.module": "register_module_forward_hook",
    "torch.nn.modules.pixelshuffle": "PixelShuffle",
    "torch.nn.modules.rnn": "RNNBase",
    "torch.nn.parallel.parallel_apply": "parallel_apply",
    "torch.nn.parallel.replicate": "replicate",
    "torch.optim.adamw": "AdamW",
    "torch.profiler.profiler": "profile",
    "torch.signal.windows.windows": "hann",
    "torch.utils.data._utils.collate": "default_collate",
}


def test_paths_into_pytorch(program):
    """As programs import from PyTorch's files, whose names are not all those of ours, and as they name them."""
    lines = [f"from {module} import {name}" for module, name in PATHS.items()]
    calls = ["torch.multiprocessing.spawn", "torch.nn.parallel.replicate", "torch.nn.parallel.parallel_apply"]
    dotted = ["torch.utils.data._utils.collate.default_collate", "torch.nn.modules.batchnorm._BatchNorm"]
    lines += ["import torch", f"assert all(map(callable, [{', '.join([*calls, *dotted])}]))"]
    lines += [f"print({', '.join(dict.fromkeys(PATHS.values()))}, sep='\\n')"]
    shown = program("\n".join(lines)).stdout.splitlines()
    assert len(shown) == len({*PATHS.values()})


def test_modules_are_the_same_objects(program):
    done = program(
        "import corefw, corefw.vision.transforms\n"
        "import torch, torch.nn as nn, torch.nn.functional as F, torch.optim as optim, torch.utils.data, torchvision\n"
        "from torch import autograd\n"
        "from torchvision import datasets, transforms\n"
        "import torchvision.transforms.functional as TF\n"
        "assert torch is corefw and nn is corefw.nn and F is corefw.nn.functional and optim is corefw.optim\n"
        "assert torch.utils.data.DataLoader is corefw.utils.data.DataLoader and autograd is corefw.autograd\n"
        "assert transforms is corefw.vision.transforms and TF is transforms.functional\n"
        "assert torch.__spec__.name == 'corefw' and nn.__name__ == 'corefw.nn'\n"
        "assert datasets.Digits.__module__.startswith('corefw.vision')\n"
        "print(F.relu(torch.tensor([-1.0, 2.0])))\n"
    )
    assert done.stdout == "tensor([0., 2.])\n"


@pytest.mark.parametrize("module", [False, True])
def test_a_program_finds_its_arguments_and_its_neighbours(program, module, tmp_path):
    source = (
        "import sys, helper\nprint(__name__, sys.argv[1:], helper.name, sys.modules['__main__'].__dict__ is globals())"
    )
    done = program(source, "--epochs", "3", "-m", "x", module=module)
    assert done.stdout == "__main__ ['--epochs', '3', '-m', 'x'] corefw.nn True\n"
    argv0 = program("import sys; print(sys.argv[0])", module=module).stdout.strip()
    assert argv0 == str(tmp_path / "program.py")


def test_a_package_runs_its_main_module(program, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "part.py").write_text("answer = 42")
    (tmp_path / "package" / "__main__.py").write_text("from .part import answer\nprint(__package__, answer)")
    command = [sys.executable, "-m", "corefw", "run", "-m", "package"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "package 42\n"


@pytest.mark.parametrize("python", [(), ("-I",)], ids=["", "isolated"])
@pytest.mark.parametrize(
    "statement, status, shown",
    [("pass", 0, ""), ("sys.exit(7)", 7, ""), ("sys.exit('reason')", 1, "reason\n"), ("exit()", 0, "")],
)
def test_exit_status(program, statement, status, shown, python):
    done = program(f"import sys\n{statement}", check=False, python=python)
    assert done.returncode == status and done.stderr == shown


def test_traceback_begins_in_the_program(program, tmp_path):
    done = program("def broken():\n    raise ValueError('reason')\n\nbroken()\n", check=False)
    lines = done.stderr.splitlines()
    assert done.returncode == 1
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == f'  File "{tmp_path / "program.py"}", line 4, in <module>'
    assert lines[-1] == "ValueError: reason"
    assert "corefw" not in done.stderr.replace(str(tmp_path), "")


def test_traceback_ends_in_the_program(program):
    step = "def step(x):\n    return torch.nn.functional.cross_entropy(x, x[0])\n"
    done = program(f"import torch\n{step}step(torch.ones(2, 3))\n", check=False)
    files = [line.split('"')[1] for line in done.stderr.splitlines() if line.startswith("  File ")]
    assert done.returncode == 1 and [os.path.basename(file) for file in files] == ["program.py"] * 2
    assert "During handling" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("corefw.errors.DtypeError: ")


def test_interruption_shows_where_the_program_was(program, tmp_path):
    done = program("import signal\nsignal.raise_signal(signal.SIGINT)\n", check=False)
    lines = done.stderr.splitlines()
    assert done.returncode == 130 and lines[1] == f'  File "{tmp_path / "program.py"}", line 2, in <module>'
    assert lines[-1] == "KeyboardInterrupt" and "corefw" not in done.stderr.replace(str(tmp_path), "")


def test_a_mistake_in_syntax_is_shown_without_traceback(program, tmp_path):
    done = program("def f(:\n", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f'  File "{tmp_path / "program.py"}", line 1\n')


def test_a_module_that_corefw_lacks(program):
    done = program("import torch.no_such_module", check=False)
    assert done.returncode == 1
    assert "ModuleNotFoundError: No module named 'torch.no_such_module'" in done.stderr
    assert "corefw.no_such_module" in done.stderr
    done = program("try:\n    import torch.no_such_module\nexcept ImportError:\n    print('guarded')")
    assert done.stdout == "guarded\n"


@pytest.mark.parametrize("target", [["missing.py"], ["-m", "missing"], ["-m", "missing.part"], ["."]])
def test_nothing_to_run(target, tmp_path):
    command = [sys.executable, "-m", "corefw", "run", *target]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("corefw run: ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("module", [False, True])
@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_workers_know_the_names(program, start, module):
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {start}")
    assert program(WORKERS, start, module=module).stdout == "[0, 1, 2, 3] False\n"


def test_another_torch_is_neither_imported_nor_found(program, tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise RuntimeError('the wrong one')")
    assert program("import torch; print(torch.__spec__.name)").stdout == "corefw\n"


def test_installing_late_is_refused(tmp_path):
    (tmp_path / "torch.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", "import torch, corefw.run; corefw.run.install()"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert "RuntimeError: torch is imported already" in done.stderr
