"""A trained classifier becomes an ONNX file, which onnxruntime runs with the same result."""

import numpy as np
import onnxruntime
import torch
from torch import nn

from corefw.vision.datasets import Digits

torch.manual_seed(0)
digits = Digits(train=True)
x, y = digits.data.float().unsqueeze(1) / Digits.maximum, digits.targets
model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(576, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(60):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

torch.onnx.export(model.eval(), (x[:8],), "digits.onnx", input_names=["image"], output_names=["scores"])
session = onnxruntime.InferenceSession("digits.onnx", providers=["CPUExecutionProvider"])
(scores,) = session.run(None, {"image": x[:8].numpy()})
with torch.no_grad():
    difference = np.abs(scores - model(x[:8]).numpy()).max()
print(f"loss {loss.item():.3f}; onnxruntime differs by less than 1e-4: {difference < 1e-4}")
