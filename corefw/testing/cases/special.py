"""Special functions; SciPy's are the reference."""

from corefw.testing.case import Case, require
from corefw.testing.cases.elementary import PAIRS

special = require("scipy.special")

CASES = (
    Case("special_entr", special.entr, domain=(0.1, 3.0)),
    Case("special_xlog1py", special.xlog1py, shapes=PAIRS, domain=(-0.9, 3.0), special=False),
    Case("special_log_ndtr", special.log_ndtr, rtol=1e-11, domain=(-30.0, 3.0)),
    Case("special_ndtri", special.ndtri, domain=(0.05, 0.95), rtol=1e-11),
)
