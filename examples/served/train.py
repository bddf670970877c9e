"""Trains the network for some seconds, and saves it as digits.pt, which corefw and PyTorch both read."""

import torch
from network import MOST, network

from corefw.vision.datasets import Digits

torch.manual_seed(0)
digits, held_out = Digits(train=True), Digits(train=False)
x, y = digits.data.float().unsqueeze(1) / MOST, digits.targets
model = network()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(40):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "digits.pt")
with torch.no_grad():
    right = model(held_out.data.float().unsqueeze(1) / MOST).argmax(1) == held_out.targets
print(f"digits.pt: {100 * right.float().mean().item():.0f} of 100 held-out digits are read rightly")
