"""The conformance kit: what an op or a backend must satisfy, usable by any plugin author."""

from corefw.testing import (  # each registers its own
    agreement,
    documentation,
    extremes,
    forms,
    halves,
    properties,
    refusals,
    single,
    updates,
)
from corefw.testing.case import Case, RequirementError, require
from corefw.testing.checks import PROPERTIES, Check, Property, checks
from corefw.testing.comparison import assert_allclose, assert_close
from corefw.testing.families import CaseFileError, Families, kit_families, load_folder
from corefw.testing.file_check import FileCheck
from corefw.testing.oracle import available as oracle_available
from corefw.testing.samples import Sample, make_tensor, samples
from corefw.testing.targets import Target, targets

__all__ = [
    "PROPERTIES",
    "Case",
    "CaseFileError",
    "Check",
    "Families",
    "FileCheck",
    "Property",
    "RequirementError",
    "Sample",
    "Target",
    "agreement",
    "assert_allclose",
    "assert_close",
    "checks",
    "documentation",
    "extremes",
    "forms",
    "halves",
    "kit_families",
    "load_folder",
    "make_tensor",
    "oracle_available",
    "properties",
    "refusals",
    "require",
    "samples",
    "single",
    "targets",
    "updates",
]
