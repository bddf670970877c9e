"""Tests of loading what is malicious: nothing is called, no memory is spent or shown."""

import copy
import fractions
import io
import os
import pickle
import struct
import subprocess
import tracemalloc
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

import corefw as torch
from corefw.serialization import allowance
from corefw.testing import assert_close
from tests.saved_files import REFUSALS, again, rewritten, saved, with_pickle


class Call:
    """Pickles as the call of a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


ran = []


@pytest.mark.parametrize(
    "function, arguments",
    [
        (os.system, ("exit 1",)),
        (eval, ("ran.append(1)",)),
        (exec, ("1",)),
        (getattr, (1, "real")),
        (__import__, ("os",)),
        (ran.append, (1,)),
        (open, ("/dev/null",)),
        (subprocess.Popen, ("true",)),
        (bytearray, (10**12,)),
        (torch.Tensor, (10**12,)),
        (np.zeros, (10**12,)),
        (pickle.loads, (b"",)),
        (type, ("X", (), {})),
        (OrderedDict.fromkeys, ("ab",)),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_calls_are_refused(function, arguments, protocol):
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(with_pickle(pickle.dumps([Call(function, *arguments)], protocol)))
    assert not ran


BYTE = b"\x80\x02"


@pytest.mark.parametrize(
    "program",
    [
        b"cos\nsystem\n(X\x04\0\0\0exittR.",
        b"cposix\nsystem\n.",
        b"c__builtin__\neval\n.",
        b"ctorch._utils\n_rebuild_tensor_v2\n}X\x01\0\0\0aK\x01sb.",  # state for a function
        b"ctorch\nTensor\n(N}X\x03\0\0\0sumK\x01stb.",  # attributes for a class
        b"ctorch\nTensor\n)\x81.",
        b"ctorch\nTensor\n(J\xff\xff\xff\x7ftR.",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch\nTensor\nctorch\nTensor\nM\xff\xff\x85}tR.",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._tensor\n_rebuild_from_type_v2\nctorch\nTensor\n"
        b"(ctorch\nTensor\nctorch\nTensor\nM\xff\xff\x85}t}tR.",
        b"c_codecs\nencode\n(X\x01\0\0\0aX\x05\0\0\0rot13tR.",
        b"(K\x01ios\nsystem\n.",  # INST
        b"(cos\nsystem\no.",  # OBJ
        b"\x82\x01.",  # EXT1
        b"\x97.",  # NEXT_BUFFER
        b"Pos.system\n.",  # PERSID
        b"X\xff\xff\xff\xff.",  # text longer than the file
        b"\x8d" + b"\xff" * 8 + b".",
        b"\x8b\xff\xff\xff\x7f.",  # a number longer than the file
        b"]K\x01\x85Q.",  # a persistent id of no known form
        b"}}K\x01s.",  # a key that cannot be hashed
        b"}" + b")" + b"\x85" * 2000 + b"K\x01s.",  # a key that would overflow the stack when hashed
        b"}" + b")q\x00" + b"h\x00h\x00\x86q\x00" * 64 + b"K\x01s.",  # one that would be hashed for ages
        b"K\x01K\x02s.",
        b"h\x07.",
        b"0.",
        b"t.",
        b"",
    ],
)
def test_programs_are_refused(program):
    with pytest.raises(pickle.UnpicklingError):
        torch.load(with_pickle(BYTE + program))
    assert torch.tensor([1, 2]).sum() == 3


def storage(numel: bytes = b"K\x04", key: bytes = b"0", kind: bytes = b"ctorch\nFloatStorage\n") -> bytes:
    return (
        b"(X\x07\0\0\0storage" + kind + b"X" + len(key).to_bytes(4, "little") + key + b"X\x03\0\0\0cpu" + numel + b"tQ"
    )


def rebuilt(offset=0, size=(4,), stride=(1,), **options) -> bytes:
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + storage(**options)
        + b"".join(pickle.dumps(item, 2)[2:-1] for item in (offset, size, stride, False, None))
        + b"tR."
    )


def test_the_handwritten_program_loads():
    assert_close(torch.load(with_pickle(BYTE + rebuilt())), torch.zeros(4))


@pytest.mark.parametrize(
    "options",
    [
        {"size": (5,)},
        {"size": (2,), "stride": (4,)},
        {"offset": 1},
        {"offset": -1},
        {"offset": 2**80},
        {"size": (-1,)},
        {"size": (2,), "stride": (-1,)},
        {"size": (2**62, 2**62), "stride": (0, 1)},
        {"size": (1,) * 100, "stride": (1,) * 100},
        {"size": (4, 1)},
        {"size": (4.0,)},
        {"size": "four"},
        {"numel": b"K\x05"},
        {"numel": b"J\xff\xff\xff\x7f"},
        {"numel": b"J\xff\xff\xff\xff"},
        {"numel": b"N"},
        {"key": b"9"},
        {"key": b"../../../etc/passwd"},
        {"kind": b"ctorch\nQInt8Storage\n"},
        {"kind": b"ctorch\nTensor\n"},
        {"kind": b"ctorch\nDoubleStorage\n"},
    ],
)
def test_sizes_that_lie_are_refused(options):
    with pytest.raises(REFUSALS):
        torch.load(with_pickle(BYTE + rebuilt(**options)))


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_directories_that_lie_are_refused(compression):
    content = bytearray(rewritten(saved(torch.zeros(4)).getvalue(), compression=compression).getvalue())
    place = content.rindex(b"archive/data/0") - 46  # of the record's entry in the directory
    for size in (2**31, 17, 0):
        content[place + 24 : place + 28] = size.to_bytes(4, "little")
        with pytest.raises(RuntimeError):
            torch.load(io.BytesIO(content))
    content[place + 20 : place + 28] = b"\xf0\xff\xff\xff" * 2
    with pytest.raises(RuntimeError):
        torch.load(io.BytesIO(content))


def patched(content: bytes, name: bytes, sizes: tuple[int, int]) -> bytes:
    """The archive with other sizes, packed and unpacked, in its directory's entry for a record."""
    changed = bytearray(content)
    place = changed.rindex(name) - 46
    changed[place + 20 : place + 28] = struct.pack("<LL", *sizes)
    return bytes(changed)


def peak(call, match: str | None = None) -> int:
    """The most bytes that were taken at once while `call` was refused."""
    tracemalloc.start()
    try:
        with pytest.raises(REFUSALS, match=match):
            call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


ZEROS = 1 << 26  # bytes, four times what any file may ask for


def test_records_that_unpack_to_much_are_refused():
    content = rewritten(saved(torch.zeros(ZEROS // 4)).getvalue(), compression=zipfile.ZIP_DEFLATED).getvalue()
    assert len(content) < 10**5
    with pytest.raises(RuntimeError, match=r"unpacking .* compressed records .* without compression"):
        torch.load(io.BytesIO(content))
    assert peak(lambda: torch.load(io.BytesIO(content))) < 1 << 22
    packed = zipfile.ZipFile(io.BytesIO(content)).getinfo("archive/data/0").compress_size
    lying = patched(content, b"archive/data/0", (packed, 16))  # and a directory that keeps it secret
    assert peak(lambda: torch.load(io.BytesIO(lying))) < 1 << 22
    pickled = rewritten(with_pickle(b"").getvalue(), lambda _: b"\x80\x02" + b"0" * ZEROS, (), zipfile.ZIP_DEFLATED)
    assert peak(lambda: torch.load(pickled)) < 1 << 22


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(compression):
    with pytest.raises(RuntimeError, match="compressed in a way that checkpoints never are"):
        torch.load(rewritten(saved(torch.zeros(4)).getvalue(), compression=compression))


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_records_that_share_bytes_are_refused(compression):
    file = io.BytesIO()
    names = [str(number) for number in range(200)]
    tensors = b"".join(rebuilt(key=name.encode())[:-1] + b"a" for name in names)
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("archive/data.pkl", BYTE + b"]" + tensors + b".")
        archive.writestr("archive/data/0", bytes(16))
        for name in names[1:]:  # further entries of the directory for the one record
            entry = copy.copy(archive.getinfo("archive/data/0"))
            entry.filename = f"archive/data/{name}"
            archive.filelist.append(entry)
    file.seek(0)
    with pytest.raises(RuntimeError, match="reaches into another one"):
        torch.load(file)


def test_a_record_that_reaches_into_the_next_is_refused():
    content = with_pickle(BYTE + rebuilt(), [("data/0", bytes(16)), ("data/1", bytes(16))]).getvalue()
    assert_close(torch.load(io.BytesIO(content)), torch.zeros(4))
    header = bytearray(content)
    place = header.index(b"archive/data/0") - 30
    extra = int.from_bytes(header[place + 28 : place + 30], "little")
    header[place + 28 : place + 30] = (extra + 8).to_bytes(2, "little")  # the content begins later than it does
    with pytest.raises(RuntimeError, match="reaches into another one"):
        torch.load(io.BytesIO(header))


def test_one_storage_as_two_types_is_refused():
    program = BYTE + b"]" + rebuilt()[:-1] + b"a" + rebuilt(kind=b"ctorch\nIntStorage\n")[:-1] + b"a"
    with pytest.raises(RuntimeError, match=r"the storage '0' as torch\.float32 and as torch\.int32"):
        torch.load(with_pickle(program + b"."))


def negated(size, stride) -> bytes:
    """A tensor whose memory holds its elements' negatives, which only a copy can show."""
    return rebuilt(size=size, stride=stride)[: -len(b"tR.")] + b"}X\x03\0\0\0neg\x88stR"


@pytest.mark.parametrize(
    "program",
    [
        negated((1 << 30,), (0,)),
        b"]" + (negated((1 << 20,), (0,)) + b"a") * 60,
        b"]" + b"ctorch._utils\n_rebuild_device_tensor_from_cpu_tensor\n(" + rebuilt(size=(1 << 30,), stride=(0,))[:-1]
        + b"ctorch\nfloat64\nX\x03\0\0\0cpu\x89tRa",
        b"B\0\0\x10\0" + bytes(1 << 20) + b"q\0]" + b"cbuiltins\nbytearray\nh\0\x85Ra" * 10_000,
        b"](" + b"K\x01" * 10**5 + b"eq\0]" + b"cbuiltins\nset\nh\0\x85Ra" * 1000,
        b"ccollections\nOrderedDict\n)R}(" + b"".join(b"X\x04\0\0\0%04dN" % n for n in range(9999)) + b"uq\0"
        + b"ccollections\nOrderedDict\n)Rh\0b" * 1000,
    ],
    ids=["expanded", "copies", "device", "bytes", "sets", "states"],
)  # fmt: skip
def test_pickles_that_ask_for_much_are_refused(program):
    file = with_pickle(BYTE + program + b".")
    length = len(file.getvalue())
    assert peak(lambda: torch.load(file), "would take more memory") < 22 * length + (
        1 << 25
    )  # beside what is allowed, the file and the stack


@pytest.mark.parametrize(
    "program", [b"(" + code * 10_000 for code in (b"]", b"}", b"\x8f", b"(l", b"(t", b"(\x91", b")\x85", b"NN\x86")]
)
def test_containers_are_counted(program, monkeypatch):
    """One byte of a pickle makes a set of 216."""
    monkeypatch.setattr(allowance, "_BASE", 1 << 16)
    with pytest.raises(RuntimeError, match="the containers in the pickle would take more memory"):
        torch.load(with_pickle(BYTE + program + b"l."))


@pytest.mark.parametrize(
    "size, stride",
    [((-5,), (1,)), ((5,), (-1,)), ((5,), (1, 1)), ((2**40, 2**40), (0, 0)), ((1.0,), (1,)), ((5,), (True,))],
)
def test_meta_tensors_have_no_impossible_sizes(size, stride):
    arguments = b"".join(pickle.dumps(item, 2)[2:-1] for item in (size, stride, False))
    program = b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat32\n" + arguments + b"tR."
    with pytest.raises(REFUSALS, match=r"a tensor cannot have sizes|overflow"):
        torch.load(with_pickle(BYTE + program))
    rebuild, given, _ = torch.empty(2, device="meta").__reduce_ex__(2)
    with pytest.raises(RuntimeError, match=r"a tensor cannot have sizes|overflow"):
        rebuild(*given[:3], size, stride, *given[5:])


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("offset, size, stride", [(0, (-2,), (1,)), (-1, (2,), (1,)), (0, (2,), (-1,)), (0, (2,), ())])
def test_memory_is_not_shown_under_impossible_sizes(device, offset, size, stride):
    x = torch.ones(4, device=device)
    with pytest.raises(RuntimeError, match="a tensor cannot have sizes"):
        x.set_(x.untyped_storage(), offset, size, stride)


def test_names_outside_the_archive_are_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(1, 2))
        archive.writestr("../evil", b"")
    file.seek(0)
    with pytest.raises(RuntimeError, match="not in a subdirectory"):
        torch.load(file)


def test_safe_globals():
    half = fractions.Fraction(1, 2)
    with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[fractions\.Fraction\]\)"):
        again(half)
    assert torch.serialization.get_unsafe_globals_in_checkpoint(saved([half])) == ["fractions.Fraction"]
    with torch.serialization.safe_globals([fractions.Fraction]):
        assert again(half) == half
        assert torch.serialization.get_safe_globals() == [fractions.Fraction]
    assert torch.serialization.get_safe_globals() == []
    torch.serialization.add_safe_globals([(fractions.Fraction, "elsewhere.Half")])
    try:
        assert torch.load(with_pickle(BYTE + b"celsewhere\nHalf\nX\x03\0\0\x001/2\x85R.")) == half
    finally:
        torch.serialization.clear_safe_globals()
    with pytest.raises(TypeError), torch.serialization.safe_globals([(1, 2)]):
        pass
    with (
        torch.serialization.safe_globals([(os.system, "os.system")]),
        pytest.raises(pickle.UnpicklingError, match="blocked"),
    ):
        torch.load(with_pickle(BYTE + b"cos\nsystem\n."))


class Point:
    def __init__(self, x):
        self.x = x


def test_safe_classes_get_their_state():
    with torch.serialization.safe_globals([Point]):
        assert_close(again(Point(torch.ones(2))).x, torch.ones(2))
