"""Layers with random geometry: convolutions, pools, norms, losses, attention, embeddings, resampling, cells."""

from __future__ import annotations

from random import Random

from tests.fuzzing import drawing
from tests.fuzzing.builder import Builder
from tests.fuzzing.programs import Name, Ref, words

F = "nn.functional."
#: sizes that overflow a product or a sum of 32 or 64 bits
_HUGE = (2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1)


def _several(rng: Random, n: int, *choices):
    """A number, or one for each of n dimensions."""
    if rng.random() < 0.015:
        choices = _HUGE
    if rng.random() < 0.5:
        return rng.choice(choices)
    return tuple(rng.choice(choices) for _ in range(n))


def _dtype(rng: Random) -> str:
    return rng.choice(("float32",) * 5 + ("float64",) * 3 + ("bfloat16", "float16"))


def _leaf(b: Builder, dtype: str, shape, style: str | None = None, share: float = 0.7) -> Ref:
    """An input or a parameter."""
    style = style or b.rng.choice(
        ("exact", "exact", "random", "random", "special" if b.rng.random() < 0.3 else "exact")
    )
    return b.leaf(dtype, tuple(shape), style, grad=b.rng.random() < share)


def _sizes(rng: Random, n: int, most: int = 9) -> tuple[int, ...]:
    return tuple(0 if rng.random() < 0.01 else rng.randint(1, most) for _ in range(n))


def _batch(rng: Random) -> int:
    return rng.choice((1, 1, 2, 3, 0)) if rng.random() < 0.3 else rng.choice((1, 2))


def convolution(b: Builder) -> None:
    rng, n, dtype = b.rng, b.rng.choice((1, 2, 2, 3)), _dtype(b.rng)
    groups = rng.choice((1, 1, 1, 2, 3))
    inner, outer = rng.choice((1, 2, 3, 4, 16)), rng.choice((1, 2, 3, 8, 16))
    kernel = tuple(rng.choice((1, 2, 3, 3, 4, 5)) for _ in range(n))
    if rng.random() < 0.1 and n == 2:
        inner, outer, groups = rng.choice((16, 32)), rng.choice((16, 33)), 1
    most = {1: 40, 2: 12, 3: 6}[n]
    leaf = lambda shape: _leaf(b, dtype, shape, rng.choice(("exact", "random")))  # what is padded may meet infinities
    transposed = rng.random() < 0.4
    batch = () if rng.random() < 0.1 else (_batch(rng),)
    x = leaf((*batch, groups * inner, *_sizes(rng, n, most)))
    first, second = (groups * inner, outer) if transposed else (groups * outer, inner)
    weight = leaf((first, second, *kernel))
    bias = leaf((groups * outer,)) if rng.random() < 0.6 else None
    stride, dilation = _several(rng, n, 1, 1, 2, 3), _several(rng, n, 1, 1, 1, 2, 3)
    padding = _several(rng, n, 0, 0, 1, 2, 3)
    if transposed:
        b.call(
            f"{F}conv_transpose{n}d",
            x,
            weight,
            bias,
            stride,
            padding,
            _several(rng, n, 0, 0, 0, 1, 2),
            groups,
            dilation,
        )
    else:
        if rng.random() < 0.1:
            padding = rng.choice(("same", "valid"))
        b.call(f"{F}conv{n}d", x, weight, bias, stride, padding, dilation, groups)


def pool(b: Builder) -> None:
    rng, n, dtype = b.rng, b.rng.choice((1, 2, 2, 3)), _dtype(b.rng)
    kind = rng.choice(("max", "max", "avg", "avg", "lp", "adaptive_max", "adaptive_avg", "unpool"))
    batch = () if rng.random() < 0.15 else (_batch(rng),)
    most = {1: 40, 2: 14, 3: 7}[n]
    x = _leaf(b, dtype, (*batch, rng.choice((1, 2, 3, 17)), *_sizes(rng, n, most)))
    if kind.startswith("adaptive"):
        sizes = (1, 2, 3, 5, None if n > 1 else 4)
        size = rng.choice(sizes) if rng.random() < 0.5 else tuple(rng.choice(sizes) for _ in range(n))
        extra = {"return_indices": True} if kind == "adaptive_max" and rng.random() < 0.4 else {}
        if size is not None:
            b.call(f"{F}{kind}_pool{n}d", x, size, **extra)
        return
    kernel = _several(rng, n, 1, 2, 2, 3, 3, 4)
    keywords: dict = {}
    if rng.random() < 0.6:
        keywords["stride"] = _several(rng, n, 1, 2, 3)
    if rng.random() < 0.3:
        keywords["ceil_mode"] = True
    if kind == "lp":
        b.call(f"{F}lp_pool{n}d", x, rng.choice((1, 2, 3.0)), kernel, **keywords)
        return
    if rng.random() < 0.4:
        keywords["padding"] = _several(rng, n, 0, 1, 1, 2)
    if kind == "avg":
        if rng.random() < 0.3:
            keywords["count_include_pad"] = False
        if rng.random() < 0.15 and n > 1:
            keywords["divisor_override"] = rng.choice((1, 3, 7))
        b.call(f"{F}avg_pool{n}d", x, kernel, **keywords)
        return
    if kind == "max" and rng.random() < 0.3:
        keywords["dilation"] = _several(rng, n, 1, 2, 3)
    if kind == "unpool":
        keywords = {k: v for k, v in keywords.items() if k == "stride"}
    if kind == "unpool" or rng.random() < 0.3:
        pair = b.call(f"{F}max_pool{n}d", x, kernel, **keywords, return_indices=True)
        if pair is None:
            return
        values, indices = b.call("operator.getitem", pair, 0), b.call("operator.getitem", pair, 1)
        if kind == "unpool":
            b.call(f"{F}max_unpool{n}d", values, indices, kernel, **keywords)
        return
    b.call(f"{F}max_pool{n}d", x, kernel, **keywords)


def norm(b: Builder) -> None:
    rng, dtype = b.rng, _dtype(b.rng)
    kind = rng.choice(("layer", "layer", "rms", "group", "batch", "batch", "instance", "normalize", "local"))
    shape = (rng.choice((1, 2, 3, 5, 16)), rng.choice((2, 4, 6, 1, 8)), *drawing.shape(rng, most=2))
    x = _leaf(b, dtype, shape)
    eps = rng.choice((1e-5, 1e-5, 1e-3, 1e-12))
    optional = lambda *sizes: _leaf(b, dtype, sizes) if rng.random() < 0.6 else None
    if kind in ("layer", "rms"):
        last = shape[-rng.randint(1, len(shape)) :]
        if kind == "layer":
            b.call(F + "layer_norm", x, last, optional(*last), optional(*last), eps)
        else:
            b.call(F + "rms_norm", x, last, optional(*last), None if dtype == "float64" else eps)
    elif kind == "group":
        groups = rng.choice([g for g in (1, 2, 3, 4) if shape[1] % g == 0 or rng.random() < 0.05] or [1])
        b.call(F + "group_norm", x, groups, optional(shape[1]), optional(shape[1]), eps)
    elif kind in ("batch", "instance"):
        mean = var = None
        if rng.random() < 0.6:
            mean, var = b.leaf(dtype, shape[1:2], "exact"), b.leaf(dtype, shape[1:2], "positive")
        weight, bias = optional(shape[1]), optional(shape[1])
        if kind == "batch":
            training = rng.random() < 0.6
            b.call(F + "batch_norm", x, mean, var, weight, bias, training, rng.choice((0.1, 0.5, 0.0)), eps)
        else:
            b.call(F + "instance_norm", x, mean, var, weight, bias, rng.random() < 0.7, 0.1, eps)
    elif kind == "normalize":
        b.call(F + "normalize", x, rng.choice((2.0, 1.0, 3, float("inf"))), drawing.dimension(rng, len(shape)))
    else:
        b.call(
            F + "cosine_similarity",
            x,
            _leaf(b, dtype, drawing.broadcastable(rng, shape)),
            drawing.dimension(rng, len(shape)),
        )


_ELEMENTWISE_LOSSES = (
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "soft_margin_loss",
    "kl_div",
    "hinge_embedding_loss",
)


def loss(b: Builder) -> None:
    rng, dtype = b.rng, _dtype(b.rng)
    reduction = rng.choice(("mean", "sum", "none"))
    kind = rng.choice(
        ("class", "class", "elementwise", "binary", "logits", "poisson", "gaussian", "triplet", "ranking")
    )
    shape = drawing.shape(rng, most=3)
    if kind == "class":
        _class_loss(b, dtype, reduction)
    elif kind == "elementwise":
        name = rng.choice(_ELEMENTWISE_LOSSES)
        target = _leaf(b, dtype, drawing.broadcastable(rng, shape) if rng.random() < 0.1 else shape, share=0.3)
        keywords = {}
        if name == "smooth_l1_loss" and rng.random() < 0.5:
            keywords["beta"] = rng.choice((0.0, 0.5, 2.0))
        if name == "huber_loss" and rng.random() < 0.5:
            keywords["delta"] = rng.choice((0.5, 2.0))
        if name == "kl_div" and rng.random() < 0.4:
            keywords["log_target"] = True
        b.call(F + name, _leaf(b, dtype, shape), target, reduction=reduction, **keywords)
    elif kind in ("binary", "logits"):
        share = (0.0, 0.25, 0.5, 1.0, 0.75, 0.125, 1.0) if rng.random() < 0.9 else (1.5, 0.5, -0.5)
        target = b.leaf(dtype, shape, values=(0.0, 1.0, 0.5, 1.0, 0.25), grad=rng.random() < 0.2)
        weight = _leaf(b, dtype, drawing.broadcastable(rng, shape), share=0) if rng.random() < 0.3 else None
        if kind == "binary":
            x = b.leaf(dtype, shape, values=share, grad=rng.random() < 0.7)
            b.call(F + "binary_cross_entropy", x, target, weight, reduction=reduction)
        else:
            extra = (
                {"pos_weight": _leaf(b, dtype, drawing.broadcastable(rng, shape), share=0)}
                if rng.random() < 0.3
                else {}
            )
            b.call(
                F + "binary_cross_entropy_with_logits",
                _leaf(b, dtype, shape),
                target,
                weight,
                reduction=reduction,
                **extra,
            )
    elif kind == "poisson":
        keywords = {"log_input": rng.random() < 0.5, "full": rng.random() < 0.3, "reduction": reduction}
        b.call(F + "poisson_nll_loss", _leaf(b, dtype, shape), b.leaf(dtype, shape, "positive"), **keywords)
    elif kind == "gaussian":
        x, target = _leaf(b, dtype, shape), _leaf(b, dtype, shape)
        b.call(
            F + "gaussian_nll_loss",
            x,
            target,
            b.leaf(dtype, shape, "positive"),
            full=rng.random() < 0.3,
            reduction=reduction,
        )
    elif kind == "triplet":
        shape = (rng.randint(1, 4), rng.randint(1, 5))
        keywords = {"margin": rng.choice((1.0, 0.1)), "p": rng.choice((2, 1.0)), "swap": rng.random() < 0.3}
        b.call(F + "triplet_margin_loss", *(_leaf(b, dtype, shape) for _ in range(3)), **keywords, reduction=reduction)
    else:
        sign = b.leaf(dtype, shape, values=(1.0, -1.0, -1.0, 1.0, 1.0))
        b.call(
            F + "margin_ranking_loss",
            _leaf(b, dtype, shape),
            _leaf(b, dtype, shape),
            sign,
            rng.choice((0, 0.5)),
            reduction=reduction,
        )


def _class_loss(b: Builder, dtype: str, reduction: str) -> None:
    rng, classes = b.rng, b.rng.choice((1, 2, 3, 5, 10, 33))
    rest = drawing.shape(rng, most=2) if rng.random() < 0.3 else ()
    batch = () if rng.random() < 0.1 else (rng.choice((1, 2, 3, 7, 0) if rng.random() < 0.2 else (2, 3, 5)),)
    shape = (*batch, classes, *(rest if batch else ()))
    x = _leaf(b, dtype, shape)
    keywords: dict = {"reduction": reduction}
    name = rng.choice(("cross_entropy", "cross_entropy", "nll_loss"))
    if name == "cross_entropy" and rng.random() < 0.25:
        target = _leaf(b, dtype, shape, share=0.3)
    else:
        ignored = rng.choice((-100, 0, classes - 1, -1))
        if rng.random() < 0.4:
            keywords["ignore_index"] = ignored
        values = tuple(
            rng.randrange(classes) if rng.random() < 0.85 else keywords.get("ignore_index", 0) for _ in range(11)
        )
        if rng.random() < 0.02:
            values = (classes, *values)
        target = b.leaf("int64", (*batch, *shape[2:]) if batch else (), values=values)
    if rng.random() < 0.3:
        keywords["weight"] = b.leaf(dtype, (classes,), "positive")
    if name == "cross_entropy" and rng.random() < 0.3:
        keywords["label_smoothing"] = rng.choice((0.1, 0.5, 1.0))
    b.call(F + name, x, target, **keywords)


def attention(b: Builder) -> None:
    rng, dtype = b.rng, _dtype(b.rng)
    batch = drawing.shape(rng, most=2) if rng.random() < 0.4 else rng.choice(((1, 2), (2, 1), (2,), (2, 4)))
    queries, keys = (
        rng.choice((1, 2, 3, 5, 17, 33)),
        rng.choice((1, 2, 3, 5, 17, 33, 0) if rng.random() < 0.1 else (1, 2, 3, 5, 33)),
    )
    features, out = rng.choice((1, 2, 4, 8, 16, 5)), rng.choice((4, 8, 3))
    if rng.random() < 0.7:
        out = features
    q, k, v = (
        _leaf(b, dtype, (*batch, queries, features)),
        _leaf(b, dtype, (*batch, keys, features)),
        _leaf(b, dtype, (*batch, keys, out)),
    )
    keywords: dict = {}
    at = rng.random()
    if at < 0.3:
        keywords["is_causal"] = True
    elif at < 0.7:
        shape = drawing.broadcastable(rng, (*batch, queries, keys))
        if len(shape) < 2:
            shape = (queries, keys)
        mask = "bool" if rng.random() < 0.5 else dtype
        keywords["attn_mask"] = b.leaf(mask, shape, "exact", grad=rng.random() < 0.3)
    if rng.random() < 0.3:
        keywords["scale"] = rng.choice((1.0, 0.5, 2.0))
    b.call(F + "scaled_dot_product_attention", q, k, v, **keywords)


def embedding(b: Builder) -> None:
    rng, dtype = b.rng, _dtype(b.rng)
    rows, width = rng.choice((1, 2, 5, 10)), rng.choice((1, 3, 4, 16, 17, 0) if rng.random() < 0.1 else (1, 3, 4, 17))
    weight = _leaf(b, dtype, (rows, width))
    values = tuple(rng.randrange(rows) for _ in range(11))
    if rng.random() < 0.03:
        values = (rng.choice((rows, -1)), *values)
    index = b.leaf(rng.choice(("int64", "int32")), drawing.shape(rng, most=3), values=values)
    keywords: dict = {}
    if rng.random() < 0.4:
        keywords["padding_idx"] = rng.choice((0, rows - 1, -1, -rows))
    if rng.random() < 0.3:
        keywords["scale_grad_by_freq"] = True
    if rng.random() < 0.1:
        keywords["max_norm"] = 1.0
    b.call(F + "embedding", index, weight, **keywords)


def resampling(b: Builder) -> None:
    rng, dtype = b.rng, _dtype(b.rng)
    at = rng.random()
    if at < 0.5:
        n, mode = rng.choice(
            (
                (1, "nearest"),
                (1, "linear"),
                (2, "nearest"),
                (2, "bilinear"),
                (2, "bicubic"),
                (2, "area"),
                (3, "nearest"),
                (3, "trilinear"),
                (1, "nearest-exact"),
                (2, "nearest-exact"),
                (1, "area"),
            )
        )
        x = _leaf(b, dtype, (_batch(rng), rng.choice((1, 2, 3)), *_sizes(rng, n, 6)))
        keywords: dict = {"mode": mode}
        if rng.random() < 0.5:
            keywords["size"] = _several(rng, n, 1, 2, 3, 5, 8)
        else:
            keywords["scale_factor"] = _several(rng, n, 0.5, 1.0, 1.3, 2.0, 2, 2.5) if rng.random() < 0.98 else 0.1
            if rng.random() < 0.2:
                keywords["recompute_scale_factor"] = rng.random() < 0.5
        if mode in ("linear", "bilinear", "bicubic", "trilinear") and rng.random() < 0.6:
            keywords["align_corners"] = rng.random() < 0.5
        if mode in ("bilinear", "bicubic") and rng.random() < 0.2:
            keywords["antialias"] = True
        b.call(F + "interpolate", x, **keywords)
    elif at < 0.75:
        n = rng.choice((1, 2, 3))
        x = _leaf(b, dtype, (_batch(rng), 2, *_sizes(rng, n, 6)))
        mode = rng.choice(("constant", "constant", "reflect", "replicate", "circular"))
        count = n if mode != "constant" else rng.randint(1, n)
        amounts = (
            (0, 1, 2, 3) if mode == "circular" else (0, 1, 2, -1, 3)
        )  # PyTorch overwrites what it reads when it cuts
        pad = tuple(rng.choice(amounts) for _ in range(2 * count))
        b.call(F + "pad", x, pad, mode, **({"value": rng.choice((1.5, -1, None))} if mode == "constant" else {}))
    elif at < 0.9:
        kernel, dilation = _several(rng, 2, 1, 2, 3), _several(rng, 2, 1, 1, 2)
        padding, stride = _several(rng, 2, 0, 0, 1), _several(rng, 2, 1, 2)
        sizes = _sizes(rng, 2, 7)
        x = _leaf(b, dtype, (_batch(rng), 2, *sizes))
        columns = b.call(F + "unfold", x, kernel, dilation, padding, stride)
        if columns is not None:
            b.call(F + "fold", columns, sizes, kernel, dilation, padding, stride)
    else:
        r = rng.choice((1, 2, 3))
        x = _leaf(b, dtype, (_batch(rng), 2 * r * r, *_sizes(rng, 2, 4)))
        b.call(F + rng.choice(("pixel_shuffle", "pixel_unshuffle", "channel_shuffle")), x, r)


def product(b: Builder) -> None:
    """Matrix products and linear layers."""
    rng, dtype = b.rng, _dtype(b.rng)
    m, k, n = (rng.choice((1, 2, 3, 5, 8, 17, 33, 0 if rng.random() < 0.1 else 4)) for _ in range(3))
    if rng.random() < 0.05:
        m, k, n = (rng.choice((64, 65, 127, 200)) for _ in range(3))
    kind = rng.choice(
        ("linear", "matmul", "matmul", "addmm", "baddbmm", "bmm", "bilinear", "mv", "outer", "einsum", "cdist")
    )
    batch = rng.choice(((), (2,), (3, 1), (0,) if rng.random() < 0.1 else (1,)))
    if kind == "linear":
        x, w = _leaf(b, dtype, (*batch, m, k)), _leaf(b, dtype, (n, k))
        b.call(F + "linear", x, w, _leaf(b, dtype, (n,)) if rng.random() < 0.6 else None)
    elif kind == "matmul":
        other = drawing.broadcastable(rng, batch) if batch else ()
        left = (k,) if rng.random() < 0.1 else (*batch, m, k)
        right = (k,) if rng.random() < 0.1 else (*other, k, n)
        b.call("matmul", _leaf(b, dtype, left), _leaf(b, dtype, right))
    elif kind in ("addmm", "baddbmm", "bmm"):
        first = () if kind == "addmm" else (rng.choice((1, 2, 3)),)
        x, y = _leaf(b, dtype, (*first, m, k)), _leaf(b, dtype, (*first, k, n))
        if kind == "bmm":
            b.call("bmm", x, y)
            return
        keywords = {"beta": rng.choice((1, 0, 0.5)), "alpha": rng.choice((1, 2, -0.5))} if rng.random() < 0.6 else {}
        b.call(kind, _leaf(b, dtype, drawing.broadcastable(rng, (*first, m, n))), x, y, **keywords)
    elif kind == "bilinear":
        b.call(F + "bilinear", _leaf(b, dtype, (m, k)), _leaf(b, dtype, (m, n)), _leaf(b, dtype, (3, k, n)), None)
    elif kind == "mv":
        b.call("mv", _leaf(b, dtype, (m, k)), _leaf(b, dtype, (k,)))
    elif kind == "outer":
        b.call("outer", _leaf(b, dtype, (m,)), _leaf(b, dtype, (n,)))
    elif kind == "einsum":
        equation = rng.choice(("ij,jk->ik", "ij,jk->ki", "ij,jk->", "ij,jk->ijk", "ij,jk->jk"))
        b.call("einsum", equation, _leaf(b, dtype, (m, k)), _leaf(b, dtype, (k, n)))
    else:
        p = rng.choice((2.0, 1.0, 0.0, 3.0, float("inf")))
        b.call("cdist", _leaf(b, dtype, (*batch, m, k)), _leaf(b, dtype, (*batch, n, k)), p)


def recurrent(b: Builder) -> None:
    rng = b.rng
    dtype = rng.choice(("float32", "float64"))
    batch, inputs, hidden = rng.randint(1, 3), rng.randint(1, 5), rng.choice((1, 2, 3, 5, 8))
    kind = rng.choice(("rnn_tanh_cell", "rnn_relu_cell", "gru_cell", "lstm_cell"))
    gates = {"gru_cell": 3, "lstm_cell": 4}.get(kind, 1)
    x, h = _leaf(b, dtype, (batch, inputs)), _leaf(b, dtype, (batch, hidden))
    state = (h, _leaf(b, dtype, (batch, hidden))) if kind == "lstm_cell" else h
    weights = [_leaf(b, dtype, (gates * hidden, inputs)), _leaf(b, dtype, (gates * hidden, hidden))]
    if rng.random() < 0.7:
        weights += [_leaf(b, dtype, (gates * hidden,)), _leaf(b, dtype, (gates * hidden,))]
    found = b.call(kind, x, state, *weights)
    if found is not None and kind == "lstm_cell":
        b.call("operator.getitem", found, rng.randrange(2))


_ACTIVATIONS = words("""
    relu relu6 hardtanh leaky_relu hardsigmoid hardswish hardshrink softshrink tanhshrink softsign elu selu celu
    softplus logsigmoid silu mish gelu glu sigmoid tanh threshold
""")


def activation(b: Builder) -> None:
    rng, dtype = b.rng, _dtype(b.rng)
    shape = drawing.large_shape(rng, 2) if rng.random() < 0.1 else drawing.shape(rng)
    x = _leaf(b, dtype, shape, rng.choice(("exact", "random", "special")))
    name = rng.choice(_ACTIVATIONS)
    arguments = [rng.choice((0.5, 0.0, -0.5)), 1.5] if name == "threshold" else []
    keywords: dict = {}
    if name == "gelu" and rng.random() < 0.5:
        keywords["approximate"] = "tanh"
    if name in ("elu", "celu") and rng.random() < 0.5:
        keywords["alpha"] = rng.choice((0.5, 2.0))
    if name == "softplus" and rng.random() < 0.5:
        keywords |= {"beta": rng.choice((0.5, 2.0)), "threshold": rng.choice((1.0, 20.0))}
    if (
        name in ("relu", "relu6", "hardtanh", "leaky_relu", "hardswish", "elu", "silu", "mish", "selu")
        and rng.random() < 0.2
    ):
        keywords["inplace"] = True
        x = b.call("operator.mul", x, 1) or x
    if rng.random() < 0.1:
        b.call(
            F + rng.choice(("softmax", "log_softmax", "softmin")),
            x,
            drawing.dimension(rng, len(shape)),
            **({"dtype": Name(drawing.dtype(rng, floating=1))} if rng.random() < 0.3 else {}),
        )
        return
    b.call(F + name, x, *arguments, **keywords)


_KINDS = (
    convolution,
    convolution,
    pool,
    pool,
    norm,
    norm,
    loss,
    loss,
    attention,
    embedding,
    resampling,
    product,
    product,
    recurrent,
    activation,
)


def layers(b: Builder) -> None:
    b.rng.choice(_KINDS)(b)
    b.gradients(records_again=b.rng.random() < 0.15)
