"""What every test starts from: the same random numbers, the default settings, and memory that shows what is read before
it was written."""

import dataclasses
import gc
import importlib
import importlib.util
import os
import signal
import subprocess
import sys
import textwrap

os.environ.setdefault("COREFW_POISON", "1")  # before a backend is loaded
os.environ.setdefault("COREFW_C_COMPILER", "0")  # but in the tests of what it compiles

import numpy as np
import pytest

import corefw
from corefw import devices, dtypes
from corefw.dispatch import plugins
from corefw.dispatch.registry import registry
from tests.plugins import install

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as the background jobs of a shell do, and what they start
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Tens of thousands of tests live till the end: the garbage collector looks through them neither while they are
    made nor afterwards."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def defaults():
    """Each test begins, and leaves, with NumPy's generator seeded and the default dtype float32."""
    np.random.seed(0)
    yield
    assert dtypes.get_default_dtype() is dtypes.float32, "a test left another default dtype behind"


@pytest.fixture(scope="session")
def plugin_site(tmp_path_factory):
    """A function giving the folder in which the named plugins are installed."""
    made = {}

    def installed(*entries):
        if entries not in made:
            made[entries] = install(tmp_path_factory.mktemp("plugins"), *entries)
        return made[entries]

    return installed


@pytest.fixture
def beside_plugins(plugin_site):
    """Run a program beside the named plugins; returns what it printed, line by line."""

    def run(program, *entries, **environment):
        env = {k: v for k, v in os.environ.items() if not k.startswith("COREFW_")}
        path = os.pathsep.join([str(plugin_site(*entries)), *filter(None, [os.environ.get("PYTHONPATH")])])
        env |= {"PYTHONPATH": path, "COREFW_DISABLE": "c"} | environment  # it outranks those tried here
        command = [sys.executable, "-W", "error", "-c", textwrap.dedent(program)]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


@pytest.fixture
def set_threads():
    """A function that sets the number of threads until the test ends."""
    before = corefw.get_num_threads()
    yield corefw.set_num_threads
    corefw.set_num_threads(before)


@pytest.fixture
def same_on_threads(set_threads):
    """A function that checks that what a call gives, one array or tensor or several, has the same bits on 1, 2 and 5
    threads."""

    def bits(result):
        return (result.array if isinstance(result, corefw.Tensor) else result).tobytes()

    def check(call):
        found = []
        for count in (1, 2, 5):
            set_threads(count)
            results = call()
            found.append([*map(bits, results if isinstance(results, (tuple, list)) else (results,))])
        assert found[0] == found[1] == found[2]

    return check


def _register_levels() -> None:
    """Where the C backend is installed, every other level that the machine has is a backend of its own, `c-v3`. Levels
    of one module differ in products, convolutions, attention and recurrences alone, and the lower ones have no other
    kernels here. So has `c-tiles`, whose tiles are emulated."""
    if importlib.util.find_spec("corefw_c") is None:
        return
    plugins.load("cpu")
    if "c" not in registry.backends:
        return
    multiplying = ("attention", "convolution", "linear_algebra", "quantization", "recurrent")
    corefw_c, *families = map(importlib.import_module, ("corefw_c", *(f"corefw_c.{name}" for name in multiplying)))
    library, best = corefw_c.library, registry.backends["c"].detail.partition(";")[0]
    modules, alone = {library.module_of(best)}, {"fuse": None, "executor": None}
    for below, level in enumerate(library.levels(), 1):
        if level == best:
            continue
        backend = corefw_c.backend(level, name=f"c-{level}", priority=-below)
        if library.module_of(level) in modules:
            kernels = [kernel for family in families for kernel in family.kernels(library.load(level))]
            backend = dataclasses.replace(backend, kernels={"cpu": kernels}, **alone)
        modules.add(library.module_of(level))
        registry.add_backend(backend)
    lowest = library.load(library.levels()[-1])
    if lowest.tiles_are_emulated():
        tiles = library.Library(lowest.functions, library.BY_TILES)
        kernels = [kernel for family in families for kernel in family.kernels(tiles)]
        backend = corefw_c.backend(library.levels()[-1], name="c-tiles", priority=-99)
        registry.add_backend(dataclasses.replace(backend, kernels={"cpu": kernels}, **alone))


_register_levels()
corefw.backends.cudnn.allow_tf32 = False  # float32 is compared with float32


def _register_emulation() -> None:
    """Where CuPy and a C++ compiler are, the CuPy backend is tested on the device `emulated`."""
    if importlib.util.find_spec("cupy") is None or importlib.util.find_spec("corefw_cupy") is None:
        return
    if importlib.import_module("tests.emulation.compiler").COMPILER is not None:
        importlib.import_module("tests.emulation.device").install()


_register_emulation()


@pytest.fixture
def cuda(monkeypatch):
    """The device type `cuda`, with two devices, over the emulated driver: its runtime."""
    from corefw_cupy import backend
    from corefw_cupy.runtime import CupyRuntime
    from tests.emulation import device, driver

    monkeypatch.setattr(registry, "backends", {k: v for k, v in registry.backends.items() if k != "cupy"})
    monkeypatch.setattr(registry, "runtimes", {k: v for k, v in registry.runtimes.items() if k != "cuda"})
    monkeypatch.setattr(registry, "kernels", {k: list(v) for k, v in registry.kernels.items()})
    runtime = CupyRuntime(device.cuda())
    registry.add_backend(backend(device.cuda(), runtime))
    driver.State.log.clear()
    yield runtime
    driver.State.device = 0
    runtime.memory_use.hook.__exit__()
    for made in devices.device._interned.values():
        if made.type == "cuda":
            made._keys.clear()
    registry.forget()
