"""autocast: what each op computes in, gradients, blocks, threads, the cache of weights, and what costs nothing."""

import threading

import numpy as np
import pytest

import corefw
from corefw import nn
from corefw.autograd.autocasting import casting, policies
from corefw.autograd.autocasting.policies import CPU, GPU
from corefw.autograd.autocasting.state import state
from corefw.dispatch import overriding
from corefw.dispatch.names import public_path
from corefw.dispatch.registry import registry
from corefw.testing import oracle
from corefw.testing.checks import case_dtypes, flat
from corefw.testing.families import kit_families
from corefw.testing.samples import samples, to_tensor
from corefw.utils.checkpoint import checkpoint
from tests.scripts import FOLDER

F = nn.functional
BFLOAT16, FLOAT32 = corefw.bfloat16, corefw.float32
KINDS = {"CPU": CPU, "others": GPU}
#: rows whose results have other dtypes than PyTorch's, and why
OTHERS = {
    "squared_error": "no op of PyTorch: mse_loss is",
    "lstm": "PyTorch's is in bfloat16 where oneDNN runs it, which depends on the processor and on the options",
    "linalg_pinv": "PyTorch's last product is in bfloat16, after singular values in float32",
}


@pytest.fixture(autouse=True)
def nothing_is_left():
    """After each test all functions have their own code again."""
    yield
    assert not overriding.stand_ins and not state.on and not state.nesting and not state.cache


@pytest.fixture
def as_on_gpu(monkeypatch):
    """Tensors of the CPU are cast by the lists of GPUs."""
    monkeypatch.setitem(policies._LISTS, "cpu", GPU)


def result_dtypes(results):
    return [str(r.dtype).removeprefix("torch.") for r in results if hasattr(r, "dtype")]


def ran(op, sample):
    given = sample.map(to_tensor)
    return flat(op.function(*given.arguments, **given.keywords))


def rows(names=None):
    return [case for case in kit_families().cases() if names is None or case.op in names]


# -- the lists --------------------------------------------------------------------------------------------------------
def test_the_lists_name_ops():
    assert not [name for name in CPU | GPU if name not in registry.declared]


def test_the_documentation_has_the_lists():
    text = (FOLDER.parent / "docs" / "precision.md").read_text().split("## Mixed precision")[1]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    named = {kind: {name for _, on, names in cells[2:] if on == kind for name in names.split(", ")} for kind in KINDS}
    apart = (policies.padded, policies.pooled, policies.resized, policies.contracted, policies.refused)  # in sentences
    for kind, lists in KINDS.items():
        listed = {public_path(registry.declared[name]) for name, policy in lists.items() if policy not in apart}
        assert named[kind] == {name.removeprefix("nn.functional.") for name in listed}
        for name, policy in lists.items():
            assert policy not in apart or f"`{public_path(registry.declared[name])}`".split(".")[-1].strip("`") in text


def row_dtypes(case):
    return [d for d in (corefw.float32, corefw.bfloat16) if d in case_dtypes(case, registry.declared[case.op])]


@pytest.mark.oracle
def test_results_have_pytorchs_dtypes():
    torch, compared, different = pytest.importorskip("torch"), 0, []
    for case in rows():
        if not oracle.path(case) or case.op in OTHERS:
            continue
        theirs = oracle._function(torch, case)
        for d in row_dtypes(case):
            for sample in samples(case, d)[:3]:
                with torch.autocast("cpu"):
                    try:
                        expected = result_dtypes(oracle._theirs(theirs, oracle._torch_sample(torch, sample)))
                    except (NotImplementedError, RuntimeError, TypeError, IndexError):
                        continue  # corefw may take more
                with corefw.autocast("cpu"):
                    actual = result_dtypes(ran(registry.declared[case.op], sample))
                compared += 1
                if actual != expected:
                    different.append((case.op, d, expected, actual))
    assert compared > 1500 and not different


@pytest.mark.parametrize("lists", ["cpu", "gpu"])
def test_each_op_of_the_lists_has_the_dtype_of_its_list(lists, monkeypatch):
    found = {"cpu": CPU, "gpu": GPU}[lists]
    monkeypatch.setitem(policies._LISTS, "cpu", found)
    kept = {"bool", "int64", "int32"}
    expected = {
        policies.lower: {"bfloat16"},
        policies.wide: {"float32", "complex64"},
        policies.wide_result: {"float32"},
        policies.widest: {"float32", "bfloat16"},
    }
    seen = set()
    for case in rows(found):
        op, policy = registry.declared[case.op], found[case.op]
        for d in row_dtypes(case) if policy in expected else ():
            for sample in samples(case, d)[:2]:
                if "dtype" in sample.keywords or not any(a.dtype == d.numpy for a in sample.arrays()):
                    continue
                with corefw.autocast("cpu"):
                    actual = set(result_dtypes(ran(op, sample))) - kept
                assert actual <= expected[policy], (case.op, d)
                if policy is policies.widest:
                    assert actual == {d.name}, case.op
                seen.add(case.op)
    assert len(seen) > 60


@pytest.mark.parametrize(
    "name, arguments, expected",
    [
        ("matmul", ("half", "float"), BFLOAT16),
        ("matmul", ("double", "double"), corefw.float64),
        ("nn.functional.softmax", ("bf", -1), BFLOAT16),
        ("nn.functional.layer_norm", ("bf", [3], "vector", "vector"), BFLOAT16),
        ("cat", (["bf", "float"],), FLOAT32),
        ("stack", (["bf", "bf"],), BFLOAT16),
        ("sum", ("bf",), BFLOAT16),
        ("add", ("bf", "float"), FLOAT32),
        ("nn.functional.mse_loss", ("bf", "float"), FLOAT32),
        ("prod", ("bf",), FLOAT32),
        ("exp", ("bf",), BFLOAT16),
    ],
)
def test_dtypes_that_meet_on_the_cpu(name, arguments, expected):
    assert meeting(name, arguments) is expected


@pytest.mark.parametrize(
    "name, arguments, expected",
    [
        ("nn.functional.softmax", ("bf", -1), FLOAT32),
        ("softmax", ("bf", -1, BFLOAT16), BFLOAT16),
        ("nn.functional.layer_norm", ("bf", [3], "vector", "vector"), FLOAT32),
        ("sum", ("bf",), FLOAT32),
        ("sum", ("double",), corefw.float64),
        ("exp", ("bf",), FLOAT32),
        ("Tensor.__pow__", ("bf", 2), FLOAT32),
        ("addcmul", ("bf", "float", "bf"), FLOAT32),
        ("addcmul", ("bf", "bf", "bf"), BFLOAT16),
        ("nn.functional.cross_entropy", ("bf", "places"), FLOAT32),
        ("cat", (["bf", "float"],), FLOAT32),
    ],
)
def test_dtypes_that_meet_on_gpus(name, arguments, expected, as_on_gpu):
    assert meeting(name, arguments) is expected


def meeting(name, arguments):
    x = corefw.rand(3, 3)
    values = {"half": x.half(), "float": x, "double": x.double(), "bf": x.bfloat16(), "vector": x[0]}
    values["places"] = corefw.tensor([0, 1, 2])
    pick = lambda a: [values[one] for one in a] if a.__class__ is list and a != [3] else values.get(str(a), a)
    function = corefw
    for part in name.split("."):
        function = getattr(function, part)
    with corefw.autocast("cpu"):
        return function(*map(pick, arguments)).dtype


def test_what_is_not_cast():
    x, y = corefw.rand(3, 3), corefw.rand(3, 3)
    with corefw.autocast("cpu"):
        assert corefw.mm(x, y, out=corefw.empty(3, 3)).dtype is FLOAT32
        assert x.clone().addmm_(x, y).dtype is FLOAT32
        with pytest.raises(RuntimeError, match="Unexpected floating ScalarType"):
            corefw.cat([x.half(), y])


def test_probabilities_are_refused_on_gpus(as_on_gpu):
    with corefw.autocast("cpu"), pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
        F.binary_cross_entropy(corefw.rand(3), corefw.rand(3))


def test_float16_on_the_cpu():
    with corefw.autocast("cpu", dtype=corefw.float16):
        assert (corefw.ones(2, 2) @ corefw.ones(2, 2)).dtype is corefw.float16
        assert corefw.get_autocast_dtype("cpu") is corefw.float16
    with pytest.warns(UserWarning, match="not supported"), corefw.autocast("cpu", dtype=corefw.float64):
        assert (corefw.ones(2, 2) @ corefw.ones(2, 2)).dtype is FLOAT32


# -- gradients --------------------------------------------------------------------------------------------------------
def network(kind):
    corefw.manual_seed(0)
    if kind == "mlp":
        return nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3)), corefw.randn(12, 6)
    if kind == "cnn":
        layers = (nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        return nn.Sequential(*layers, nn.Linear(4, 3)), corefw.randn(12, 2, 6, 6)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.Sequential(layer, nn.Flatten(), nn.Linear(32, 3)), corefw.randn(12, 4, 8)


def trained(kind, enabled, steps=8):
    model, x = network(kind)
    optimizer, losses = corefw.optim.AdamW(model.parameters(), 1e-2), []
    target = corefw.arange(len(x)) % 3
    for _ in range(steps):
        with corefw.autocast("cpu", enabled=enabled):
            output = model(x)
            loss = F.cross_entropy(output, target)
        assert output.dtype is (BFLOAT16 if enabled else FLOAT32) and loss.dtype is FLOAT32
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad.dtype is FLOAT32 is p.dtype for p in model.parameters())
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)


@pytest.mark.parametrize("kind", ["mlp", "cnn", "transformer"])
def test_training_follows_float32(kind):
    mixed, exact = trained(kind, True), trained(kind, False)
    assert exact[-1] < exact[0] and not np.array_equal(mixed, exact)
    np.testing.assert_allclose(mixed, exact, rtol=0.05, atol=0.02)


def test_gradients_are_those_of_the_casts():
    x, w = corefw.randn(5, 4), corefw.randn(3, 4, requires_grad=True)
    with corefw.autocast("cpu"):
        F.linear(x, w).float().square().sum().backward()
    rounded = lambda t: t.detach().bfloat16().float().numpy().astype(np.float64)
    expected = 2 * (rounded(x) @ rounded(w).T).T @ rounded(x)
    assert w.grad.dtype is FLOAT32
    np.testing.assert_allclose(w.grad.numpy(), expected, rtol=0.03, atol=0.1)


def test_a_backward_inside_of_the_block_casts_nothing():
    seen = []

    class Watch(corefw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append((x @ x).dtype)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.extend([(grad @ grad).dtype, corefw.is_autocast_enabled("cpu")])
            return grad

    x = corefw.ones(2, 2, requires_grad=True)
    with corefw.autocast("cpu"):
        Watch.apply(x).sum().backward()
        assert corefw.is_autocast_enabled("cpu")
    assert seen == [BFLOAT16, FLOAT32, False]


@pytest.mark.parametrize("cast_inputs", [None, FLOAT32])
def test_functions_with_a_backward_of_their_own(cast_inputs):
    seen = []

    class Product(corefw.autograd.Function):
        @staticmethod
        @corefw.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            seen.append((a.dtype, a.mm(b).dtype))
            return a.mm(b)

        @staticmethod
        @corefw.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            seen.append(grad.mm(b.T).dtype)
            return grad.mm(b.T), a.T.mm(grad)

    a = corefw.ones(2, 2, requires_grad=True)
    with corefw.autocast("cpu"):
        result = Product.apply(a.bfloat16() if cast_inputs else a, corefw.ones(2, 2))
    result.sum().backward()
    inside = FLOAT32 if cast_inputs else BFLOAT16
    assert seen == [(FLOAT32, inside), inside] and a.grad.tolist() == [[2, 2], [2, 2]]
    with pytest.raises(ValueError, match="type `str`"):
        corefw.amp.custom_fwd(device_type=3)


# -- blocks -----------------------------------------------------------------------------------------------------------
def product():
    return (corefw.ones(2, 2) @ corefw.ones(2, 2)).dtype


def test_blocks_nest():
    assert product() is FLOAT32
    with corefw.autocast("cpu") as block:
        assert product() is BFLOAT16 and corefw.is_autocast_cpu_enabled() and not corefw.is_autocast_enabled()
        with corefw.autocast("cpu", enabled=False):
            assert product() is FLOAT32
            with corefw.autocast("cpu", dtype=corefw.float16), block:
                assert product() is BFLOAT16
            assert product() is FLOAT32
        assert product() is BFLOAT16
        with pytest.raises(KeyError), corefw.autocast("cpu", enabled=False):
            raise KeyError
        assert product() is BFLOAT16
    assert product() is FLOAT32


def test_decorators_and_older_names():
    assert corefw.autocast("cpu")(product)() is BFLOAT16 and product() is FLOAT32
    assert corefw.cpu.amp.autocast()(product)() is BFLOAT16 and corefw.cpu.amp.autocast(False)(product)() is FLOAT32
    assert corefw.amp.autocast is corefw.autocast
    with pytest.raises(TypeError, match="callable"):
        corefw.autocast("cpu")(3)


def test_settings():
    corefw.set_autocast_enabled("cpu", True)
    try:
        assert product() is BFLOAT16
        corefw.ones(2, 2, requires_grad=True).mm(corefw.ones(2, 2)).sum().backward()
        corefw.set_autocast_dtype("cpu", corefw.float16)
        assert product() is corefw.float16
    finally:
        corefw.set_autocast_enabled("cpu", False)
        state.dtypes = {}
    assert product() is FLOAT32 and corefw.is_autocast_cache_enabled()
    assert corefw.get_autocast_dtype("cpu") is BFLOAT16 and corefw.get_autocast_gpu_dtype() is corefw.float16
    assert corefw.autocast_increment_nesting() == 1 and corefw.autocast_decrement_nesting() == 0


def test_turned_off_inside_of_a_block():
    with corefw.autocast("cpu"):
        corefw.set_autocast_enabled("cpu", False)
        assert product() is FLOAT32
        corefw.set_autocast_enabled("cpu", True)
        assert product() is BFLOAT16


def test_refused():
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'meta'"):
        corefw.autocast("meta")
    with pytest.raises(ValueError, match="type `str`"):
        corefw.autocast(corefw.device("cpu"))
    assert corefw.amp.is_autocast_available("cpu") and not corefw.amp.is_autocast_available("meta")


@pytest.mark.skipif(corefw.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("make", [corefw.amp.autocast, corefw.amp.GradScaler])
def test_what_needs_a_gpu_is_turned_off_without_one(make):
    with pytest.warns(UserWarning, match="CUDA is not available"):
        made = make("cuda")
    assert not made._enabled


def test_each_thread_has_its_own_setting():
    found = {}
    inside, outside = threading.Barrier(2, timeout=20), threading.Barrier(2, timeout=20)

    def other():
        found["before"] = product()
        with corefw.autocast("cpu", dtype=corefw.float16):
            inside.wait()
            found["in its block"] = product()
            outside.wait()

    thread = threading.Thread(target=other)
    with corefw.autocast("cpu"):
        thread.start()
        inside.wait()
        assert product() is BFLOAT16
    assert product() is FLOAT32 and overriding.stand_ins  # the other thread still wants them
    outside.wait()
    thread.join()
    assert found == {"before": FLOAT32, "in its block": corefw.float16}


def test_worker_threads_of_parallel_modules():
    layer = nn.Linear(2, 2)
    with corefw.autocast("cpu"):
        results = nn.parallel.parallel_apply([layer, layer], [corefw.ones(1, 2)] * 2)
    assert [r.dtype for r in results] == [BFLOAT16, BFLOAT16]


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_keeps_it(reentrant):
    layer, x = nn.Linear(3, 3), corefw.randn(4, 3, requires_grad=True)
    seen = []

    def part(x):
        seen.append(layer(x).dtype)
        return layer(x).tanh()

    with corefw.autocast("cpu"):
        result = checkpoint(part, x, use_reentrant=reentrant)
    result.float().sum().backward()
    assert seen == [BFLOAT16, BFLOAT16] and layer.weight.grad.dtype is FLOAT32


# -- the cache --------------------------------------------------------------------------------------------------------
def casts(run, **options):
    with corefw.ledger() as book, corefw.autocast("cpu", **options):
        run()
    return sum(n for (name, key, _), n in book.counts.items() if name == "cast" and key == "cpu/bfloat16")


def test_a_weight_is_cast_once():
    w, x = corefw.ones(2, 2, requires_grad=True), corefw.ones(2, 2).bfloat16()

    def twice():
        (x @ w + x @ w).sum().backward()

    once, each = casts(twice), casts(twice, cache_enabled=False)
    assert w.grad.tolist() == [[8, 8], [8, 8]] and each == once + 1


def test_the_cache_notices_changes_and_keeps_histories_apart():
    w, x = corefw.ones(2, 2, requires_grad=True), corefw.ones(2, 2)
    with corefw.autocast("cpu"):
        with corefw.no_grad():
            assert not (x @ w).requires_grad
        assert (x @ w).requires_grad and len(state.cache) == 2
        with corefw.no_grad():
            w.mul_(3)
        assert (x @ w).tolist() == [[6, 6], [6, 6]]
        corefw.clear_autocast_cache()
        assert not state.cache
        with corefw.autocast("cpu"):
            x @ w
        assert state.cache


# -- beside other things ----------------------------------------------------------------------------------------------
def test_explain():
    x = corefw.ones(2, 2)
    plain = corefw.explain("linear", x, x)
    with corefw.autocast("cpu"):
        told = corefw.explain("linear", x, x)
        assert "autocast" not in corefw.explain("relu", x)
    assert "linear(bfloat16[2, 2] on cpu" in told and "autocast to bfloat16: in the lower precision" in told
    assert "autocast" not in plain


def test_modes_that_answer_for_functions():
    names = []

    class Names(corefw.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(func.__name__)
            return func(*args, **kwargs or {})

    x = corefw.ones(2, 2)
    with corefw.autocast("cpu"):
        with Names():
            assert corefw.mm(x, x).dtype is BFLOAT16
        assert corefw.mm(x, x).dtype is BFLOAT16
    with Names():
        with corefw.autocast("cpu"):
            assert corefw.mm(x, x).dtype is BFLOAT16
        assert corefw.mm(x, x).dtype is FLOAT32
    assert names.count("mm") == 3


def test_vmap_and_derivatives():
    x, w = corefw.randn(3, 2), corefw.randn(2, 2)
    with corefw.autocast("cpu"):
        assert corefw.vmap(lambda row: F.linear(row, w))(x).dtype is BFLOAT16
        assert corefw.func.grad(lambda w: F.linear(x, w).float().sum())(w).dtype is FLOAT32


def test_functions_have_their_own_code_when_it_is_off():
    codes = {f: f.__code__ for f in overriding.functions}
    with corefw.autocast("cpu"):
        changed = [f for f, code in codes.items() if f.__code__ is not code]
        assert F.linear.__code__ is not codes[F.linear] and len(changed) > 100
        assert corefw.add.__code__ is codes[corefw.add] and corefw.sin.__code__ is codes[corefw.sin]
    assert all(f.__code__ is code or code.co_name == "_stub" for f, code in codes.items())
    assert casting._threads == 0
