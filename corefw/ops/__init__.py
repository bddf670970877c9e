"""The op declarations, one file per family; the files never import each other."""

from importlib import import_module

FAMILIES = (
    "activation",
    "comparison",
    "complex",
    "contraction",
    "convolution",
    "creation",
    "decomposition",
    "elementary",
    "fourier",
    "indexing",
    "joining",
    "linear_algebra",
    "loss",
    "memory",
    "optimizer",
    "padding",
    "pointwise",
    "pooling",
    "random",
    "recurrent",
    "reduction",
    "resampling",
    "scan",
    "scattering",
    "slicing",
    "sorting",
    "special",
    "view",
    "normalization", "embedding", "attention")

for _family in FAMILIES:
    import_module(f"corefw.ops.{_family}")
