"""TODO"""


def kernels(lib):
    """The family's kernels."""
    return []
