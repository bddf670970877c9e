"""What the site has beside the pages of docs/: the reference, tables that are read off the registry, and the index of
decisions. mkdocs calls these functions."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]

_made: dict[str, str | bytes] = {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the pages, and give them and the decisions their places in the navigation."""
    sys.path[:0] = [str(Path(__file__).parent), str(ROOT)]  # not earlier: mkdocs puts the path back after the import
    made = {name: import_module(name) for name in ("conformance", "figures", "matrix", "reference", "support")}
    _made.update(made["reference"].pages())
    _made.update(made["figures"].pictures())
    _made["coming/support.md"] = made["support"].page()
    _made["backends/conformance.md"] = made["conformance"].page()
    _made["backends/matrix.md"] = made["matrix"].page()
    decisions = ["decisions/README.md", *sorted(p.name for p in (ROOT / "docs/decisions").glob("0*.md"))]
    folders = {
        "reference/": [path for path in _made if path.startswith("reference/")],
        "decisions/": [path if "/" in path else f"decisions/{path}" for path in decisions],
    }
    config.nav = [_filled(item, folders) for item in config.nav or []]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that were made."""
    for path, content in _made.items():
        files.append(File.generated(config, path, content=content))
    return files


def _filled(item: Any, folders: dict[str, list[str]]) -> Any:
    """A part of the navigation with the pages of a folder in its place."""
    if isinstance(item, dict):
        return {title: _filled(inside, folders) for title, inside in item.items()}
    if isinstance(item, list):
        return [page for inside in item for page in (folders.get(inside) or [_filled(inside, folders)])]
    return folders.get(item, item)
