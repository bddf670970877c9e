"""Writing files: what stays of an old one, what is written directly, what killed and concurrent programs leave."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

import pytest

import corefw as torch
from corefw import files
from corefw.files import replacing

NOBODY = 65534


def write(path, content: bytes = b"new") -> None:
    with replacing(path) as file:
        file.write(content)


def temporaries(directory) -> list[str]:
    return [name for name in os.listdir(directory) if name.startswith(".corefw-save-")]


@pytest.fixture
def umask():
    old = os.umask(0o027)
    yield
    os.umask(old)


def test_a_new_file_has_the_users_mode(tmp_path, umask):
    write(tmp_path / "a")
    assert stat.S_IMODE(os.stat(tmp_path / "a").st_mode) == 0o640 and os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666, 0o750, 0o200])
def test_the_mode_stays(tmp_path, umask, mode):
    path = tmp_path / "a.pt"
    torch.save(1, path)
    path.chmod(mode)
    torch.save(2, path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    path.chmod(0o600)
    assert torch.load(path) == 2


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="the system has no extended attributes")
def test_extended_attributes_stay(tmp_path):
    path = tmp_path / "a"
    write(path)
    os.setxattr(path, "user.note", b"kept")
    write(path, b"newer")
    assert os.getxattr(path, "user.note") == b"kept" and path.read_bytes() == b"newer"


def as_nobody(directory, call) -> str:
    """What a child without privileges prints of `call`, in a directory that it can reach."""
    read, written = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.chdir(directory)
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            result = call()
        except BaseException as error:
            result = type(error).__name__
        os.write(written, str(result).encode())
        os._exit(0)
    os.close(written)
    with os.fdopen(read) as file:
        result = file.read()
    os.waitpid(child, 0)
    return result


@pytest.fixture
def reachable():
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        yield directory


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
class TestWithoutPrivileges:
    def test_a_file_that_may_not_be_written_is_not_replaced(self, reachable):
        path = os.path.join(reachable, "a")
        write(path, b"old")
        os.chmod(path, 0o444)
        assert as_nobody(reachable, lambda: write("a")) == "PermissionError"
        with open(path, "rb") as file:
            assert file.read() == b"old"
        assert os.listdir(reachable) == ["a"]

    def test_a_file_in_a_closed_directory_is_written_directly(self, reachable):
        path = os.path.join(reachable, "a")
        write(path, b"longer than the new content")
        os.chmod(path, 0o666)
        os.chmod(reachable, 0o555)
        assert as_nobody(reachable, lambda: write("a")) == "None"
        assert as_nobody(reachable, lambda: write("b")) == "PermissionError"
        os.chmod(reachable, 0o755)
        with open(path, "rb") as file:
            assert file.read() == b"new"
        assert os.listdir(reachable) == ["a"]

    @pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only the superuser has others' files")
    def test_the_owner_stays_where_that_is_allowed(self, reachable):
        path = os.path.join(reachable, "a")
        write(path)
        os.chown(path, NOBODY, 12)
        os.chmod(path, 0o640)
        write(path, b"by the superuser")
        found = os.stat(path)
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (NOBODY, 12, 0o640)
        assert as_nobody(reachable, lambda: write("a")) == "None"
        found = os.stat(path)  # nobody is not in group 12; the mode let that group read, and no other
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (NOBODY, NOBODY, 0o600)


# -- links, and what is no regular file -------------------------------------------------------------------------------
def test_links_are_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("second")
    (tmp_path / "second").symlink_to("real/a.pt")
    for value in (1, 2):  # a dangling link first
        torch.save(value, tmp_path / "link")
        assert (tmp_path / "link").is_symlink() and (tmp_path / "second").is_symlink()
        assert torch.load(tmp_path / "real" / "a.pt") == value and os.listdir(tmp_path / "real") == ["a.pt"]
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="symbolic links"):
        torch.save(1, tmp_path / "round")
    (tmp_path / "lost").symlink_to("nowhere/a.pt")
    with pytest.raises(FileNotFoundError):
        torch.save(1, tmp_path / "lost")


def test_pipes_and_devices_are_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    reader.start()
    torch.save(torch.arange(100_000), pipe)
    reader.join(timeout=20)
    assert stat.S_ISFIFO(pipe.stat().st_mode) and os.listdir(tmp_path) == ["pipe"]
    (tmp_path / "a.pt").write_bytes(received[0])
    assert torch.load(tmp_path / "a.pt").sum() == torch.arange(100_000).sum()
    before = os.stat(os.devnull)  # after the pipe: what replaces it must not get here
    torch.save(torch.ones(1000), os.devnull)
    assert os.stat(os.devnull).st_ino == before.st_ino and stat.S_ISCHR(os.stat(os.devnull).st_mode)
    with pytest.raises(IsADirectoryError):
        torch.save(1, tmp_path)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="the system does not list open files")
def test_an_open_file_without_a_name_is_written_to(tmp_path):
    with open(tmp_path / "a", "w+b") as file:
        os.unlink(tmp_path / "a")
        write(f"/proc/self/fd/{file.fileno()}")
        assert file.read() == b"new" and not os.listdir(tmp_path)


# -- killed and concurrent programs -----------------------------------------------------------------------------------
SAVING = """
import sys
import corefw as torch
state = {"number": int(sys.argv[2]), "x": torch.full((2_000_000,), int(sys.argv[2]))}
print("ready", flush=True)
while True:
    torch.save(state, sys.argv[1])
"""


def saving(path, number: int) -> subprocess.Popen:
    """A program that saves to `path` for ever."""
    program = subprocess.Popen([sys.executable, "-c", SAVING, str(path), str(number)], stdout=subprocess.PIPE)
    assert program.stdout is not None and program.stdout.readline() == b"ready\n"
    return program


def kill(program: subprocess.Popen) -> None:
    with program:
        program.kill()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_saves_side_by_side_and_killed_ones(tmp_path):
    path = tmp_path / "a.pt"
    torch.save({"number": 1, "x": torch.ones(1)}, path)
    lasting = saving(path, 1)
    try:
        for number, delay in enumerate((0.013, 0.029, 0.05, 0.071), 2):
            killed = saving(path, number)
            time.sleep(delay)
            kill(killed)
            state = torch.load(path)
            assert (state["x"] == state["number"]).all()
        assert lasting.poll() is None  # no sweep took its file away
    finally:
        kill(lasting)
    torch.save(torch.ones(1), path)
    assert os.listdir(tmp_path) == ["a.pt"]


def test_abandoned_files_are_removed_and_no_others(tmp_path):
    (tmp_path / ".corefw-save-0123456789abcdef").write_bytes(b"abandoned")
    (tmp_path / ".corefw-save-directory").mkdir()
    (tmp_path / ".corefw-save-link").symlink_to("a")
    (tmp_path / "other").write_bytes(b"")
    with replacing(tmp_path / "a") as file:
        file.write(b"outer")
        file.flush()
        write(tmp_path / "b")  # while the first is being written
        assert len(temporaries(tmp_path)) == 3
    assert (tmp_path / "a").read_bytes() == b"outer"
    assert sorted(os.listdir(tmp_path)) == [".corefw-save-directory", ".corefw-save-link", "a", "b", "other"]


def test_a_file_swept_before_its_lock_is_made_anew(tmp_path, monkeypatch):
    lock, calls = files._lock, []

    def sweeping(descriptor, waits):
        if not calls:
            (found,) = temporaries(tmp_path)
            os.unlink(tmp_path / found)
        calls.append(descriptor)
        return lock(descriptor, waits)

    monkeypatch.setattr(files, "_lock", sweeping)
    write(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"new" and len(calls) == 2


def test_a_file_that_is_being_swept_is_made_anew(tmp_path, monkeypatch):
    """Another program has locked the file to remove it, before this one locks it."""
    lock, calls = files._lock, []

    def sweeping(descriptor, waits):
        if not calls:
            (found,) = temporaries(tmp_path)
            other = os.open(tmp_path / found, os.O_RDWR)
            assert lock(other)
            threading.Timer(0.05, lambda: (os.unlink(tmp_path / found), os.close(other))).start()
        calls.append(descriptor)
        return lock(descriptor, waits)

    monkeypatch.setattr(files, "_lock", sweeping)
    write(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"new" and len(calls) == 2


def test_without_locks_nothing_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "fcntl", None)
    (tmp_path / ".corefw-save-0123456789abcdef").write_bytes(b"perhaps alive")
    write(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"new" and temporaries(tmp_path) == [".corefw-save-0123456789abcdef"]


def test_contents_reach_the_disk_before_the_name(tmp_path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, os.replace

    def noted(descriptor):
        steps.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "replace", lambda *names: (steps.append("replace"), replace(*names)))
    write(tmp_path / "a")
    assert steps == ["file", "replace", "directory"]


def test_an_error_removes_the_temporary_file(tmp_path):
    write(tmp_path / "a", b"old")
    with pytest.raises(KeyError), replacing(tmp_path / "a") as file:
        file.write(b"half")
        raise KeyError
    assert (tmp_path / "a").read_bytes() == b"old" and os.listdir(tmp_path) == ["a"]


def test_long_names_have_room(tmp_path):
    write(tmp_path / ("n" * 255))
    assert os.listdir(tmp_path) == ["n" * 255]
