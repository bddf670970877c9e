"""What ops do with tensors in parts: a rule for each, in a file for each kind. Elementwise primitives need none, unless
they are linear; what has no rule is computed with whole tensors."""

from corefw.distributed.tensor.rules import elementwise, networks, products, reductions, views

__all__ = ["elementwise", "networks", "products", "reductions", "views"]
