"""PyTorch's questions about CUDA."""

from corefw.dispatch.settings import settings


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
