"""What libraries touch of PyTorch beside its documented API: under `corefw run`, and names kept for their sake."""

import importlib.metadata
import threading
import warnings

import pytest

import corefw
from corefw.dispatch.registry import registry
from corefw.torch_version import TorchVersion
from corefw.utils import _pytree as pytree
from corefw.utils.data import DataLoader, RandomSampler, TensorDataset
from corefw.utils.data.distributed import DistributedSampler
from tests.test_run import program  # noqa: F401, a fixture

nn = corefw.nn

SEEN = """
import importlib.metadata, sys
import torch, torch.nn.modules.conv, torch.nn.modules.batchnorm
from torch.nn.modules.instancenorm import _InstanceNorm
assert torch.__version__ == "2.13.0+corefw" == importlib.metadata.version("torch") == torch.version.__version__
assert torch.__version__ > "2.4" and "2.14" > torch.__version__
assert importlib.metadata.version("numpy") and str(torch.Tensor) == "<class 'torch.Tensor'>"
assert isinstance(torch.nn.Conv2d(1, 1, 1), torch.nn.modules.conv._ConvNd)
assert isinstance(torch.nn.BatchNorm2d(1), torch.nn.modules.batchnorm._BatchNorm)
torch._C._log_api_usage_once("name")
import pickle
assert pickle.loads(pickle.dumps(torch.ones(2))).tolist() == [1, 1]
torch.save({"w": torch.nn.Parameter(torch.ones(2))}, sys.argv[1])
print(torch.load(sys.argv[1]))
"""


def test_a_program_sees_the_version_and_the_names_of_the_api(program, tmp_path):  # noqa: F811
    done = program(SEEN, str(tmp_path / "state.pt"))
    assert done.stdout == "{'w': Parameter containing:\ntensor([1., 1.], requires_grad=True)}\n", done.stderr
    assert corefw.load(tmp_path / "state.pt")["w"].tolist() == [1, 1]


def test_this_process_keeps_its_own():
    assert corefw.__version__ != "2.13.0+corefw" and corefw.Tensor.__module__ == "corefw.tensor"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not corefw.distributed.is_initialized()


@pytest.mark.parametrize("smaller, larger", [("2.4", "2.13"), ("2.9.1", "2.10"), ("1", "2.0.1"), ("2.0a1", "2.1")])
def test_versions_compare_by_their_numbers(smaller, larger):
    a, b = TorchVersion(smaller), TorchVersion(larger)
    assert a < b and a <= larger and b > smaller and b >= a and not a >= b and not b < a and a != b
    assert TorchVersion("2.13.0+corefw") >= (2, 13) and TorchVersion("2.0.0") == "2.0" != TorchVersion("2.0.1")
    assert TorchVersion("2.13.0+a") != "2.13.0+b" and "torch " + a == f"torch {smaller}"


def test_older_names():
    assert corefw.optim.lr_scheduler._LRScheduler is corefw.optim.lr_scheduler.LRScheduler
    assert nn.init._calculate_fan_in_and_fan_out(corefw.zeros(4, 3, 5, 5)) == (75, 100)
    layer, x = nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"), corefw.ones(1, 2, 4, 4)
    doubled = layer._conv_forward(x, 2 * layer.weight, 2 * layer.bias)
    corefw.testing.assert_close(doubled, 2 * layer(x))


@pytest.mark.parametrize("with_module", [False, True])
def test_the_older_hook_before_loading(with_module):
    seen, layer = [], nn.Linear(2, 1)
    handle = layer._register_load_state_dict_pre_hook(lambda *a: seen.append(a), with_module)
    layer.load_state_dict(layer.state_dict())
    handle.remove()
    layer.load_state_dict(layer.state_dict())
    assert len(seen) == 1 and (seen[0][0] is layer) is with_module and isinstance(seen[0][with_module], dict)


def test_hooks_can_be_looked_at():
    layer = nn.Linear(2, 1)
    handle = layer.register_forward_hook(print)
    assert list(layer._forward_hooks.values()) == [print] and not layer._backward_hooks and not layer._forward_pre_hooks
    with pytest.raises(AttributeError, match="clear"):
        layer._forward_hooks.clear()
    handle.remove()
    assert not layer._forward_hooks


def test_containers_call_update_only_with_something():
    class Named(nn.ModuleDict):
        def __init__(self):
            super().__init__()
            self.ready = True

        def update(self, modules):
            assert self.ready
            super().update(modules)

    assert len(Named()) == 0


def test_storages_of_files(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(16)))
    storage = corefw.UntypedStorage.from_file(path, nbytes=16)
    part = storage[4:12]
    assert storage.untyped() is storage and storage[3] == 3 and part.nbytes() == len(part) == 8
    assert part.data_ptr() == storage.data_ptr() + 4 and part[2:4][0] == 6
    numbers = corefw.asarray(part, dtype=corefw.uint8).view(corefw.int32)
    assert numbers.tolist() == [0x07060504, 0x0B0A0908]
    numbers.zero_()
    assert path.read_bytes() == bytes(range(16)) and storage[4] == 0
    shared = corefw.UntypedStorage.from_file(path, shared=True, nbytes=20)
    corefw.asarray(shared[16:], dtype=corefw.uint8).fill_(7)
    assert path.read_bytes() == bytes([*range(16), 7, 7, 7, 7])
    with pytest.raises(RuntimeError, match="20 bytes"):
        corefw.UntypedStorage.from_file(path, nbytes=21)
    with pytest.raises(RuntimeError, match="part"):
        corefw.zeros(2).set_(part)


def test_samplers():
    sampler = RandomSampler(range(10), replacement=True, num_samples=10**15)
    assert all(0 <= index < 10 for index, _ in zip(sampler, range(100)))
    assert len(list(RandomSampler(range(3), replacement=True, num_samples=65))) == 65


@pytest.mark.parametrize("size, drop_last", [(10, False), (10, True), (1, False), (0, False), (9, True)])
def test_each_process_has_its_part(size, drop_last):
    samplers = [DistributedSampler(range(size), 3, rank, seed=1, drop_last=drop_last) for rank in range(3)]
    parts = [list(sampler) for sampler in samplers]
    assert {len(part) for part in parts} == {len(samplers[0])}
    drawn = [index for part in parts for index in part]
    assert set(drawn) == set(range(size)) if not drop_last else len(set(drawn)) == len(drawn) == size // 3 * 3
    samplers[0].set_epoch(1)
    assert size != 10 or list(samplers[0]) != parts[0]


def test_parts_without_processes_are_refused():
    with pytest.raises(RuntimeError, match="distributed"):
        DistributedSampler(range(3))
    with pytest.raises(ValueError, match="rank 3"):
        DistributedSampler(range(3), 3, 3)
    with pytest.raises(NotImplementedError, match="is_available"):
        importlib.import_module("corefw.distributed.optim").ZeroRedundancyOptimizer([])


def test_pinning_without_a_gpu_warns(monkeypatch):
    cpu = {kind: runtime for kind, runtime in registry.runtimes.items() if kind in ("cpu", "meta")}
    monkeypatch.setattr(registry, "runtimes", cpu)
    monkeypatch.setattr(registry, "load", lambda kind: None)
    loader = DataLoader(TensorDataset(corefw.arange(4)), batch_size=2, pin_memory=True)
    with pytest.warns(UserWarning, match="pin_memory.*no accelerator is found"):
        assert [batch.tolist() for (batch,) in loader] == [[0, 1], [2, 3]]


def test_what_jit_decorates_stays_python():
    jit, module = corefw.jit, nn.Linear(2, 1)

    @jit.script
    def twice(x):
        return 2 * x if x.sum() > 0 else x

    @jit.ignore(drop=True)
    def ignored(x):
        return x

    assert twice(corefw.ones(1)).item() == 2 and jit.ignore(ignored) is ignored and jit.unused(ignored) is ignored
    assert jit.script(module) is module and jit.trace(module, corefw.ones(2)) is module
    assert jit.export(ignored) is ignored and jit.annotate(int, 3) == 3 and jit.isinstance(3, int)
    assert not jit.is_scripting() and not jit.is_tracing() and not isinstance(module, jit.ScriptModule)
    for refused in (jit.save, jit.load):
        with pytest.raises(NotImplementedError, match="TorchScript"):
            refused(module, "file")
    for kind in (jit.ScriptModule, jit.ScriptFunction):
        with pytest.raises(NotImplementedError, match="TorchScript"):
            kind()


def test_compile_runs_what_it_is_given():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
    compiled, x = corefw.compile(model, mode="default"), corefw.ones(1, 2)
    assert [*compiled.state_dict()] == ["_orig_mod.0.weight", "_orig_mod.0.bias"] and compiled._orig_mod is model
    compiled.eval()
    assert not model.training and compiled(x).tolist() == model(x).tolist() and compiled[0] is model[0]

    @corefw.compile(fullgraph=True)
    def f(x):
        """Twice."""
        return 2 * x

    assert f(3) == 6 and f.__doc__ == "Twice." and corefw.compile(model, disable=True) is model
    assert not corefw.compiler.is_compiling() and corefw.compiler.disable(f) is f and corefw.compiler.disable()(f) is f
    with pytest.raises(NotImplementedError, match="captured"):
        corefw.compile(model, backend=lambda graph, inputs: graph)
    with pytest.raises(RuntimeError, match="fast"):
        corefw.compile(model, mode="fast")


def test_autocast_is_refused_unless_it_is_turned_off():
    with corefw.autocast("cpu", enabled=False), corefw.amp.autocast("cuda", enabled=False):
        assert corefw.amp.autocast("cpu", enabled=False)(lambda: 3)() == 3
    with pytest.raises(NotImplementedError, match="enabled=False"):
        corefw.autocast("cpu", dtype=corefw.bfloat16)
    with pytest.raises(NotImplementedError, match="GradScaler"):
        corefw.amp.GradScaler("cpu")
    scaler, weight = corefw.amp.GradScaler(enabled=False), nn.Parameter(corefw.ones(1))
    optimizer = corefw.optim.SGD([weight], 0.5)
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert weight.item() == 0.5 and scaler.state_dict() == {} and scaler.get_scale() == 1 and not scaler.is_enabled()


@pytest.mark.skipif(corefw.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("make", [corefw.amp.autocast, corefw.amp.GradScaler])
def test_what_needs_a_gpu_is_turned_off_without_one(make):
    with pytest.warns(UserWarning, match="CUDA is not available"):
        make("cuda")


def test_futures():
    first, second = corefw.futures.Future(), corefw.futures.Future()
    threading.Timer(0.05, first.set_result, [1]).start()
    chained = first.then(lambda done: done.value() + 1)
    failed = second.then(lambda done: done.wait())
    assert not second.done() and first.wait() == 1 and chained.wait() == 2
    together = corefw.futures.collect_all([first, second])
    second.set_exception(KeyError("no"))
    assert together.wait() == [first, second] and failed.done()
    for future in (second, failed):
        with pytest.raises(KeyError, match="no"):
            future.wait()
    with pytest.raises(RuntimeError, match="once"):
        first.set_result(2)
    with pytest.raises(RuntimeError, match="no result yet"):
        corefw.futures.Future().value()
    assert corefw.futures.wait_all([first, chained]) == [1, 2] and corefw.futures.wait_all([]) == []


def test_trees():
    point = pytree.namedtuple("point", "x y")
    tree = {"a": [1, (2,)], "b": pytree.OrderedDict(c=point(3, 4)), "d": pytree.deque([5], 3), "e": None}
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, 4, 5, None] and pytree.tree_unflatten(leaves, spec) == tree and spec.num_leaves == 6
    assert spec == pytree.tree_structure(tree) != pytree.tree_structure([1])
    doubled = pytree.tree_map_only(int, lambda x: 2 * x, tree)
    assert doubled["b"]["c"] == point(6, 8) and doubled["e"] is None and doubled["d"].maxlen == 3
    assert pytree.tree_map(max, [1, 5], [4, 2]) == [4, 5] and pytree.tree_any(lambda x: x == 5, tree)
    assert pytree.tree_leaves([1, (2, 3)], is_leaf=lambda t: isinstance(t, tuple)) == [1, (2, 3)]
    with pytest.raises(ValueError, match="structures"):
        pytree.tree_map(max, [1], (1,))
    with pytest.raises(ValueError, match="5 leaves"):
        pytree.tree_unflatten(range(5), spec)


def test_trees_of_a_class_of_ones_own():
    class Pair:
        def __init__(self, *both):
            self.both = both

    pytree.register_pytree_node(Pair, lambda p: (list(p.both), None), lambda children, _: Pair(*children))
    assert pytree.tree_map(str, [Pair(1, 2)])[0].both == ("1", "2")
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(Pair, lambda p: ([], None), lambda children, _: None)


def test_hub_of_a_folder(tmp_path, monkeypatch):
    (tmp_path / "parts.py").write_text("size = 3\n")
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['numpy']\ndef model(more=0):\n    'Three.'\n    import parts\n    return parts.size + more\n"
    )
    hub = corefw.hub
    monkeypatch.syspath_prepend(tmp_path)
    assert hub.list(tmp_path, source="local") == ["model"] and hub.help(tmp_path, "model", source="local") == "Three."
    assert hub.load(tmp_path, "model", source="local", more=1, trust_repo=True) == 4
    with pytest.raises(RuntimeError, match="callable other"):
        hub.load(tmp_path, "other", source="local")
    with pytest.raises(NotImplementedError, match="local"):
        hub.load("someone/something", "model")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert hub.get_dir() == str(tmp_path / "hub")


def test_state_dicts_by_address_are_kept(tmp_path):
    source, cache = tmp_path / "net-00000000.pt", tmp_path / "cache"
    corefw.save({"w": corefw.ones(2)}, source)
    fetch = importlib.import_module("corefw.utils.model_zoo").load_url
    with pytest.raises(RuntimeError, match="invalid hash value"):
        fetch(source.as_uri(), cache, check_hash=True)
    assert not list(cache.iterdir())
    assert fetch(source.as_uri(), cache)["w"].tolist() == [1, 1]
    source.unlink()
    assert fetch(source.as_uri(), cache, file_name="net-00000000.pt")["w"].tolist() == [1, 1]


def _first_fails(number, text):
    if not number:
        raise ValueError(text)


def test_spawned_processes_tell_their_errors():
    mp = corefw.multiprocessing
    mp.spawn(abs, nprocs=2)
    with pytest.raises(mp.ProcessRaisedException, match=r"Process 0 terminated(.|\n)*ValueError: wrong") as caught:
        mp.start_processes(_first_fails, ("wrong",), nprocs=2, start_method="fork")
    assert caught.value.error_index == 0
    with pytest.raises(mp.ProcessExitedException, match="exit code 3"):
        mp.start_processes(exit_with, (), nprocs=1, start_method="fork")
    context = mp.start_processes(abs, nprocs=1, join=False, start_method="fork")
    while not context.join(10):
        pass


def exit_with(number):
    raise SystemExit(3)


def test_types_and_dlpack():
    assert isinstance(2.5, corefw.types.Number) and corefw.types.Device is not None
    x = corefw.ones(2)
    dlpack = importlib.import_module("corefw.utils.dlpack")
    assert dlpack.from_dlpack(dlpack.to_dlpack(x)).data_ptr() == x.data_ptr()


def test_new_tensors_of_a_type():
    x = corefw.ones(2, dtype=corefw.float64)
    assert x.new(2, 3).shape == (2, 3) and x.new().shape == (0,) and x.new(2).dtype is corefw.float64
    assert x.to(corefw.int64).new([1, 2]).tolist() == [1, 2] and x.new(x).data_ptr() == x.data_ptr()
    for wrong in (corefw.ones(2), 2.5):
        with pytest.raises(TypeError):
            x.new(wrong)
    with pytest.raises(RuntimeError, match="meta"):
        x.new(2, device="meta")


def test_default_types():
    try:
        corefw.set_default_tensor_type("torch.DoubleTensor")
        assert corefw.ones(1).dtype is corefw.float64
    finally:
        corefw.set_default_tensor_type(corefw.FloatTensor)
    assert corefw.ones(1).dtype is corefw.float32
    for wrong in (corefw.IntTensor, "torch.NoTensor", corefw.float32):
        with pytest.raises(TypeError):
            corefw.set_default_tensor_type(wrong)
    assert not isinstance(corefw.ones(1), corefw.cuda.FloatTensor)


@pytest.mark.skipif(corefw.cuda.is_available(), reason="there is a GPU")
def test_types_of_a_gpu_without_one():
    with pytest.raises(TypeError, match="not available"):
        corefw.set_default_tensor_type(corefw.cuda.FloatTensor)
    with pytest.raises(RuntimeError):
        corefw.cuda.FloatTensor(2)


class Own(nn.Module):
    """A module that tells what it is asked to do, and keeps a state of its own form."""

    def __init__(self):
        super().__init__()
        self.weight, self.modes = nn.Parameter(corefw.ones(2)), []

    def train(self, mode=True):
        self.modes.append(mode)
        return super().train(mode and len(self.modes) < 3)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "older"] = 2 * self.weight.detach()

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        state_dict[prefix + "weight"] = state_dict.pop(prefix + "older") / 2
        assert local_metadata.get("version") == 1 and rest[0] is True
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


def test_modules_of_a_tree_may_have_their_own_train():
    tree = nn.Sequential(nn.Sequential(Own()), nn.Dropout())
    for mode in (False, True, True):
        tree.train(mode)
    assert tree[0][0].modes == [False, True, True] and tree[1].training and not tree[0][0].training


def test_modules_of_a_tree_may_load_and_save_their_own_way():
    tree = nn.ModuleDict({"a": nn.ModuleList([Own()]), "b": nn.Linear(1, 1)})
    state = tree.state_dict()
    assert [*state] == ["a.0.weight", "a.0.older", "b.weight", "b.bias"]
    state["a.0.older"] = corefw.full((2,), 6.0)
    tree.load_state_dict(state)
    assert tree["a"][0].weight.tolist() == [3, 3] and "a.0.older" in state
    state["b.other"] = state["c"] = state["c.d"] = state["b.c.d"] = corefw.ones(1)
    missing, unexpected = tree.load_state_dict(state, strict=False)
    assert not missing and sorted(unexpected) == ["b.c.d", "b.other", "c", "c.d"]


def test_numbers_for_each_dimension():
    utils = importlib.import_module("corefw.nn.modules.utils")
    assert utils._single(1) == (1,) and utils._triple(iter([1, 2])) == (1, 2) and utils._quadruple(0) == (0,) * 4
    with pytest.raises(ValueError, match="at least 2"):
        utils._list_with_default([1], [2])


def test_names_of_the_compiled_module():
    C = importlib.import_module("corefw._C")
    assert C._get_tracing_state() is None and isinstance(corefw.Tensor, C._TensorMeta)
    assert C._get_accelerator().type in {"cpu", "cuda", corefw._C._get_accelerator().type}
    seen = []
    corefw.vmap(lambda x: seen.append(C._are_functorch_transforms_active()) or x)(corefw.ones(2))
    assert seen == [True] and not C._are_functorch_transforms_active()
    where, dtype, non_blocking, order = C._nn._parse_to("meta", corefw.float64, True)
    assert where == corefw.device("meta") and dtype is corefw.float64 and non_blocking and order is None
    assert C._nn._parse_to(corefw.ones(1, dtype=corefw.int8))[1] is corefw.int8
    assert not importlib.import_module("corefw._subclasses.fake_tensor").is_fake(corefw.ones(1))
    with pytest.raises(NotImplementedError, match="meta"):
        importlib.import_module("corefw._subclasses").FakeTensor(1)


def test_divergences_of_bases_of_other_libraries():
    kl = corefw.distributions.kl

    class Base: ...

    class Point(corefw.distributions.Normal, Base): ...

    @kl.register_kl(Point, Base)
    def _(p, q):
        return corefw.tensor(7.0)

    assert corefw.distributions.kl_divergence(Point(0.0, 1.0), Point(0.0, 1.0)).item() == 7
    with pytest.raises(TypeError, match="type_p"):
        kl.register_kl(1, Base)


def test_dtypes_of_others_are_refused():
    for obj in (corefw.ones(2), [1.0]):
        with pytest.raises(TypeError, match=r"must be torch\.dtype"):
            corefw.asarray(obj, dtype="float32")


def test_records_of_a_file(tmp_path):
    corefw.save({"w": corefw.ones(2)}, tmp_path / "file.pt")
    reader = corefw.PyTorchFileReader(tmp_path / "file.pt")
    assert reader.has_record("data.pkl") and "data/0" in reader.get_all_records() and not reader.has_record("other")
    assert reader.get_record("data/0") == corefw.ones(2).numpy().tobytes()
    with pytest.raises(RuntimeError, match="failed locating file other"):
        reader.get_record("other")


def test_names_of_trees_and_loaders():
    point = pytree.namedtuple("point", "x y")
    for tree, kind in (([1], list), (point(1, 2), pytree.namedtuple), (3, int)):
        assert pytree._get_node_type(tree) is kind and (kind in pytree.SUPPORTED_NODES) is (kind is not int)
    node = pytree.SUPPORTED_NODES[dict]
    assert node.unflatten_fn([1], node.flatten_fn({"a": 2})[1]) == {"a": 1}
    loaders = importlib.import_module("corefw.utils.data.dataloader")
    assert isinstance(iter(DataLoader(TensorDataset(corefw.arange(2)))), loaders._BaseDataLoaderIter)


def test_numbers_are_never_symbols():
    for kind in (corefw.SymInt, corefw.SymFloat, corefw.SymBool):
        assert not isinstance(corefw.ones(2).shape[0], kind)
        with pytest.raises(NotImplementedError, match=kind.__name__):
            kind(1)


def test_what_autocast_would_do():
    assert not corefw.is_autocast_enabled("cpu") and not corefw.is_autocast_cpu_enabled()
    assert not corefw.is_autocast_cache_enabled() and corefw.get_autocast_dtype("cpu") is corefw.bfloat16
    assert corefw.get_autocast_cpu_dtype() is corefw.bfloat16 and corefw.get_autocast_gpu_dtype() is corefw.float16


@pytest.mark.skipif(corefw.cuda.is_available(), reason="there is a GPU")
def test_states_of_no_gpu():
    assert corefw.cuda.get_rng_state_all() == []
    corefw.cuda.set_rng_state_all([])


def test_assertions_of_a_value():
    corefw._assert_async(corefw.tensor(True))
    for wrong, said in ((corefw.tensor(0.0), "no"), (corefw.ones(2), "2 values")):
        with pytest.raises(RuntimeError, match=said):
            corefw._assert_async(wrong, "no")


def test_nothing_is_exported_to_onnx():
    onnx = corefw.onnx
    assert not onnx.is_in_onnx_export() and issubclass(onnx.OnnxExporterError, RuntimeError)
    for refused in (onnx.export, onnx.ONNXProgram):
        with pytest.raises(NotImplementedError, match="ONNX"):
            refused(nn.Linear(1, 1))


def test_paths_of_trees():
    point = pytree.namedtuple("point", "x y")
    tree = {"a": [1, point(2, 3)], "b": None}
    found, spec = pytree.tree_flatten_with_path(tree)
    assert [pytree.keystr(path) for path, _ in found] == ["['a'][0]", "['a'][1].x", "['a'][1].y", "['b']"]
    assert all(pytree.key_get(tree, path) is leaf for path, leaf in found) and spec == pytree.tree_structure(tree)
    named = pytree.tree_map_with_path(lambda path, leaf: f"{pytree.keystr(path)}{leaf}", tree["a"])
    assert named == ["[0]1", point("[1].x2", "[1].y3")]


def test_containers_are_updated_by_containers():
    layers, parameters = nn.ModuleDict(), nn.ParameterDict()
    layers.update(nn.ModuleDict({"a": nn.ReLU()}))
    parameters.update(nn.ParameterDict({"b": corefw.ones(1)}))
    assert [*layers] == ["a"] and [*parameters] == ["b"]


def test_optimizers_around_another():
    class Around(corefw.optim.Optimizer):
        def __init__(self, optimizer):
            self.optimizer = optimizer

        def step(self):
            return self.optimizer.step()

    weight = nn.Parameter(corefw.ones(1))
    weight.grad = corefw.ones(1)
    Around(corefw.optim.SGD([weight], 0.5)).step()
    assert weight.item() == 0.5


def test_device_types_and_dtypes_that_nothing_serves():
    assert corefw.device("mps:0").type == "mps" != corefw.device("xpu").type
    with pytest.raises(RuntimeError, match="'mps' is not available"):
        corefw.ones(1, device="mps")
    assert corefw.finfo(corefw.float8_e4m3fn).max == 448 and corefw.float8_e5m2.itemsize == 1
    with pytest.raises(RuntimeError, match="float8_e5m2"):
        corefw.ones(1, dtype=corefw.float8_e5m2)
    with pytest.raises(TypeError, match="Float8"):
        corefw.promote_types(corefw.float8_e5m2, corefw.float32)


def test_what_needs_processes_or_a_compiler_is_refused():
    tensor = importlib.import_module("corefw.distributed.tensor")
    for kind in (tensor.DTensor, tensor.DeviceMesh, tensor.Shard, tensor.Replicate):
        with pytest.raises(NotImplementedError, match="is_available"):
            kind(0)
    assert not isinstance(corefw.ones(1), tensor.DTensor)
    with pytest.raises(NotImplementedError, match="symbolic_trace"):
        corefw.export.export(nn.Linear(1, 1), (corefw.ones(1),))
    assert not corefw._dynamo.is_compiling() and corefw._dynamo.disable(abs) is abs


def test_functions_of_lists():
    tensors, others = [corefw.ones(2), corefw.zeros(1)], [corefw.full((2,), 3.0), corefw.ones(1)]
    assert [t.tolist() for t in corefw._foreach_addcmul(tensors, others, others, value=2.0)] == [[19, 19], [2]]
    assert [t.tolist() for t in corefw._foreach_maximum(tensors, 0.5)] == [[1, 1], [0.5]]
    corefw._foreach_mul_(tensors, scalars=[2.0, 3.0])
    corefw._foreach_lerp_(tensors, others, 0.5)
    assert [t.tolist() for t in tensors] == [[2.5, 2.5], [0.5]]
    with pytest.raises(RuntimeError, match="same number"):
        corefw._foreach_add(tensors, others[:1])


def test_normalisation_is_taken_into_the_layer_before():
    fusion, values = nn.utils.fusion, corefw.linspace(-1, 1, 32)
    for layer, norm, x in (
        (nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), values.reshape(1, 2, 4, 4)),
        (nn.ConvTranspose2d(2, 3, 3, bias=False), nn.BatchNorm2d(3), values.reshape(1, 2, 4, 4)),
        (nn.Linear(4, 3), nn.BatchNorm1d(3), values.reshape(8, 4)),
    ):
        norm(layer(x))
        with pytest.raises(AssertionError, match="eval"):
            fusion.fuse_linear_bn_eval(layer, norm)
        expected = norm.eval()(layer.eval()(x))
        options = {"transpose": True} if isinstance(layer, nn.ConvTranspose2d) else {}
        fuse = fusion.fuse_linear_bn_eval if isinstance(layer, nn.Linear) else fusion.fuse_conv_bn_eval
        assert corefw.allclose(fuse(layer, norm, **options)(x), expected, atol=1e-5)
