"""The pictures of the tutorials, made by running what the pages say."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from tests.walk import walk

DOCS = Path(__file__).resolve().parents[2] / "docs"
_PICTURE = re.compile(r"!\[[^]]*\]\(([^):]+)\)")


def pictures() -> dict[str, bytes]:
    """{path among the pages: picture} of all pages that show what their own programs draw."""
    found = {}
    for page in sorted(DOCS.glob("tutorials/*.md")):
        text = page.read_text(encoding="utf-8")
        wanted = _PICTURE.findall(text)
        if wanted:
            with tempfile.TemporaryDirectory() as folder:
                walk(text, Path(folder))
                found.update({f"tutorials/{name}": (Path(folder) / name).read_bytes() for name in wanted})
    return found
