"""The table of a model."""

import torchinfo
from common import report
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))
summary = torchinfo.summary(
    model, (2, 3, 8, 8), verbose=0, col_names=("input_size", "output_size", "num_params", "mult_adds")
)
report(table=str(summary), parameters=summary.total_params, operations=summary.total_mult_adds)
