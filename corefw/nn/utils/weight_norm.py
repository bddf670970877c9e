"""Weight and spectral normalisation by a hook, as it was before parametrizations.

Before each call the hook computes the weight from the tensors that are trained, which stand in the module itself.
"""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.graph.grad_mode import no_recording
from corefw.nn.modules.module import Module
from corefw.nn.parameter import Parameter
from corefw.nn.utils.parametrizations import PowerIteration, lengths, rows_dim
from corefw.tracebacks import warn


class _Hook:
    """Computes one weight of a module before each call."""

    def __init__(self, module: Module, name: str):
        hooks = module.__dict__.setdefault("_weight_hooks", {})
        if name in hooks:
            raise RuntimeError(f"Cannot register two {self.called} hooks on the same parameter {name}")
        weight = module._parameters.get(name)
        if weight is None:
            raise ValueError(f"Module '{module}' has no parameter with name '{name}'")
        self.name = name
        del module._parameters[name]
        self.replace(module, weight)
        hooks[name] = self
        self.handle = module.register_forward_pre_hook(self)

    called = ""

    def replace(self, module: Module, weight: Parameter) -> None:
        """Register what is trained instead of the weight."""
        raise NotImplementedError

    def compute(self, module: Module):
        """The weight."""
        raise NotImplementedError

    def drop(self, module: Module) -> None:
        """Take back what `replace` registered."""
        raise NotImplementedError

    def __call__(self, module: Module, inputs) -> None:
        setattr(module, self.name, self.compute(module))


class _WeightNorm(_Hook):
    called = "weight_norm"

    def __init__(self, module: Module, name: str, dim: int | None):
        self.dim = dim
        super().__init__(module, name)

    def replace(self, module, weight):
        module.register_parameter(f"{self.name}_g", Parameter(lengths(weight.detach(), self.dim)))
        module.register_parameter(f"{self.name}_v", Parameter(weight.detach().clone()))
        self(module, None)

    def compute(self, module):
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return v * (g / lengths(v, self.dim))

    def drop(self, module):
        del module._parameters[f"{self.name}_g"], module._parameters[f"{self.name}_v"]


class _SpectralNorm(_Hook):
    called = "spectral_norm"

    def __init__(self, module: Module, name: str, n_power_iterations: int, dim: int, eps: float):
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.iterations, self.dim, self.eps = n_power_iterations, dim, eps
        super().__init__(module, name)

    def replace(self, module, weight):
        module.register_parameter(f"{self.name}_orig", weight)
        for name, vector in zip("uv", PowerIteration.start(self._matrix(module), self.eps), strict=True):
            module.register_buffer(f"{self.name}_{name}", vector)
        setattr(module, self.name, weight.detach())

    def _matrix(self, module):
        return PowerIteration.matrix(getattr(module, f"{self.name}_orig"), self.dim)

    def compute(self, module):
        matrix, u, v = self._matrix(module), getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        if module.training:
            PowerIteration.improve(matrix.detach().mH, v, u, self.iterations, self.eps)  # v first
        return getattr(module, f"{self.name}_orig") / ops.dot(u.clone(), ops.mv(matrix, v.clone()))

    def drop(self, module):
        del (
            module._parameters[f"{self.name}_orig"],
            module._buffers[f"{self.name}_u"],
            module._buffers[f"{self.name}_v"],
        )


def _remove(module: Module, name: str, kind: type[_Hook]) -> Module:
    hook = module.__dict__.get("_weight_hooks", {}).get(name)
    if not isinstance(hook, kind):
        raise ValueError(f"{kind.called} of '{name}' not found in {module}")
    with no_recording():
        training, module.training = module.training, False
        weight = hook.compute(module).detach()
        module.training = training
    hook.handle.remove()
    hook.drop(module)
    delattr(module, name)
    del module._weight_hooks[name]
    module.register_parameter(name, Parameter(weight))
    return module


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """Train a weight's length and direction apart, as ``<name>_g`` and ``<name>_v``; deprecated for
    `parametrizations.weight_norm`, whose arguments it has.

    >>> import warnings, corefw as torch
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight_g', 'weight_v']
    """
    warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
    )
    _WeightNorm(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight of `weight_norm` a parameter again.

    >>> import warnings, corefw as torch
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2))
    >>> torch.nn.utils.remove_weight_norm(layer)
    Linear(in_features=3, out_features=2, bias=True)
    """
    return _remove(module, name, _WeightNorm)


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its greatest singular value before each call; `parametrizations.spectral_norm` is its newer
    form, whose arguments it has.

    >>> import corefw as torch
    >>> layer = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 2))
    >>> list(layer.state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    _SpectralNorm(module, name, n_power_iterations, rows_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight of `spectral_norm` a parameter again.

    >>> import corefw as torch
    >>> torch.nn.utils.remove_spectral_norm(torch.nn.utils.spectral_norm(torch.nn.Linear(3, 2)))
    Linear(in_features=3, out_features=2, bias=True)
    """
    return _remove(module, name, _SpectralNorm)
