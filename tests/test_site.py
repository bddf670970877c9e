"""The site: it builds without a warning, its pages are read off the code, and it needs nothing from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import corefw

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
    assert all(name in conformance for name in ("numpy", "cupy, emulated", "reduction"))
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
