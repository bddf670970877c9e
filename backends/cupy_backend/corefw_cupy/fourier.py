"""Discrete Fourier transforms by cuFFT."""

from __future__ import annotations

from corefw.dispatch.backend import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import COMPLEX, REALS, offered


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    fft = cuda.xp.fft

    def fft_c2c(input, dim, norm, forward):
        return (fft.fftn if forward else fft.ifftn)(input, axes=dim, norm=norm)

    def fft_r2c(input, dim, norm):
        return fft.rfftn(input, axes=dim, norm=norm)

    def fft_c2r(input, dim, norm, size):
        sizes = [*(input.shape[d] for d in dim[:-1]), size]
        return fft.irfftn(input, sizes, axes=dim, norm=norm)

    found = [
        Kernel("fft_c2c", fft_c2c, offered(COMPLEX)),
        Kernel("fft_c2r", fft_c2r, offered(COMPLEX)),
        Kernel("fft_r2c", fft_r2c, offered(REALS)),
    ]
    return cuda.capturing.refused(found, "cuFFT")
