"""The pages for users run as they stand: files are written, commands run; examples are doctests like all others."""

import re
from pathlib import Path

import pytest

from tests.walk import walk

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = sorted([DOCS / "index.md", *DOCS.glob("start/*.md"), *DOCS.glob("tutorials/*.md")])
EXAMPLES = re.compile(r"^```pycon\n(.*?)^```$", re.M | re.S)
WITH_EXAMPLES = [page for page in PAGES if EXAMPLES.search(page.read_text(encoding="utf-8"))]
WITH_COMMANDS = [page for page in PAGES if "```console" in page.read_text(encoding="utf-8")]


def name(page):
    return str(page.relative_to(DOCS).with_suffix(""))


def test_every_tutorial_runs():
    assert len(WITH_EXAMPLES) >= 7
    tutorials = {page for page in PAGES if page.parent.name == "tutorials" and page.stem != "index"}
    assert tutorials == {page for page in [*WITH_EXAMPLES, *WITH_COMMANDS] if page.parent.name == "tutorials"}
    index = (DOCS / "tutorials" / "index.md").read_text(encoding="utf-8")
    assert all(f"({page.name})" in index for page in tutorials)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name)
def test_programs(page, tmp_path):
    walk(page.read_text(encoding="utf-8"), tmp_path)
    for picture in re.findall(r"!\[[^]]*\]\(([^):]+)\)", page.read_text(encoding="utf-8")):
        assert (tmp_path / picture).stat().st_size > 1000
