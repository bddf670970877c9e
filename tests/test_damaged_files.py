"""Tests of loading what is damaged: an error or the content, nothing else."""

import contextlib
import io
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corefw as torch
from corefw.serialization.archive import Reader, Writer
from corefw.testing import assert_close
from tests.saved_files import FIXTURES, REFUSALS, rewritten, same, saved


@pytest.mark.parametrize("name", ["checkpoint.pt", "checkpoint_before_1_6.pt"])
@pytest.mark.parametrize("weights_only", [True, False])
def test_truncated_files(name, weights_only):
    content = (FIXTURES / name).read_bytes()
    for part in range(20):
        with pytest.raises(REFUSALS):
            torch.load(io.BytesIO(content[: len(content) * part // 20]), weights_only=weights_only)
    with pytest.raises(REFUSALS):
        torch.load(io.BytesIO(content[:-1]), weights_only=weights_only)


@pytest.mark.parametrize("content", [b"", b"P", b"text\n" * 300, b"\x80\x02.", b"PK\x03\x04" + b"\0" * 99, b"\0" * 600])
def test_other_files(content):
    with pytest.raises(REFUSALS):
        torch.load(io.BytesIO(content))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_changed_bytes_raise_or_load(data):
    """Whatever bytes change, nothing happens but a load or a clear error."""
    content = bytearray(saved({"x": torch.arange(3.0), "y": [torch.Size([1]), {1}, b"z"]}).getvalue())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(REFUSALS):
        torch.load(io.BytesIO(bytes(content)))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_changed_pickles_raise_or_load(data):
    """As above, past the checksum."""

    def change(pickled: bytes) -> bytes:
        content = bytearray(pickled)
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        return bytes(content)

    content = saved(
        {"x": torch.arange(3.0), "y": [torch.Size([1]), {1}, b"z"], "u": torch.ones(2).to(torch.uint16)}
    ).getvalue()
    with contextlib.suppress(REFUSALS):
        torch.load(rewritten(content, change))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_changed_files_of_the_old_format_raise_or_load(data):
    content = bytearray((FIXTURES / "checkpoint_before_1_6.pt").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(REFUSALS):
        torch.load(io.BytesIO(content))


def test_objects_of_the_old_format_follow_each_other():
    content = (FIXTURES / "checkpoint_before_1_6.pt").read_bytes()
    file = io.BytesIO(content * 2)
    assert same(torch.load(file)["base"], torch.arange(24.0)) and file.tell() == len(content)
    assert same(torch.load(file)["base"], torch.arange(24.0))


def test_damage_is_found():
    content = bytearray(saved(torch.arange(100.0)).getvalue())
    content[Reader(io.BytesIO(content)).offset("data/0") + 5] ^= 1
    with pytest.raises(RuntimeError, match="'data/0' is damaged: its checksum"):
        torch.load(io.BytesIO(content))
    with pytest.raises(RuntimeError, match="file not found in archive: 'data/0'"):
        torch.load(rewritten(saved(torch.ones(1)).getvalue(), drop=["archive/data/0"]))


def test_checksums_are_compared_where_the_content_is_read(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(torch.arange(100.0), path)
    assert_close(torch.load(path, mmap=True, check=True), torch.arange(100.0))
    content = bytearray(path.read_bytes())
    content[Reader(io.BytesIO(content)).offset("data/0") + 7] ^= 1
    path.write_bytes(content)
    for options in ({}, {"check": True}, {"check": True, "mmap": True}):
        with pytest.raises(RuntimeError, match="'data/0' is damaged: its checksum"):
            torch.load(path, **options)
    for options in ({"mmap": True}, {"check": False}, {"check": False, "mmap": True}):
        assert torch.load(path, **options)[1] != 1


def test_files_without_checksums(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(torch.arange(4), path)
    content = bytearray(path.read_bytes())
    place = -1
    while (place := content.find(b"PK\x01\x02", place + 1)) >= 0:  # each entry of the directory
        content[place + 16 : place + 20] = bytes(4)
    path.write_bytes(content)
    for mapped in (False, True):
        assert_close(torch.load(path, mmap=mapped), torch.arange(4))
        with pytest.raises(RuntimeError, match="written without checksums"):
            torch.load(path, mmap=mapped, check=True)
    with pytest.raises(RuntimeError, match="have no checksums"):
        torch.load(FIXTURES / "checkpoint_before_1_6.pt", check=True)


def test_archives_packed_by_other_tools():
    x = torch.arange(1000.0)
    assert same(torch.load(rewritten(saved(x).getvalue(), compression=zipfile.ZIP_DEFLATED)), x)


def test_torchscript_and_tar_are_named():
    file = io.BytesIO()
    with Writer(file) as writer:
        writer.write("constants.pkl", b"")
    file.seek(0)
    with pytest.raises(RuntimeError, match="TorchScript"):
        torch.load(file)
    with pytest.raises(RuntimeError, match="tar format"):
        torch.load(io.BytesIO(b"pickle".ljust(257, b"\0") + b"ustar".ljust(300, b"\0")))
