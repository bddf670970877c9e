"""The op declarations, one file per family; the files never import each other."""

from corefw.dispatch.declare import put_functions
from corefw.dispatch.families import modules

modules(__name__)
put_functions()
