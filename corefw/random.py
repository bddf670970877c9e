"""The state of random numbers: seeds, generators and their states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from corefw.devices import device
from corefw.dispatch.random_generator import Generator, defaults
from corefw.tensor import Tensor

default_generator = defaults[device("cpu")]


class use:
    """Choose the engine of the CPU's random numbers, from now on or for a with-block.

    Args:
        engine: "philox" for the numbers of docs/random.md, which are the same on every device and the default, or
            "mt19937" for those of PyTorch on the CPU. Other devices have Philox's always.

    A default generator of another engine goes on at the start of its seed's stream; generators that are made from now
    on are of the engine too, while those made before stay what they are. After a with-block all is as before it. Raises
    ValueError for another engine.

    >>> import corefw as torch
    >>> with torch.random.use("mt19937"):
    ...     _ = torch.manual_seed(0)
    ...     print(torch.rand(2), torch.randn(2))
    tensor([0.4963, 0.7682]) tensor([-0.2905, -1.0704])
    """

    def __init__(self, engine: str):
        self._before = default_generator.__class__
        self._state = default_generator.change_engine(_engine(engine))
        Generator.engines = _engines(default_generator.__class__)

    def __enter__(self) -> use:
        return self

    def __exit__(self, *exception: object) -> None:
        default_generator.change_engine(self._before, self._state)
        Generator.engines = _engines(self._before)


def _engine(name: str) -> type[Generator]:
    if name == Generator.engine:
        return Generator
    if name != "mt19937":
        raise ValueError(f'random.use: no engine is called {name!r}; there are "philox" and "mt19937"')
    return import_module("corefw.dispatch.mersenne_twister").MersenneTwister  # which few programs need


def _engines(engine: type[Generator]) -> dict[str, type[Generator]]:
    return {} if engine is Generator else {default_generator.device.type: engine}


def manual_seed(seed: int) -> Generator:
    """Start the stream of `seed` on every device; returns the CPU's generator.

    Args:
        seed: from -2^63 to 2^64 - 1; a negative one stands for ``2^64 + seed``.

    >>> import corefw as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.rand(2)
    tensor([0.3990, 0.8805])
    """
    return defaults.manual_seed(int(seed))


def seed() -> int:
    """Start a stream that cannot be foreseen on every device; returns its seed."""
    chosen = default_generator.seed()
    defaults.manual_seed(chosen)
    return chosen


def initial_seed() -> int:
    """The seed of the CPU's generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the CPU's generator, a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Let the CPU's generator go on from a state that `get_rng_state` gave."""
    default_generator.set_state(new_state)


def thread_safe_generator() -> Generator | None:
    """The generator that samples of this thread are to be drawn from: None, for the default one, because the workers of
    a `DataLoader` are processes, with generators of their own.

    >>> thread_safe_generator()
    """
    return None


@contextmanager
def fork_rng(
    devices: Sequence[int | str | device] | None = None,
    enabled: bool = True,
    device_type: str = "cuda",
) -> Iterator[None]:
    """Random numbers drawn inside a with-block do not move the generators outside.

    Args:
        devices: the devices, beside the CPU, whose generators are kept; all that are in use if missing.
        enabled: False makes the block an ordinary one.
        device_type: the type of devices given by index.

    >>> import corefw as torch
    >>> before = torch.get_rng_state()
    >>> with torch.random.fork_rng():
    ...     _ = torch.rand(3)
    >>> bool((torch.get_rng_state() == before).all())
    True
    """
    if not enabled:
        yield
        return
    if devices is None:
        kept = list(defaults.values())
    else:
        wanted = [device(device_type, d) if isinstance(d, int) else device(d) for d in devices]
        kept = [default_generator, *(defaults[d] for d in wanted)]
    states = [(generator, generator.get_state()) for generator in kept]
    try:
        yield
    finally:
        for generator, state in states:
            generator.set_state(state)


__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
    "use",
]
