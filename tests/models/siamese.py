"""A siamese network: one encoder for anchor, positive and negative, under the triplet and the contrastive loss."""

import numpy as np

from tests.models import fit

STEPS, FACTOR = 20, 0.3


def build(torch):
    nn, F = torch.nn, torch.nn.functional

    class SiameseNetwork(nn.Module):
        def __init__(self):
            super().__init__()
            self.cnn = nn.Sequential(
                nn.Conv2d(1, 4, 3), nn.PReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.PReLU(), nn.AvgPool2d(2)
            )
            self.fc = nn.Linear(8 * 2 * 2, 8)

        def forward(self, *images):
            return tuple(F.normalize(self.fc(self.cnn(x).flatten(1)), dim=1) for x in images)

    return SiameseNetwork()


def arrays(rng):
    """Twelve anchors, images like them, and images of another kind."""
    patterns = rng.standard_normal((3, 1, 14, 14))
    kind = np.arange(12) % 3
    noisy = (patterns[k] + 0.5 * rng.standard_normal((12, 1, 14, 14)) for k in (kind, kind, (kind + 1) % 3))
    return tuple(images.astype(np.float32) for images in noisy)


def evaluate(torch, model, anchor, positive, negative):
    F = torch.nn.functional
    a, p, n = model(anchor, positive, negative)
    triplet = F.triplet_margin_loss(a, p, n, margin=1.0)
    near, far = F.pairwise_distance(a, p), F.pairwise_distance(a, n)
    contrastive = (near.pow(2) + torch.clamp(1.5 - far, min=0.0).pow(2)).mean()
    return triplet + contrastive, (a, p, n)


def train(torch, model, batch):
    return fit(torch, model, evaluate, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), batch)
