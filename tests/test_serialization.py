"""Tests of saving and loading: round trips, places, PyTorch's files in both directions."""

import io
import os
import pickle
import signal
import subprocess
import sys
import zipfile
from collections import Counter, OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corefw as torch
from corefw import dtypes
from corefw.errors import DtypeError
from corefw.serialization.archive import ALIGNMENT, Reader
from corefw.testing import assert_close
from tests.saved_files import FIXTURES, again, located, same, saved, with_pickle


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
