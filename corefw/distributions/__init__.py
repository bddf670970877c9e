"""Probability distributions: samples, densities, moments and divergences of batches of them."""

from corefw.distributions import constraints, transforms
from corefw.distributions.bernoulli import Bernoulli
from corefw.distributions.beta import Beta
from corefw.distributions.binomial import Binomial
from corefw.distributions.categorical import Categorical
from corefw.distributions.cauchy import Cauchy
from corefw.distributions.chi2 import Chi2
from corefw.distributions.constraint_registry import biject_to, transform_to
from corefw.distributions.continuous_bernoulli import ContinuousBernoulli
from corefw.distributions.dirichlet import Dirichlet
from corefw.distributions.distribution import Distribution
from corefw.distributions.exp_family import ExponentialFamily
from corefw.distributions.exponential import Exponential
from corefw.distributions.fishersnedecor import FisherSnedecor
from corefw.distributions.gamma import Gamma
from corefw.distributions.generalized_pareto import GeneralizedPareto
from corefw.distributions.geometric import Geometric
from corefw.distributions.gumbel import Gumbel
from corefw.distributions.half_cauchy import HalfCauchy
from corefw.distributions.half_normal import HalfNormal
from corefw.distributions.independent import Independent
from corefw.distributions.inverse_gamma import InverseGamma
from corefw.distributions.kl import kl_divergence, register_kl
from corefw.distributions.kumaraswamy import Kumaraswamy
from corefw.distributions.laplace import Laplace
from corefw.distributions.lkj_cholesky import LKJCholesky
from corefw.distributions.log_normal import LogNormal
from corefw.distributions.logistic_normal import LogisticNormal
from corefw.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from corefw.distributions.mixture_same_family import MixtureSameFamily
from corefw.distributions.multinomial import Multinomial
from corefw.distributions.multivariate_normal import MultivariateNormal
from corefw.distributions.negative_binomial import NegativeBinomial
from corefw.distributions.normal import Normal
from corefw.distributions.one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from corefw.distributions.pareto import Pareto
from corefw.distributions.poisson import Poisson
from corefw.distributions.relaxed_bernoulli import RelaxedBernoulli
from corefw.distributions.relaxed_categorical import RelaxedOneHotCategorical
from corefw.distributions.studentT import StudentT
from corefw.distributions.transformed_distribution import TransformedDistribution
from corefw.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from corefw.distributions.uniform import Uniform
from corefw.distributions.von_mises import VonMises
from corefw.distributions.weibull import Weibull
from corefw.distributions.wishart import Wishart

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraints",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
]
