"""All rows: the CASES of every family file in this folder."""

from pathlib import Path

from corefw.testing import load_cases

#: {family: its rows}
FAMILIES = load_cases(Path(__file__).parent)
CASES = tuple(case for cases in FAMILIES.values() for case in cases)
