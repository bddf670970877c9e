"""How the emulated device works, by the environment variable COREFW_EMULATED: words with commas between them.

deferred: launches run at the next wait, as a GPU's may, instead of each at once as with CUDA_LAUNCH_BLOCKING=1.
reversed: blocks run from the last to the first, and threads in the opposite order, instead of forwards.
"""

import os

MODES = frozenset(filter(None, os.environ.get("COREFW_EMULATED", "").split(",")))
if MODES - {"deferred", "reversed"}:
    raise ImportError(f"COREFW_EMULATED={os.environ['COREFW_EMULATED']}: deferred, reversed or both were expected")
