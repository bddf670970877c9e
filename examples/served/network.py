"""The network that is served: it reads handwritten digits of 8 x 8 pixels."""

from torch import nn

MOST = 16  # the ink of a full pixel


def network() -> nn.Module:
    """Scores of the ten digits, of pictures (batch, 1, 8, 8) with pixels from 0 to 1."""
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(1152, 10))
