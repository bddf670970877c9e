"""The plug-ins in examples/: each is built as a wheel, installed into a folder of its own, and does what its README
says; the kernels that it claims are held to the conformance kit."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.walk import run, walk

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
#: what each needs, and the most lines that its sources may have
NEEDS = {"guest": ("scipy", 60), "strict": ("array_api_strict", 200), "xla": ("jax", 500)}
OPS = """
import json
import sys

from corefw.dispatch import plugins
from corefw.dispatch.registry import registry

plugins.load(None)
kernels = registry.kernels.items()
print(json.dumps(sorted({op for (op, _), offers in kernels for b, _ in offers if b.name == sys.argv[1]})))
"""


def copied(name, folder):
    """A copy of an example, of which nothing is built yet."""
    needed = NEEDS[name][0]
    if not find_spec(needed):
        pytest.skip(f"{needed} is not installed: pip install '.[{needed}]'" if name == "xla" else f"no {needed}")
    unwanted = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    return Path(shutil.copytree(EXAMPLES / name, folder / name, ignore=unwanted))


def test_all_are_tested():
    assert {path.name for path in EXAMPLES.iterdir() if path.is_dir()} == {*NEEDS, "programs", "served"}


@pytest.mark.parametrize("name", NEEDS)
def test_sources_are_short(name):
    lines = [len(path.read_text(encoding="utf-8").splitlines()) for path in EXAMPLES.glob(f"{name}/src/*/*.py")]
    assert 0 < sum(lines) < NEEDS[name][1]


@pytest.mark.slow
@pytest.mark.parametrize("name", NEEDS)
def test_it_does_what_its_readme_says_and_its_kernels_conform(name, tmp_path):
    folder = copied(name, tmp_path)
    walk((folder / "README.md").read_text(encoding="utf-8"), folder)
    if name == "xla":  # compiled for each shape, all kernels would take minutes: its README has a part of them
        return
    (folder / "ops.py").write_text(OPS)
    ops = json.loads(run(folder, f"corefw run ops.py {name}"))
    selected = " ".join(f"--select {op}-*" for op in ops)
    run(folder, f"corefw conform {name} --output report {selected}")
    report = json.loads((folder / "report" / "report.json").read_text())
    proven = {
        check["check"] for check in report["results"] if check["section"] == "claims" and check["outcome"] == "PASS"
    }
    assert len(proven) >= len(ops), sorted(proven)
