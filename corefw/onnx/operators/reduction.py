"""Reductions, scans and sorting as ONNX."""

from __future__ import annotations

from math import inf, prod

from corefw import dtypes
from corefw.onnx.graph import Graph
from corefw.onnx.table import TABLE, written_as


def _reduction(kind: str):
    return lambda g, input, dim, keepdim: g.reduce(kind, *g.as_result(input), dim, keepdim)


_KINDS = {"sum": "Sum", "mean": "Mean", "prod": "Prod", "logsumexp": "LogSumExp"}
TABLE.update({op: _reduction(kind) for op, kind in _KINDS.items()})


@written_as("amax", "amin")
def amax(g: Graph, input, dim, keepdim):
    kind = "Max" if g.line.op.name == "amax" else "Min"
    if input.dtype is dtypes.bool_:
        return g.cast(g.reduce(kind, g.cast(input, dtypes.int32), dim, keepdim), dtypes.bool_)
    return g.reduce(kind, input, dim, keepdim)


@written_as("all", "any")
def all_(g: Graph, input, dim, keepdim):
    kind = "Min" if g.line.op.name == "all" else "Max"
    truths = g.cast(input, dtypes.bool_)
    if dim == ():
        return g.node("Identity", truths)
    return g.cast(g.reduce(kind, g.node("Cast", truths, to=g.element_type(dtypes.int32)), dim, keepdim), g.dtype)


@written_as("count_nonzero")
def count_nonzero(g: Graph, input, dim):
    truths = g.cast(input, dtypes.bool_)
    return g.reduce("Sum", g.node("Cast", truths, to=g.element_type(dtypes.int64)), dim, False)


@written_as("argmax", "argmin")
def argmax(g: Graph, input, dim, keepdim):
    kind = "ArgMax" if g.line.op.name == "argmax" else "ArgMin"
    if dim is None or dim == ():
        found = g.node(kind, g.reshape(input, [-1]), axis=0, keepdims=0)
        return g.reshape(found, [1] * len(g.shape))
    return g.node(kind, input, axis=dim, keepdims=int(keepdim))


@written_as("max_dim", "min_dim")
def max_dim(g: Graph, input, dim, keepdim):
    if not input.shape:
        return g.node("Identity", input), g.constant(0, "int64")
    kind = "Max" if g.line.op.name == "max_dim" else "Min"
    values = g.reduce(kind, input, [dim], keepdim)
    return values, g.node(f"Arg{kind}", input, axis=dim, keepdims=int(keepdim))


@written_as("variance", "deviation")
def variance(g: Graph, input, dim, keepdim, correction):
    (x,) = g.as_result(input)
    centred = g.node("Sub", x, g.reduce("Mean", x, dim, True))
    result = g.reduce("Mean", g.node("Mul", centred, centred), dim, keepdim)
    if correction:
        dims = range(len(input.shape)) if dim is None else dim
        count = prod(g.static([input.shape[d] for d in dims], "the number of elements of a variance"))
        free = count - correction
        result = g.node("Mul", result, g.number(count / free if free > 0 else inf))
    return g.node("Sqrt", result) if g.line.op.name == "deviation" else result


@written_as("vector_norm")
def vector_norm(g: Graph, input, ord, dim, keepdim):
    (x,) = g.as_result(input)
    if ord in (1, 2):
        return g.reduce(f"L{int(ord)}", x, dim, keepdim)
    size = g.node("Abs", x)
    if ord in (inf, -inf):
        return g.reduce("Max" if ord > 0 else "Min", size, dim, keepdim)
    if ord == 0:
        nonzero = g.node("Cast", g.node("Greater", size, g.number(0)), to=g.element_type(g.dtype))
        return g.reduce("Sum", nonzero, dim, keepdim)
    total = g.reduce("Sum", g.node("Pow", size, g.number(ord)), dim, keepdim)
    return g.node("Pow", total, g.number(1 / ord))


@written_as("cumsum")
def cumsum(g: Graph, input, dim):
    (x,) = g.as_result(input)
    return g.node("CumSum", x, g.constant(dim, "int64")) if g.shape else g.node("Identity", x)


@written_as("topk")
def topk(g: Graph, input, k, dim, largest, sorted):
    return tuple(
        g.node("TopK", input, g.ints([k]), outputs=2, axis=dim, largest=int(largest), sorted=int(sorted))
        if g.shape
        else (g.node("Identity", input), g.constant(0, "int64"))
    )


@written_as("sort")
def sort(g: Graph, input, dim, descending):
    if not g.shape:
        return g.node("Identity", input), g.constant(0, "int64")
    return tuple(g.node("TopK", input, g.size_of(input, dim), outputs=2, axis=dim, largest=int(descending)))


@written_as("softmax", "log_softmax")
def softmax(g: Graph, input, dim):
    kind = "Softmax" if g.line.op.name == "softmax" else "LogSoftmax"
    (x,) = g.as_result(input)
    if g.shape:
        return g.node(kind, x, axis=dim)
    return g.squeeze(g.node(kind, g.unsqueeze(x, [0]), axis=0), [0])
