"""Names that PyTorch's documentation passes over and its users do not: they mean what they mean there."""

import importlib
import warnings

import pytest

import corefw
from corefw.dispatch.names import _INPLACE_FUNCTIONS
from corefw.dispatch.settings import settings

nn = corefw.nn


@pytest.fixture
def torch():
    """PyTorch, where it can be imported."""
    return pytest.importorskip("torch")


@pytest.mark.parametrize("name", _INPLACE_FUNCTIONS.split())
def test_in_place_forms_are_functions(name):
    assert getattr(corefw, f"{name}_") is getattr(corefw.Tensor, f"{name}_")


def test_the_in_place_functions_are_pytorchs(torch):
    theirs = {name for name in dir(torch) if name.endswith("_") and not name.startswith("_")}
    ours = {name for name in dir(corefw) if name.endswith("_") and not name.startswith("_")}
    assert theirs - ours == {"resize_as_sparse_"} and ours <= theirs


def test_in_place_functions_change_their_argument():
    x = corefw.tensor([-1.0, 4.0])
    assert corefw.clamp_(x, min=0.0) is x and x.tolist() == [0.0, 4.0]
    assert corefw.sqrt_(x).tolist() == [0.0, 2.0] and corefw.zero_(x).tolist() == [0.0, 0.0]
    assert corefw.fill_(x, 3.0).tolist() == [3.0, 3.0] and corefw.detach_(x) is x
    assert corefw.resize_as_(x, corefw.ones(1)).shape == (1,) and corefw.as_strided_(x, (1, 1), (1, 1)).ndim == 2


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("sym_int", (-2.5,)),
        ("sym_int", (3,)),
        ("sym_float", (3,)),
        ("sym_not", (True,)),
        ("sym_ite", (False, 1, 2)),
        ("sym_max", (3, 2.0)),
        ("sym_max", (3, 2)),
        ("sym_min", (1, 2.0)),
        ("sym_sum", ([1, 2, 3],)),
        ("sym_sqrt", (4,)),
    ],
)
def test_sizes_are_numbers(torch, name, arguments):
    expected, found = (getattr(module, name)(*arguments) for module in (torch, corefw))
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize("name", ["mps", "mtia", "xpu"])
def test_devices_that_are_not_there(name):
    module = importlib.import_module(f"corefw.{name}")
    assert not module.is_available() and module.device_count() == 0 and module.manual_seed(0) is None
    assert not hasattr(module, "synchronize") and getattr(corefw, name) is module


def test_errors_and_scalers():
    assert corefw.OutOfMemoryError is corefw.cuda.OutOfMemoryError
    with pytest.raises(corefw.OutOfMemoryError):
        corefw.empty(2**60)
    assert corefw.GradScaler is corefw.amp.GradScaler


def test_autocast_by_older_names():
    before = corefw.get_autocast_cpu_dtype(), corefw.get_autocast_gpu_dtype()
    try:
        corefw.set_autocast_cpu_dtype(corefw.float16), corefw.set_autocast_gpu_dtype(corefw.bfloat16)
        corefw.set_autocast_cpu_enabled(True)
        assert (corefw.ones(1, 1) @ corefw.ones(1, 1)).dtype is corefw.float16
        assert corefw.get_autocast_dtype("cuda") is corefw.bfloat16
    finally:
        corefw.set_autocast_cpu_enabled(False)
        corefw.set_autocast_cpu_dtype(before[0]), corefw.set_autocast_gpu_dtype(before[1])
    assert (corefw.ones(1, 1) @ corefw.ones(1, 1)).dtype is corefw.float32


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn"])
def test_resolutions_are_powers_of_ten(torch, dtype):
    assert corefw.finfo(getattr(corefw, dtype)).resolution == torch.finfo(getattr(torch, dtype)).resolution


def test_functional_has_the_packages_functions(torch):
    functional = importlib.import_module("corefw.functional")
    assert {*functional.__all__} <= {*torch.functional.__all__}
    assert all(getattr(functional, name) is getattr(corefw, name) for name in functional.__all__)


# -- nn ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["uniform", "normal", "constant", "eye", "dirac", "xavier_uniform", "xavier_normal",
                                  "kaiming_uniform", "kaiming_normal", "orthogonal", "sparse"])  # fmt: skip
def test_older_initializers(name):
    options = {"constant": (0.5,), "sparse": (0.5,)}.get(name, ())
    shape = (4, 4, 3) if name == "dirac" else (4, 4)
    results = []
    for form in (name, f"{name}_"):
        corefw.manual_seed(3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            results.append(getattr(nn.init, form)(corefw.empty(shape), *options))
        assert [warning.category for warning in caught] == ([] if form.endswith("_") else [FutureWarning])
        assert all(warning.filename == __file__ for warning in caught)
    assert corefw.equal(*results)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_gradients_of_convolutions(torch, dimensions):
    torch.manual_seed(0)
    input = torch.randn(2, 4, *(9, 8, 7)[:dimensions], dtype=torch.float64)
    weight = torch.randn(6, 2, *(3, 2, 3)[:dimensions], dtype=torch.float64)
    steps = {"stride": 2, "padding": (1,) * dimensions, "dilation": 1, "groups": 2}
    out = getattr(torch.nn.functional, f"conv{dimensions}d")(input, weight, **steps)
    grad = torch.randn_like(out)
    for of, given in (("input", (input.shape, weight, grad)), ("weight", (input, weight.shape, grad))):
        expected = getattr(torch.nn.grad, f"conv{dimensions}d_{of}")(*given, **steps)
        ours = [corefw.from_numpy(a.numpy()) if isinstance(a, torch.Tensor) else tuple(a) for a in given]
        function = getattr(nn.grad, f"conv{dimensions}d_{of}")
        found = function(*ours, **steps)
        assert abs(found.numpy() - expected.numpy()).max() < 1e-12
        assert function.__name__ == f"conv{dimensions}d_{of}"


# -- backends and cuda ------------------------------------------------------------------------------------------------
def test_switches_of_attention():
    switches = corefw.backends.cuda
    names = ("flash", "mem_efficient", "math", "cudnn")
    assert all(getattr(switches, f"{name}_sdp_enabled")() for name in names)
    for name in names:
        getattr(switches, f"enable_{name}_sdp")(False)
        assert [getattr(switches, f"{other}_sdp_enabled")() for other in names] == [other != name for other in names]
        getattr(switches, f"enable_{name}_sdp")(True)
    assert settings.attention is None
    q = corefw.ones(2, 4)
    with switches.sdp_kernel(enable_flash=False, enable_mem_efficient=False, enable_cudnn=False):
        assert switches.math_sdp_enabled() and not switches.flash_sdp_enabled()
        assert corefw.nn.functional.scaled_dot_product_attention(q, q, q).tolist() == q.tolist()
    with switches.sdp_kernel(False, False, False, True), pytest.raises(RuntimeError):
        corefw.nn.functional.scaled_dot_product_attention(q, q, q)
    assert settings.attention is None


def test_statistics_of_memory_without_a_gpu():
    if corefw.cuda.is_initialized():
        pytest.skip("a backend for cuda is loaded")
    assert corefw.cuda.memory_stats() == {} and corefw.cuda.memory_summary() == "memory of a GPU"
    corefw.cuda.set_stream(None)


def test_statistics_of_memory_have_pytorchs_names():
    counted = {"allocated": 1, "max_allocated": 2, "reserved": 3, "max_reserved": 4}
    assert {**importlib.import_module("corefw.cuda._runtime").named_statistics(counted)} == {
        "allocated_bytes.all.current": 1,
        "allocated_bytes.all.peak": 2,
        "reserved_bytes.all.current": 3,
        "reserved_bytes.all.peak": 4,
    }


def test_what_a_report_needs(capsys):
    collect_env = importlib.import_module("corefw.utils.collect_env")
    text = collect_env.get_pretty_env_info()
    assert text.startswith(f"corefw {corefw.__version__}, Python") and "backends:" in text
    collect_env.main()
    assert capsys.readouterr().out == text


def test_what_users_do_by_mistake():
    """Errors of PyTorch's types, where nothing else would say what is wrong."""
    with pytest.raises(RuntimeError, match="Expected object of scalar type Float but got scalar type Double"):
        corefw.polar(corefw.ones(2), corefw.ones(2, dtype=corefw.float64))
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes, but got desired dtype"):
        corefw.nn.Linear(2, 2).to(corefw.int64)
    with pytest.raises(TypeError, match="only accepts floating point"):
        corefw.nn.Linear(2, 2).to("cpu", dtype=corefw.bool)
    with pytest.raises(ValueError, match="num_samples should be a positive integer value, but got num_samples=0"):
        corefw.utils.data.DataLoader([], shuffle=True)
    for join in (corefw.cat, corefw.stack):
        with pytest.raises(RuntimeError, match="expected a non-empty list of Tensors"):
            join([])


def test_parameters_without_dimensions_are_shown_whole():
    parameter = corefw.nn.Parameter(corefw.tensor(1.5))
    assert f"{parameter}" == "Parameter containing:\ntensor(1.5000, requires_grad=True)"
    assert f"{parameter:.1f}" == "1.5" and f"{parameter.detach()}" == "1.5"


def test_poolings_with_indices():
    x = corefw.randn(2, 8, 8, 8)
    pools = [f"{kind}_pool{n}d" for kind in ("max", "adaptive_max", "fractional_max") for n in (1, 2, 3)]
    for name in filter(lambda name: hasattr(nn.functional, name), pools):
        options = {"output_size": 3} if name.startswith("fractional") else {}
        image = x[0] if name[-2] == "1" else x if name[-2] == "2" else x.unsqueeze(1)
        if options:
            options["_random_samples"] = corefw.full((*image.shape[:2], int(name[-2])), 0.5)
        found, places = getattr(nn.functional, f"{name}_with_indices")(image, 2, **options)
        expected = getattr(nn.functional, name)(image, 2, return_indices=True, **options)
        assert found.equal(expected[0]) and places.equal(expected[1]) and places.dtype is corefw.int64


def test_functions_of_the_module_functional():
    for name in ("istft", "pca_lowrank", "svd_lowrank"):
        assert getattr(corefw.functional, name) is getattr(corefw, name)


def test_weights_of_convolutions_in_another_order():
    net = nn.Sequential(nn.Conv2d(3, 2, 3), nn.ConvTranspose2d(2, 3, 3), nn.Conv3d(3, 2, 3))
    before = [p.detach().clone() for p in net.parameters()]
    assert nn.utils.convert_conv2d_weight_memory_format(net, corefw.channels_last) is net
    assert net[0].weight.is_contiguous(memory_format=corefw.channels_last)
    assert net[1].weight.is_contiguous(memory_format=corefw.channels_last) and net[2].weight.is_contiguous()
    nn.utils.convert_conv3d_weight_memory_format(net, corefw.channels_last_3d)
    assert net[2].weight.is_contiguous(memory_format=corefw.channels_last_3d)
    assert all(a.equal(b) for a, b in zip(before, net.parameters()))
