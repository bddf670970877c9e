"""Models by name: from local folders that have a `hubconf.py`, and state dicts by address, kept in a cache."""

from __future__ import annotations

import builtins
import hashlib
import importlib.util
import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

from corefw.fetching import fetch
from corefw.files import replacing
from corefw.serialization import load as _load_file

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]
_directory: str | None = None
#: where the name of a file tells its hash
HASH_REGEX = re.compile(r"-([0-9a-f]{8,64})\.")


def get_dir() -> str:
    """The folder of downloads: that of `set_dir`, else ``$TORCH_HOME/hub``, else ``~/.cache/torch/hub``."""
    return _directory if _directory is not None else os.path.join(_get_torch_home(), "hub")


def _get_torch_home() -> str:
    """The folder of all that is kept: ``$TORCH_HOME``, else ``~/.cache/torch``."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def set_dir(d: str | os.PathLike) -> None:
    """Choose the folder of downloads."""
    global _directory
    _directory = os.path.expanduser(os.fspath(d))


def _entries(repo_or_dir: str | os.PathLike, source: str) -> ModuleType:
    """The module `hubconf.py` of a local folder."""
    if source != "local":
        raise NotImplementedError(
            f"hub: source={source!r} would run code that is downloaded; fetch the repository yourself, look at it, and "
            f'pass its folder with source="local"'
        )
    folder = Path(repo_or_dir)
    spec = importlib.util.spec_from_file_location("hubconf", folder / "hubconf.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    missing = [name for name in getattr(module, "dependencies", ()) if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: ModuleType, model: str) -> Any:
    found = getattr(module, model, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found


def list(
    github: str | os.PathLike, force_reload: bool = False, *, source: str = "github", **options: Any
) -> builtins.list[str]:
    """The models of a folder: the public functions of its `hubconf.py`.

    Args:
        github: the folder.
        force_reload, options: of downloads, which are refused.
        source: "local".

    Raises:
        NotImplementedError: the source is another.
    """
    module = _entries(github, source)
    return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]


def help(github: str | os.PathLike, model: str, *, source: str = "github", **options: Any) -> str | None:
    """The docstring of a model of a folder; arguments as of `list`."""
    return _entry(_entries(github, source), model).__doc__


def load(repo_or_dir: str | os.PathLike, model: str, *args: Any, source: str = "github", **kwargs: Any) -> Any:
    """A model of a folder: what the function of that name in its `hubconf.py` returns.

    Args:
        repo_or_dir: the folder.
        model: the name.
        args, kwargs: the function's arguments.
        source: "local".

    Raises:
        NotImplementedError: the source is another: nothing downloaded is run.
        RuntimeError: the folder has no such function, or needs packages that are not installed.
    """
    for name in ("trust_repo", "force_reload", "verbose", "skip_validation"):
        kwargs.pop(name, None)  # PyTorch's own, which concern downloads
    return _entry(_entries(repo_or_dir, source), model)(*args, **kwargs)


def download_url_to_file(
    url: str, dst: str | os.PathLike, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Fetch a file, which appears whole or not at all.

    Args:
        url: its address.
        dst: where it goes.
        hash_prefix: what the SHA-256 sum of its content must begin with.
        progress: whether to show, on a terminal, how much is there.

    Raises:
        RuntimeError: the sum is another.
    """
    digest = hashlib.sha256()
    with replacing(dst) as file:
        fetch(url, file, digest, os.path.basename(dst), progress)
        if hash_prefix and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')


def load_state_dict_from_url(
    url: str, model_dir: str | os.PathLike | None = None, map_location: Any = None, progress: bool = True,
    check_hash: bool = False, file_name: str | None = None, weights_only: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """The state dict of a file, which is fetched unless it is in the cache.

    Args:
        url: its address.
        model_dir: the folder of the cache; by default ``checkpoints`` in `get_dir()`.
        map_location, weights_only: as of `corefw.load`.
        progress: whether to show, on a terminal, how much is there.
        check_hash: whether the content must have the sum whose beginning the file's name tells, ``name-<sum>.ext``.
        file_name: its name in the cache, in place of the address's.
    """
    folder = Path(model_dir if model_dir is not None else os.path.join(get_dir(), "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (file_name or os.path.basename(urlparse(url).path))
    if not path.exists():
        found = HASH_REGEX.search(path.name) if check_hash else None
        download_url_to_file(url, path, found[1] if found else None, progress)
    return _load_file(path, map_location=map_location, weights_only=weights_only)
