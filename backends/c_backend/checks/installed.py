"""Whether an installed wheel works: the C backend is chosen, at the level asked for, and trains as NumPy does."""

import os

import corefw as torch
from corefw import nn
from corefw_c import library


def trained() -> float:
    """The loss after some steps of training a small network."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = torch.randn(16, 1, 8, 8), torch.arange(16) % 10
    for _ in range(20):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


level = os.environ.get("COREFW_C_LEVEL")
assert library.best_level() == level or level is None
assert "kernel of backend 'c'" in torch.explain("softmax", torch.zeros(2, 2), 1)
with torch.backend("numpy"):
    expected = trained()
found = trained()
assert abs(found - expected) < 1e-4 * abs(expected) + 1e-5, (found, expected)
print(f"{library.best_level()}: loss {found:.4f}, as with NumPy; {os.path.dirname(library.__file__)}")
