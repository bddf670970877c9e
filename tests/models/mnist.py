"""A convolutional network for handwritten digits: two convolutions, pooling, dropout and two linear layers."""

import numpy as np

from tests.models import fit

STEPS, FACTOR = 20, 0.5
#: a unit within rounding of zero, or a tie of two pooled ones, may fall to either side in float32
DTYPE = "float64"


def build(torch, dropout=0.25):
    nn, F = torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 4, 3, 1)
            self.conv2 = nn.Conv2d(4, 8, 3, 1)
            self.dropout1 = nn.Dropout2d(dropout)
            self.dropout2 = nn.Dropout(dropout)
            self.fc1 = nn.Linear(8 * 12 * 12, 32)
            self.fc2 = nn.Linear(32, 10)

        def forward(self, x):
            x = F.relu(self.conv1(x))
            x = F.relu(self.conv2(x))
            x = self.dropout1(F.max_pool2d(x, 2))
            x = torch.flatten(x, 1)
            x = self.dropout2(F.relu(self.fc1(x)))
            return F.log_softmax(self.fc2(x), dim=1)

    return Net()


def arrays(rng):
    """Ten noisy images, one of each digit."""
    targets = np.arange(10)
    patterns = rng.random((10, 1, 28, 28)) < 0.2
    images = patterns + 0.3 * rng.standard_normal((10, 1, 28, 28))
    return images.astype(np.float32), targets


def evaluate(torch, model, images, targets):
    output = model(images)
    return torch.nn.functional.nll_loss(output, targets), output


def train(torch, model, batch):
    return fit(torch, model, evaluate, torch.optim.Adadelta(model.parameters(), lr=1.0), batch)
