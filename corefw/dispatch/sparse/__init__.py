"""Sparse tensors below the public names: what they are, and how ops find out that they were given one."""
