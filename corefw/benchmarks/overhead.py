"""What a call costs beside its arithmetic: tensors of four elements."""


def four(operate):
    """A row of two plain tensors and one that requires a gradient."""
    return lambda torch: operate(torch.ones(4), torch.ones(4), torch.ones(4, requires_grad=True))


def square(operate):
    """A row of a matrix."""
    return lambda torch: operate(torch.ones(2, 2))


OVERHEAD = {
    "add": four(lambda a, b, c: lambda: a + b),
    "add_number": four(lambda a, b, c: lambda: a + 2.0),
    "add_recorded": four(lambda a, b, c: lambda: c + b),
    "exp": four(lambda a, b, c: a.exp),
    "sum": four(lambda a, b, c: a.sum),
    "transpose": square(lambda a: a.t),
    "index_row": square(lambda a: lambda: a[0]),
    "matmul": square(lambda a: lambda: a @ a),
    "add_inplace": four(lambda a, b, c: lambda: a.add_(b)),
    "forward_backward": four(lambda a, b, c: lambda: (c * b).relu().sum().backward()),
}
