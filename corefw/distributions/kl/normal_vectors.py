"""Divergences between normal distributions of vectors, with full covariances and those of low rank.

Each is half of the trace of ``inverse(Q) @ P``, plus the squared distance of the means by Q, minus K and the difference
of the log-determinants.
"""

from corefw.dispatch.declare import ops
from corefw.distributions.covariance import half_log_determinant, mahalanobis
from corefw.distributions.kl.registry import register_kl
from corefw.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal, low_rank_mahalanobis
from corefw.distributions.multivariate_normal import MultivariateNormal


def _roots(p):
    """Matrices whose products with their transposes add up to p's covariance."""
    if isinstance(p, LowRankMultivariateNormal):
        return p.cov_factor, p.cov_diag.sqrt().diag_embed()
    return (p.scale_tril,)


def _squares(matrix):
    """The sum of the squares of a matrix's elements: the trace of its product with its transpose."""
    return matrix.square().sum((-2, -1))


def _trace(q, root):
    """The trace of ``inverse(Q) @ root @ root.mT``, for Q of low rank by Woodbury's identity."""
    if not isinstance(q, LowRankMultivariateNormal):
        return _squares(ops.linalg_solve_triangular(q.scale_tril, root, upper=False))
    projected = (q.cov_factor.mT / q.cov_diag.unsqueeze(-2)) @ root
    taken = ops.linalg_solve_triangular(q._capacitance_tril, projected, upper=False)
    return _squares(root / q.cov_diag.sqrt().unsqueeze(-1)) - _squares(taken)


def _distance(q, x):
    """The squared length of `x` by the inverse of Q."""
    if isinstance(q, LowRankMultivariateNormal):
        return low_rank_mahalanobis(q.cov_factor, q.cov_diag, x, q._capacitance_tril)
    return mahalanobis(q.scale_tril, x)


def _half_log_det(d):
    if isinstance(d, LowRankMultivariateNormal):
        return d._half_log_determinant
    return half_log_determinant(d.scale_tril)


def _divergence(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(f"kl_divergence: the vectors differ in size: {p.event_shape[0]} and {q.event_shape[0]}")
    trace = sum(_trace(q, root) for root in _roots(p))
    squares = trace + _distance(q, p.loc - q.loc) - p.event_shape[0]
    return 0.5 * squares + _half_log_det(q) - _half_log_det(p)


for _p in (MultivariateNormal, LowRankMultivariateNormal):
    for _q in (MultivariateNormal, LowRankMultivariateNormal):
        register_kl(_p, _q)(_divergence)
