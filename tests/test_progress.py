"""What long work shows: a bar or a counter on a terminal, nothing elsewhere; and downloads, which show it."""

import hashlib
import io
import sys
from contextlib import redirect_stderr

import pytest

from corefw import progress
from corefw.fetching import fetch
from corefw.progress import Progress, shown


class Terminal(io.StringIO):
    """A stderr that is a terminal."""

    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def xterm(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def without_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(progress, "PAUSE", -1)


def test_a_log_stays_empty(capsys):
    assert list(shown(range(3), "reading")) == [0, 1, 2]
    with Progress("reading") as counted:
        counted.print("a line")
    assert capsys.readouterr() == ("a line\n", "")


@pytest.mark.parametrize("term, show, is_seen", [("xterm", True, True), ("dumb", True, False), ("xterm", False, False)])
def test_what_cannot_be_seen_is_not_shown(term, show, is_seen, monkeypatch):
    monkeypatch.setenv("TERM", term)
    with redirect_stderr(Terminal()) as terminal:
        assert list(shown(range(3), "reading", show=show)) == [0, 1, 2]
    assert ("reading" in terminal.getvalue()) == is_seen


def test_without_tqdm_a_counter_is_shown_and_wiped_away(without_tqdm, capsys):
    with redirect_stderr(Terminal()) as terminal, Progress("reading", 1200, "checks") as counted:
        counted.advance(1100)
        counted.print("a line")
    text = terminal.getvalue()
    assert "reading: 1,100 of 1,200 checks" in text and text.endswith("\r\033[K")
    assert capsys.readouterr().out == "a line\n"


def test_with_tqdm_a_bar_is_shown_and_wiped_away(capsys):
    pytest.importorskip("tqdm")
    with redirect_stderr(Terminal()) as terminal, Progress("reading", unit="checks") as counted:
        counted.reached(3, 8)
        counted.print("a line")
        counted.reached(5, 8)
    assert counted.done == 5
    text = terminal.getvalue()
    assert "reading:" in text and "3/8" in text and text.endswith("\r")
    assert capsys.readouterr().out == "a line\n"


@pytest.mark.usefixtures("without_tqdm")
def test_a_download_tells_its_bytes(tmp_path):
    (tmp_path / "source").write_bytes(bytes(1 << 21))
    digest, copied = hashlib.sha256(), io.BytesIO()
    with redirect_stderr(Terminal()) as terminal:
        fetch((tmp_path / "source").as_uri(), copied, digest, "source")
    assert copied.getvalue() == bytes(1 << 21) and digest.digest() == hashlib.sha256(bytes(1 << 21)).digest()
    assert "source: 1,048,576 of 2,097,152 B" in terminal.getvalue()
