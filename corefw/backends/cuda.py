"""PyTorch's questions about CUDA."""


class _Matmul:
    """Whether matrix products may round to TensorFloat-32."""

    allow_tf32 = False


matmul = _Matmul()


def is_built() -> bool:
    """Whether CUDA is possible at all: a backend is a plug-in, so it is."""
    return True
