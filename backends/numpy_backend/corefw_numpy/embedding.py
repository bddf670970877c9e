"""Embeddings: picking rows of a table."""


def kernels(xp):
    """Ops that compute: none."""
    return {}


def movements(xp):
    """Ops that only move elements."""

    def pick_rows(weight, indices, padding_idx, scale_grad_by_freq):
        if weight.ndim != 2:
            raise ValueError("a table of two dimensions expected")
        if indices.size and not (0 <= indices.min() and indices.max() < len(weight)):
            raise IndexError("index out of range in self")
        return weight[indices]

    return {"pick_rows": pick_rows}
