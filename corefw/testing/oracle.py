"""Comparison with PyTorch, where it is installed: the same calls there and here, forward and backward."""

from __future__ import annotations

import importlib.util
import warnings
from operator import attrgetter

import numpy as np

from corefw import dtypes
from corefw.dispatch.names import public_path
from corefw.dispatch.op import Op
from corefw.dispatch.registry import registry
from corefw.dtypes import dtype
from corefw.tensor import Tensor
from corefw.testing.case import Case
from corefw.testing.checks import PROPERTIES, Property, about, call, case_dtypes, flat
from corefw.testing.comparison import compare_values, host
from corefw.testing.differences import gradients
from corefw.testing.expectations import tolerance
from corefw.testing.halves import half_dtypes, half_samples, narrow_and_exact, places, recorded
from corefw.testing.samples import Sample, require_gradients, samples, special_samples, to_tensor
from corefw.testing.targets import Target

_DTYPES = (
    *("bool", "uint8", "int8", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)


def _to_torch(torch, array: np.ndarray):
    array = np.array(array, order="C", copy=True)
    if array.dtype == dtypes.bfloat16.numpy:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _from_torch(torch, tensor) -> np.ndarray:
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.dtype is torch.bfloat16:
        return tensor.clone().contiguous().view(torch.int16).numpy().view(dtypes.bfloat16.numpy)
    return tensor.numpy(force=True)  # also of a gradient that PyTorch keeps as a mere zero


def path(case: Case) -> str:
    """The dotted name of PyTorch's function for a row, "" if it has none."""
    return "" if case.torch is None else case.torch or public_path(registry.declared[case.op])


def _function(torch, case: Case):
    return attrgetter(path(case))(torch)


def _translate(torch, value):
    """A static argument in PyTorch's types."""
    if isinstance(value, dtype):
        return getattr(torch, value.name)
    return value


def _torch_sample(torch, sample: Sample) -> Sample:
    given = sample.map(lambda array: _to_torch(torch, array))
    return Sample(
        tuple(_translate(torch, v) for v in given.arguments),
        {k: _translate(torch, v) for k, v in given.keywords.items()},
    )


def oracle(case: Case, op: Op, target: Target) -> None:
    """PyTorch gives the same values, dtypes and gradients."""
    torch = import_torch()
    function = _function(torch, case)
    compared = 0
    for d in case_dtypes(case, op):
        if d.name not in _DTYPES:
            continue
        for sample in samples(case, d):
            with about(d.name, sample):
                given = _torch_sample(torch, sample)
                try:
                    expected = _theirs(function, given)
                except (NotImplementedError, RuntimeError, TypeError) as error:
                    if d not in (dtypes.float32, dtypes.float64) or "invalid combination of arguments" in str(error):
                        continue  # corefw may take more dtypes and more combinations of arguments
                    raise
                compared += 1
                actual = call(op.function, sample, target)
                assert len(actual) == len(expected), f"{len(actual)} results, PyTorch gives {len(expected)}"
                for i, (a, e) in enumerate(zip(actual, expected)):
                    with about(f"result {i}"):
                        _compare(torch, case, d, a, e)
                if case.gradient and d in (dtypes.float64, dtypes.complex128):
                    _compare_gradients(torch, case, op, function, sample, target, d)
        if d in half_dtypes(case, op):
            _compare_half_gradients(torch, case, op, function, target, d)
    assert compared, "PyTorch took none of the row's samples"


#: gradients of outputs beside which a product with 0 is not 0
_UNUSUAL_WEIGHTS = np.array([np.inf, -np.inf, 0.0, 1.0, -2.0])


def unusual_gradients(case: Case, op: Op, target: Target) -> None:
    """Infinite gradients, and gradients at NaN, infinities and zeros, are PyTorch's wherever these are numbers."""
    torch = import_torch()
    function = _function(torch, case)
    for sample in special_samples(case, dtypes.float64, draws=12):
        with about(sample):
            given = _torch_sample(torch, sample)
            inputs = [t.requires_grad_() for t in given.arguments if isinstance(t, torch.Tensor)]
            try:
                shape = np.broadcast_shapes(*(array.shape for array in sample.arrays()))
                output = _theirs(function, given)[0]
                weights = np.random.default_rng(0).choice(_UNUSUAL_WEIGHTS, shape)
                expected = torch.autograd.grad(output, inputs, _to_torch(torch, weights), allow_unused=True)
            except (RuntimeError, TypeError, ValueError):
                continue  # not elementwise, or without a gradient
            ours, (result, *_) = recorded(op, sample, target.device)
            for i, (a, e) in enumerate(zip(gradients([result], ours, [to_tensor(weights)]), expected, strict=True)):
                if a is None or e is None or i in case.constant:
                    continue
                known = ~np.isnan(_from_torch(torch, e))
                with about(f"gradient of input {i} for {weights.tolist()}"):
                    compare_values(host(a)[known], _from_torch(torch, e)[known], 1e-6, 1e-9)


def _compare(torch, case: Case, d: dtype, actual, expected) -> None:
    if not isinstance(actual, Tensor):
        assert actual == expected or actual != actual, f"{actual!r}, PyTorch gives {expected!r}"
        return
    assert isinstance(expected, torch.Tensor), f"a tensor, PyTorch gives {expected!r}"
    name = str(expected.dtype).removeprefix("torch.")
    assert actual.dispatch_key.dtype.name == name, f"dtype {actual.dispatch_key.dtype.name}, PyTorch gives {name}"
    rtol, atol = tolerance(case, d, actual.dispatch_key.dtype)
    if d.itemsize == 2 or d is dtypes.complex64:
        rtol, atol = 4 * rtol, 4 * atol  # PyTorch itself rounds in between
    compare_values(host(actual), _from_torch(torch, expected), rtol, atol)


def _theirs(function, given: Sample) -> list:
    """PyTorch's results; what it warns of is its own affair."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return flat(function(*given.arguments, **given.keywords))


def _compare_gradients(torch, case: Case, op: Op, function, sample: Sample, target: Target, d: dtype) -> None:
    given = _torch_sample(torch, sample)
    theirs = [
        v.requires_grad_()
        for value in (*given.arguments, *given.keywords.values())
        for v in (value if isinstance(value, list) else [value])
        if isinstance(v, torch.Tensor) and (v.is_floating_point() or v.is_complex())
    ]
    try:
        their_outputs = _theirs(function, given)
    except RuntimeError:
        return  # it refuses to record what it computes
    tensors = sample.map(lambda array: to_tensor(array, target.device))
    ours = list(require_gradients((*tensors.arguments, *tensors.keywords.values())))
    our_outputs = flat(op.function(*tensors.arguments, **tensors.keywords))
    pairs = [
        (o, t)
        for o, t in zip(our_outputs, their_outputs, strict=True)
        if isinstance(t, torch.Tensor) and t.requires_grad and o.dispatch_key.dtype.category >= dtypes.FLOATING
    ]
    if not pairs:
        return
    rng = np.random.default_rng(0)
    weights = [np.asarray(rng.standard_normal(tuple(t.shape))).astype(o.dispatch_key.dtype.numpy) for o, t in pairs]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            their_weights = [_to_torch(torch, w) for w in weights]
            expected = torch.autograd.grad([t for _, t in pairs], theirs, their_weights, allow_unused=True)
    except (NotImplementedError, RuntimeError):
        return  # an op, or a combination of arguments, without a gradient there
    actual = gradients([o for o, _ in pairs], ours, [to_tensor(w, target.device) for w in weights])
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        with about(f"gradient of input {i}"):
            if a is None or e is None:
                rest = host(a) if a is not None else _from_torch(torch, e) if e is not None else np.zeros(())
                assert not rest.any(), f"{'PyTorch alone' if a is None else 'corefw alone'} has a gradient"
            else:
                compare_values(host(a), _from_torch(torch, e), max(case.rtol, 1e-6), max(case.atol, 1e-8))


def _compare_half_gradients(torch, case: Case, op: Op, function, target: Target, d: dtype) -> None:
    """Gradients of a half type are as near to those of double precision as PyTorch's, or within two roundings."""
    for sample in half_samples(case, d):
        with about(d.name, sample):
            given = _torch_sample(torch, sample)
            inputs = [
                v.requires_grad_()
                for value in (*given.arguments, *given.keywords.values())
                for v in (value if isinstance(value, list) else [value])
                if isinstance(v, torch.Tensor) and v.is_floating_point()
            ]
            actual, exact, weights = narrow_and_exact(case, op, sample, d, target.device)
            try:
                outputs = [o for o in _theirs(function, given) if isinstance(o, torch.Tensor) and o.requires_grad]
                found = torch.autograd.grad(outputs, inputs, [_to_torch(torch, w) for w in weights], allow_unused=True)
            except (NotImplementedError, RuntimeError, TypeError):
                continue  # without a gradient of half types, or this combination of arguments, there
            kept = [g for i, g in enumerate(found) if i not in case.constant]
            theirs = places(d, [None if g is None else _from_torch(torch, g) for g in kept], exact, weights)
            ours = places(d, actual, exact, weights)
            assert ours <= max(2.0, theirs), (
                f"the gradient is {ours:.3g} units of the last place from the exact one, PyTorch's {theirs:.3g}"
            )


def import_torch():
    """PyTorch; ImportError without it."""
    import torch

    return torch


def available() -> bool:
    """Whether PyTorch can be imported."""
    return importlib.util.find_spec("torch") is not None


PROPERTIES["oracle"] = Property(oracle, lambda case, op: bool(path(case)), True)
PROPERTIES["unusual_gradients"] = Property(
    unusual_gradients,
    lambda case, op: (
        bool(path(case))
        and case.gradient
        and case.make is None
        and dtypes.float64 in case_dtypes(case, op)
        and not any(p.name == "dim" for p in op.parameters)  # elementwise
    ),
    True,
)
