"""What PyTorch's generator is to give: calls of every random function, for corefw and for PyTorch alike.

`scripts/make_fixtures` writes down what PyTorch gives; tests/test_pytorch_numbers.py compares corefw with that.
"""

from pathlib import Path

import numpy as np

#: {seed: the bytes of all numbers, one after another}
FIXTURE = Path(__file__).parent / "fixtures" / "pytorch_numbers.npz"
SEEDS = (0, 1, 1234, 2**40 + 5)

#: calls that fill a tensor: name, method, arguments
FILLS = (
    ("uniform", "uniform_", (-0.3, 0.7)),
    ("normal", "normal_", (0.3, 2.2)),
    ("exponential", "exponential_", (1.7,)),
    ("cauchy", "cauchy_", (0.3, 1.3)),
    ("log_normal", "log_normal_", (0.5, 0.3)),
    ("geometric", "geometric_", (0.1,)),
    ("bernoulli", "bernoulli_", (0.3,)),
    ("random", "random_", (-3, 90)),
)
#: sizes above, and below, that of a block of normal numbers, whole and not
SIZES = (5, 37, 100)
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")


def _layouts(torch, dtype):
    """Tensors that do not lie in the order of their dimensions."""
    yield "transposed", torch.empty(9, 4, dtype=dtype).t()
    yield "sliced", torch.empty(4, 14, dtype=dtype)[:, ::2]
    yield "permuted", torch.empty(3, 4, 5, dtype=dtype).permute(2, 0, 1)


def _weights(torch, dtype):
    weights = np.random.default_rng(0).random((3, 12))
    weights[:, 3] = 0
    return torch.from_numpy(weights).to(dtype)


def calls(torch, seed, generator):
    """Yields (name, tensor) for one call after another, all from one generator."""
    floats = ("float32", "float64") if seed else ("float16", "bfloat16", "float32", "float64")
    for name in floats:
        dtype = getattr(torch, name)
        for size in (37,) if seed else SIZES:
            yield f"rand {name} {size}", torch.rand(size, dtype=dtype, generator=generator)
            yield f"randn {name} {size}", torch.randn(size, dtype=dtype, generator=generator)
            for kind, method, arguments in FILLS:
                yield (
                    f"{kind} {name} {size}",
                    getattr(torch.empty(size, dtype=dtype), method)(*arguments, generator=generator),
                )
        if seed != 1:
            continue
        for layout, tensor in _layouts(torch, dtype):
            for kind, method, arguments in FILLS:
                getattr(tensor, method)(*arguments, generator=generator)
                yield f"{kind} {name} {layout}", tensor.clone()
        yield f"whole {name}", torch.empty(8, dtype=dtype).random_(generator=generator)
    if seed == 1:
        for name in INTEGERS:
            dtype = getattr(torch, name)
            yield f"whole {name}", torch.empty(8, dtype=dtype).random_(generator=generator)
            yield f"bernoulli {name}", torch.empty(8, dtype=dtype).bernoulli_(0.3, generator=generator)
        for name in ("complex64", "complex128"):
            dtype = getattr(torch, name)
            yield f"rand {name}", torch.rand(10, dtype=dtype, generator=generator)
            yield f"randn {name} pairs", torch.randn(5, dtype=dtype, generator=generator)
            yield f"randn {name}", torch.randn(10, dtype=dtype, generator=generator)
    yield "randint", torch.randint(3, 9, (4, 5), generator=generator)
    for bits in (28, 32, 40, 63):
        yield f"randint {bits}", torch.randint(0, 2**bits - (bits == 63), (8,), generator=generator)
    for n in (1, 2, 30):
        yield f"randperm {n}", torch.randperm(n, generator=generator)
    for name in ("float32", "float64"):
        weights = _weights(torch, getattr(torch, name))
        for count, again in ((1, False), (1, True), (5, False), (30, True)):
            drawn = torch.multinomial(weights, count, again, generator=generator)
            yield f"multinomial {name} {count} {again}", drawn
        yield f"bernoulli from {name}", torch.bernoulli(weights, generator=generator)
        yield f"bernoulli over {name}", torch.empty(12, 3).t().bernoulli_(weights, generator=generator)
        yield f"normal from {name}", torch.normal(weights, 2 * weights, generator=generator)


def numbers(torch, seed):
    """{name: array} of all calls, and the generator's state after them."""
    generator = torch.Generator().manual_seed(seed)
    made = {name: tensor.clone() for name, tensor in calls(torch, seed, generator)}
    made["state"] = generator.get_state()
    return {name: (t.float() if t.dtype is torch.bfloat16 else t).numpy() for name, t in made.items()}


def written(made):
    """The arrays of `numbers` as they are written down."""
    return np.frombuffer(b"".join(array.tobytes() for array in made.values()), np.uint8)
