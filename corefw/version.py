"""The versions of this build, as PyTorch's `version` tells them."""

from __future__ import annotations

import corefw

__all__ = ["__version__", "cuda", "debug", "hip"]

__version__ = corefw.__version__
debug = False
#: kernels for CUDA are compiled where they run, so no version of it is built in; the same of ROCm
cuda = None
hip = None
