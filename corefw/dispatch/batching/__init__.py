"""Batched tensors below the public names: what `func.vmap` gives a function, and how ops compute on all examples."""
