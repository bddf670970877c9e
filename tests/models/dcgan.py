"""A deep convolutional adversarial pair (Radford et al., "Unsupervised representation learning", 2015)."""

import numpy as np

STEPS, FACTOR = 25, 0.7


def build(torch, width=4, latent=8):
    nn = torch.nn

    def initialise(module):
        name = type(module).__name__
        if name.find("Conv") != -1:
            nn.init.normal_(module.weight, 0.0, 0.1)
        elif name.find("BatchNorm") != -1:
            nn.init.normal_(module.weight, 1.0, 0.02)
            nn.init.zeros_(module.bias)

    generator = nn.Sequential(
        nn.ConvTranspose2d(latent, 4 * width, 4, 1, 0, bias=False),
        nn.BatchNorm2d(4 * width),
        nn.ReLU(True),
        nn.ConvTranspose2d(4 * width, 2 * width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(True),
        nn.ConvTranspose2d(2 * width, 1, 4, 2, 1, bias=False),
        nn.Tanh(),
    )
    discriminator = nn.Sequential(
        nn.Conv2d(1, 2 * width, 4, 2, 1, bias=False),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(2 * width, 4 * width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(4 * width),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(4 * width, 1, 4, 1, 0, bias=False),
        nn.Flatten(0),
    )
    return nn.ModuleDict({"generator": generator.apply(initialise), "discriminator": discriminator.apply(initialise)})


def arrays(rng):
    """Images of a bright square in a dark frame, and the generator's noise."""
    real = np.full((16, 1, 16, 16), -0.8, np.float32)
    real[:, :, 4:12, 4:12] = 0.8
    real += 0.1 * rng.standard_normal(real.shape).astype(np.float32)
    return real, rng.standard_normal((16, 8, 1, 1)).astype(np.float32)


def losses(torch, model, real, noise):
    """The discriminator's loss, the generator's loss and the images it made."""
    criterion = torch.nn.BCEWithLogitsLoss()
    fake = model["generator"](noise)
    on_real, on_fake = model["discriminator"](real), model["discriminator"](fake.detach())
    discriminating = criterion(on_real, torch.ones_like(on_real)) + criterion(on_fake, torch.zeros_like(on_fake))
    deceiving = model["discriminator"](fake)
    return discriminating, criterion(deceiving, torch.ones_like(deceiving)), fake


def evaluate(torch, model, real, noise):
    discriminating, generating, fake = losses(torch, model, real, noise)
    return discriminating + generating, fake


def train(torch, model, batch):
    """Yields how far the mean image made is from the mean real image: the two losses need not fall."""
    real, _ = batch
    optimizer_d, optimizer_g = (
        torch.optim.Adam(model[part].parameters(), lr=0.01, betas=(0.5, 0.999))
        for part in ("discriminator", "generator")
    )
    while True:
        optimizer_d.zero_grad()
        losses(torch, model, *batch)[0].backward()
        optimizer_d.step()
        optimizer_g.zero_grad()
        _, generating, fake = losses(torch, model, *batch)
        generating.backward()
        optimizer_g.step()
        yield (fake.mean(0) - real.mean(0)).square().mean().item()
