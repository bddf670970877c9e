"""Namespaces: names, pickling, errors, and gradients of decompositions on what is determined."""

import copy
import importlib
import inspect
import pickle
from operator import attrgetter

import numpy as np
import pytest

import corefw
from corefw.autograd import gradcheck, gradgradcheck
from corefw.dispatch.declare import composite
from corefw.dispatch.names import NAMESPACES, forms, public_path
from corefw.dispatch.registry import registry

rng = np.random.default_rng(0)


def matrix(*shape, complex_=False):
    values = rng.uniform(-1, 1, shape)
    if complex_:
        values = values + 1j * rng.uniform(-1, 1, shape)
    values[..., range(min(shape[-2:])), range(min(shape[-2:]))] += np.arange(1, min(shape[-2:]) + 1)
    return corefw.tensor(values, requires_grad=True)


def hermitian(function):
    return lambda a: function(a @ a.mH + corefw.eye(a.shape[-1], dtype=a.dtype))


def eigenprojections(a):
    values, vectors = corefw.linalg.eigh(a)
    return values, vectors * values.sin().unsqueeze(-2) @ vectors.mH


def singular_projections(a):
    U, S, Vh = corefw.linalg.svd(a, full_matrices=False)
    return S, U * S.sin().unsqueeze(-2) @ Vh, U * S.unsqueeze(-2) @ U.mH


DETERMINED = {
    "cholesky": (hermitian(corefw.linalg.cholesky), (2, 3, 3)),
    "cholesky upper": (hermitian(lambda a: corefw.linalg.cholesky(a, upper=True)), (3, 3)),
    "eigh": (hermitian(eigenprojections), (2, 3, 3)),
    "eigvalsh": (hermitian(corefw.linalg.eigvalsh), (3, 3)),
    "svd": (singular_projections, (2, 3, 3)),
    "svd tall": (singular_projections, (4, 2)),
    "svd wide": (singular_projections, (2, 4)),
    "qr": (lambda a: tuple(corefw.linalg.qr(a)), (2, 3, 3)),
    "qr tall": (lambda a: tuple(corefw.linalg.qr(a)), (4, 2)),
    "qr wide": (lambda a: tuple(corefw.linalg.qr(a)), (2, 4)),
    "logdet": (hermitian(corefw.logdet), (3, 3)),
    "lstsq": (lambda a: corefw.linalg.lstsq(a, a[..., :1].sin()).solution, (4, 2)),
    "solve right": (lambda a: corefw.linalg.solve(a, a.sin(), left=False), (3, 3)),
    "power zero": (lambda a: corefw.linalg.matrix_power(a, 0) * a, (3, 3)),
}


@pytest.mark.parametrize("complex_", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("name", DETERMINED)
def test_gradients_of_what_is_determined(name, complex_):
    function, shape = DETERMINED[name]
    a = matrix(*shape, complex_=complex_)
    assert gradcheck(function, a)
    assert gradgradcheck(function, a)


def test_gradient_of_a_singular_determinant_is_the_cofactors():
    a = corefw.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=corefw.float64, requires_grad=True)
    corefw.det(a).backward()
    corefw.testing.assert_close(a.grad, corefw.tensor([[4.0, -2.0], [-2.0, 1.0]], dtype=corefw.float64))


ONES, SINGULAR = corefw.ones(3), corefw.zeros(2, 2)
ERRORS = {
    "fft of 0-d": (IndexError, lambda m: m.fft.fft(ONES[0]), "no dimensions"),
    "fft of nothing": (RuntimeError, lambda m: m.fft.fft(ONES, n=0), "data points"),
    "norm": (RuntimeError, lambda m: m.fft.fft(ONES, norm="x"), "normalization mode"),
    "complex rfft": (RuntimeError, lambda m: m.fft.rfft(ONES + 0j), "real input"),
    "half": (RuntimeError, lambda m: m.fft.fft(ONES.half()), "Unsupported dtype"),
    "repeated dims": (RuntimeError, lambda m: m.fft.fftn(ONES, dim=(0, 0)), "unique"),
    "sizes and dims": (RuntimeError, lambda m: m.fft.fftn(SINGULAR, s=(2,), dim=(0, 1)), "same length"),
    "no dims": (RuntimeError, lambda m: m.fft.rfftn(ONES, dim=()), "at least one"),
    "singular inv": (corefw.linalg.LinAlgError, lambda m: m.linalg.inv(SINGULAR), "singular"),
    "singular solve": (corefw.linalg.LinAlgError, lambda m: m.linalg.solve(SINGULAR, SINGULAR), "singular"),
    "indefinite": (corefw.linalg.LinAlgError, lambda m: m.linalg.cholesky(SINGULAR - 1), "not positive-definite"),
    "infinite svd": (corefw.linalg.LinAlgError, lambda m: m.linalg.svd(1 / SINGULAR), "non-finite values"),
    "infinite pinv": (corefw.linalg.LinAlgError, lambda m: m.linalg.pinv(-1 / SINGULAR), "non-finite values"),
    "not square": (RuntimeError, lambda m: m.linalg.det(corefw.ones(2, 3)), "square"),
    "no matrix": (RuntimeError, lambda m: m.linalg.svd(ONES), "at least 2 dimensions"),
    "solve shapes": (RuntimeError, lambda m: m.linalg.solve(SINGULAR, ONES), "Incompatible shapes"),
    "qr mode": (RuntimeError, lambda m: m.linalg.qr(SINGULAR, "x"), "unrecognized mode"),
    "matrix_norm order": (RuntimeError, lambda m: m.linalg.matrix_norm(SINGULAR, 3), "not supported"),
    "integer norm": (RuntimeError, lambda m: m.linalg.norm(SINGULAR.int()), "floating point or complex"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_is_wrong(name):
    kind, call, text = ERRORS[name]
    with pytest.raises(kind, match=text):
        call(corefw)


@pytest.mark.parametrize("name", ["fft", "linalg", "special"])
def test_the_names_are_pytorchs(name):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference")
    ours = getattr(corefw, name)
    assert all(hasattr(ours, n) and hasattr(getattr(torch, name), n) for n in ours.__all__)


def test_single_precision_stays_single():
    assert corefw.fft.fft(corefw.ones(4)).dtype is corefw.complex64
    assert corefw.fft.irfft(corefw.fft.rfft(corefw.ones(4))).dtype is corefw.float32
    assert corefw.linalg.svd(corefw.eye(2)).S.dtype is corefw.float32


def test_special_functions_far_out():
    special = pytest.importorskip("scipy.special", reason="SciPy is the reference")
    x = np.concatenate([np.linspace(-26, 200, 2001), [np.inf, -np.inf, np.nan, 1e300]])
    for name in ("erfcx", "log_ndtr", "ndtr"):
        found = getattr(corefw.special, name)(corefw.tensor(x)).numpy()
        np.testing.assert_allclose(found, getattr(special, name)(x), rtol=2e-13, atol=1e-300)
    y = np.concatenate([np.linspace(-1, 1, 2001), 1 - 10.0 ** -np.arange(1, 17)])
    np.testing.assert_allclose(corefw.special.erfinv(corefw.tensor(y)).numpy(), special.erfinv(y), rtol=1e-12)


MODULES = """
corefw corefw.autograd corefw.autograd.functional corefw.distributions corefw.fft corefw.func corefw.linalg
corefw.masked corefw.nn corefw.nn.attention corefw.nn.functional corefw.nn.init corefw.nn.parallel corefw.nn.utils
corefw.nn.utils.rnn corefw.optim corefw.optim.lr_scheduler corefw.random corefw.special corefw.utils.checkpoint
corefw.utils.data corefw.vision.transforms.functional
"""


@pytest.mark.parametrize("namespace", MODULES.split())
def test_public_functions_and_classes_are_pickled_by_name(namespace):
    module = importlib.import_module(namespace)
    names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    public = {name: getattr(module, name) for name in names}
    found = {n: value for n, value in public.items() if inspect.isroutine(value) or isinstance(value, type)}
    assert found
    lost = [n for n, value in found.items() if _through_pickle(value) is not value]
    assert not lost


def _through_pickle(value):
    try:
        return pickle.loads(pickle.dumps(value))
    except (pickle.PicklingError, AttributeError, ImportError) as error:
        return error


def test_methods_of_tensors_are_pickled_by_name():
    methods = {n: m for n, m in inspect.getmembers(corefw.Tensor, inspect.isfunction) if not n.startswith("_")}
    assert not [n for n, method in methods.items() if _through_pickle(method) is not method]


def test_functions_have_the_names_under_which_they_are_found():
    assert (corefw.linalg.det.__module__, corefw.linalg.det.__qualname__) == ("corefw.linalg", "det")
    assert (corefw.nn.functional.gelu.__module__, corefw.sin.__module__) == ("corefw.nn.functional", "corefw")
    assert (corefw.fix is corefw.trunc, corefw.fix.__qualname__) == (True, "trunc")


@pytest.fixture
def declared():
    """Declares ops called "planted", and forgets them at the end."""

    def declare(**options):
        def planted(input):
            """Nothing."""

        return composite(**options)(planted).op

    before = dict(registry.declared)
    yield declare
    registry.declared.clear()
    registry.declared.update(before)


def test_a_declaration_says_where_its_op_is_public(declared):
    op = declared(inplace=True, aliases=("sown",), public="corefw corefw.planted_ Tensor special.grown")
    assert op.public == {
        "corefw": ("planted", "sown", "planted_"),
        "Tensor": ("planted", "sown", "planted_", "sown_"),
        "special": ("grown",),
    }
    assert forms("special")["grown"] == (op, op.function)
    assert forms("corefw")["planted_"] == (op, op.inplace_function)


@pytest.mark.parametrize(
    ("options", "public"),
    [
        ({}, {"corefw": ("planted",), "Tensor": ("planted",)}),
        ({"public": ""}, {}),
        ({"name": "linalg_planted"}, {"linalg": ("planted",)}),
        ({"name": "linalg_planted", "public": ""}, {}),
    ],
)
def test_most_declarations_need_not_say_it(declared, options, public):
    assert declared(**options).public == public


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"public": "corefw nn.function"}, ValueError, "op 'planted': 'nn.function' is neither a namespace nor a name"),
        ({"inplce": True}, TypeError, "unexpected keyword argument 'inplce'"),
    ],
)
def test_a_declaration_with_a_slip_is_refused(declared, options, error, text):
    with pytest.raises(error, match=text):
        declared(**options)


PATHS = {
    "sin": "sin",
    "relu": "nn.functional.relu",
    "functional_unfold": "nn.functional.unfold",
    "linalg_inv": "linalg.inv",
    "view": "Tensor.view",
    "relu_backward": "",
}


@pytest.mark.parametrize(("name", "path"), PATHS.items())
def test_an_op_has_one_path(name, path):
    assert public_path(registry.declared[name]) == path


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_namespaces_have_what_declarations_give_them(namespace):
    place = corefw if namespace == "corefw" else attrgetter(namespace)(corefw)
    found = forms(namespace)
    assert found
    for name, (_, function) in found.items():
        assert inspect.unwrap(registry.own(getattr(place, name))) is inspect.unwrap(function)
    assert namespace == "Tensor" or {name for name in found if name[0] != "_"} <= set(place.__all__)


def test_modules_that_hold_functions_are_pickled_whole(tmp_path):
    layer = corefw.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, activation=corefw.nn.functional.gelu).eval()
    x = corefw.rand(3, 2, 4)
    corefw.save(layer, tmp_path / "layer.pt")
    for other in (pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer)):
        assert other.activation is corefw.nn.functional.gelu
        assert (other(x) == layer(x)).all()
    assert (corefw.load(tmp_path / "layer.pt", weights_only=False)(x) == layer(x)).all()
