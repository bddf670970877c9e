"""Files of other machines, copied into open files: the loop of all downloads."""

from __future__ import annotations

from typing import Any
from urllib.request import Request, urlopen

from corefw.progress import Progress

CHUNK = 1 << 20
PATIENCE = 60  # seconds that a server may be silent


def fetch(url: str, file: Any, digest: Any, title: str, progress: bool = True) -> None:
    """Copy what an address has into an open file.

    Args:
        url: http, https, ftp or file.
        file: open for writing bytes.
        digest: a hash of `hashlib`, which is given all bytes.
        title: what is shown beside the number of bytes.
        progress: whether to show it, on a terminal.
    """
    request = Request(url, headers={"User-Agent": "corefw"})
    with urlopen(request, timeout=PATIENCE) as source:
        length = source.headers.get("Content-Length") or ""
        with Progress(title, int(length) if length.isdigit() else None, "B", progress) as shown:
            while part := source.read(CHUNK):
                digest.update(part)
                file.write(part)
                shown.advance(len(part))
