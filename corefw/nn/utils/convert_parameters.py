"""The parameters of a model as one vector."""

from __future__ import annotations

from collections.abc import Iterable

from corefw.dispatch.declare import ops
from corefw.tensor import Tensor


def _check_devices(parameters: list[Tensor]) -> None:
    if len({p.dispatch_key.device for p in parameters}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of the parameters, one after the other; gradients flow to the parameters.

    >>> import corefw as torch
    >>> torch.nn.utils.parameters_to_vector([torch.ones(1, 2), torch.zeros(2)])
    tensor([1., 1., 0., 0.])
    """
    parameters = list(parameters)
    _check_devices(parameters)
    return ops.cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give the parameters the elements of a vector as their data; the inverse of `parameters_to_vector`.

    >>> import corefw as torch
    >>> weight = torch.zeros(1, 2)
    >>> torch.nn.utils.vector_to_parameters(torch.tensor([3.0, 4.0]), [weight])
    >>> weight
    tensor([[3., 4.]])
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    parameters = list(parameters)
    _check_devices(parameters)
    start = 0
    for parameter in parameters:
        size = parameter.numel()
        parameter.data = vec[start : start + size].view_as(parameter).data
        start += size


__all__ = ["parameters_to_vector", "vector_to_parameters"]
