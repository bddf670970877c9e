"""The op declarations, one file per family; the files never import each other."""

from importlib import import_module

FAMILIES = ("activation", "creation", "joining", "linear_algebra", "loss", "memory", "optimizer", "pointwise", "elementary", "complex", "comparison", "reduction", "slicing", "view", "scan", "sorting", "indexing", "scattering", "random")

for _family in FAMILIES:
    import_module(f"corefw.ops.{_family}")
