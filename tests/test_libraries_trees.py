"""What libraries that build on PyTorch touch of modules, trees and private names."""

import importlib.metadata

import pytest

import corefw
from corefw.utils import _pytree as pytree
from corefw.utils.data import DataLoader, TensorDataset
from tests.test_run import program  # noqa: F401, a fixture

nn = corefw.nn


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


@pytest.mark.skipif(corefw.cuda.is_available(), reason="there is a GPU")
def test_states_of_no_gpu():
    assert corefw.cuda.get_rng_state_all() == []
    corefw.cuda.set_rng_state_all([])


def test_assertions_of_a_value():
    corefw._assert_async(corefw.tensor(True))
    for wrong, said in ((corefw.tensor(0.0), "no"), (corefw.ones(2), "2 values")):
        with pytest.raises(RuntimeError, match=said):
            corefw._assert_async(wrong, "no")


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


def test_what_needs_a_compiler_is_refused():
    assert not isinstance(corefw.ones(1), importlib.import_module("corefw.distributed.tensor").DTensor)
    with pytest.raises(NotImplementedError, match="symbolic_trace"):
        corefw.export.export(nn.Linear(1, 1), (corefw.ones(1),))
    assert not corefw._dynamo.is_compiling() and corefw._dynamo.disable(abs)(-1) == 1


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
