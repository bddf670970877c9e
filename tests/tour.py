"""The frames that really run in the code blocks of docs/tour.md, as JSON: run in a process of its own, where no op is
compiled yet."""

from __future__ import annotations

import json
import re
import sys
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType

PAGE = Path(__file__).parents[1] / "docs" / "tour.md"
PACKAGES = ("corefw", "corefw_numpy", "corefw_c")


def blocks() -> list[tuple[str, list[str]]]:
    """The page's code blocks, each with the lines of frames that follow it (none if it is only run)."""
    found = re.findall(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", PAGE.read_text("utf-8"), re.DOTALL)
    return [(code, frames.splitlines()) for code, frames in found]


def folders() -> dict[str, str]:
    """The folder of each package that is installed."""
    specs = {name: find_spec(name) for name in PACKAGES}
    return {str(Path(spec.origin).parent) + "/": name for name, spec in specs.items() if spec and spec.origin}


FOLDERS = folders()


def shown(code: CodeType) -> str | None:
    """A function as the page names it; None for other people's, and for expressions within a function."""
    name = code.co_qualname.rpartition("<locals>.")[2]
    if name.startswith("<"):
        return None
    if code.co_filename.startswith("<corefw op "):
        return f"{name}  {code.co_filename}"
    for folder, package in FOLDERS.items():
        if code.co_filename.startswith(folder):
            return f"{name}  {package}/{code.co_filename.removeprefix(folder)}"
    return None


def recorded(code: str, scope: dict) -> list[str]:
    """Run `code`; its frames in order, indented by who called whom, equal ones in a row once."""
    lines: list[str] = []

    def profile(frame: FrameType, event: str, arg) -> None:
        if event == "call" and (line := shown(frame.f_code)):
            depth, caller = 0, frame.f_back
            while caller is not None:
                depth += shown(caller.f_code) is not None
                caller = caller.f_back
            lines.append("  " * depth + line)

    compiled = compile(code, str(PAGE), "exec")
    sys.setprofile(profile)
    try:
        exec(compiled, scope)
    finally:
        sys.setprofile(None)
    return [line for line, _ in groupby(lines)]


if __name__ == "__main__":
    scope: dict = {}
    print(json.dumps([recorded(code, scope) for code, _ in blocks()]))
