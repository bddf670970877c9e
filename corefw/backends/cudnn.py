"""PyTorch's switches for cuDNN, kept so that programs can set them; a CUDA backend reads them."""

from corefw.dispatch.registry import registry

benchmark = False
deterministic = False
enabled = True
allow_tf32 = False


def is_available() -> bool:
    """Whether a CUDA backend offers cuDNN."""
    return version() is not None


def version() -> int | None:
    """The version of cuDNN in use, None without it."""
    runtime = registry.runtimes.get("cuda", ("", None))[1]
    return getattr(runtime, "cudnn_version", None)
