"""The families of distributions under test, with parameters and values."""

import numpy as np

rng = np.random.default_rng(0)

LOC, SCALE = rng.uniform(-1, 1, (2, 3)), rng.uniform(0.5, 2, (2, 3))
A, B = rng.uniform(1.1, 4, (2, 3)), rng.uniform(0.5, 4, (2, 3))
PROBS = rng.uniform(0.1, 0.9, (2, 3))
FACTOR = np.tril(rng.uniform(-1, 1, (2, 3, 3)), -1) + np.eye(3) * rng.uniform(0.5, 1.5, (2, 1, 3))
MATRIX = FACTOR @ FACTOR.swapaxes(-1, -2)
REALS, UNIT = rng.uniform(-2, 2, (4, 2, 3)), rng.uniform(0.05, 0.95, (4, 2, 3))
BITS = (UNIT > 0.5) * 1.0
COUNTS = rng.integers(0, 5, (4, 2, 3)) * 1.0
SIMPLEX = UNIT / UNIT.sum(-1, keepdims=True)
CATEGORIES = rng.integers(0, 3, (4, 2))
ONE_HOT = np.eye(3)[CATEGORIES]
UNIT_ROWS = FACTOR / np.sqrt(np.square(FACTOR).sum(-1, keepdims=True))
TEMPERATURE = np.array(0.7)
TRIALS = np.array(5.0)

#: what PyTorch does not define, for families of continuous and of discrete numbers, of vectors, of relaxed values
ENUMERATED = "enumerate_support"
NO_CDF = ENUMERATED + " cdf icdf"
FINITE = "cdf icdf"
NO_ENTROPY = NO_CDF + " entropy perplexity"
DENSITY_ONLY = NO_ENTROPY + " mean variance stddev mode"
#: name: (class, parameters, values, what is not defined)
FAMILIES = {
    "Normal": ("Normal", {"loc": LOC, "scale": SCALE}, REALS, ENUMERATED),
    "LogNormal": ("LogNormal", {"loc": LOC, "scale": SCALE / 4}, UNIT, ENUMERATED),
    "Laplace": ("Laplace", {"loc": LOC, "scale": SCALE}, REALS, ENUMERATED),
    "Cauchy": ("Cauchy", {"loc": LOC, "scale": SCALE}, REALS, ENUMERATED),
    "HalfNormal": ("HalfNormal", {"scale": SCALE}, UNIT, ENUMERATED),
    "HalfCauchy": ("HalfCauchy", {"scale": SCALE}, UNIT, ENUMERATED),
    "Gumbel": ("Gumbel", {"loc": LOC, "scale": SCALE}, REALS, ENUMERATED),
    "Uniform": ("Uniform", {"low": LOC - 3, "high": LOC + 3}, REALS, ENUMERATED),
    "Exponential": ("Exponential", {"rate": SCALE}, UNIT, ENUMERATED),
    "Weibull": ("Weibull", {"scale": SCALE, "concentration": A}, UNIT, ENUMERATED),
    "Pareto": ("Pareto", {"scale": PROBS, "alpha": A + 4}, UNIT + 1, ENUMERATED),
    "GeneralizedPareto": (
        "GeneralizedPareto",
        {"loc": LOC - 3, "scale": SCALE * 9, "concentration": LOC / 4},
        REALS,
        ENUMERATED,
    ),
    "Kumaraswamy": ("Kumaraswamy", {"concentration1": A, "concentration0": A[::-1].copy()}, UNIT, ENUMERATED),
    "ContinuousBernoulli": ("ContinuousBernoulli", {"probs": PROBS}, UNIT, ENUMERATED + " mode"),
    "ContinuousBernoulli near 1/2": ("ContinuousBernoulli", {"probs": 0.5 + LOC / 1100}, UNIT, ENUMERATED + " mode"),
    "ContinuousBernoulli logits": ("ContinuousBernoulli", {"logits": LOC}, UNIT, ENUMERATED + " mode"),
    "Gamma": ("Gamma", {"concentration": A, "rate": SCALE}, UNIT, NO_CDF),
    "Chi2": ("Chi2", {"df": A}, UNIT, NO_CDF),
    "InverseGamma": ("InverseGamma", {"concentration": A + 2, "rate": SCALE}, UNIT, NO_CDF),
    "Beta": ("Beta", {"concentration1": A, "concentration0": B}, UNIT, NO_CDF),
    "Dirichlet": ("Dirichlet", {"concentration": A}, SIMPLEX, NO_CDF),
    "StudentT": ("StudentT", {"df": A + 4, "loc": LOC, "scale": SCALE}, REALS, NO_CDF),
    "FisherSnedecor": ("FisherSnedecor", {"df1": A, "df2": B + 6}, UNIT, NO_ENTROPY),
    "VonMises": ("VonMises", {"loc": LOC, "concentration": SCALE}, REALS, NO_ENTROPY),
    "Bernoulli": ("Bernoulli", {"probs": PROBS}, BITS, FINITE),
    "Bernoulli logits": ("Bernoulli", {"logits": LOC}, BITS, FINITE),
    "Geometric": ("Geometric", {"probs": PROBS}, COUNTS, NO_CDF),
    "Geometric logits": ("Geometric", {"logits": LOC}, COUNTS, NO_CDF),
    "Poisson": ("Poisson", {"rate": A}, COUNTS, NO_ENTROPY),
    "Binomial": ("Binomial", {"total_count": TRIALS, "probs": PROBS}, COUNTS, FINITE),
    "Binomial logits": ("Binomial", {"total_count": TRIALS, "logits": LOC}, COUNTS, FINITE),
    "NegativeBinomial": ("NegativeBinomial", {"total_count": A, "probs": PROBS / 2}, COUNTS, NO_ENTROPY),
    "NegativeBinomial logits": ("NegativeBinomial", {"total_count": A, "logits": LOC}, COUNTS, NO_ENTROPY),
    "Categorical": ("Categorical", {"probs": PROBS}, CATEGORIES, FINITE),
    "Categorical logits": ("Categorical", {"logits": LOC}, CATEGORIES, FINITE),
    "OneHotCategorical": ("OneHotCategorical", {"probs": PROBS}, ONE_HOT, FINITE),
    "OneHotCategoricalStraightThrough": ("OneHotCategoricalStraightThrough", {"logits": LOC}, ONE_HOT, FINITE),
    "Multinomial": ("Multinomial", {"total_count": 3, "probs": PROBS}, ONE_HOT * 2 + ONE_HOT[::-1], NO_CDF + " mode"),
    "Multinomial logits": ("Multinomial", {"total_count": 3, "logits": LOC}, ONE_HOT * 3, NO_CDF + " mode"),
    "RelaxedBernoulli": ("RelaxedBernoulli", {"temperature": TEMPERATURE, "probs": PROBS}, UNIT, DENSITY_ONLY),
    "RelaxedOneHotCategorical": (
        "RelaxedOneHotCategorical",
        {"temperature": TEMPERATURE, "logits": LOC},
        SIMPLEX,
        DENSITY_ONLY,
    ),
    "LogisticNormal": ("LogisticNormal", {"loc": LOC[:, 1:], "scale": SCALE[:, 1:]}, SIMPLEX, DENSITY_ONLY),
    "MultivariateNormal": ("MultivariateNormal", {"loc": LOC, "scale_tril": FACTOR}, REALS, NO_CDF),
    "MultivariateNormal covariance": ("MultivariateNormal", {"loc": LOC, "covariance_matrix": MATRIX}, REALS, NO_CDF),
    "MultivariateNormal precision": ("MultivariateNormal", {"loc": LOC, "precision_matrix": MATRIX}, REALS, NO_CDF),
    "LowRankMultivariateNormal": (
        "LowRankMultivariateNormal",
        {"loc": LOC, "cov_factor": FACTOR[..., :2], "cov_diag": SCALE},
        REALS,
        NO_CDF,
    ),
    "Wishart": ("Wishart", {"df": A[:, 0] + 4, "scale_tril": FACTOR}, MATRIX, NO_CDF),
    "Wishart covariance": ("Wishart", {"df": A[:, 0] + 4, "covariance_matrix": MATRIX}, MATRIX, NO_CDF),
    "LKJCholesky": ("LKJCholesky", {"dim": 3, "concentration": A[:, 0]}, UNIT_ROWS, DENSITY_ONLY),
}


def build(framework, name):
    """The distribution, and {name: tensor} of its parameters, which require gradients."""
    cls, parameters, *_ = FAMILIES[name]
    arrays = {k: v for k, v in parameters.items() if not isinstance(v, int)}
    tensors = {k: framework.tensor(v, requires_grad=True) for k, v in arrays.items()}
    return getattr(framework.distributions, cls)(**(parameters | tensors)), tensors


def host(tensor):
    """The elements."""
    return tensor.detach().numpy()


def gradients(result, parameters):
    """The gradients of the sum of what is no NaN, 0 where a parameter has no influence.

    Above the diagonal of a triangular matrix they have no meaning.
    """
    if result.requires_grad:
        result.nansum().backward()
    found = {name: np.zeros(p.shape) if p.grad is None else host(p.grad) for name, p in parameters.items()}
    return {name: np.tril(g) if name == "scale_tril" else g for name, g in found.items()}
