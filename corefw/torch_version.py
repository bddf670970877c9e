"""A version string that compares as versions do."""

from __future__ import annotations

import re
from typing import Any

#: the version of PyTorch whose API this is, as programs under `corefw run` see it
COMPATIBLE = "2.13.0+corefw"
#: the version of torchvision that belongs to it
COMPATIBLE_VISION = "0.28.0+corefw"


def _release(version: Any) -> tuple[int, ...]:
    """The numbers before any suffix, without zeros at their end."""
    parts = version if isinstance(version, tuple | list) else re.split(r"[.+-]", str(version))
    numbers: list[int] = []
    for part in parts:
        found = re.match(r"\d+", str(part))
        if found is None:
            break
        numbers.append(int(found[0]))
        if found[0] != str(part):
            break  # 0a1, 0rc2: the release ends here
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


class TorchVersion(str):
    """A version; ``<`` and its kin compare release numbers with those of a string or a tuple.

    Suffixes (``+corefw``, ``a1``) do not count, but for equality with a string that has one.

    >>> TorchVersion("2.13.0+corefw") > "2.4", TorchVersion("2.13.0+corefw") >= (2, 13), TorchVersion("2.13.0") < "3"
    (True, True, True)
    """

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) and re.search(r"[^\d.]", other):
            return str.__eq__(self, other)
        return isinstance(other, str | tuple | list) and _release(self) == _release(other)

    def __lt__(self, other: Any) -> bool:
        return _release(self) < _release(other)

    __hash__ = str.__hash__

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __gt__(self, other: Any) -> bool:
        return _release(other) < _release(self)

    def __ge__(self, other: Any) -> bool:
        return not self < other
