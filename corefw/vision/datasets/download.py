"""Fetching the files of published data sets: checked by their MD5 sums, and put in place only when complete."""

from __future__ import annotations

import hashlib
import http.client
import os
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence

from corefw.errors import CorefwError
from corefw.fetching import CHUNK
from corefw.fetching import fetch as copy
from corefw.files import replacing


class DownloadError(CorefwError, RuntimeError):
    """A file could not be fetched; the text names the addresses, the target, and what to do without a network."""


class CorruptedError(CorefwError, RuntimeError):
    """A file is not what its data set published."""


def md5_of(path: str | os.PathLike) -> str:
    """The MD5 sum of a file, in hexadecimal digits."""
    total = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            total.update(chunk)
    return total.hexdigest()


def check_integrity(path: str | os.PathLike, md5: str | None = None) -> bool:
    """Whether `path` is a file and, if `md5` is given, has that MD5 sum.

    >>> check_integrity("no such file")
    False
    """
    return os.path.isfile(path) and (md5 is None or md5_of(path) == md5)


def fetch(urls: Sequence[str], path: str, md5: str) -> None:
    """Fetch a file from the first of `urls` that has it; a file at `path` with the right sum is left as it is.

    It is written under another name beside `path` and takes its place when its sum is right, so that an interrupted
    download leaves nothing behind.

    Args:
        urls: addresses of the same file: http, https, ftp or file.
        path: where it belongs.
        md5: its MD5 sum, in hexadecimal digits.

    Raises:
        DownloadError: none of the addresses gave the file.
    """
    if check_integrity(path, md5):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    failures = []
    for url in urls:
        try:
            return _fetch(url, path, md5)
        except (OSError, http.client.HTTPException, CorruptedError) as error:
            failures.append(f"  {url}: {error}")
    tried = "\n".join(failures)
    raise DownloadError(
        f"could not download {os.path.basename(path)}; tried\n{tried}\n"
        f"Without a network: fetch the file where there is one and put it at\n  {path}\n"
        f"(MD5 sum {md5}); then it is used from there."
    )


def _fetch(url: str, path: str, md5: str) -> None:
    total = hashlib.md5(usedforsecurity=False)
    with replacing(path) as file:
        copy(url, file, total, os.path.basename(path))
        if (came := total.hexdigest()) != md5:
            raise CorruptedError(f"its MD5 sum is {came}, not {md5}")


def unpack(archive: str, folder: str) -> None:
    """Unpack a tar or zip archive into a folder, when all of it could be read.

    Raises:
        CorruptedError: it is no archive, or a member would lie outside of the folder.
    """
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        try:
            if zipfile.is_zipfile(archive):
                _unzip(archive, temporary)
            else:
                with tarfile.open(archive) as members:
                    members.extractall(temporary, filter="data")
        except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
            raise CorruptedError(f"{archive} is no archive to be unpacked: {error}") from error
        for path, _, names in os.walk(temporary):
            target = os.path.join(folder, os.path.relpath(path, temporary))
            os.makedirs(target, exist_ok=True)
            for name in names:
                os.replace(os.path.join(path, name), os.path.join(target, name))


def _unzip(archive: str, folder: str) -> None:
    with zipfile.ZipFile(archive) as members:
        for name in members.namelist():
            if os.path.isabs(name) or ".." in name.replace("\\", "/").split("/"):
                raise zipfile.BadZipFile(f"{name!r} would lie outside of the folder")
        members.extractall(folder)
