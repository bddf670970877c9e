"""Pages whose commands are run and whose files are written as they stand, in an empty folder."""

import doctest
import os
import re
import shlex
import subprocess
import sys

BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.M | re.S)
PLACE = re.compile(r"# (?P<file>\S+?)(?:, behind: (?P<line>.*))?\n")
PIP = ("pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--upgrade", "--target", "site")


def write(folder, text):
    """Write a block to the file that its first line names, or behind the line named there."""
    place = PLACE.match(text)
    file, text = folder / place["file"], text[place.end() :]
    if place["line"]:
        lines = file.read_text().splitlines(keepends=True)
        (at,) = [i for i, line in enumerate(lines) if line.strip() == place["line"]]
        text = "".join([*lines[: at + 1], text, *lines[at + 1 :]])
    file.write_text(text)


def run(folder, command):
    """What a command of the page prints."""
    words = shlex.split(command)
    words = words[2:] if words[:2] == ["python", "-m"] else words
    module = PIP if words[:2] == ["pip", "install"] else words[:1]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COREFW_")}
    path = os.pathsep.join([str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", *module, *words[2 if module is PIP else 1 :]],
        cwd=folder,
        env=kept | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, command + done.stdout + done.stderr
    return done.stdout


def walk(text, folder):
    """Do in a folder what the text of a page says: write its files, run its commands, compare what these print."""
    blocks = BLOCK.findall(text)
    assert {kind for kind, _ in blocks} == {"console", "python"}
    checker = doctest.OutputChecker()
    for kind, block in blocks:
        if kind == "python":
            write(folder, block)
            continue
        for step in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, expected = step.partition("\n")
            printed = run(folder, command)
            assert checker.check_output(expected, printed, doctest.ELLIPSIS), f"{command}\n{printed}"
