"""Targets: the (backend, device) pairs on which ops are tested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from corefw.devices import device
from corefw.dispatch import plugins
from corefw.dispatch.backend import Backend, Kernel
from corefw.dispatch.op import Op
from corefw.dispatch.registry import dispatch_key_of, registry
from corefw.dispatch.resolution import decide
from corefw.dtypes import dtype
from corefw.errors import KernelNotFoundError


@dataclass(frozen=True)
class Target:
    """A backend's kernels on a device it serves.

    >>> str(Target("numpy", "cpu"))
    'numpy@cpu'
    """

    backend: str
    device: str

    def __str__(self) -> str:
        return f"{self.backend}@{self.device}"

    def owner(self) -> Target:
        """The backend that owns the device's memory."""
        return Target(registry.runtimes[self.device][0], self.device)

    def concerns(self, op: Op) -> bool:
        """Whether testing `op` here says something of this backend: it owns the device, or has a kernel for the op."""
        if self == self.owner():
            return True
        return self.offers(op.name)

    def offers(self, op: str) -> bool:
        """Whether the backend registers a kernel for the op on the device."""
        return any(backend.name == self.backend for backend, _ in registry.kernels.get((op, self.device), ()))

    def has_kernel(self, op: Op, d: dtype) -> bool:
        """Whether a kernel of the backend computes the op for a dtype where this backend is asked first."""
        return self.kernel(op, d) is not None

    def kernel(self, op: Op, d: dtype) -> Kernel | None:
        """The backend's own kernel that computes the op for a dtype where this backend is asked first, if one does."""
        if op.rule is None:
            return None
        try:
            decision = decide(op, dispatch_key(self, d), (self.backend,))
        except KernelNotFoundError:
            return None
        return decision.kernel if decision.backend is not None and decision.backend.name == self.backend else None

    def claims(self) -> list[str]:
        """The ops for which the backend registers a kernel on the device."""
        return [op for op, kind in registry.kernels if kind == self.device and self.offers(op)]

    @contextmanager
    def preferred(self) -> Iterator[None]:
        """Ask for this backend first on its device, inside the block."""
        scope: dict[str, tuple[str, ...]] = {self.device: (self.backend,)}
        if registry.preferred[-1] == scope:
            yield
            return
        alone = sum(self.device in backend.devices for backend in registry.backends.values()) <= 1
        registry.preferred.append(scope)
        if not alone:
            registry.forget()
        try:
            yield
        finally:
            registry.preferred.remove(scope)
            if not alone:
                registry.forget()


def targets(backend: str | None = None) -> list[Target]:
    """The pairs of an installed, usable backend and a device it serves that has at least one device here."""
    plugins.load(None)
    found = []
    for name, registered in registry.backends.items():
        if registered.unusable or backend not in (None, name) or _is_engine(registered):
            continue
        for kind in registered.devices:
            if kind in registry.runtimes and registry.runtime(kind).device_count():
                found.append(Target(name, kind))
    return sorted(found, key=lambda target: target.device != "cpu")


def _is_engine(backend: Backend) -> bool:
    """Whether all that a backend offers are collectives: it moves what others compute."""
    ops = [kernel.op for kernels in backend.kernels.values() for kernel in kernels]
    return bool(ops) and all(registry.declared[op].family == "collective" for op in ops)


def dispatch_key(target: Target, d: dtype):
    """The target's dispatch key of a dtype."""
    return dispatch_key_of(device(target.device), d)
