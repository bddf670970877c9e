"""Measuring how long statements take, with the statistics that tell whether to believe it; tables of measurements."""

from corefw.refusals import refusing
from corefw.utils.benchmark.comparison import Colorize, Compare
from corefw.utils.benchmark.fuzzing import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias
from corefw.utils.benchmark.measurement import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from corefw.utils.benchmark.timing import Language, Timer, timer

__all__ = [
    "Colorize",
    "Compare",
    "FuzzedParameter",
    "FuzzedTensor",
    "Fuzzer",
    "Language",
    "Measurement",
    "ParameterAlias",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]
__getattr__ = refusing(__name__)
