"""Where the backend is not installed, for want of a C compiler, there is nothing to collect here."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("_cffi_backend") else ["*"]
