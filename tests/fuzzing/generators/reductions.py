"""Reductions, scans and sorts over any dimensions, dtypes and layouts."""

from __future__ import annotations

from tests.fuzzing import drawing
from tests.fuzzing.builder import Builder
from tests.fuzzing.generators.promotion import out
from tests.fuzzing.programs import Name, words

#: reductions over several dimensions
_MANY = words("sum mean nansum nanmean amax amin all any var std logsumexp norm count_nonzero std_mean var_mean")
#: functions of one dimension
_ONE = words("""
    prod max min argmax argmin cumsum cumprod logcumsumexp cummax cummin softmax log_softmax median nanmedian mode sort
    argsort topk kthvalue unbind aminmax flip roll diff quantile nanquantile all any
""")
_KEEPS = frozenset(_MANY) - {"count_nonzero"} | frozenset(
    words("prod max min argmax argmin median nanmedian mode kthvalue quantile nanquantile aminmax")
)
#: functions that need a dimension
_NEEDS = frozenset(words("logsumexp cumsum cumprod logcumsumexp cummax cummin softmax log_softmax flip"))
_DTYPED = frozenset(words("sum mean nansum nanmean prod cumsum cumprod softmax log_softmax"))


def _arguments(b: Builder, name: str) -> list:
    """What comes before the dimension."""
    rng = b.rng
    if name in ("kthvalue", "topk"):
        return [rng.randint(0, 3)]
    if name in ("quantile", "nanquantile"):
        return [rng.choice((0.0, 0.5, 0.3, 1.0))]
    if name == "roll":
        return [rng.randint(-3, 9)]
    if name == "norm":
        return [rng.choice((2, 1, float("inf"), 0, 3, -float("inf"), "fro"))]
    return []


def _keywords(b: Builder, name: str, ndim: int) -> dict:
    rng = b.rng
    keywords: dict = {}
    if name in _NEEDS or rng.random() < 0.75:
        dim: object = drawing.dimension(rng, ndim)
        if name in _MANY and rng.random() < 0.4:
            least = int(
                name in ("var", "std", "var_mean", "std_mean")
            )  # without, PyTorch's gradients are of no dimension
            dim = tuple(rng.sample(range(ndim), rng.randint(min(least, ndim), ndim)))
        keywords["dims" if name in ("flip", "roll") else "dim"] = (dim,) if name == "flip" else dim
        if name in _KEEPS and rng.random() < 0.4:
            keywords["keepdim"] = rng.random() < 0.8
    if name in _DTYPED and rng.random() < 0.25:
        keywords["dtype"] = Name(drawing.dtype(rng, floating=0.6))
    if name in ("var", "std", "var_mean", "std_mean") and rng.random() < 0.5:
        keywords["correction"] = rng.choice((0, 1, 2, 5))
    if name in ("sort", "argsort"):  # equal elements of an unstable sort may come in any order
        keywords |= {"stable": True} | ({"descending": True} if rng.random() < 0.4 else {})
    return keywords


def reductions(b: Builder) -> None:
    """One reduction, scan or sort, and its gradient."""
    rng = b.rng
    shape = drawing.large_shape(rng) if rng.random() < 0.1 else drawing.shape(rng)
    style = rng.choice(("exact", "random", "random", "special", "equal"))
    x = b.leaf(drawing.dtype(rng), shape, style, grad=rng.random() < 0.5)
    name = rng.choice(_MANY if rng.random() < 0.5 else _ONE)
    arguments, keywords = _arguments(b, name), _keywords(b, name, len(shape))
    if rng.random() < 0.15 and name != "argsort":
        out(b, name, [x, *arguments], keywords)
    else:
        b.call(name, x, *arguments, **keywords)
    b.gradients(records_again=rng.random() < 0.1)
