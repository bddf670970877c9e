"""docs/tour.md tells the truth: its code runs, and the frames that it lists are those that run."""

import json
import os
import subprocess
import sys

import pytest

from tests.tour import PAGE, blocks

pytest.importorskip("corefw_c", reason="the tour shows one step of the C backend")

LISTED = [(i, frames) for i, (_, frames) in enumerate(blocks()) if frames]


@pytest.fixture(scope="module")
def ran() -> list[list[str]]:
    """The frames of each block of the page."""
    command = [sys.executable, "-m", "tests.tour"]
    unset = {name: value for name, value in os.environ.items() if not name.startswith("COREFW_")}  # poison adds frames
    result = subprocess.run(command, cwd=PAGE.parents[1], env=unset, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def difference(listed: list[str], frames: list[str]) -> str | None:
    """What the page says wrongly; a line of three dots stands for frames that it leaves out."""
    position = 0
    gap = False
    for line in listed:
        if line.strip() == "...":
            gap = True
            continue
        if gap and line in frames[position:]:
            position = frames.index(line, position)
        if frames[position : position + 1] != [line]:
            found = frames[position] if position < len(frames) else "nothing"
            return f"the page lists {line.strip()!r}, but what ran there is {found.strip()!r}"
        position += 1
        gap = False
    if not gap and position < len(frames):
        return f"the page does not list {frames[position].strip()!r}, which ran"
    return None


@pytest.mark.parametrize(("block", "listed"), LISTED, ids=[f"block {i}" for i, _ in LISTED])
def test_the_listed_frames_are_those_that_run(ran, block, listed):
    told = difference(listed, ran[block])
    assert told is None, told


@pytest.mark.parametrize(
    ("listed", "wrong"),
    [
        (["a", "b", "c"], None),
        (["a", "..."], None),
        (["a", "...", "c"], None),
        (["a", "b"], "does not list 'c'"),
        (["a", "c"], "lists 'c', but what ran there is 'b'"),
        (["a", "...", "d"], "lists 'd', but what ran there is 'b'"),
        (["a", "b", "c", "d"], "lists 'd', but what ran there is 'nothing'"),
    ],
)
def test_a_wrong_list_is_told(listed, wrong):
    told = difference(listed, ["a", "b", "c"])
    assert told is None if wrong is None else told is not None and wrong in told
