"""Running programs written for PyTorch: in the process of `corefw run`, `torch` and `torchvision` are corefw.

`corefw run script.py` is `python script.py`, and `corefw run -m module` is `python -m module`, with a finder of modules
in front of the others: ``import torch.x.y`` gives the module ``corefw.x.y`` itself, and ``torchvision.x`` gives
``corefw.vision.x``. An installed PyTorch is neither imported nor changed, and no other process sees the names, but for
the children that `multiprocessing` starts, as DataLoader workers: a forked child has the finder from its parent; for
one that starts anew (spawn, forkserver) the finder rides in front of the data that `multiprocessing` sends ahead of the
program. Programs started in any other way, as by `subprocess`, need `corefw run` of their own.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import io
import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from multiprocessing import spawn
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from corefw.errors import did_you_mean
from corefw.random import default_generator, use
from corefw.tensor import Tensor
from corefw.torch_version import COMPATIBLE, COMPATIBLE_VISION, TorchVersion
from corefw.tracebacks import hide_internal_frames

#: the packages that are another's
ALIASES = {"torch": "corefw", "torchvision": "corefw.vision"}
#: {package: the version whose API corefw has}
VERSIONS = {"torch": COMPATIBLE, "torchvision": COMPATIBLE_VISION}
#: {module of PyTorch: that of corefw which has its names}: where programs look for them by the module's name
MODULES = {
    f"corefw.{name}": f"corefw.{ours}"
    for name, ours in {
        "cpu.amp.autocast_mode": "cpu.amp",
        "cpu.amp.grad_scaler": "cpu.amp",
        "cuda.amp.autocast_mode": "cuda.amp",
        "cuda.amp.grad_scaler": "cuda.amp",
        "cuda.memory": "cuda",
        "cuda.random": "cuda",
        "cuda.streams": "cuda",
        "multiprocessing.reductions": "multiprocessing.sharing",
        "multiprocessing.spawn": "multiprocessing.spawning",
        "nn.modules.batchnorm": "nn.modules.normalization",
        "nn.modules.channelshuffle": "nn.modules.resampling",
        "nn.modules.conv": "nn.modules.convolution",
        "nn.modules.flatten": "nn.modules.linear",
        "nn.modules.fold": "nn.modules.convolution",
        "nn.modules.instancenorm": "nn.modules.normalization",
        "nn.modules.pixelshuffle": "nn.modules.resampling",
        "nn.modules.rnn": "nn.modules.recurrent",
        "nn.modules.sparse": "nn.modules.embedding",
        "nn.modules.upsampling": "nn.modules.resampling",
        "nn.parallel.parallel_apply": "nn.parallel.replicas",
        "nn.parallel.replicate": "nn.parallel.replicas",
        "optim.adamw": "optim.adam",
        "profiler.profiler": "profiler",
        "signal.windows.windows": "signal.windows",
        "utils.data._utils": "utils.data",
        "utils.data._utils.collate": "utils.data.collate",
        "utils.data._utils.worker": "utils.data.worker",
    }.items()
}
#: the main modules that programs have replaced, kept alive because what called `run` lives there
_callers: list[ModuleType] = []


def target_of(name: str) -> str | None:
    """The module that an import of `name` gives, None if it is no alias.

    >>> target_of("torch.nn.functional"), target_of("torchvision.transforms"), target_of("torchaudio")
    ('corefw.nn.functional', 'corefw.vision.transforms', None)
    """
    root, dot, rest = name.partition(".")
    if root not in ALIASES:
        return None
    found = ALIASES[root] + dot + rest
    return MODULES.get(found, found)


class AliasFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of PyTorch's names: each is the module of corefw, not a copy."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of an alias; None for other names, and for modules that corefw has not."""
        name = target_of(fullname)
        if name is None:
            return None
        found = sys.modules.get(name) or importlib.util.find_spec(name)
        return None if found is None else importlib.machinery.ModuleSpec(fullname, self)

    def find_distributions(self, context: importlib.metadata.DistributionFinder.Context | None = None):
        """The installed packages that a program finds under these names: their versions are those whose API this is."""
        name = getattr(context, "name", None)
        return [_Distribution(each) for each in VERSIONS if name is None or name.lower() == each]

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of corefw in the place of `module`, the empty one that the import system made.

        A submodule that a function of the same name hides, such as ``torchvision.models.googlenet``, is named at once:
        a later import would put it in the function's place.
        """
        name, target = module.__name__, str(target_of(module.__name__))
        found = sys.modules[name] = importlib.import_module(target)
        _add_modules(found)
        if target == "corefw.vision":
            vars(found)["__version__"] = COMPATIBLE_VISION
        for loaded, part in list(sys.modules.items()):
            parent, _, child = loaded.rpartition(".")
            if parent == target and getattr(found, child, part) is not part:
                sys.modules[f"{name}.{child}"] = part


def _add_modules(package: ModuleType) -> None:
    """Let a package, or a module that is a package in PyTorch, have the modules that stand elsewhere in corefw."""
    for name, ours in MODULES.items():
        parent, _, child = name.rpartition(".")
        if parent != package.__name__:
            continue
        if not hasattr(package, "__path__"):
            package.__path__ = []
        part = importlib.import_module(ours)
        if not hasattr(package, child):
            setattr(package, child, part)
        elif getattr(package, child) is not part:  # a function of the same name, as `multiprocessing.spawn`
            sys.modules[f"torch{name.removeprefix('corefw')}"] = part


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata` tells of a package: its name and version."""

    def __init__(self, package: str):
        self._package = package

    def read_text(self, filename: str) -> str | None:
        """The content of its file METADATA; it has no other."""
        text = f"Metadata-Version: 2.1\nName: {self._package}\nVersion: {VERSIONS[self._package]}\n"
        return text if filename == "METADATA" else None

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        """A path inside the folder of corefw."""
        return Path(__file__).parent / path


class _Companion:
    """What makes a child process install the finder, and draw its random numbers as this one: unpickling it does."""

    def __reduce__(self) -> tuple[Callable, tuple]:
        return _install_in_child, (default_generator.engine,)


def _install_in_child(engine: str) -> None:
    install()
    use(engine)


def install() -> None:
    """Let PyTorch's names be corefw's from now on, in this process and in those that `multiprocessing` starts.

    Raises:
        RuntimeError: another package of such a name is imported already.
    """
    if any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        return
    if taken := [name for name in ALIASES if name in sys.modules]:
        raise RuntimeError(f"{taken[0]} is imported already, and is not corefw; install the aliases before it is")
    sys.meta_path.insert(0, AliasFinder())
    _wear_names()
    prepare: Any = spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        return {"corefw": _Companion(), **prepare(name)}

    spawn.get_preparation_data = get_preparation_data
    # A fork server that imported the program first would do so without the finder.
    multiprocessing.set_forkserver_preload([__name__])


def _wear_names() -> None:
    """Give corefw the version whose API it has, and its modules and classes the names that libraries ask for."""
    _add_modules(importlib.import_module("corefw.nn.modules"))
    package = sys.modules["corefw"]
    vars(package).update(__version__=TorchVersion(COMPATIBLE), __name__="torch", torch=package)
    Tensor.__module__ = "torch"


def run(target: str, arguments: Sequence[str] = (), module: bool = False) -> int:
    """Run a program with PyTorch's names being corefw's.

    Args:
        target: the path of a script, or the name of a module or package.
        arguments: the program's own; it finds them in ``sys.argv``.
        module: whether `target` names a module, as of ``python -m``.

    Returns:
        The exit status: 0, 1 after an exception and 130 after Ctrl-C, whose traceback is shown with the program's own
        frames. `SystemExit` is the caller's.
    """
    install()
    try:
        code, file, spec = _module(target) if module else _script(target)
    except _NoProgramError as error:
        print(f"corefw run: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        return _report(error)
    main = ModuleType("__main__")
    vars(main).update(__file__=file, __spec__=spec, __builtins__=__builtins__)
    if spec is not None:
        vars(main).update(__loader__=spec.loader, __package__=spec.parent)
    sys.argv[:] = [file if module else target, *arguments]
    _callers.append(sys.modules["__main__"])
    sys.modules["__main__"] = main
    try:
        exec(code, vars(main))
    except (Exception, KeyboardInterrupt) as error:
        return _report(error)
    return 0


class _NoProgramError(Exception):
    """There is nothing to run."""


def _first_on_path(folder: str) -> None:
    """Let `folder` be where imports look first, in place of the folder of corefw's own program."""
    if sys.flags.safe_path:
        return
    dropped = os.path.abspath(sys.path[0])
    sys.path[0] = folder
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if dropped == home and home not in map(os.path.abspath, sys.path):
        sys.path.append(home)  # corefw was found there, and more of it may yet be imported


def _script(path: str) -> tuple[CodeType, str, None]:
    if os.path.isdir(path):
        raise _NoProgramError(f"{path} is a folder; run the script in it, or with -m the package")
    try:
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
    except OSError as error:
        beside = [*filter(lambda name: name.endswith(".py"), _names(os.path.dirname(path) or "."))]
        guess = did_you_mean(os.path.basename(path), beside)
        raise _NoProgramError(f"can't open {path}: {error.strerror}{guess}") from None
    _first_on_path(os.path.dirname(os.path.realpath(path)))
    return compile(source, path, "exec", dont_inherit=True), path, None


def _names(folder: str) -> list[str]:
    """What a folder holds; nothing if it cannot be read."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _module(name: str) -> tuple[CodeType, str, importlib.machinery.ModuleSpec]:
    _first_on_path(os.getcwd())
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name += ".__main__"
            spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise  # a package imports what is missing
        spec = None
    if spec is None or spec.origin is None:
        raise _NoProgramError(f"no module named {name}")
    loader = spec.loader
    code = loader.get_code(name) if isinstance(loader, importlib.abc.InspectLoader) else None
    if code is None:
        raise _NoProgramError(f"{name} has no Python code to run")
    return code, spec.origin, spec


def _own(traceback: TracebackType) -> bool:
    file = traceback.tb_frame.f_code.co_filename
    return file == __file__ or file.startswith("<frozen importlib") or os.path.dirname(file) == _IMPORTLIB


_IMPORTLIB = os.path.dirname(str(importlib.__file__))


def _report(error: BaseException) -> int:
    """Show the traceback of a program's error with the program's frames; returns the exit status."""
    traceback = error.__traceback__
    while traceback is not None and _own(traceback):
        traceback = traceback.tb_next
    hide_internal_frames(error.with_traceback(traceback))
    if isinstance(error, ImportError) and (name := target_of(error.name or "")):
        error.add_note(f"This program runs on corefw (corefw run), where {error.name} is {name}.")
    sys.excepthook(type(error), error, error.__traceback__)
    return 130 if isinstance(error, KeyboardInterrupt) else 1
