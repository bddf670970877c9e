"""Gaussian processes: exact ones for regression with several kernels, their training, and a sparse variational one."""

import gpytorch
import torch
from common import numbers, report
from gpytorch.kernels import LinearKernel, MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood, VariationalELBO

torch.set_default_dtype(torch.float64)
x = torch.linspace(0, 1, 25)
y = torch.sin(6 * x) + 0.1 * numbers(25).double()
test = torch.linspace(-0.1, 1.1, 9)


class Exact(gpytorch.models.ExactGP):
    """A constant mean and a given kernel."""

    def __init__(self, x, y, likelihood, kernel):
        super().__init__(x, y, likelihood)
        self.mean_module, self.covar_module = gpytorch.means.ConstantMean(), kernel

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Sparse(gpytorch.models.ApproximateGP):
    """Some points stand for all."""

    def __init__(self, points):
        strategy = gpytorch.variational.VariationalStrategy(
            self, points, gpytorch.variational.CholeskyVariationalDistribution(len(points))
        )
        super().__init__(strategy)
        self.mean_module, self.covar_module = gpytorch.means.ZeroMean(), ScaleKernel(RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def trained(model, likelihood, objective, steps, rate):
    """The losses of a training, and predictions with their variances."""
    model.train()
    likelihood.train()
    optimizer = torch.optim.Adam(dict.fromkeys([*model.parameters(), *likelihood.parameters()]), rate)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        seen = likelihood(model(test))
        return losses, seen.mean.tolist(), seen.variance.tolist()


KERNELS = {
    "rbf": lambda: ScaleKernel(RBFKernel()),
    "matern": lambda: ScaleKernel(MaternKernel(nu=2.5)),
    "sum": lambda: ScaleKernel(PeriodicKernel()) + LinearKernel(),
}
found = {}
for name, kernel in KERNELS.items():
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Exact(x, y, likelihood, kernel())
    found[name] = trained(model, likelihood, ExactMarginalLogLikelihood(likelihood, model), 15, 0.1)
likelihood = gpytorch.likelihoods.GaussianLikelihood()
sparse = Sparse(torch.linspace(0, 1, 6))
sparse.variational_strategy._variational_distribution.mean_init_std = 0.0  # else it begins by chance
found["sparse"] = trained(sparse, likelihood, VariationalELBO(likelihood, sparse, len(y)), 15, 0.05)
report(**{name: list(parts) for name, parts in found.items()}, names=[name for name, _ in model.named_parameters()])
