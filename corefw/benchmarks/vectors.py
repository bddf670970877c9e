"""Ops on vectors: elementwise ones, reductions, random numbers."""

SIZES = (10**4, 10**6, 10**7)
MEDIUM = (10**4, 10**6)


def sized(*operations, sizes=SIZES):
    """{op: (its function of a module, two vectors and a mask, the sizes)}."""
    return {name: (function, sizes) for name, function in operations}


def method(name, *arguments, **keywords):
    """An op that calls a method of the first tensor."""
    return name, lambda torch, x, y, m: getattr(x, name)(*arguments, **keywords)


def function(name, *arguments, **keywords):
    """An op that calls a function of `nn.functional` on the first tensor."""
    return name, lambda torch, x, y, m: getattr(torch.nn.functional, name)(x, *arguments, **keywords)


VECTORS = (
    sized(
        ("add", lambda torch, x, y, m: x + y),
        ("add_", lambda torch, x, y, m: x.add_(y)),
        ("mul", lambda torch, x, y, m: x * y),
        ("div", lambda torch, x, y, m: x / y),
        ("mul_number", lambda torch, x, y, m: x * 2.0),
        ("addcmul", lambda torch, x, y, m: torch.addcmul(x, x, y)),
        ("maximum", lambda torch, x, y, m: torch.maximum(x, y)),
        ("less", lambda torch, x, y, m: x < y),
        ("where", lambda torch, x, y, m: torch.where(m, x, y)),
        ("masked_fill", lambda torch, x, y, m: x.masked_fill(m, 0.0)),
        method("clamp", -1.0, 1.0),
        method("exp"),
        method("tanh"),
        method("sigmoid"),
        function("relu"),
        function("gelu"),
    )
    | sized(
        method("abs"),
        method("neg"),
        method("sqrt"),
        method("rsqrt"),
        method("square"),
        method("log"),
        method("log1p"),
        method("expm1"),
        method("erf"),
        method("sin"),
        method("cos"),
        ("pow", lambda torch, x, y, m: x.abs() ** 2.5),
        ("gelu_tanh", lambda torch, x, y, m: torch.nn.functional.gelu(x, approximate="tanh")),
        function("silu"),
        function("softplus"),
        function("leaky_relu", 0.1),
        ("atan2", lambda torch, x, y, m: torch.atan2(x, y)),
        ("isnan", lambda torch, x, y, m: x.isnan()),
        ("to_double", lambda torch, x, y, m: x.double()),
        ("to_half", lambda torch, x, y, m: x.half()),
        ("clone", lambda torch, x, y, m: x.clone()),
        sizes=MEDIUM,
    )
    | sized(
        method("sum"),
        method("mean"),
        method("amax"),
        method("argmax"),
        method("var"),
        method("norm"),
    )
    | sized(
        method("prod"),
        method("logsumexp", 0),
        method("cumsum", 0),
        ("all", lambda torch, x, y, m: m.all()),
        ("sort", lambda torch, x, y, m: x.sort()),
        ("masked_select", lambda torch, x, y, m: x[m]),
        ("nonzero", lambda torch, x, y, m: m.nonzero()),
        ("dropout", lambda torch, x, y, m: torch.nn.functional.dropout(x, 0.5)),
        ("randn", lambda torch, x, y, m: torch.randn(x.shape)),
        ("rand", lambda torch, x, y, m: torch.rand(x.shape)),
        ("randperm", lambda torch, x, y, m: torch.randperm(x.shape[0])),
        ("mse_loss", lambda torch, x, y, m: torch.nn.functional.mse_loss(x, y)),
        sizes=MEDIUM,
    )
)
