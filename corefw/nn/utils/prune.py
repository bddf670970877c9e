"""Weights whose least important elements are held at 0.

The parameter that is trained becomes ``<name>_orig``, the buffer ``<name>_mask`` says what is kept, and a hook sets the
weight to their product before each call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from corefw.dispatch.declare import ops
from corefw.nn.modules.module import Module
from corefw.tensor import Tensor


class BasePruningMethod(ABC):
    """A way to choose what is pruned. A subclass defines ``compute_mask(t, default_mask)`` and says what its amount
    counts: PRUNING_TYPE is "unstructured" (elements), "structured" (slices) or "global"."""

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def __call__(self, module: Module, inputs) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of a tensor of importances, of which `default_mask` tells what is pruned already."""

    def apply_mask(self, module: Module) -> Tensor:
        """The pruned weight."""
        if not hasattr(self, "_tensor_name"):
            raise RuntimeError(f"Module {module} has to be pruned")
        return getattr(module, f"{self._tensor_name}_orig") * getattr(module, f"{self._tensor_name}_mask")

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a module's parameter by this method, after those which it is pruned by already.

        Args:
            module: what has the parameter.
            name: its name.
            args, kwargs: the method's arguments.
            importance_scores: what elements are chosen by, of the parameter's shape; None for the parameter itself.
        """
        hooks = module.__dict__.setdefault("_pruning_hooks", {})
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        before = hooks.pop(name, None)
        if before is not None:
            before[1].remove()
            method = _after(before[0], method)
            mask = getattr(module, f"{name}_mask")
        else:
            weight = module._parameters[name]
            if weight is None:
                raise ValueError(f"{module} has no parameter '{name}'")
            del module._parameters[name]
            module.register_parameter(f"{name}_orig", weight)
            mask = ops.ones_like(weight.detach())
        original = getattr(module, f"{name}_orig").detach()
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise ValueError(
                f"importance_scores should have the same shape as parameter {name} of {module}: "
                f"{tuple(original.shape)}, got {tuple(scores.shape)}"
            )
        module.register_buffer(f"{name}_mask", method.compute_mask(scores, mask).to(original.dtype))
        setattr(module, name, method.apply_mask(module))
        hooks[name] = method, module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A pruned copy of a tensor; arguments as for `apply`."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise ValueError("importance_scores should have the same shape as tensor t")
        return t * self.compute_mask(scores, ops.ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Make the pruned weight a parameter, for good."""
        name = self._tensor_name
        weight = self.apply_mask(module).detach()
        delattr(module, name)
        original = module._parameters[f"{name}_orig"]
        original.data = weight
        del module._parameters[f"{name}_orig"], module._buffers[f"{name}_mask"]
        module.register_parameter(name, original)


def _after(before: BasePruningMethod, method: BasePruningMethod) -> PruningContainer:
    container = before if isinstance(before, PruningContainer) else PruningContainer(before)
    container.add_pruning_method(method)
    return container


class PruningContainer(BasePruningMethod):
    """Several methods, one after the other: each chooses among what those before left."""

    def __init__(self, *args: Any):
        methods = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a method of the same parameter."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if not self._pruning_methods and not hasattr(self, "_tensor_name"):
            self._tensor_name = method._tensor_name
        elif self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """What the last method makes of the elements, or slices, that are left."""
        method = self._pruning_methods[-1]
        mask = default_mask.clone()
        if method.PRUNING_TYPE == "unstructured":
            left = mask == 1
            mask[left] = method.compute_mask(t[left], mask[left])
            return mask
        if method.PRUNING_TYPE == "structured":
            dim = method.dim % t.ndim  # type: ignore[attr-defined]
            others = [i for i in range(t.ndim) if i != dim]
            left = (mask.sum(others) if others else mask) != 0
            where = (slice(None),) * dim + (left,)
            mask[where] = method.compute_mask(t[where], mask[where])
            return mask
        return method.compute_mask(t, default_mask)


class Identity(BasePruningMethod):
    """Prunes nothing."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Prunes elements at random.

    Args:
        amount: how many, or what share of them.
    """

    def __init__(self, amount: float):
        _check_amount(amount)
        self.amount = amount

    def importance(self, t: Tensor) -> Tensor:
        """What the elements with the least of are pruned."""
        return ops.rand_like(t)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        mask = default_mask.clone()
        if count:
            least = ops.topk(self.importance(t).flatten(), count, largest=False)[1]
            mask.view(-1)[least] = 0
        return mask


class L1Unstructured(RandomUnstructured):
    """Prunes the elements of least modulus.

    Args:
        amount: how many, or what share of them.
    """

    def importance(self, t: Tensor) -> Tensor:
        return t.abs()


class RandomStructured(BasePruningMethod):
    """Prunes slices at random.

    Args:
        amount: how many, or what share of them.
        dim: the dimension that they are counted along.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1):
        _check_amount(amount)
        self.amount, self.dim = amount, dim

    def importance(self, t: Tensor) -> Tensor:
        """What the slices with the least of are pruned."""
        return ops.rand((t.shape[self.dim],), device=t.device)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.ndim < 2:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{tuple(t.shape)} with {t.ndim} dims"
            )
        count = _count(self.amount, t.shape[self.dim])
        if not count:
            return default_mask
        least = ops.topk(self.importance(t), count, largest=False)[1]
        return default_mask.index_fill(self.dim, least, 0)


class LnStructured(RandomStructured):
    """Prunes the slices of least n-norm.

    Args:
        amount: how many, or what share of them.
        n: which norm, as for `norm`.
        dim: the dimension that they are counted along.
    """

    def __init__(self, amount: float, n: float | str, dim: int = -1):
        super().__init__(amount, dim)
        self.n = n

    def importance(self, t: Tensor) -> Tensor:
        others = [i for i in range(t.ndim) if i != self.dim % t.ndim]
        return ops.norm(t, p=self.n, dim=others)


class CustomFromMask(BasePruningMethod):
    """Prunes what a mask says.

    Args:
        mask: 0 for what is pruned.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise ValueError(f"expected a mask of shape {tuple(default_mask.shape)}, got {tuple(self.mask.shape)}")
        return default_mask * self.mask.to(default_mask.dtype)


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, (int, float)) or isinstance(amount, bool):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (isinstance(amount, float) and amount > 1):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _count(amount: float, size: int) -> int:
    """How many of so many elements."""
    if isinstance(amount, int) and amount > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return amount if isinstance(amount, int) else round(amount * size)


# -- as functions -----------------------------------------------------------------------------------------------------
def identity(module: Module, name: str) -> Module:
    """Prune nothing of a parameter, but have its mask."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune elements of a parameter at random: so many, or such a share.

    >>> import corefw as torch
    >>> layer = torch.nn.utils.prune.random_unstructured(torch.nn.Linear(2, 3), "weight", amount=1)
    >>> int((layer.weight_mask == 0).sum())
    1
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Prune the elements of a parameter with the least modulus, or the least of `importance_scores`.

    >>> import corefw as torch
    >>> layer = torch.nn.utils.prune.l1_unstructured(torch.nn.Linear(2, 3), "weight", amount=0.5)
    >>> sorted(layer.state_dict())
    ['bias', 'weight_mask', 'weight_orig']
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune slices of a parameter along a dimension at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: float | str, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the slices of a parameter along a dimension with the least n-norm.

    >>> import corefw as torch
    >>> layer = torch.nn.Conv2d(2, 3, 3)
    >>> layer = torch.nn.utils.prune.ln_structured(layer, "weight", amount=1, n=2, dim=0)
    >>> int(layer.weight_mask.sum())
    36
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune what a mask says, of a parameter."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Sequence[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters together: the amount is that of all their elements.

    Args:
        parameters: pairs of a module and a name.
        pruning_method: an unstructured one.
        importance_scores: what elements are chosen by; those that it lacks are chosen by themselves.
        kwargs: the method's arguments.

    >>> import corefw as torch
    >>> layers = [torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)]
    >>> pairs = [(layer, "weight") for layer in layers]
    >>> torch.nn.utils.prune.global_unstructured(pairs, torch.nn.utils.prune.L1Unstructured, amount=3)
    >>> int(sum((layer.weight_mask == 0).sum() for layer in layers))
    3
    """
    pairs = list(parameters)
    scores = importance_scores or {}
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of '
            f"type {method.PRUNING_TYPE}"
        )
    weights = [getattr(module, name).detach() for module, name in pairs]
    importances = [scores.get(pair, weight).flatten() for pair, weight in zip(pairs, weights, strict=True)]
    masks = [
        getattr(module, f"{name}_mask", ops.ones_like(weight)).flatten()
        for (module, name), weight in zip(pairs, weights, strict=True)
    ]
    method._tensor_name = "temp"
    container = PruningContainer(method)
    final = container.compute_mask(ops.cat(importances), ops.cat(masks))
    for (module, name), weight, mask in zip(pairs, weights, final.split([w.numel() for w in weights]), strict=True):
        custom_from_mask(module, name, mask.reshape(weight.shape))


def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter an ordinary one, for good.

    >>> import corefw as torch
    >>> layer = torch.nn.utils.prune.random_unstructured(torch.nn.Linear(2, 3), "weight", amount=2)
    >>> [name for name, _ in torch.nn.utils.prune.remove(layer, "weight").named_parameters()]
    ['bias', 'weight']
    """
    hooks = module.__dict__.get("_pruning_hooks", {})
    if name not in hooks:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    method, handle = hooks.pop(name)
    handle.remove()
    method.remove(module)
    return module


def is_pruned(module: Module) -> bool:
    """Whether a module or one in it is pruned.

    >>> import corefw as torch
    >>> torch.nn.utils.prune.is_pruned(torch.nn.Linear(2, 3))
    False
    """
    return any(one.__dict__.get("_pruning_hooks") for one in module.modules())
