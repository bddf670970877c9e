"""What libraries touch of PyTorch beside its documented API: under `corefw run`, and names kept for their sake."""

import importlib.metadata
import operator
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
import torchvision
assert torchvision.__version__ == importlib.metadata.version("torchvision") == "0.28.0+corefw"
from torch.distributed import rpc
assert not rpc.is_available()
assert isinstance(torch.__config__.show(), str) and "threads" in torch.__config__.parallel_info()
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
    with pytest.raises(ValueError, match="init_process_group"):
        importlib.import_module("corefw.distributed.optim").ZeroRedundancyOptimizer([], corefw.optim.SGD)


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


def test_utils_of_the_layers_are_not_those_of_nn():
    assert nn.modules.utils._pair(3) == (3, 3) and nn.modules.utils is not nn.utils


def test_tensors_are_joined_and_parted():
    utils, tensors = corefw._utils, [corefw.ones(2, 2), corefw.zeros(1), corefw.ones(3).double()]
    flat = utils._flatten_dense_tensors(tensors[:2])
    parts = utils._unflatten_dense_tensors(flat, tensors[:2])
    assert flat.shape == (5,) and [part.shape for part in parts] == [(2, 2), (1,)]
    assert parts[1].data_ptr() == flat[4:].data_ptr()
    taken = [*utils._take_tensors(tensors, 16)]
    assert [[each.numel() for each in held] for held in taken] == [[4], [1], [3]]
    back = utils._reorder_tensors_as([tensors[2], *tensors[:2]], tensors)
    assert all(ours is theirs for ours, theirs in zip(back, tensors, strict=True))
    assert utils._element_size(corefw.float16) == 2 and corefw._shape_as_tensor(tensors[0]).tolist() == [2, 2]


def test_lists_are_grouped_as_in_pytorch():
    group = importlib.import_module("corefw.utils._foreach_utils")._group_tensors_by_device_and_dtype
    one, two = corefw.ones(1), corefw.ones(2, dtype=corefw.float64)
    groups = group([[one, two, one], [None, two, None]], with_indices=True)
    assert [positions for _, positions in groups.values()] == [[0, 2], [1]]
    ((firsts, seconds), _) = groups[one.device, corefw.float64]
    assert firsts[0] is two is seconds[0]


def test_printing_by_the_module_of_texts():
    text = corefw._tensor_str
    with text.printoptions(precision=2):
        shown = text._tensor_str(corefw.tensor([[1.5], [2.0]]), 3)
        assert text.PRINT_OPTS.precision == 2 and shown == "[[1.50],\n    [2.00]]"
    with text.printoptions():
        text.PRINT_OPTS.edgeitems = 1
        assert text.PRINT_OPTS.edgeitems == 1
    with pytest.raises(AttributeError):
        text.PRINT_OPTS.nothing


def test_rows_of_sparse_matrices():
    crow = corefw._convert_indices_from_coo_to_csr(corefw.tensor([0, 0, 3]), 5, out_int32=True)
    assert crow.tolist() == [0, 2, 2, 2, 3, 3] and crow.dtype is corefw.int32
    both = corefw._convert_indices_from_csr_to_coo(crow, corefw.tensor([4, 1, 2]), transpose=True)
    assert both.tolist() == [[4, 1, 2], [0, 0, 3]] and both.dtype is corefw.int64


def test_ops_are_named_by_their_overloads():
    aten, x = corefw.ops.aten, corefw.arange(6.0).reshape(2, 3)
    assert aten.add.Tensor(x, x).tolist() == (2 * x).tolist() and str(aten.add.Tensor) == "aten.add.Tensor"
    assert aten.add.Tensor in [aten.add.default] and aten.add.Tensor != aten.sub.Tensor
    assert aten.slice.Tensor(x, 1, 0, 3, 2).tolist() == [[0, 2], [3, 5]]
    assert aten.alias.default(x).data_ptr() == x.data_ptr()
    assert aten.index.Tensor(x, [None, corefw.tensor([2])]).tolist() == [[2], [5]]
    copied = aten._to_copy.default(x, dtype=corefw.float64)
    assert copied.dtype is corefw.float64 and aten._to_copy.default(x).data_ptr() != x.data_ptr()
    assert aten.add_.Tensor(copied, 1) is copied
    with pytest.raises(NotImplementedError, match="_pin_memory"):
        aten._pin_memory.default(x)
    for wrong in ("aten.add.nothing", "aten.nothing", "other.nothing"):
        with pytest.raises(AttributeError):
            operator.attrgetter(wrong)(corefw.ops)


def test_classes_that_are_not_to_be_asked():
    class Plain(corefw.Tensor):
        __torch_function__ = corefw._C._disabled_torch_function_impl

    x = corefw.ones(2).as_subclass(Plain)
    assert not corefw.overrides.has_torch_function((x,)) and (x + 1).tolist() == [2, 2]
    assert Plain.__torch_function__(corefw.exp, (), (corefw.zeros(1),)).item() == 1


def test_optimizers_around_another():
    class Around(corefw.optim.Optimizer):
        def __init__(self, inner):
            self._patch_step_function()
            self.inner = inner

        def step(self, closure=None):
            return self.inner.step(closure)

    weight = nn.Parameter(corefw.ones(1))
    weight.sum().backward()
    Around(corefw.optim.SGD([weight], 0.5)).step()
    assert weight.item() == 0.5


def test_more_of_jit_and_files():
    jit, layer = corefw.jit, nn.Linear(2, 1)
    assert jit.trace_module(layer, {"forward": corefw.ones(2)}) is layer
    assert issubclass(jit.TracerWarning, Warning) and issubclass(jit.Error, Exception)
    assert corefw.serialization.DEFAULT_PROTOCOL == 2 and corefw.sparse_csc is not corefw.sparse_csr


def test_names_of_distributions_that_libraries_import():
    normal = importlib.import_module("corefw.distributions.multivariate_normal")
    matrix = corefw.tensor([[2.0, 0.5], [0.5, 1.0]])
    factor = normal._precision_to_scale_tril(matrix)
    corefw.testing.assert_close(factor @ factor.mT, matrix.inverse())
    assert normal.Distribution is corefw.distributions.Distribution
    clipped = corefw.distributions.transforms._clipped_sigmoid(corefw.tensor([-1000.0, 0.0, 1000.0]))
    assert clipped[0] > 0 and clipped[1] == 0.5 and clipped[2] < 1
