"""Tests of saving and loading: round trips, PyTorch's files in both directions, damaged and malicious files."""

import contextlib
import copy
import fractions
import io
import os
import pickle
import signal
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corefw as torch
from corefw import dtypes
from corefw.errors import DtypeError
from corefw.serialization import allowance
from corefw.serialization.archive import ALIGNMENT, Reader, Writer
from corefw.testing import assert_close

FIXTURES = Path(__file__).parent / "fixtures"
REFUSALS = (RuntimeError, pickle.UnpicklingError, EOFError)


def saved(obj, **options) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(obj, file, **options)
    file.seek(0)
    return file


def again(obj, **options):
    return torch.load(saved(obj), **options)


def same(a, b) -> bool:
    """Whether two loaded things are equal, tensors also in dtype, strides and requires_grad."""
    if isinstance(a, torch.Tensor):
        return (
            type(a) is type(b)
            and (a.dtype, a.shape, a.requires_grad) == (b.dtype, b.shape, b.requires_grad)
            and (a.numel() == 0 or a.stride() == b.stride())
            and np.array_equal(bits(a), bits(b))
        )
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or (a != a and b != b)


def bits(tensor) -> np.ndarray:
    return np.frombuffer(tensor.array.tobytes(), np.uint8)


# -- round trips ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda d: d.name)
@pytest.mark.parametrize(
    "take",
    [
        lambda x: x,
        lambda x: x.t(),
        lambda x: x[1:, ::2],
        lambda x: x[1],
        lambda x: x[2, 3],
        lambda x: x[:0],
        lambda x: x[0, :1].expand(3),
        lambda x: x.unsqueeze(0),
    ],
)
def test_dtypes_and_views_return(dtype, take):
    x = take(torch.arange(12).to(dtype).reshape(3, 4))
    loaded = again(x)
    assert same(loaded, x) and loaded.storage_offset() == (x.storage_offset() if x.numel() else 0)
    loaded.fill_(1)  # writable memory of its own
    assert loaded.view_info is None


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_protocols(protocol):
    obj = {
        "x": torch.ones(2),
        "s": "text" * 100,
        "b": b"bytes",
        "l": [1, 300, -(2**40), 2**3000, 0.5],
        "t": (1, (2,), ()),
    }
    obj |= {"set": {1}, "frozen": frozenset({2}), "array": bytearray(b"y"), "counter": Counter("aab"), "z": 1j}
    assert same(torch.load(saved(obj, pickle_protocol=protocol)), obj)


def test_shared_memory_stays_shared():
    base = torch.arange(6.0)
    one, two, alone = again([base, base[2:], torch.arange(6.0)])
    one[3] = 10.0
    assert two[1] == 10.0 and alone[3] == 3.0 and one.untyped_storage().data_ptr() == two.untyped_storage().data_ptr()
    twice = again([base, base])
    assert twice[0] is twice[1]


def test_memory_of_other_libraries():
    table = np.zeros(3, [("a", "f4"), ("b", "f4"), ("c", "f8")])
    table["b"] = [1, 2, 3]
    odd = np.frombuffer(bytearray(b"\0" + np.arange(3.0).tobytes()), np.float64, offset=1)
    fortran = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    for array in (table["b"], odd, fortran, fortran[:, 1:]):
        x = torch.from_numpy(array)
        assert_close(again(x), x)


def test_one_memory_as_two_types_is_refused():
    z = torch.ones(2, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        again([z, torch.view_as_real(z)])


def test_storages():
    x = torch.arange(4.0)
    storage = again(x.untyped_storage())
    assert storage.nbytes() == 16
    assert_close(torch.zeros(4).set_(again([x])[0]), x)


def test_parameters_buffers_and_attributes():
    parameter = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    parameter.tag = "p"
    x = torch.ones(1)
    x.tag = {"deep": [1]}
    buffer = torch.nn.Buffer(torch.ones(1), persistent=False)
    computed = torch.ones(2, requires_grad=True) * 2
    p, x, b, c = again([parameter, x, buffer, computed])
    assert isinstance(p, torch.nn.Parameter) and not p.requires_grad and p.tag == "p" and x.tag == {"deep": [1]}
    assert isinstance(b, torch.nn.Buffer) and not b.persistent
    assert c.is_leaf and c.requires_grad


def test_small_values():
    values = [
        torch.float16,
        torch.Size([2]),
        torch.device("cpu"),
        torch.device("cuda:1"),
        torch.strided,
        torch.channels_last,
    ]
    assert again(values) == values and type(again(values)[1]) is torch.Size
    meta = again(torch.empty(2, 3, device="meta"))
    assert meta.device.type == "meta" and meta.shape == (2, 3)


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(2, 2)
        self.register_buffer("scale", torch.tensor(2.0))
        self.tied = self.inner.weight

    def forward(self, x):
        return self.inner(x) * self.scale


def test_modules_need_trust():
    model = Scaled()
    with pytest.raises(pickle.UnpicklingError, match=r"Unsupported global: GLOBAL \S*Scaled.*weights_only=False"):
        again(model)
    loaded = again(model, weights_only=False)
    assert_close(loaded(torch.ones(1, 2)), model(torch.ones(1, 2)))
    assert loaded.tied is loaded.inner.weight and list(loaded.state_dict()) == list(model.state_dict())
    loaded.inner.weight = torch.nn.Parameter(torch.zeros(2, 2))
    assert_close(loaded.inner(torch.zeros(1, 2)), loaded.inner.bias.reshape(1, 2))


def test_training_resumes():
    def steps(model, optimizer, count):
        for _ in range(count):
            optimizer.zero_grad()
            model(torch.ones(3, 2)).square().sum().backward()
            optimizer.step()

    torch.manual_seed(0)
    model = Scaled()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    steps(model, optimizer, 2)
    file = saved({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    steps(model, optimizer, 2)
    resumed = Scaled()
    other = torch.optim.Adam(resumed.parameters(), lr=0.5)
    state = torch.load(file)
    resumed.load_state_dict(state["model"])
    other.load_state_dict(state["optimizer"])
    steps(resumed, other, 2)
    assert all(map(same, model.state_dict().values(), resumed.state_dict().values()))


_SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)
_TENSORS = st.builds(lambda s, d: torch.arange(int(np.prod(s))).reshape(s).to(d), _SHAPES, st.sampled_from(dtypes.ALL))
_LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.binary(max_size=9) | _TENSORS
)
_KEYS = st.text(max_size=4) | st.integers() | st.tuples(st.integers(), st.text(max_size=2))
_NESTED = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(_KEYS, inner, max_size=3)
        | st.dictionaries(_KEYS, inner, max_size=3).map(OrderedDict)
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(_NESTED, st.integers(2, 5))
def test_nested_containers_return(obj, protocol):
    assert same(torch.load(saved(obj, pickle_protocol=protocol)), obj)


# -- files ------------------------------------------------------------------------------------------------------------
def test_paths_and_file_objects(tmp_path):
    x = torch.arange(3)
    torch.save(x, tmp_path / "a.pt")
    torch.save(x, str(tmp_path / "b.pt"))
    with open(tmp_path / "c.pt", "wb", buffering=0) as file:
        torch.save(x, file)
    with open(tmp_path / "c.pt", "rb", buffering=0) as file:
        assert same(torch.load(file), x)
    assert all(
        same(torch.load(tmp_path / name, mmap=mapped), x) for name in ("a.pt", "b.pt") for mapped in (True, False)
    )
    assert (tmp_path / "a.pt").read_bytes() == (tmp_path / "b.pt").read_bytes() == saved(x).getvalue()

    class WriteOnly:
        def __init__(self):
            self.parts = []

        def write(self, part):
            self.parts.append(bytes(part))
            return len(part)

        def flush(self):
            pass

    class ReadOnly:
        def __init__(self, content):
            file = io.BytesIO(content)
            self.read, self.readline, self.seek, self.tell = file.read, file.readline, file.seek, file.tell

    target = WriteOnly()
    torch.save(x, target)
    assert same(torch.load(ReadOnly(b"".join(target.parts))), x)


def test_arguments_are_checked(tmp_path):
    with pytest.raises(AttributeError, match="'write' attribute"):
        torch.save(1, 2)
    with pytest.raises(AttributeError, match="file-like object"):
        torch.load(2)
    with pytest.raises(RuntimeError, match=r"Parent directory .* does not exist"):
        torch.save(1, tmp_path / "none" / "a.pt")
    with pytest.raises(RuntimeError, match=r"before 1\.6"):
        torch.save(1, tmp_path / "a.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="pickle_module"):
        torch.load(saved(1), pickle_module=pickle, weights_only=True)
    with pytest.raises(ValueError, match="file path"):
        torch.load(saved(1), mmap=True)
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "a.pt")
    assert torch.load(saved(1), pickle_module=pickle) == 1


def test_records_are_aligned_and_named_as_pytorchs():
    file = saved([torch.ones(3), torch.ones(5).bool()])
    reader = Reader(file)
    assert list(reader.records) == ["data.pkl", "byteorder", "data/0", "data/1", "version", ".data/serialization_id"]
    assert all(reader.offset(name) % ALIGNMENT == 0 for name in reader.records)
    assert reader.read("version") == b"3\n" and reader.read("byteorder") == sys.byteorder.encode()
    assert zipfile.ZipFile(file).testzip() is None


def test_mapped_tensors_change_in_memory_only(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(torch.zeros(4), path)
    content = path.read_bytes()
    x = torch.load(path, mmap=True)
    x += 1
    assert_close(x, torch.ones(4))
    assert path.read_bytes() == content and not x.is_shared()
    torch.save(x, path)  # over the file that it shows
    assert_close(torch.load(path), torch.ones(4))


def test_an_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(1, path)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        torch.save([torch.ones(3), lambda: 0], path)
    assert torch.load(path) == 1 and os.listdir(tmp_path) == ["a.pt"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_a_kill_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(torch.ones(3), path)
    program = """
import os, signal, sys
import corefw as torch
from corefw.errors import DtypeError
from corefw.serialization.archive import Writer
write = Writer.write
def killed(self, name, content):
    write(self, name, content)
    if name == "data/0":
        os.kill(os.getpid(), signal.SIGKILL)
Writer.write = killed
torch.save(torch.zeros(100_000), sys.argv[1])
"""
    done = subprocess.run([sys.executable, "-c", program, str(path)])
    assert done.returncode == -signal.SIGKILL
    assert_close(torch.load(path), torch.ones(3))


# -- where tensors go -------------------------------------------------------------------------------------------------
def located(location: str) -> io.BytesIO:
    """A file with a tensor that was saved on `location`."""
    content = saved(torch.arange(3.0)).getvalue()
    return rewritten(
        content,
        lambda pickled: pickled.replace(b"\x03\0\0\0cpu", len(location).to_bytes(4, "little") + location.encode()),
    )


def rewritten(content: bytes, change=lambda pickled: pickled, drop=(), compression=zipfile.ZIP_STORED) -> io.BytesIO:
    """The archive with another pickle, packed by other means."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(result, "w", compression) as new:
        for name in old.namelist():
            if name not in drop:
                new.writestr(name, change(old.read(name)) if name.endswith("data.pkl") else old.read(name))
    result.seek(0)
    return result


@pytest.mark.parametrize(
    "map_location",
    [
        "cpu",
        torch.device("cpu"),
        {"cuda:7": "cpu"},
        lambda storage, location: storage,
        lambda storage, location: storage.cpu(),
    ],
)
def test_map_location(map_location):
    assert_close(torch.load(located("cuda:7"), map_location=map_location), torch.arange(3.0))


def test_map_location_meta_and_none():
    assert torch.load(located("cuda:7"), map_location="meta").device.type == "meta"
    seen = []
    x = torch.load(
        saved(torch.ones(2)), map_location=lambda storage, location: seen.append((storage.nbytes(), location))
    )
    assert seen == [(8, "cpu")] and x.device.type == "cpu"


@pytest.mark.parametrize("location", ["cuda:7", "nowhere", "nowhere:x"])
def test_missing_devices_are_named(location):
    with pytest.raises(RuntimeError, match=rf"don't know how to restore.*tagged with {location}.*map_location"):
        torch.load(located(location))


def test_map_location_of_wrong_type():
    with pytest.raises(TypeError, match="map_location"):
        torch.load(saved(torch.ones(1)), map_location=1.5)
    with pytest.raises(TypeError, match="map_location must return"):
        torch.load(saved(torch.ones(1)), map_location=lambda storage, location: 3)


# -- PyTorch's files --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["checkpoint.pt", "checkpoint_before_1_6.pt"])
@pytest.mark.parametrize("weights_only", [True, False])
def test_files_of_pytorch_load_without_it(name, weights_only):
    found = torch.load(FIXTURES / name, weights_only=weights_only)
    base = torch.arange(24.0)
    expected = {
        "base": base,
        "tail": base[20:],
        "transposed": base.reshape(4, 6).t(),
        "stepped": base[1::5],
        "expanded": torch.ones(1).expand(3),
        "scalar": torch.tensor(2.5),
        "empty": torch.empty(0, 3),
        "conjugate": torch.tensor([1 - 2j]),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "nested": OrderedDict(a=OrderedDict(b=[torch.tensor([1]), (torch.tensor([2]), None)]), c={"d": "text"}),
        "plain": [1, -(2**70), 0.5, 1 + 2j, "α", b"\x00\xff", True, None, {1, 2}, bytearray(b"x")],
        "types": [torch.float16, torch.Size([2, 3]), torch.device("cpu"), torch.strided],
    }
    for key, value in expected.items():
        assert same(found[key], value), key
    for name, x in found["dtypes"].items():
        assert same(x, torch.tensor([0, 1, 3]).to(getattr(torch, name)))
    assert found["attribute"].tag == "seen"
    found["base"].zero_()
    assert found["tail"].sum() == found["transposed"].sum() == found["stepped"].sum() == 0


def test_no_pytorch_is_needed(tmp_path):
    program = """
import sys
sys.modules["torch"] = None  # its import fails
import corefw
for name in sys.argv[1:]:
    found = corefw.load(name, weights_only=False)
corefw.save(found, "a.pt")
"""
    names = [str(FIXTURES / name) for name in ("checkpoint.pt", "checkpoint_before_1_6.pt", "module.pt")]
    (tmp_path / "program.py").write_text(program)
    subprocess.run([sys.executable, "program.py", *names], cwd=tmp_path, check=True)
    assert isinstance(torch.load(tmp_path / "a.pt", weights_only=False), torch.nn.Sequential)


def layers():
    return torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)


def test_weights_and_optimizer_state_of_pytorch():
    found = torch.load(FIXTURES / "checkpoint.pt")
    first, last = layers()
    for layer, number in ((first, 0), (last, 3)):
        layer.load_state_dict({k.partition(".")[2]: v for k, v in found["model"].items() if k[0] == str(number)})
    parameters = [
        torch.nn.Parameter(torch.zeros_like(x)) for k, x in found["model"].items() if k.endswith(("weight", "bias"))
    ]
    optimizer = torch.optim.Adam(parameters, lr=1.0)
    optimizer.load_state_dict(found["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.01 and float(optimizer.state[parameters[0]]["step"]) == 2.0
    assert optimizer.state[parameters[0]]["exp_avg"].shape == (4, 3)


def test_modules_of_pytorch_become_ours():
    with pytest.raises(pickle.UnpicklingError, match=r"torch\.nn\.modules\.container\.Sequential"):
        torch.load(FIXTURES / "module.pt")
    model = torch.load(FIXTURES / "module.pt", weights_only=False)
    weights = torch.load(FIXTURES / "checkpoint.pt")["model"]
    assert type(model[0]) is torch.nn.Linear and list(model.state_dict()) == list(weights)
    assert model.eval()(torch.ones(1, 3)).shape == (1, 2)


def test_unknown_things_of_pytorch_are_named():
    with pytest.raises(pickle.UnpicklingError, match=r"torch\.nowhere\.Thing of PyTorch"):
        torch.load(with_pickle(b"ctorch.nowhere\nThing\n."), weights_only=False)


class TestAgainstPyTorch:
    """Both directions; what the other side reads is compared as NumPy arrays."""

    @pytest.fixture
    def pytorch(self):
        return pytest.importorskip("torch", reason="PyTorch is the reference")

    @pytest.mark.oracle
    @pytest.mark.parametrize("weights_only", [True, False])
    def test_pytorch_loads_ours(self, pytorch, weights_only, tmp_path):
        base = torch.arange(24.0)
        obj = {
            "dtypes": {d.name: torch.tensor([0, 1, 3]).to(d) for d in dtypes.ALL},
            "views": [base, base[20:], base.reshape(4, 6).t(), base[1::5], torch.ones(1).expand(3), base[:0]],
            "parameter": torch.nn.Parameter(torch.ones(2)),
            "buffer": torch.nn.Buffer(torch.ones(2)),
            "meta": torch.empty(2, 3, device="meta"),
            "plain": [1, -(2**70), 0.5, 1 + 2j, "α", b"\x00\xff", True, None, {1, 2}, bytearray(b"x"), (1, 2)],
            "types": [torch.float16, torch.Size([2, 3]), torch.device("cpu")],
            "state": Scaled().state_dict(),
        }
        torch.save(obj, tmp_path / "a.pt")
        for mapped in (False, True):
            found = pytorch.load(tmp_path / "a.pt", weights_only=weights_only, mmap=mapped)
            for name, x in found["dtypes"].items():
                assert x.dtype is getattr(pytorch, name) and x.tolist() == obj["dtypes"][name].tolist()
            for x, ours in zip(found["views"], obj["views"], strict=True):
                assert x.stride() == ours.stride() and np.array_equal(x.numpy(), ours.numpy())
            assert found["views"][0].data_ptr() + 80 == found["views"][1].data_ptr()
            assert type(found["parameter"]) is pytorch.nn.Parameter and found["parameter"].requires_grad
            assert found["buffer"].persistent and found["meta"].shape == (2, 3)
            assert found["plain"] == obj["plain"]
            assert found["types"] == [pytorch.float16, pytorch.Size([2, 3]), pytorch.device("cpu")]
            pytorch.nn.Linear(2, 2).load_state_dict({k: found["state"][f"inner.{k}"] for k in ("weight", "bias")})

    @pytest.mark.oracle
    def test_we_load_what_pytorch_saves_again(self, pytorch):
        obj = [
            torch.arange(6.0).reshape(2, 3).t(),
            torch.nn.Parameter(torch.ones(2)),
            torch.ones(2, dtype=torch.bfloat16),
        ]
        for modern in (True, False):
            file = io.BytesIO()
            pytorch.save(pytorch.load(saved(obj)), file, _use_new_zipfile_serialization=modern)
            file.seek(0)
            assert same(torch.load(file), obj)


# -- damaged files ----------------------------------------------------------------------------------------------------
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


# -- malicious files --------------------------------------------------------------------------------------------------
def with_pickle(pickled: bytes, records=(("data/0", bytes(16)),)) -> io.BytesIO:
    """An archive with that pickle."""
    file = io.BytesIO()
    with Writer(file) as writer:
        writer.write("data.pkl", pickled)
        for name, content in records:
            writer.write(name, content)
    file.seek(0)
    return file


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


# -- safetensors ------------------------------------------------------------------------------------------------------
def test_safetensors_return(tmp_path):
    pytest.importorskip("safetensors")
    path = tmp_path / "a.safetensors"
    table = {d.name: torch.arange(6).to(d).reshape(2, 3).t() for d in dtypes.ALL if d is not torch.complex128}
    table |= {"scalar": torch.tensor(1.5), "empty": torch.empty(0, 2)}
    torch.serialization.save_file(table, path, metadata={"format": "pt"})
    for found in (torch.serialization.load_file(path), torch.load(path)):
        assert sorted(found) == sorted(table)
        for name, x in table.items():
            assert same(found[name], x.contiguous())
        found["scalar"].fill_(1.0)


def test_safetensors_refusals(tmp_path):
    pytest.importorskip("safetensors")
    path = tmp_path / "a.safetensors"
    with pytest.raises(DtypeError, match="complex128"):
        torch.serialization.save_file({"x": torch.ones(1, dtype=torch.complex128)}, path)
    with pytest.raises(TypeError, match="'x' must be a Tensor"):
        torch.serialization.save_file({"x": 1}, path)
    torch.serialization.save_file({"x": torch.ones(4)}, path)
    content = path.read_bytes()
    for part in range(20):
        path.write_bytes(content[: len(content) * part // 20])
        with pytest.raises(RuntimeError, match="no safetensors file or damaged"):
            torch.serialization.load_file(path)
    with pytest.raises(RuntimeError, match="map_location"):
        torch.load(path, map_location={})


@pytest.mark.oracle
def test_safetensors_of_pytorch(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is the reference")
    reference = pytest.importorskip("safetensors.torch")
    torch.serialization.save_file({"x": torch.arange(6).bfloat16().reshape(2, 3).t()}, tmp_path / "a.safetensors")
    found = reference.load_file(tmp_path / "a.safetensors")
    assert str(found["x"].dtype) == "torch.bfloat16" and found["x"].tolist() == [[0, 3], [1, 4], [2, 5]]
    reference.save_file(found, tmp_path / "b.safetensors")
    assert same(
        torch.serialization.load_file(tmp_path / "b.safetensors")["x"],
        torch.arange(6).bfloat16().reshape(2, 3).t().contiguous(),
    )
