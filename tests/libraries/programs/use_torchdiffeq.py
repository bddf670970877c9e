"""Differential equations by several methods, gradients by the adjoint, and an event."""

import torch
import torchdiffeq
from common import fill, numbers, report
from torch import nn


class Field(nn.Module):
    """The right side."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, t, y):
        return self.net(y) * torch.cos(t)


field, start, times = fill(Field()).double(), numbers(4, 2).double(), torch.linspace(0, 2, 5, dtype=torch.float64)
ends = {
    method: torchdiffeq.odeint(field, start, times, method=method)[-1]
    for method in ("dopri5", "dopri8", "bosh3", "rk4", "explicit_adams")
}
torchdiffeq.odeint_adjoint(field, start, times)[-1].pow(2).sum().backward()
when, _ = torchdiffeq.odeint_event(
    lambda t, y: torch.ones_like(y),
    torch.zeros(1, dtype=torch.float64),
    torch.tensor(0.0, dtype=torch.float64),
    event_fn=lambda t, y: y - 0.5,
)
report(**ends, gradient=field.net[0].weight.grad, event=when)
