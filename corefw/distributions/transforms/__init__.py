"""Transforms: functions with an inverse and a Jacobian, which change distributions and meet constraints."""

from corefw.distributions.transforms.combined import (
    CatTransform,
    IndependentTransform,
    ReshapeTransform,
    StackTransform,
)
from corefw.distributions.transforms.elementwise import (  # noqa: F401, libraries ask for the clipped sigmoid
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
    _clipped_sigmoid,
)
from corefw.distributions.transforms.matrices import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
)
from corefw.distributions.transforms.transform import (  # noqa: F401, libraries ask for the inverse
    ComposeTransform,
    Transform,
    _InverseTransform,
    identity_transform,
)
from corefw.distributions.transforms.vectors import SoftmaxTransform, StickBreakingTransform

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]
