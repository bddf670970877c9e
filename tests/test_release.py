"""The script that makes and checks what is uploaded: its facts and its checks. Itself it is run before a release."""

import io
import tarfile
import tomllib
from pathlib import Path

import pytest

import corefw
from tests import scripts

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def release():
    """The script as a module."""
    return scripts.load("release")


def archive(*files, time=0, owner=0, mode=0o644):
    """A source distribution with files, as some machine packs it."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as packed:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.uid, entry.uname, entry.mode = len(content), time, owner, f"u{owner}", mode
            packed.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def test_all_distributions_have_one_version_one_licence_and_the_root_tells_what_it_is(release):
    assert {release.version(folder) for folder in release.PROJECTS.values()} == {corefw.__version__}
    assert {path.parent for path in (ROOT / "backends").glob("*/pyproject.toml")} == {
        ROOT / folder for folder in release.PROJECTS.values() if folder != "."
    }
    for name, folder in release.PROJECTS.items():
        facts = release.project(folder)["project"]
        assert facts["name"] == name and facts["dynamic"] == ["version"]
        assert (ROOT / folder / facts["readme"]).exists()
        assert (ROOT / folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    files = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license-files"]
    assert any("CC BY 4.0" in (ROOT / file).read_text() for file in files), "the digits' licence"


def test_source_distributions_are_the_same_wherever_they_are_packed(release):
    files = [("b/x.py", b"x = 1\n"), ("b/a.py", b"")]
    here = release.normalized(archive(*files, time=5, owner=7), 10**9)
    there = release.normalized(archive(*reversed(files), time=9, mode=0o664), 10**9)
    assert here == there
    with tarfile.open(fileobj=io.BytesIO(here)) as packed:
        assert packed.getnames() == ["b/a.py", "b/x.py"]
        assert packed.extractfile("b/x.py").read() == b"x = 1\n"
        assert {(entry.mtime, entry.uid, entry.uname, entry.mode) for entry in packed} == {(10**9, 0, "", 0o644)}
    assert here != release.normalized(archive(("b/x.py", b"x = 2\n"), files[1]), 10**9)


def test_builds_are_compared_by_their_files(release, tmp_path):
    for folder, content in (("one", "1"), ("two", "2")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same").write_text("0")
        (tmp_path / folder / "other").write_text(content)
    (tmp_path / "two" / "more").write_text("")
    found = [release.digests(tmp_path / folder) for folder in ("one", "two")]
    assert release.differences(found[0], found[0]) == [] and release.differences(*found) == ["more", "other"]


WHOLE = ["corefw_c/__init__.py", "corefw_c/py.typed", "corefw_c-1.dist-info/licenses/LICENSE"]


@pytest.mark.parametrize(
    "name, faults",
    [
        ("corefw_c/source/core/bits.h", []),
        ("corefw_c/source/gemm/gemm.c", ["holds corefw_c/source/gemm/gemm.c"]),
        ("corefw_c/data.npz", ["lacks the source and licence of its data"]),
    ],
)
def test_what_a_wheel_may_not_hold_is_told(release, name, faults):
    assert release.wrong_contents("corefw-c", [*WHOLE, name]) == faults


def test_what_a_wheel_lacks_is_told(release):
    assert release.wrong_contents("corefw-c", WHOLE[:1]) == ["lacks corefw_c/py.typed", "lacks its LICENSE"]


def test_the_oldest_versions_are_those_that_requirements_name(release):
    wanted = ["numpy>=2", "corefw", "x.y-z>=1.5; python_version > '3'", "other==3"]
    assert release.oldest(wanted) == ["numpy==2", "x.y-z==1.5"]
    named = release.oldest(release.project(".")["project"]["dependencies"])
    assert len(named) == len(release.project(".")["project"]["dependencies"]), "each has an oldest version"


def test_the_readme_has_programs_to_try(release):
    programs = release.examples((ROOT / "README.md").read_text())
    assert programs and all("import corefw" in program for program in programs)


def test_a_table_stands_in_columns(release):
    assert release.table([["a", "size"], ["long", "1 MB"]]) == "a     size\nlong  1 MB"


def test_failures_show_what_was_said(release):
    with pytest.raises(release.Failure, match="ended with 3:\nwhy"):
        release.run("sh", "-c", "echo why; exit 3")
