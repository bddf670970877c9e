"""A graph network finds three crowds among 90 people, of whom it is told six and who knows whom."""

import torch
from torch import nn

torch.manual_seed(0)
crowds = torch.arange(90) % 3
together = crowds.unsqueeze(0) == crowds.unsqueeze(1)
knows = (torch.rand(90, 90) < torch.where(together, 0.3, 0.02)).triu(1)
giver, taker = torch.cat([knows.nonzero(), knows.nonzero().flip(1)]).t()
told = torch.arange(6)  # two of each crowd


class Meeting(nn.Module):
    """Hamilton, Ying and Leskovec, 2017: a person's features, and the mean of those of all whom the person knows."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.own, self.others = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs, bias=False)

    def forward(self, x):
        counts = torch.bincount(taker, minlength=len(x)).clamp(min=1).unsqueeze(1)
        heard = torch.zeros_like(x).index_add(0, taker, x[giver]) / counts
        return self.own(x) + self.others(heard)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Meeting(90, 16), Meeting(16, 3)

    def forward(self, x):
        return self.second(nn.functional.dropout(torch.relu(self.first(x)), 0.5, self.training))


people, model = torch.eye(90), Network()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-3)
for epoch in range(150):
    loss = nn.functional.cross_entropy(model(people)[told], crowds[told])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 50 == 49:
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}")

with torch.no_grad():
    right = (model.eval()(people).argmax(1) == crowds).float().mean().item()
print(f"{int(knows.sum())} pairs know each other")
print("finds the crowds" if right > 0.85 else f"finds {right:.2f}")
