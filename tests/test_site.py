"""The site: it builds without a warning, its pages are read off the code, and it needs nothing from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import corefw
from tests import scripts

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_it_builds_and_is_whole(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install '.[docs]'")
    site = built(tmp_path)
    for check in (
        pages_are_read_off_the_code,
        figures_are_made_by_the_run,
        nothing_is_fetched,
        all_is_in_the_navigation,
    ):
        check(site)


def built(folder):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def pages_are_read_off_the_code(site):
    page = (site / "reference" / "corefw.html").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]+>", "", page)
    for name in ("tanh", "matmul", "cumsum"):
        assert f'id="{name}"' in page
    assert "grad * (1 - result * result)" in text or "tanh_backward" in text
    assert "Kernels: numpy" in text
    matrix = (site / "backends" / "matrix.html").read_text(encoding="utf-8")
    assert all(name in matrix for name in ("softmax", "adam_step", "convolution"))
    conformance = (site / "backends" / "conformance.html").read_text(encoding="utf-8")
    assert all(name in conformance for name in ("numpy", "yes", "reduction"))
    support = (site / "coming" / "support.html").read_text(encoding="utf-8")
    assert "left out" in support
    assert corefw.refusals.REFUSALS["Tensor.index"].split(",")[0] in re.sub(r"<[^>]+>", "", support)


def figures_are_made_by_the_run(site):
    assert (site / "tutorials" / "spiral.svg").read_text(encoding="utf-8").count("<path") > 20


def nothing_is_fetched(site):
    loaded = re.compile(
        r"<(?:script|img|iframe)[^>]+src=\"(https?:)?//|<link[^>]+rel=\"stylesheet\"[^>]+href=\"(https?:)?//"
    )
    pages = list(site.rglob("*.html"))
    assert len(pages) > 80
    assert not [page.name for page in pages if loaded.search(page.read_text(encoding="utf-8"))]
    assert list(site.glob("search/search_index.json"))


def all_is_in_the_navigation(site):
    start = (site / "index.html").read_text(encoding="utf-8")
    for title in ("Start", "Tutorials", "Reference", "Coming from PyTorch", "Guides", "Backends", "How it is built"):
        assert title in start


def result(outcome, family="reduction", op="sum", ulp=0.0, **others):
    return {"check": f"{op}-values", "section": "ops", "family": family, "op": op, "dtype": "float32",
            "outcome": outcome, "ulp": ulp, "reason": "", **others}  # fmt: skip


def test_a_report_of_conformance_is_kept_by_families():
    results = [
        *(result("PASS", ulp=0.25), result("PASS", op="mean", ulp=1.52), result("NOT RUN")),
        *(result("WRONG", op="var", ulp=1e9, reason="1 is not 2"), result("NOT PROVEN", op="std", reason="not run")),
        result("PASS", family="", op="", section="memory"),
    ]
    versions = {"corefw": "1", "python": "3", "backend c": "1 v4"}
    report = {"conformant": False, "versions": versions, "results": results}
    kept = scripts.load("make_conformance").condensed(report)
    assert kept == {
        "conformant": False,
        "versions": {"corefw": "1", "backend c": "1 v4"},
        "faults": ["var-values: 1 is not 2", "std-values: not run"],
        "families": {
            "reduction": {
                "outcomes": {"PASS": 2, "NOT RUN": 1, "WRONG": 1, "NOT PROVEN": 1},
                "ulp": 1.5,
                "op": "mean-float32",
            },
            "(memory)": {"outcomes": {"PASS": 1}, "ulp": 0.0, "op": ""},
        },
    }
