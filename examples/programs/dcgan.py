"""Two convolutional networks, one that forges digits and one that finds forgeries, learn from each other."""

import torch
from torch import nn
from torch.nn import functional as F

from corefw.vision.datasets import Digits

torch.manual_seed(0)
NOISE = 16
images = Digits(train=True).data.float().unsqueeze(1) / Digits.maximum * 2 - 1

forger = nn.Sequential(
    *(nn.ConvTranspose2d(NOISE, 32, 4), nn.BatchNorm2d(32), nn.ReLU()),
    *(nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1), nn.Tanh()),
)
finder = nn.Sequential(
    *(nn.Conv2d(1, 32, 4, stride=2, padding=1), nn.LeakyReLU(0.2)),
    *(nn.Conv2d(32, 1, 4), nn.Flatten(0)),
)
forging = torch.optim.Adam(forger.parameters(), lr=2e-3, betas=(0.5, 0.999))
finding = torch.optim.Adam(finder.parameters(), lr=1e-3, betas=(0.5, 0.999))


@torch.compile
def step(real):
    """One step of each: the finder's loss on true and forged pictures, and the forger's."""
    count = len(real)
    forged = forger(torch.randn(count, NOISE, 1, 1))
    finding.zero_grad()
    found = F.softplus(-finder(real)).mean() + F.softplus(finder(forged.detach())).mean()
    found.backward()
    finding.step()
    forging.zero_grad()
    passed = F.softplus(-finder(forged)).mean()
    passed.backward()
    forging.step()
    return found, passed


for epoch in range(20):
    for batch in torch.randperm(len(images)).split(64)[:-1]:
        found, passed = step(images[batch])
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: finder {found.item():.2f}, forger {passed.item():.2f}")

forger.eval()
with torch.no_grad():
    forged = forger(torch.randn(256, NOISE, 1, 1))
near = (forged.mean(0) - images.mean(0)).abs().mean()
print("forges what looks like digits on the whole" if near < 0.25 else f"does not: {near:.2f}")
