"""`GradScaler`: losses scaled up so that gradients in half precision do not underflow, by as much as they bear."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from enum import Enum
from math import inf
from typing import Any

from corefw import cuda
from corefw.devices import device
from corefw.dispatch.declare import ops
from corefw.dtypes import float16, float32, int32
from corefw.graph.grad_mode import no_recording
from corefw.optim import Optimizer
from corefw.tensor import Tensor

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """How far a step of one optimizer has come since the last `GradScaler.update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _amp_foreach_non_finite_check_and_unscale_(self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiply tensors of one dtype by `inv_scale` in place, and set `found_inf` to 1 if an element is not finite."""
    if not self:
        return
    with no_recording():
        finite = ops.total_norm(self, inf).isfinite()
        found_inf.masked_fill_(finite.logical_not(), 1.0)
        ops.scale_step(self, inv_scale.to(self[0]))


def _amp_update_scale_(
    self: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """Let a scale back off where `found_inf` is not 0, or grow after `growth_interval` steps; nothing waits for the
    device."""
    with no_recording():
        bad = found_inf.bool()
        steps = growth_tracker + 1
        full = steps == growth_interval
        grown = self * scale_growth_factor
        kept = ops.where(full & grown.isfinite(), grown, self)
        self.copy_(ops.where(bad, self * scale_backoff_factor, kept))
        growth_tracker.copy_(steps.masked_fill(bad | full, 0))
    return self


class GradScaler:
    """Scales losses, and gradients back, so that small gradients in half precision do not become 0.

    A step whose gradients are not all finite is left out and the scale made smaller; after `growth_interval` steps
    without one it is made larger.

    Args:
        device: the type of devices that gradients lie on; for "cuda" without a GPU it is turned off with a warning, as
            in PyTorch.
        init_scale: the first scale.
        growth_factor: more than 1, what the scale is multiplied by after `growth_interval` good steps.
        backoff_factor: less than 1, what it is multiplied by after a bad one.
        enabled: without, everything is passed on.

    >>> import corefw as torch
    >>> weight = torch.ones(1, requires_grad=True)
    >>> optimizer, scaler = torch.optim.SGD([weight], lr=0.5), torch.amp.GradScaler("cpu")
    >>> scaler.scale((weight * 2).sum()).backward()
    >>> weight.grad
    tensor([131072.])
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> weight.tolist(), scaler.get_scale()
    ([0.0], 65536.0)
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 65536.0, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ):  # fmt: skip
        if enabled and device == "cuda" and not cuda.is_available():
            warnings.warn(
                "GradScaler is enabled on device 'cuda', but CUDA is not available.  Disabling.",
                UserWarning,
                stacklevel=2,
            )
            enabled = False
        self._device, self._enabled = device, enabled
        if not enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError(f"The growth factor must be > 1.0, not {growth_factor}.")
        if backoff_factor >= 1.0:
            raise AssertionError(f"The backoff factor must be < 1.0, not {backoff_factor}.")
        self._growth_factor, self._backoff_factor, self._growth_interval = (
            growth_factor,
            backoff_factor,
            growth_interval,
        )
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._scale: Tensor | None = None  # both are made where the first loss lies
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = {}

    # -- a step ---------------------------------------------------------------------------------------------------
    def scale(self, outputs: Any) -> Any:
        """Outputs times the scale: of a tensor, or of all tensors in an iterable."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._begin(outputs.device)
            assert self._scale is not None
            return outputs * self._scale.to(outputs.device)
        if not isinstance(outputs, Iterable):
            raise ValueError(f"outputs must be a Tensor or an iterable of Tensors, not {type(outputs).__name__}")
        scaled = map(self.scale, outputs)
        return type(outputs)(scaled) if isinstance(outputs, list | tuple) else scaled

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, to clip them or look at them before `step`.

        Raises:
            RuntimeError: it was done since the last `update`, or `step` was.
            ValueError: a gradient is float16, whose range the scale has used up.
        """
        if not self._enabled:
            return
        scale, _ = self._begun("unscale_")
        state = self._state_of(optimizer)
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = scale.double().reciprocal().to(float32)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, allow_fp16=False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step with unscaled gradients, which is left out if one is not finite.

        Args:
            optimizer: whose gradients are unscaled unless `unscale_` was called.
            args, kwargs: of the optimizer's step.

        Returns what the step returns, None if it is left out.

        Raises:
            RuntimeError: a closure is given, or it is the second step since the last `update`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._begun("step")
        state = self._state_of(optimizer)
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        found = state["found_inf_per_device"]
        if not found:
            raise AssertionError("No inf checks were recorded for this optimizer: none of its parameters has a .grad.")
        result = None if any(one.item() for one in found.values()) else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Let the scale follow what the steps since the last update have found, or set it.

        Args:
            new_scale: the scale from now on, a float or a tensor of one element.
        """
        if not self._enabled:
            return
        scale, tracker = self._begun("update")
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
        elif new_scale is not None:
            if not isinstance(new_scale, Tensor) or new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError("new_scale should be a float or a 1-element FloatTensor with requires_grad=False.")
            scale.copy_(new_scale.reshape(()))
        else:
            states = self._per_optimizer_states.values()
            found = [one.to(scale.device) for state in states for one in state["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            bad = ops.stack(found).sum()
            _amp_update_scale_(scale, tracker, bad, self._growth_factor, self._backoff_factor, self._growth_interval)
        self._per_optimizer_states = {}

    def _begin(self, where: device) -> None:
        self._scale = ops.full((), self._init_scale, dtype=float32, device=where)
        self._growth_tracker = ops.full((), self._init_growth_tracker, dtype=int32, device=where)

    def _begun(self, what: str) -> tuple[Tensor, Tensor]:
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(
                f"Attempted {what} but _scale is None.  Call scaler.scale(loss or outputs) before in the iteration."
            )
        return self._scale, self._growth_tracker

    def _state_of(self, optimizer: Optimizer) -> dict[str, Any]:
        fresh = {"stage": OptState.READY, "found_inf_per_device": {}}
        return self._per_optimizer_states.setdefault(id(optimizer), fresh)

    def _unscale_grads_(self, optimizer: Optimizer, inverse: Tensor, allow_fp16: bool) -> dict[device, Tensor]:
        """Unscale an optimizer's gradients, those of one device and dtype together; which devices had bad ones."""
        groups: dict[Any, list[Tensor]] = {}
        for parameter in (p for group in optimizer.param_groups for p in group["params"] if p.grad is not None):
            gradient = parameter.grad
            if gradient.dtype is float16 and not allow_fp16:
                raise ValueError("Attempting to unscale FP16 gradients.")
            values = gradient._values() if gradient.is_sparse else gradient
            groups.setdefault((values.device, values.dtype), []).append(values)
        found: dict[device, Tensor] = {}
        for (where, _), gradients in groups.items():
            flag = found.setdefault(where, ops.zeros((), dtype=float32, device=where))
            _amp_foreach_non_finite_check_and_unscale_(gradients, flag, inverse.to(where))
        return found

    # -- its numbers ----------------------------------------------------------------------------------------------
    def is_enabled(self) -> bool:
        """Whether it scales."""
        return self._enabled

    def get_scale(self) -> float:
        """The scale, 1.0 if it is turned off."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Choose what the scale is multiplied by when it grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after a bad step."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Choose what the scale is multiplied by after a bad step."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many good steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Choose after how many good steps the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def state_dict(self) -> dict[str, Any]:
        """The scale and what it will do next; empty if it is turned off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a `state_dict`.

        Raises:
            RuntimeError: it is empty, as that of a scaler that is turned off.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled GradScaler."
            )
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        if not self._enabled:
            return self.__dict__.copy()
        if self._per_optimizer_states:
            raise AssertionError("A GradScaler may only be pickled before an iteration, or after scaler.update().")
        numbers = {"_init_scale": self.get_scale(), "_init_growth_tracker": self._get_growth_tracker()}
        return {**self.__dict__, **numbers, "_scale": None, "_growth_tracker": None}
