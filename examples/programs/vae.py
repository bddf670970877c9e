"""A variational autoencoder draws digits: it learns a plane of which every point is a picture."""

import torch
from torch import nn
from torch.nn import functional as F

from corefw.vision.datasets import Digits

torch.manual_seed(0)
digits = Digits(train=True)
images = digits.data.float().flatten(1) / Digits.maximum


class VAE(nn.Module):
    def __init__(self, hidden=128, places=2):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 2 * places))
        self.decoder = nn.Sequential(nn.Linear(places, hidden), nn.ReLU(), nn.Linear(hidden, 64))

    def forward(self, x):
        mean, logarithm = self.encoder(x).chunk(2, dim=1)
        place = mean + torch.randn_like(mean) * (logarithm / 2).exp()
        return self.decoder(place), mean, logarithm


def loss_of(model, x):
    """What the pictures lack, and how far their places are from normal ones."""
    drawn, mean, logarithm = model(x)
    lacking = F.binary_cross_entropy_with_logits(drawn, x, reduction="sum")
    return (lacking + 0.5 * (mean**2 + logarithm.exp() - 1 - logarithm).sum()) / len(x)


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


@torch.compile
def step(x):
    optimizer.zero_grad()
    loss = loss_of(model, x)
    loss.backward()
    optimizer.step()
    return loss


losses = []
for _ in range(30):
    order = torch.randperm(len(images))
    for batch in order.split(128)[:-1]:  # whole batches
        losses.append(step(images[batch]).item())

print(f"loss {losses[0]:.1f} -> {sum(losses[-10:]) / 10:.1f}")
with torch.no_grad():
    picture = model.decoder(torch.zeros(1, 2)).sigmoid().view(8, 8)
for row in picture:
    print("".join(" .:-=+*#%@"[int(ink * 9.99)] for ink in row.tolist()))
print("drew a picture" if sum(losses[-10:]) / 10 < 0.75 * losses[0] else "did not learn")
