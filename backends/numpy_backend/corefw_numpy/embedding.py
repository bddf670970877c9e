"""Embeddings: picking rows of a table."""


def kernels(xp):
    """Ops that compute: none."""
    return {}


def data_movement(xp):
    """Ops that only move elements."""

    def pick_rows(weight, indices, padding_idx, scale_grad_by_freq):
        if weight.ndim != 2:
            raise ValueError("a table of two dimensions expected")
        if indices.size and not (indices.min() >= 0 and indices.max() < len(weight)):
            raise IndexError("index out of range in self")
        return xp.take(weight, indices, 0)

    return {"pick_rows": pick_rows}
