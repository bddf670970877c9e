"""Orthogonal polynomials of a degree that is an element too, by their recurrences (DLMF 18.9); as PyTorch's they have
no gradient, and are 0 for a negative degree. Degrees are cut to integers; beyond 65,536 the result is NaN."""

from __future__ import annotations

from corefw.declarations._shared.special import real
from corefw.dispatch.declare import primitive
from corefw.shapes import broadcast


@primitive(dtype=real, shape=broadcast, out=True)
def special_chebyshev_polynomial_t(input, n):
    """The Chebyshev polynomial of the first kind and degree `n`.

    >>> import corefw as torch
    >>> torch.special.chebyshev_polynomial_t(torch.tensor([2.0, 0.5]), 3)
    tensor([26., -1.])
    """


@primitive(dtype=real, shape=broadcast, out=True)
def special_chebyshev_polynomial_u(input, n):
    """The Chebyshev polynomial of the second kind and degree `n`.

    >>> import corefw as torch
    >>> torch.special.chebyshev_polynomial_u(torch.tensor([2.0, 0.5]), 3)
    tensor([56., -1.])
    """


@primitive(dtype=real, shape=broadcast, out=True)
def special_chebyshev_polynomial_v(input, n):
    """The Chebyshev polynomial of the third kind and degree `n`.

    >>> import corefw as torch
    >>> torch.special.chebyshev_polynomial_v(torch.tensor([2.0, 0.5]), 3)
    tensor([41., -1.])
    """


@primitive(dtype=real, shape=broadcast, out=True)
def special_chebyshev_polynomial_w(input, n):
    """The Chebyshev polynomial of the fourth kind and degree `n`.

    >>> import corefw as torch
    >>> torch.special.chebyshev_polynomial_w(torch.tensor([2.0, 0.5]), 3)
    tensor([71., -1.])
    """


@primitive(dtype=real, shape=broadcast, out=True)
def special_shifted_chebyshev_polynomial_t(input, n):
    """The Chebyshev polynomial of the first kind and degree `n` in ``2 * input - 1``, orthogonal on [0, 1].

    >>> import corefw as torch
    >>> torch.special.shifted_chebyshev_polynomial_t(torch.tensor([2.0, 0.5]), 3)
    tensor([99., -0.])
    """


@primitive(dtype=real, shape=broadcast, out=True)
def special_shifted_chebyshev_polynomial_u(input, n):
    """The Chebyshev polynomial of the second kind and degree `n` in ``2 * input - 1``, orthogonal on [0, 1].

    >>> import corefw as torch
    >>> torch.special.shifted_chebyshev_polynomial_u(torch.tensor([2.0, 0.5]), 3)
    tensor([204.,  -0.])
    """


@primitive(dtype=real, shape=broadcast, out=True)
def special_shifted_chebyshev_polynomial_v(input, n):
    """The Chebyshev polynomial of the third kind and degree `n` in ``2 * input - 1``, orthogonal on [0, 1].

    >>> import corefw as torch
    >>> torch.special.shifted_chebyshev_polynomial_v(torch.tensor([2.0, 0.5]), 3)
    tensor([169.,   1.])
    """


@primitive(dtype=real, shape=broadcast, out=True)
def special_shifted_chebyshev_polynomial_w(input, n):
    """The Chebyshev polynomial of the fourth kind and degree `n` in ``2 * input - 1``, orthogonal on [0, 1].

    >>> import corefw as torch
    >>> torch.special.shifted_chebyshev_polynomial_w(torch.tensor([2.0, 0.5]), 3)
    tensor([239.,  -1.])
    """


@primitive(dtype=real, shape=broadcast, out=True)
def special_hermite_polynomial_h(input, n):
    """The physicists' Hermite polynomial of degree `n`, orthogonal under ``exp(-input**2)``.

    >>> import corefw as torch
    >>> torch.special.hermite_polynomial_h(torch.tensor([2.0, 0.5]), 3)
    tensor([40., -5.])
    """


@primitive(dtype=real, shape=broadcast, out=True)
def special_hermite_polynomial_he(input, n):
    """The probabilists' Hermite polynomial of degree `n`, orthogonal under ``exp(-input**2 / 2)``.

    >>> import corefw as torch
    >>> torch.special.hermite_polynomial_he(torch.tensor([2.0, 0.5]), 3)
    tensor([ 2.0000, -1.3750])
    """


@primitive(dtype=real, shape=broadcast, out=True)
def special_laguerre_polynomial_l(input, n):
    """The Laguerre polynomial of degree `n`, orthogonal under ``exp(-input)`` from 0 on.

    >>> import corefw as torch
    >>> torch.special.laguerre_polynomial_l(torch.tensor([2.0, 0.5]), 3)
    tensor([-0.3333, -0.1458])
    """


@primitive(dtype=real, shape=broadcast, out=True)
def special_legendre_polynomial_p(input, n):
    """The Legendre polynomial of degree `n`, orthogonal on [-1, 1].

    >>> import corefw as torch
    >>> torch.special.legendre_polynomial_p(torch.tensor([2.0, 0.5]), 3)
    tensor([17.0000, -0.4375])
    """
