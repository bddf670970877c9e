"""Transforms of functions: derivatives of any order as functions, and modules as functions of their parameters."""

from corefw.func.backward import grad, grad_and_value, vjp
from corefw.func.batches import debug_unwrap, vmap
from corefw.func.forward import jvp, linearize
from corefw.func.jacobians import hessian, jacfwd, jacrev
from corefw.func.modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from corefw.func.rearrangement import rearrange
from corefw.refusals import refusing

__getattr__ = refusing(__name__)

__all__ = [
    "debug_unwrap",
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
