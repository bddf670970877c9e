"""How attention may be computed: PyTorch's choice of implementations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum

from corefw.dispatch.settings import settings
from corefw.errors import SettingError

#: PyTorch's switch for warnings about kernels that it does not fuse; nothing reads it
WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """The ways in which PyTorch computes attention.

    ``MATH`` is the formula, step by step. ``FLASH_ATTENTION`` and ``EFFICIENT_ATTENTION`` are one kernel that does not
    store the weights: the backend's, of which there is one. ``CUDNN_ATTENTION`` and ``OVERRIDEABLE`` are nobody's.
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: SDPBackend | list[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """Let `nn.functional.scaled_dot_product_attention` be computed in these ways only; also a decorator.

    Args:
        backends: one way or several. What is computed in none of them raises RuntimeError.
        set_priority: accepted; of several ways the single kernel comes before the formula, as in PyTorch's order.

    >>> import corefw as torch
    >>> from corefw.nn.attention import SDPBackend, sdpa_kernel
    >>> x = torch.ones(2, 2)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     torch.nn.functional.scaled_dot_product_attention(x, x, x)
    tensor([[1., 1.],
            [1., 1.]])
    """
    chosen = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(chosen, list | tuple) or not all(isinstance(one, SDPBackend) for one in chosen):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    before, settings.attention = settings.attention, frozenset(one.name for one in chosen)
    try:
        yield
    finally:
        settings.attention = before


# -- PyTorch's registry of further implementations ---------------------------------------------------------------------
def list_flash_attention_impls() -> list[str]:
    """The names of implementations that can be activated: none, since kernels come from backends
    (`corefw.backends()`).

    >>> list_flash_attention_impls()
    []
    """
    return []


def current_flash_attention_impl() -> str | None:
    """The activated implementation: None, the backend's own."""
    return None


def register_flash_attention_impl(impl: str, *, register_fn: Callable) -> None:
    """Refused: a kernel for attention is registered by a backend, for the op ``attention``."""
    raise SettingError(
        f"register_flash_attention_impl: cannot register {impl!r}: kernels come from backend plugins; register one for "
        "the op 'attention' (see docs/adding_a_backend.md)"
    )


def activate_flash_attention_impl(impl: str) -> None:
    """Refused: there is nothing to activate; a backend is chosen by `corefw.backend` or ``COREFW_OPS``."""
    raise ValueError(
        f"Unknown flash attention impl {impl!r}. Available implementations: {list_flash_attention_impls()}"
    )


def restore_flash_attention_impl() -> None:
    """Nothing to do: the backend's own implementation is in use."""
