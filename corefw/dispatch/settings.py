"""The settings of the process that kernels ask for; there is one object, `settings`."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Settings:
    """What a program has chosen for all ops."""

    #: whether results may not depend on the order in which a device works
    deterministic: bool = False
    #: whether an op that has no such kernel is computed all the same, with a warning
    deterministic_warn_only: bool = False
    #: how many ops a program wants to run at the same time; nothing reads it but what asks for it
    interop_threads: int = 1
    #: whether matrix products of float32 may round to TensorFloat-32
    allow_tf32: bool = False
    #: the ways in which attention may be computed (`nn.attention.SDPBackend`); None for every one
    attention: frozenset[str] | None = None
    #: whether `einsum` contracts its operands from left to right
    contract_in_order: bool = False
    #: else how the package opt_einsum chooses the order
    contraction: str = "auto"
    #: PyTorch's switches for the vendor's library of layers (`backends.cudnn`)
    library: dict[str, bool] = field(
        default_factory=lambda: {"allow_tf32": True, "benchmark": False, "deterministic": False, "enabled": True}
    )


settings = Settings()
