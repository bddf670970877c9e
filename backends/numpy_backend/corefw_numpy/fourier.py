"""Discrete Fourier transforms by the namespace's own."""


def kernels(xp):
    """Ops that compute."""

    def fft_c2c(input, dim, norm, forward):
        return (xp.fft.fftn if forward else xp.fft.ifftn)(input, axes=dim, norm=norm)

    def fft_r2c(input, dim, norm):
        return xp.fft.rfftn(input, axes=dim, norm=norm)

    def fft_c2r(input, dim, norm, size):
        sizes = [*(input.shape[d] for d in dim[:-1]), size]
        return xp.fft.irfftn(input, sizes, axes=dim, norm=norm)

    return {"fft_c2c": fft_c2c, "fft_c2r": fft_c2r, "fft_r2c": fft_r2c}


def data_movement(xp):
    """Ops that only move elements: none."""
    return {}
