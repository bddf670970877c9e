"""What a call costs beside its arithmetic: tensors of four elements."""

from __future__ import annotations

import copy

import numpy as np


def made(call):
    """A row of a call that is given no tensor."""
    return lambda torch: lambda: call(torch)


def four(operate):
    """A row of two plain tensors and one that requires a gradient."""
    return lambda torch: operate(torch.ones(4), torch.ones(4), torch.ones(4, requires_grad=True))


def square(operate):
    """A row of a matrix."""
    return lambda torch: operate(torch.ones(2, 2))


def with_functions(operate):
    """A row of a vector, a matrix, and the module whose functions are called."""
    return lambda torch: operate(torch, torch.ones(4), torch.ones(2, 2))


def positions(operate):
    """A row of a vector, a matrix, and positions in either."""
    return lambda torch: operate(torch, torch.ones(4), torch.ones(2, 2), torch.tensor([0, 1]))


def masks(operate):
    """A row of two vectors, and where the first is wanted."""
    return lambda torch: operate(torch, torch.ones(4), torch.zeros(4), torch.tensor([True, False, True, False]))


def without_gradients(torch):
    """The row of a block without gradients."""

    def call():
        with torch.no_grad():
            pass

    return call


def convolution(torch):
    """The row of one pixel under a kernel of three by three."""
    image, kernel = torch.ones(1, 1, 3, 3), torch.ones(1, 1, 3, 3)
    return lambda: torch.nn.functional.conv2d(image, kernel)


ARITHMETIC = {
    "add": four(lambda a, b, c: lambda: a + b),
    "add_number": four(lambda a, b, c: lambda: a + 2.0),
    "add_recorded": four(lambda a, b, c: lambda: c + b),
    "add_inplace": four(lambda a, b, c: lambda: a.add_(b)),
    "pow_number": four(lambda a, b, c: lambda: a**2),
    "exp": four(lambda a, b, c: a.exp),
    "clamp": four(lambda a, b, c: lambda: a.clamp(0.0, 1.0)),
    "less": four(lambda a, b, c: lambda: a < b),
    "where": masks(lambda torch, a, b, mask: lambda: torch.where(mask, a, b)),
    "masked_fill": masks(lambda torch, a, b, mask: lambda: a.masked_fill(mask, 0.0)),
    "sum": four(lambda a, b, c: a.sum),
    "sum_dim": square(lambda a: lambda: a.sum(1)),
    "mean": four(lambda a, b, c: a.mean),
    "max_dim": square(lambda a: lambda: a.max(1)),
    "argmax": four(lambda a, b, c: a.argmax),
    "softmax": square(lambda a: lambda: a.softmax(1)),
    "add_scaled_inplace": four(lambda a, b, c: lambda: a.add_(b, alpha=0.0)),
    "number_minus": four(lambda a, b, c: lambda: 1 - a),
    "equal_number": four(lambda a, b, c: lambda: a == 1),
    "lerp": with_functions(lambda torch, a, m: lambda: torch.lerp(a, a, 0.5)),
    "isnan": four(lambda a, b, c: a.isnan),
    "any": masks(lambda torch, a, b, mask: mask.any),
    "max": four(lambda a, b, c: a.max),
    "std": four(lambda a, b, c: a.std),
    "norm": four(lambda a, b, c: a.norm),
    "logsumexp": square(lambda a: lambda: a.logsumexp(1)),
    "cumsum": four(lambda a, b, c: lambda: a.cumsum(0)),
    "sort": four(lambda a, b, c: a.sort),
    "topk": four(lambda a, b, c: lambda: a.topk(2)),
}

PRODUCTS = {
    "matmul": square(lambda a: lambda: a @ a),
    "bmm": lambda torch: (lambda a: lambda: torch.bmm(a, a))(torch.ones(1, 2, 2)),
    "outer": with_functions(lambda torch, a, m: lambda: torch.outer(a, a)),
    "einsum": with_functions(lambda torch, a, m: lambda: torch.einsum("ij,jk->ik", m, m)),
    "einsum_trace": with_functions(lambda torch, a, m: lambda: torch.einsum("ii", m)),
    "einsum_outer": with_functions(lambda torch, a, m: lambda: torch.einsum("i,j->ij", a, a)),
}

FACTORIES = {
    "zeros": made(lambda torch: torch.zeros(4)),
    "ones": made(lambda torch: torch.ones(2, 2)),
    "empty": made(lambda torch: torch.empty(4)),
    "full": made(lambda torch: torch.full((4,), 2.0)),
    "arange": made(lambda torch: torch.arange(4)),
    "linspace": made(lambda torch: torch.linspace(0, 1, 4)),
    "eye": made(lambda torch: torch.eye(2)),
    "tensor": made(lambda torch: torch.tensor([1.0, 2.0, 3.0, 4.0])),
    "tensor_number": made(lambda torch: torch.tensor(1.0)),
    "zeros_like": with_functions(lambda torch, a, m: lambda: torch.zeros_like(a)),
    "ones_like": with_functions(lambda torch, a, m: lambda: torch.ones_like(a)),
    "empty_like": with_functions(lambda torch, a, m: lambda: torch.empty_like(a)),
    "new_zeros": four(lambda a, b, c: lambda: a.new_zeros(4)),
    "rand": made(lambda torch: torch.rand(4)),
    "randn": made(lambda torch: torch.randn(4)),
    "randint": made(lambda torch: torch.randint(10, (4,))),
    "randperm": made(lambda torch: torch.randperm(4)),
    "rand_like": with_functions(lambda torch, a, m: lambda: torch.rand_like(a)),
    "uniform_inplace": four(lambda a, b, c: a.uniform_),
    "normal_inplace": four(lambda a, b, c: a.normal_),
    "bernoulli_inplace": four(lambda a, b, c: a.bernoulli_),
    "zero_inplace": four(lambda a, b, c: a.zero_),
    "fill_inplace": four(lambda a, b, c: lambda: a.fill_(1.0)),
    "copy_inplace": four(lambda a, b, c: lambda: a.copy_(b)),
}

SHAPES = {
    "transpose": square(lambda a: a.t),
    "transpose_dims": square(lambda a: lambda: a.transpose(0, 1)),
    "T": square(lambda a: lambda: a.T),
    "view": four(lambda a, b, c: lambda: a.view(2, 2)),
    "reshape": four(lambda a, b, c: lambda: a.reshape(2, 2)),
    "reshape_inferred": square(lambda a: lambda: a.reshape(-1)),
    "flatten": square(lambda a: a.flatten),
    "permute": square(lambda a: lambda: a.permute(1, 0)),
    "squeeze": lambda torch: torch.ones(1, 4).squeeze,
    "squeeze_dim": lambda torch: (lambda a: lambda: a.squeeze(0))(torch.ones(1, 4)),
    "unsqueeze": four(lambda a, b, c: lambda: a.unsqueeze(0)),
    "expand": four(lambda a, b, c: lambda: a.expand(2, 4)),
    "chunk": four(lambda a, b, c: lambda: a.chunk(2)),
    "split": four(lambda a, b, c: lambda: a.split(2)),
    "unbind": square(lambda a: a.unbind),
    "narrow": four(lambda a, b, c: lambda: a.narrow(0, 1, 2)),
    "select": square(lambda a: lambda: a.select(0, 1)),
    "contiguous": square(lambda a: a.contiguous),
    "contiguous_copy": lambda torch: torch.ones(2, 2).t().contiguous,
    "flip": four(lambda a, b, c: lambda: a.flip(0)),
    "roll": four(lambda a, b, c: lambda: a.roll(1)),
    "repeat": four(lambda a, b, c: lambda: a.repeat(2)),
    "cat": with_functions(lambda torch, a, m: lambda: torch.cat([a, a])),
    "stack": with_functions(lambda torch, a, m: lambda: torch.stack([a, a])),
}

INDEXING = {
    "index_row": square(lambda a: lambda: a[0]),
    "index_slice": four(lambda a, b, c: lambda: a[1:3]),
    "index_step": four(lambda a, b, c: lambda: a[::2]),
    "index_column": square(lambda a: lambda: a[:, 0]),
    "index_new_axis": four(lambda a, b, c: lambda: a[None]),
    "index_tensor": positions(lambda torch, a, m, i: lambda: a[i]),
    "index_tensors": positions(lambda torch, a, m, i: lambda: m[i, i]),
    "index_mask": masks(lambda torch, a, b, mask: lambda: a[mask]),
    "index_select": positions(lambda torch, a, m, i: lambda: a.index_select(0, i)),
    "gather": positions(lambda torch, a, m, i: lambda: a.gather(0, i)),
    "setitem": four(lambda a, b, c: lambda: a.__setitem__(0, 1.0)),
    "setitem_slice": four(lambda a, b, c: lambda: a.__setitem__(slice(1, 3), 0.0)),
    "setitem_tensor": four(lambda a, b, c: lambda: a.__setitem__(slice(None), b)),
    "setitem_index": positions(lambda torch, a, m, i: lambda: a.__setitem__(i, 1.0)),
    "setitem_mask": masks(lambda torch, a, b, mask: lambda: a.__setitem__(mask, 0.0)),
    "rows": square(lambda a: lambda: list(a)),
}

CONVERSIONS = {
    "clone": four(lambda a, b, c: a.clone),
    "detach": four(lambda a, b, c: c.detach),
    "to_same": with_functions(lambda torch, a, m: lambda: a.to(torch.float32)),
    "to_dtype": with_functions(lambda torch, a, m: lambda: a.to(torch.float64)),
    "to_keywords": with_functions(lambda torch, a, m: lambda: a.to(device="cpu", dtype=torch.float32)),
    "to_like": four(lambda a, b, c: lambda: a.to(b)),
    "cpu": four(lambda a, b, c: a.cpu),
    "to_device": four(lambda a, b, c: lambda: a.to("cpu")),
    "float": four(lambda a, b, c: a.float),
    "long": four(lambda a, b, c: a.long),
    "item": lambda torch: torch.ones(()).item,
    "to_float": lambda torch: torch.ones(()).__float__,
    "to_int": lambda torch: torch.tensor(3).__int__,
    "tolist": four(lambda a, b, c: a.tolist),
    "bool": lambda torch: torch.ones(()).__bool__,
    "len": four(lambda a, b, c: lambda: len(a)),
    "shape": four(lambda a, b, c: lambda: a.shape),
    "shape_item": four(lambda a, b, c: lambda: a.shape[0]),
    "size_dim": four(lambda a, b, c: lambda: a.size(0)),
    "dim": four(lambda a, b, c: a.dim),
    "stride": four(lambda a, b, c: a.stride),
    "is_contiguous": four(lambda a, b, c: a.is_contiguous),
    "data_ptr": four(lambda a, b, c: a.data_ptr),
    "device": four(lambda a, b, c: lambda: a.device),
    "is_cuda": four(lambda a, b, c: lambda: a.is_cuda),
    "grad": four(lambda a, b, c: lambda: c.grad),
    "is_leaf": four(lambda a, b, c: lambda: c.is_leaf),
    "size": four(lambda a, b, c: a.size),
    "numel": four(lambda a, b, c: a.numel),
    "numpy": four(lambda a, b, c: a.numpy),
    "from_numpy": lambda torch: (lambda a: lambda: torch.from_numpy(a))(np.ones(4)),
    "requires_grad": four(lambda a, b, c: lambda: c.requires_grad),
    "no_grad": without_gradients,
    "deepcopy": four(lambda a, b, c: lambda: copy.deepcopy(a)),
}


def _network(call):
    """A row of a function of `torch.nn.functional`."""
    return lambda torch: call(torch, torch.nn.functional)


def _layer(call):
    """A row of a call of a module with a batch of two vectors."""

    def row(torch):
        module, batch = call(torch.nn), torch.ones(2, 2)
        return lambda: module(batch)

    return row


def _stepping(name):
    """A row of the step of an optimizer of one parameter."""

    def row(torch):
        parameter = torch.nn.Parameter(torch.ones(4))
        parameter.grad = torch.ones(4)
        return getattr(torch.optim, name)([parameter], lr=1e-6).step

    return row


def _loaded(torch):
    """The row of an epoch of two batches."""
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 2)), batch_size=2)
    return lambda: [*loader]


def _classified(torch, functional):
    scores, classes = torch.ones(2, 2), torch.tensor([0, 1])
    return lambda: functional.cross_entropy(scores, classes)


NETWORKS = {
    "relu": _network(lambda torch, F: (lambda a: lambda: F.relu(a))(torch.ones(4))),
    "gelu": _network(lambda torch, F: (lambda a: lambda: F.gelu(a))(torch.ones(4))),
    "linear": _network(lambda torch, F: (lambda a, b: lambda: F.linear(a, a, b))(torch.ones(2, 2), torch.ones(2))),
    "layer_norm": _network(lambda torch, F: (lambda a: lambda: F.layer_norm(a, (2,)))(torch.ones(2, 2))),
    "embedding": _network(
        lambda torch, F: (lambda i, a: lambda: F.embedding(i, a))(torch.tensor([0, 1]), torch.ones(2, 2))
    ),
    "dropout": _network(lambda torch, F: (lambda a: lambda: F.dropout(a, 0.5))(torch.ones(4))),
    "cross_entropy": _network(_classified),
    "mse_loss": _network(lambda torch, F: (lambda a: lambda: F.mse_loss(a, a))(torch.ones(4))),
    "conv2d": convolution,
    "pad": _network(lambda torch, F: (lambda a: lambda: F.pad(a, (1, 1)))(torch.ones(2, 2))),
    "one_hot": _network(lambda torch, F: (lambda i: lambda: F.one_hot(i, 2))(torch.tensor([0, 1]))),
    "max_pool2d": _network(lambda torch, F: (lambda a: lambda: F.max_pool2d(a, 2))(torch.ones(1, 1, 4, 4))),
    "module_linear": _layer(lambda nn: nn.Linear(2, 2)),
    "module_batch_norm": _layer(lambda nn: nn.BatchNorm1d(2)),
    "module_sequential": _layer(lambda nn: nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))),
    "state_dict": lambda torch: torch.nn.Linear(2, 2).state_dict,
    "sgd_step": _stepping("SGD"),
    "adam_step": _stepping("Adam"),
    "loader": _loaded,
    "forward_backward": four(lambda a, b, c: lambda: (c * b).relu().sum().backward()),
}

OVERHEAD = ARITHMETIC | PRODUCTS | FACTORIES | SHAPES | INDEXING | CONVERSIONS | NETWORKS
