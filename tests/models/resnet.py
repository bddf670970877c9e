"""ResNet-18 in the form for CIFAR, eight channels wide (He et al., "Deep residual learning", 2015)."""

import numpy as np

from corefw.benchmarks.resnet import build  # noqa: F401 - offered by this file as by the others
from tests.models import fit

STEPS, FACTOR = 10, 0.3
#: one of many rectified units within rounding of zero may fall to either side in float32
DTYPE = "float64"


def arrays(rng):
    """Ten colour images of sixteen by sixteen pixels, one for each class."""
    return rng.standard_normal((10, 3, 16, 16)).astype(np.float32), np.arange(10)


def evaluate(torch, model, images, targets):
    output = model(images)
    return torch.nn.CrossEntropyLoss()(output, targets), output


def train(torch, model, batch):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
    return fit(torch, model, evaluate, optimizer, batch)
