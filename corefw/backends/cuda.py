"""PyTorch's questions about CUDA."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from corefw.dispatch.settings import settings
from corefw.nn.attention import SDPBackend, sdpa_kernel


class _Matmul:
    """Whether matrix products may round to TensorFloat-32."""

    @property
    def allow_tf32(self) -> bool:
        """False at first, as in PyTorch."""
        return settings.allow_tf32

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        settings.allow_tf32 = bool(allowed)


matmul = _Matmul()


def is_built() -> bool:
    """Whether CUDA is possible at all: a backend is a plug-in, so it is."""
    return True


# -- how attention may be computed: older forms of `nn.attention.sdpa_kernel`, which hold for every device -------------
def _switch(way: SDPBackend) -> tuple[Callable[[], bool], Callable[[bool], None]]:
    """Whether attention may be computed in a way, and the function that permits it from now on."""
    every = frozenset(one.name for one in SDPBackend)

    def enabled() -> bool:
        return settings.attention is None or way.name in settings.attention

    def enable(enabled: bool) -> None:
        others = (every if settings.attention is None else settings.attention) - {way.name}
        chosen = others | {way.name} if enabled else others
        settings.attention = None if chosen == every else chosen

    return enabled, enable


flash_sdp_enabled, enable_flash_sdp = _switch(SDPBackend.FLASH_ATTENTION)
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _switch(SDPBackend.EFFICIENT_ATTENTION)
math_sdp_enabled, enable_math_sdp = _switch(SDPBackend.MATH)
cudnn_sdp_enabled, enable_cudnn_sdp = _switch(SDPBackend.CUDNN_ATTENTION)


def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> AbstractContextManager[None]:
    """A block in which attention is computed in these ways only; `nn.attention.sdpa_kernel` is its newer form."""
    wanted = {
        SDPBackend.FLASH_ATTENTION: enable_flash,
        SDPBackend.MATH: enable_math,
        SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
        SDPBackend.CUDNN_ATTENTION: enable_cudnn,
    }
    return sdpa_kernel([way for way, enabled in wanted.items() if enabled])
