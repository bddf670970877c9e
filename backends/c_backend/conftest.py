"""Where the backend is not compiled, for want of a C compiler, there is nothing to collect here."""

from importlib.util import find_spec
from pathlib import Path

COMPILED = find_spec("_cffi_backend") and any(Path(__file__).parent.glob("corefw_c/_*.abi3.so"))
collect_ignore_glob = [] if COMPILED else ["*"]
