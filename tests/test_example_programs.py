"""The programs in examples/: each runs as its README line says, and comes to what its last line tells."""

import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.walk import run

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "programs"
#: by program what its last line says, and the packages that it needs
ENDS = {
    "cartpole": (r"balances", ()),
    "digits": (r"reads digits", ()),
    "dcgan": (r"forges what looks like digits on the whole", ()),
    "gpt": (r"writes words", ()),
    "graph_network": (r"finds the crowds", ()),
    "sklearn_pipeline": (r"best: .*; right in more than 94 of 100: True", ("sklearn",)),
    "to_onnx": (r"loss .*; onnxruntime differs by less than 1e-4: True", ("onnx", "onnxruntime")),
    "two_ranks": (r"learned, with the same weights everywhere", ("mpi4py",)),
    "vae": (r"drew a picture", ()),
}
#: the command of those that `corefw run` does not run
COMMANDS = {"two_ranks": "corefw launch -n 2 --plain"}


def test_all_are_tested_and_listed():
    assert {path.stem for path in FOLDER.glob("*.py")} == {*ENDS}
    readme = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    for path in FOLDER.glob("*.py"):
        assert f"(programs/{path.name})" in readme


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDS)
def test_it_comes_to_its_end(name, tmp_path):
    end, needed = ENDS[name]
    for package in needed:
        if not find_spec(package):
            pytest.skip(f"{package} is not installed")
    shutil.copy(FOLDER / f"{name}.py", tmp_path)
    assert re.fullmatch(end, run(tmp_path, f"{COMMANDS.get(name, 'corefw run')} {name}.py").splitlines()[-1])
