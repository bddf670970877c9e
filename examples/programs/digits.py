"""A convolutional network reads handwritten digits, which are moved a little each time that it sees them."""

import torch
from torch import nn
from torch.utils.data import DataLoader

from corefw.vision.datasets import Digits

torch.manual_seed(0)


def pictures(digits):
    """Pictures (count, 1, 8, 8) with pixels from 0 to 1."""
    return digits.data.float().unsqueeze(1) / Digits.maximum


def moved(x):
    """All pictures by a pixel or none, in a direction that is drawn."""
    down, right = torch.randint(-1, 2, (2,)).tolist()
    return nn.functional.pad(x, (1, 1, 1, 1))[:, :, 1 + down : 9 + down, 1 + right : 9 + right]


model = nn.Sequential(
    *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Dropout(0.25), nn.Linear(512, 10)),
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
seen, held_out = Digits(train=True), Digits(train=False)
loader = DataLoader(list(zip(pictures(seen), seen.targets)), batch_size=32, shuffle=True)
for epoch in range(12):
    model.train()
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(moved(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        read = model(pictures(held_out)).argmax(1)
    right = (read == held_out.targets).float().mean().item()
    print(f"epoch {epoch + 1}: {100 * right:.1f} of 100 held-out digits")

mistaken = [(int(true), int(told)) for true, told in zip(held_out.targets, read) if true != told]
print("taken for another:", ", ".join(f"{true} for {told}" for true, told in mistaken[:5]))
print("reads digits" if right > 0.97 else "does not read")
