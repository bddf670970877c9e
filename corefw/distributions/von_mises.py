"""The von Mises distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corefw.autograd.grad_mode import no_grad
from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.location_scale import Located
from corefw.distributions.utils import broadcast_all
from corefw.dtypes import float64
from corefw.tensor import Tensor


class VonMises(Located):
    """Distributions of angles in radians, of a density in proportion to ``exp(concentration * cos(x - loc))``.

    Args:
        loc: the mean angle, shape (...).
        concentration: how narrow the peak is, shape (...).

    >>> import corefw as torch
    >>> torch.distributions.VonMises(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-1.0738)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def variance(self) -> Tensor:
        """The circular variance, 1 less the length of the mean direction."""
        return 1 - ops.special_i1e(self.concentration) / ops.special_i0e(self.concentration)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Random angles in [-pi, pi), by rejection from a wrapped Cauchy distribution.

        Source: Best, Fisher, "Efficient simulation of the von Mises distribution", 1979.
        """
        with no_grad():
            shape = self._extended_shape(sample_shape)
            loc, k = (p.expand(shape).to(float64) for p in (self.loc, self.concentration))
            tau = 1 + (1 + 4 * k.square()).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            # for a small concentration the quotient would lose all digits
            r = ops.where(k < 1e-5, 1 / k + k, (1 + rho.square()) / (2 * rho))
            angle = ops.zeros_like(k)
            done = ops.zeros(shape, dtype=bool, device=k.device)
            while not bool(done.all()):
                u = ops.rand((3, *shape), dtype=float64, device=k.device)
                z = (math.pi * u[0]).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accepted = (c * (2 - c) > u[1]) | ((c / u[1]).log() + 1 >= c)
                angle = ops.where(accepted & done.logical_not(), (u[2] - 0.5).sign() * f.clamp(-1, 1).acos(), angle)
                done = done | accepted
            return ((angle + loc + math.pi) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # log(I0(k)) = log(i0e(k)) + k
        peak = -math.log(2 * math.pi) - ops.special_i0e(self.concentration).log()
        return self.concentration * ((value - self.loc).cos() - 1) + peak
