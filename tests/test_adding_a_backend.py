"""docs/adding_a_backend.md, followed to the letter in an empty folder, and the reference that it names."""

from pathlib import Path

from tests import scripts
from tests.walk import walk

ROOT = Path(__file__).resolve().parent.parent


def test_the_page_works_as_it_stands(tmp_path):
    walk((ROOT / "docs" / "adding_a_backend.md").read_text(encoding="utf-8"), tmp_path)


def test_the_reference_is_current():
    script = scripts.load("make_plugin_api")
    assert script.PAGE.read_text(encoding="utf-8") == script.text(), "run scripts/make_plugin_api"
