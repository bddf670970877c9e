"""PyTorch's questions about CUDA."""

from corefw.dispatch.registry import registry


class _Matmul:
    """Whether matrix products may round to TensorFloat-32."""

    @property
    def allow_tf32(self) -> bool:
        """False at first, as in PyTorch."""
        return registry.allow_tf32

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        registry.allow_tf32 = bool(allowed)


matmul = _Matmul()


def is_built() -> bool:
    """Whether CUDA is possible at all: a backend is a plug-in, so it is."""
    return True
