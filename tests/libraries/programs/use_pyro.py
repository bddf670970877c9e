"""Inference by variation, with a point estimate and with enumeration, and by NUTS; densities of traces."""

import pyro
import pyro.distributions as dist
import torch
from common import numbers, report
from pyro import poutine
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, config_enumerate
from pyro.infer.autoguide import AutoDelta, AutoNormal, init_to_value
from pyro.optim import Adam, ClippedAdam

x = numbers(30, 2)
y = x @ torch.tensor([1.0, -2.0]) + 0.5 + 0.1 * numbers(30, seed=1)


def regression(x, y=None):
    """A line with unknown slope, offset and noise."""
    slope = pyro.sample("slope", dist.Normal(torch.zeros(2), 2.0).to_event(1))
    offset = pyro.sample("offset", dist.Normal(0.0, 2.0))
    noise = pyro.sample("noise", dist.LogNormal(0.0, 1.0))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(x @ slope + offset, noise), obs=y)


def start(names=("slope", "offset", "noise")):
    """Where inference begins, without chance."""
    values = {"slope": torch.tensor([0.1, 0.1]), "offset": torch.tensor(0.1), "noise": torch.tensor(1.0)}
    return init_to_value(values={name: values[name] for name in names})


pyro.set_rng_seed(0)
pyro.clear_param_store()
guide = AutoDelta(regression, init_loc_fn=start())
svi = SVI(regression, guide, Adam({"lr": 0.05}), Trace_ELBO())
losses = [svi.step(x, y) for _ in range(60)]
found = guide.median(x, y)

pyro.clear_param_store()
normal = AutoNormal(regression, init_loc_fn=start(), init_scale=0.05)
svi = SVI(regression, normal, ClippedAdam({"lr": 0.04, "lrd": 0.999}), Trace_ELBO(num_particles=2))
for _ in range(120):
    svi.step(x, y)
drawn = Predictive(regression, guide=normal, num_samples=50)(x)

data = torch.cat([numbers(12) * 0.2 - 2, numbers(20, seed=3) * 0.2 + 2])


@config_enumerate
def mixture(data):
    """Two groups with unknown centres, of which each number is in one."""
    weights = pyro.param("weights", torch.tensor([0.5, 0.5]), constraint=dist.constraints.simplex)
    centres = pyro.param("centres", torch.tensor([-1.0, 1.5]))
    with pyro.plate("data", len(data)):
        group = pyro.sample("group", dist.Categorical(weights))
        pyro.sample("seen", dist.Normal(centres[group], 0.3), obs=data)


pyro.clear_param_store()
svi = SVI(mixture, lambda data: None, Adam({"lr": 0.05}), TraceEnum_ELBO(max_plate_nesting=1))
mixed = [svi.step(data) for _ in range(80)]

trace = poutine.trace(poutine.condition(regression, {name: found[name].detach() for name in found})).get_trace(x, y)
trace.compute_log_prob()

pyro.set_rng_seed(1)
kernel = NUTS(regression, init_strategy=start(), max_tree_depth=4)
chain = MCMC(kernel, num_samples=25, warmup_steps=30, disable_progbar=True)
chain.run(x, y)
samples = chain.get_samples()
report(
    losses=losses,
    slope=found["slope"],
    noise=found["noise"].item(),
    spread_is_small=bool((normal.quantiles([0.05, 0.95], x, y)["offset"].diff(dim=0).abs() < 0.3).all()),
    drawn={name: list(value.shape) for name, value in drawn.items()},
    normal_is_near=bool(((normal.median(x, y)["slope"] - torch.tensor([1.0, -2.0])).abs() < 0.1).all()),
    mixed=mixed,
    weights=pyro.param("weights"),
    centres=pyro.param("centres"),
    log_density=trace.log_prob_sum().item(),
    sites=list(trace.nodes),
    chain=[list(samples["slope"].shape), list(samples["noise"].shape)],
    chain_is_near=bool(((samples["slope"].mean(0) - torch.tensor([1.0, -2.0])).abs() < 0.1).all()),
    chain_moves=bool(samples["offset"].std() > 1e-3),
)
