"""Tiny backend plugins, built as wheels and installed with pip into a folder of their own, for the tests of
discovery."""

import base64
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

HOOK = """
import pluggy
from corefw.dispatch.backend import Backend, Kernel
hookimpl = pluggy.HookimplMarker("corefw")
"""

#: a device of its own over NumPy memory, with every kernel of the reference
DEVICE = """
from corefw_numpy import table
from corefw_numpy.runtime import NumpyRuntime
import numpy as np

class Memory(NumpyRuntime):
    device_type = "{device}"
    def current_device(self):
        return 0
    def device_count(self):
        return 2

@hookimpl
def corefw_backend():
    kernels, runtimes = {{"{device}": {kernels}}}, {{"{device}": Memory()}}
    return Backend(name="{name}", version="1.2", devices=("{device}",), kernels=kernels, runtimes=runtimes)
"""

#: one kernel on the CPU that leaves a mark: it adds 100
KERNEL = """
@hookimpl
def corefw_backend():
    def add(input, other, out=None):
        result = input + other + 100
        if out is None:
            return result
        out[...] = result
        return out
    kernels = {{"cpu": [Kernel("add", add, out=True)]}}
    settings = ("{name}_LEVEL".upper(),)
    return Backend("{name}", "0.3", ("cpu",), kernels=kernels, priority={priority}, settings=settings)
"""

#: kernels that are wrong, each in a way of its own, beside some that are right
PLANTED = """
import ctypes
import time
import numpy as np
from corefw import dtypes
import corefw_numpy

def changes_its_input(a, out=None):
    result = np.sin(a)
    a[...] = 0
    return result

def hangs(a):
    time.sleep(1000)

def steps_too_far(params, grads, *rest):
    right["sgd_step"](params, grads, *rest)
    for param in params:
        param *= 1.01

def from_another_stream(shape, seed, offset, *rest):
    return right["uniform_at"](shape, seed, offset + 1, *rest)

floats = frozenset((dtypes.float32, dtypes.float64))
right = {kernel.op: kernel.function for kernel in corefw_numpy.table(np)}
planted = {
    "exp": lambda a: np.exp(a) * 1.001,
    "sqrt": lambda a: np.sqrt(a.astype(np.float64)),
    "neg": lambda a: -a[None],
    "conj_physical": lambda a: a,
    "sin": changes_its_input,
    "softmax": right["softmax"],
    "softmax_backward": lambda grad, output, dim: grad * output,
    "sgd_step": steps_too_far,
    "uniform_at": from_another_stream,
    "arange_at": lambda start, step, count, dtype: right["arange_at"](start, step, count, np.dtype("float16")),
    "cos": hangs,
    "tan": lambda a: ctypes.string_at(0),
    "log": lambda a: np.log(a),
}

@hookimpl
def corefw_backend():
    kernels = {"cpu": [Kernel(op, function, floats) for op, function in planted.items()]}
    kernels["cpu"].append(Kernel("log2", lambda a: np.log2(a) * (1 + 1e-7), floats, max_ulp=0.25, deterministic=False))
    kernels["cpu"].append(Kernel("acos", np.arccos, frozenset()))
    kernels["cpu"].append(Kernel("log10", lambda a: np.log10(a) * 1.001, floats, max_ulp=1e5))
    return Backend(name="planted", version="1", devices=("cpu",), kernels=kernels, priority=9)
"""

#: kernels of the reference with a fault each, as FAULTS says: "relu=value,exp=type", on the CPU before all others
FAULTY = """
import os
import numpy as np
from corefw_numpy import table

def value(result, arguments):
    (arguments[0][0] if result is None else result).flat[-1] += 0.125
    return result

def argument(result, arguments):
    arguments[0].flat[0] += 1
    return result

FAULTS = {
    "value": value,
    "argument": argument,
    "type": lambda result, arguments: result.tolist(),
    "dtype": lambda result, arguments: result.astype("float16"),
    "shape": lambda result, arguments: result[None],
    "alias": lambda result, arguments: arguments[0],
}

def spoilt(right, fault):
    return lambda *arguments: FAULTS[fault](right(*arguments), arguments)

@hookimpl
def corefw_backend():
    right = {kernel.op: kernel.function for kernel in table(np)}
    faults = dict(item.split("=") for item in os.environ["FAULTS"].split(","))
    kernels = {"cpu": [Kernel(op, spoilt(right[op], fault)) for op, fault in faults.items()]}
    return Backend(name="faulty", version="1", devices=("cpu",), kernels=kernels, priority=9)
"""

SOURCES = {
    "cpu.planted": HOOK + PLANTED,
    "cpu.fast": HOOK + KERNEL.format(name="fast", priority=5),
    "cpu.twin": HOOK + KERNEL.format(name="twin", priority=0),
    "acme.acme": HOOK + DEVICE.format(name="acme", device="acme", kernels="table(np)"),
    "zeta.zeta": HOOK + DEVICE.format(name="zeta", device="zeta", kernels="table(np)"),
    "bare.bare": HOOK + DEVICE.format(name="bare", device="bare", kernels="[k for k in table(np) if k.op != 'mul']"),
    "cpu.newer": HOOK
    + """
@hookimpl
def corefw_backend():
    seven = lambda input, *rest: input + 7
    kernels = iter([Kernel(op, seven) for op in ("frobnicate", "neg", "softplus", "agglomerate")])
    return Backend(name="newer", version="2", devices=("cpu",), kernels={"cpu": kernels}, priority=7)
""",
    "cpu.foreign": HOOK
    + """
import array

@hookimpl
def corefw_backend():
    kernels = [Kernel(op, lambda *arguments: array.array("f", [1.0])) for op in ("neg", "exp", "add")]
    kernels.append(Kernel("sin", lambda input: 0.25))
    return Backend(name="foreign", version="2", devices=("cpu",), kernels={"cpu": kernels}, priority=7)
""",
    "cpu.careful": HOOK
    + """
def add(input, other, out=None):
    print("called with", input.shape, other.shape)
    return input + other

@hookimpl
def corefw_backend():
    kernels = [Kernel("add", add, out=True, check_shapes=True), Kernel("nonzero", abs, check_shapes=True)]
    return Backend(name="careful", version="2", devices=("cpu",), kernels={"cpu": kernels}, priority=7)
""",
    "cpu.faulty": HOOK + FAULTY,
    "odd.odd": HOOK
    + DEVICE.format(
        name="odd",
        device="odd",
        kernels="[Kernel('relu', lambda x: np.abs(x)) if k.op == 'relu' else k for k in table(np)]",
    ),
    "sparing.sparing": HOOK
    + DEVICE.format(name="sparing", device="sparing", kernels="[Kernel('index_add', np.add, deterministic='if asked')]")
    .replace(
        'device_type = "sparing"',
        'device_type = "sparing"\n    dtypes = frozenset(map(of_name, ("float32", "int64", "bool")))',
    )
    .replace("import numpy as np", "import numpy as np\nfrom corefw.dtypes import of_name"),
    "cpu.broken": "raise OSError('its library is missing')\n",
    "cpu.future": HOOK
    + """
@hookimpl
def corefw_backend():
    return Backend(name="future", version="9", devices=("cpu",), api=(9, 1))
""",
    "cpu.picky": HOOK
    + """
from corefw.errors import SettingError

@hookimpl
def corefw_backend():
    raise SettingError("PICKY=7: expected 8")
""",
    "cpu.hookless": "corefw_backend = None\n",
    "gpu9.absent": HOOK
    + """
@hookimpl
def corefw_backend():
    return Backend(name="absent", version="1", devices=("gpu9",), unusable="no driver for gpu9")
""",
}


def build_wheel(entry: str, folder: Path) -> Path:
    """A wheel of one module with one entry point; `entry` is "<device>.<backend>"."""
    module = f"corefw_plugin_{entry.partition('.')[2]}"
    info = f"{module}-1.0.dist-info"
    files = {
        f"{module}.py": SOURCES[entry],
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[corefw.backends]\n{entry} = {module}\n",
    }
    digests = {
        name: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        for name, text in files.items()
    }
    record = [f"{name},sha256={digests[name]},{len(text)}" for name, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    wheel = folder / f"{module}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel


def install(folder: Path, *entries: str) -> Path:
    """Install plugins with pip into a folder, which is returned; it belongs on PYTHONPATH."""
    target = folder / "site"
    if not entries:
        return target
    wheels = [str(build_wheel(entry, folder)) for entry in entries]
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-compile",
        "--target",
        str(target),
    ]
    subprocess.run([*command, *wheels], check=True, capture_output=True)
    return target
