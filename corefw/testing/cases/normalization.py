"""Normalisations."""

import numpy as np

from corefw.testing.case import Case


def standard(input, dims, eps=1e-5):
    """(input with mean 0 and variance 1 over `dims`, mean, variance)."""
    mean = input.mean(dims, keepdims=True)
    variance = ((input - mean) ** 2).mean(dims, keepdims=True)
    return (input - mean) / np.sqrt(variance + eps), mean, variance


def affine(values, weight, bias, beside=None):
    if weight is not None:
        values = values * (weight if beside is None else weight.reshape(beside))
    if bias is not None:
        values = values + (bias if beside is None else bias.reshape(beside))
    return values


def layer_normalization(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    values, mean, variance = standard(input, dims, eps)
    return affine(values, weight, bias), mean, 1 / np.sqrt(variance + eps)


def rms_normalization(input, normalized_shape, weight=None, eps=1e-5):
    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    scale = 1 / np.sqrt((input**2).mean(dims, keepdims=True) + eps)
    return affine(input * scale, weight, None), scale


def group_normalization(input, num_groups, weight=None, bias=None, eps=1e-5):
    values = np.zeros_like(input)
    mean, scale = np.zeros((2, input.shape[0], num_groups))
    size = input.shape[1] // num_groups
    for n, g in np.ndindex(input.shape[0], num_groups):
        part = (n, slice(g * size, (g + 1) * size))
        values[part], m, v = standard(input[part], None, eps)
        mean[n, g], scale[n, g] = m.item(), 1 / np.sqrt(v.item() + eps)
    return affine(values, weight, bias, (-1, *(1,) * (input.ndim - 2))), mean, scale


def batch_normalization(input, weight=None, bias=None, eps=1e-5):
    values, mean, variance = standard(input, (0, *range(2, input.ndim)), eps)
    return affine(values, weight, bias, (-1, *(1,) * (input.ndim - 2))), mean.ravel(), variance.ravel()


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=True):
    if training:
        return batch_normalization(input, weight, bias, eps)[0]
    beside = (-1, *(1,) * (input.ndim - 2))
    values = (input - running_mean.reshape(beside)) / np.sqrt(running_var.reshape(beside) + eps)
    return affine(values, weight, bias, beside)


def functional_batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled=True):
    if not use_input_stats:
        return batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
    values = standard(input, tuple(range(2, input.ndim)), eps)[0]
    return affine(values, weight, bias, (-1, *(1,) * (input.ndim - 2)))


def functional_instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5
):
    return instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


def standardized(input, scale, dims, mean=None):
    return (input if mean is None else input - mean) * scale


def standardized_backward(gradient, input, scale, dims, mean=None, weight=None):
    g = gradient if weight is None else gradient * weight
    values = standardized(input, scale, dims, mean)
    result = g - values * (g * values).mean(dims, keepdims=True)
    return (result if mean is None else result - g.mean(dims, keepdims=True)) * scale


def standardized_gradients(gradient, input, weight, scale, dims, mean=None):
    def summed(x):
        lost = x.sum(tuple(range(x.ndim - weight.ndim)))
        return lost.sum(tuple(i for i in range(weight.ndim) if weight.shape[i] == 1), keepdims=True)

    values = standardized(input, scale, dims, mean)
    return (
        standardized_backward(gradient, input, scale, dims, mean, weight),
        summed(gradient * values),
        summed(gradient),
    )


def channel_affine(input, scale, shift):
    return affine(input, scale, shift, (-1, *(1,) * (input.ndim - 2)))


# -- calls ------------------------------------------------------------------------------------------------------------
def drawing(rng, numpy_dtype):
    return lambda *shape: rng.normal(size=shape).astype(numpy_dtype)


def layer_calls(rng, numpy_dtype):
    draw = drawing(rng, numpy_dtype)
    return [
        ([draw(2, 5)], {"normalized_shape": (5,)}),
        ([draw(5)], {"normalized_shape": (5,), "weight": draw(5), "eps": 0.1}),
        ([draw(2, 3, 4)], {"normalized_shape": (4,), "weight": draw(4), "bias": draw(4)}),
        ([draw(2, 3, 4)], {"normalized_shape": (3, 4), "bias": draw(3, 4)}),
        ([draw(0, 4)], {"normalized_shape": (4,), "weight": draw(4)}),
    ]


def rms_calls(rng, numpy_dtype):
    calls = layer_calls(rng, numpy_dtype)
    return [(x, {"eps": 1e-5} | {k: v for k, v in attributes.items() if k != "bias"}) for x, attributes in calls]


def group_calls(rng, numpy_dtype):
    draw = drawing(rng, numpy_dtype)
    return [
        ([draw(2, 4)], {"num_groups": 2}),
        ([draw(2, 4, 3)], {"num_groups": 2, "weight": draw(4), "bias": draw(4)}),
        ([draw(1, 6, 2, 2)], {"num_groups": 3, "weight": draw(6), "eps": 0.1}),
        ([draw(0, 4, 3)], {"num_groups": 4, "bias": draw(4)}),
    ]


def batch_calls(rng, numpy_dtype):
    draw = drawing(rng, numpy_dtype)
    return [
        ([draw(4, 3)], {}),
        ([draw(2, 3, 4), draw(3)], {}),
        ([draw(2, 3, 2, 2), draw(3), draw(3)], {"eps": 0.1}),
    ]


def running_calls(rng, numpy_dtype):
    """(input, weight, bias, running mean, running variance) and options, of batch and instance normalisation."""
    draw = drawing(rng, numpy_dtype)
    for shape in ((4, 3), (2, 3, 4), (2, 3, 2, 2)):
        weight, bias, mean, variance = draw(3), draw(3), draw(3), draw(3) ** 2 + 1
        yield draw(*shape), weight, bias, mean, variance, False
        if len(shape) > 2:
            yield draw(*shape), weight, bias, None, None, True
            yield draw(*shape), None, bias, None, None, True


def torch_order(rng, numpy_dtype):
    return [([*tensors, 0.1, 1e-5, False], {}) for tensors in running_calls(rng, numpy_dtype)]


def functional_order(flag):
    def make(rng, numpy_dtype):
        calls = running_calls(rng, numpy_dtype)
        return [([x, mean, var, weight, bias], {flag: stats}) for x, weight, bias, mean, var, stats in calls]

    return make


def standard_calls(rng, numpy_dtype):
    """Inputs with their own reciprocal standard deviation and mean: gradients suppose that these are the input's."""
    calls = []
    for shape, dims in (((2, 5), (1,)), ((2, 3, 4), (0, 2)), ((2, 3, 4), (1, 2))):
        input = rng.normal(size=shape)
        _, mean, variance = standard(input, dims)
        root = 1 / np.sqrt((input**2).mean(dims, keepdims=True) + 1e-5)
        input, mean, root = (a.astype(numpy_dtype) for a in (input, mean, root))
        scale = (1 / np.sqrt(variance + 1e-5)).astype(numpy_dtype)
        calls += [([input, scale], {"dims": dims, "mean": mean}), ([input, root], {"dims": dims})]
    return calls


def standard_backward_calls(rng, numpy_dtype):
    calls = standard_calls(rng, numpy_dtype)
    draw = drawing(rng, numpy_dtype)
    plain = [([draw(*input.shape), input, scale], attributes) for (input, scale), attributes in calls]
    weighted = [([g, x, scale], attributes | {"weight": draw(x.shape[-1])}) for (g, x, scale), attributes in plain]
    return plain + weighted


def standard_gradients_calls(rng, numpy_dtype):
    calls = standard_calls(rng, numpy_dtype)
    draw = drawing(rng, numpy_dtype)
    return [
        ([draw(*x.shape), x, draw(*weight(x.shape)), scale], attributes)
        for (x, scale), attributes in calls
        for weight in (
            lambda shape: shape[-1:],
            lambda shape: (*shape[:2], *(1 for _ in shape[2:])),
            lambda shape: shape[1:],
        )
    ]


def affine_calls(rng, numpy_dtype):
    draw = drawing(rng, numpy_dtype)
    return [([draw(2, 3, *rest), draw(3), draw(3)], {}) for rest in ((), (4,), (2, 2))]


def first(function):
    """The first output of a reference."""
    return lambda *arguments, **attributes: function(*arguments, **attributes)[0]


FLOATS = ("float16", "bfloat16", "float32", "float64")

CASES = (
    Case("batch_norm", batch_norm, make=torch_order, constant=(3, 4), rtol=1e-6),
    Case("batch_normalization", batch_normalization, make=batch_calls, gradient=False),
    Case("channel_affine", channel_affine, make=affine_calls),
    Case(
        "functional_batch_norm",
        functional_batch_norm,
        make=functional_order("training"),
        gradient=False,
    ),
    Case(
        "functional_instance_norm",
        functional_instance_norm,
        make=functional_order("use_input_stats"),
        gradient=False,
        dtypes=FLOATS,
    ),
    Case("group_norm", first(group_normalization), make=group_calls, rtol=1e-6),
    Case("group_normalization", group_normalization, make=group_calls, gradient=False),
    Case("instance_norm", instance_norm, make=torch_order, constant=(3, 4), rtol=1e-6, gradient=False),
    Case("layer_norm", first(layer_normalization), make=layer_calls, rtol=1e-6),
    Case("layer_normalization", layer_normalization, make=layer_calls, gradient=False),
    Case("rms_norm", first(rms_normalization), make=rms_calls, rtol=1e-6),
    Case("rms_normalization", rms_normalization, make=rms_calls, gradient=False),
    Case("standardized", standardized, make=standard_calls, gradient=False, rtol=1e-6),
    Case("standardized_backward", standardized_backward, make=standard_backward_calls, gradient=False),
    Case("standardized_gradients", standardized_gradients, make=standard_gradients_calls, gradient=False),
)
