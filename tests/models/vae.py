"""A variational autoencoder of small binary images (Kingma & Welling, "Auto-encoding variational Bayes", 2013)."""

import numpy as np

from tests.models import fit

STEPS, FACTOR = 60, 0.5
#: the arrays to train on; the noise after them a model in training draws itself
GIVEN = 1


def build(torch):
    nn = torch.nn

    class VAE(nn.Module):
        def __init__(self, pixels=64, hidden=32, latent=4):
            super().__init__()
            self.fc1 = nn.Linear(pixels, hidden)
            self.fc21 = nn.Linear(hidden, latent)
            self.fc22 = nn.Linear(hidden, latent)
            self.fc3 = nn.Linear(latent, hidden)
            self.fc4 = nn.Linear(hidden, pixels)

        def encode(self, x):
            hidden = torch.relu(self.fc1(x))
            return self.fc21(hidden), self.fc22(hidden)

        def reparameterize(self, mu, logvar, noise):
            std = torch.exp(0.5 * logvar)
            return mu + (torch.randn_like(std) if noise is None else noise) * std

        def decode(self, z):
            return torch.sigmoid(self.fc4(torch.relu(self.fc3(z))))

        def forward(self, x, noise=None):
            mu, logvar = self.encode(x.view(-1, 64))
            return self.decode(self.reparameterize(mu, logvar, noise)), mu, logvar

    return VAE()


def arrays(rng):
    """Images of four patterns, and noise for the latent variables."""
    patterns = rng.random((4, 8, 8)) < 0.3
    return patterns[np.arange(16) % 4].astype(np.float32), rng.standard_normal((16, 4)).astype(np.float32)


def evaluate(torch, model, images, noise=None):
    reconstruction, mu, logvar = model(images, noise)
    bce = torch.nn.functional.binary_cross_entropy(reconstruction, images.view(-1, 64), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (bce + kld) / len(images), (reconstruction, mu, logvar)


def train(torch, model, batch):
    return fit(torch, model, evaluate, torch.optim.Adam(model.parameters(), lr=1e-2), batch)
