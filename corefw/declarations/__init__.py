"""The op declarations, one file per family; the files never import each other."""

from corefw.dispatch.declare import put_functions
from corefw.dispatch.families import modules

for _module in modules(__name__) + modules(f"{__name__}._shared"):
    put_functions(_module)
