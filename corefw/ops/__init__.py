"""The op declarations, one file per family; the files never import each other."""

from importlib import import_module

FAMILIES = ("pointwise",)

for _family in FAMILIES:
    import_module(f"corefw.ops.{_family}")
