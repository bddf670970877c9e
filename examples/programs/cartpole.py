"""A policy learns to balance a pole on a cart (Barto, Sutton and Anderson, 1983), by the returns of what it tried."""

import math

import torch
from torch import nn

torch.manual_seed(0)


class CartPole:
    """The cart and pole of the paper: pushes of 10 N every 0.02 s, until the pole leans by 12 degrees or the cart is
    2.4 m away."""

    def reset(self):
        self.state = (torch.rand(4) * 0.1 - 0.05).tolist()
        return self.state

    def step(self, right):
        place, speed, angle, turning = self.state
        push = (10.0 if right else -10.0) + 0.05 * turning**2 * math.sin(angle)
        lean = (9.8 * math.sin(angle) - math.cos(angle) * push / 1.1) / (
            0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1)
        )
        pull = (push - 0.05 * lean * math.cos(angle)) / 1.1
        self.state = [place + 0.02 * speed, speed + 0.02 * pull, angle + 0.02 * turning, turning + 0.02 * lean]
        return self.state, abs(self.state[0]) > 2.4 or abs(self.state[2]) > math.radians(12)


policy = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
world, lengths = CartPole(), []
for episode in range(300):
    state, likelihoods = world.reset(), []
    while len(likelihoods) < 200:
        choice = torch.distributions.Categorical(logits=policy(torch.tensor(state)))
        action = choice.sample()
        likelihoods.append(choice.log_prob(action))
        state, fallen = world.step(bool(action))
        if fallen:
            break
    lengths.append(len(likelihoods))
    returns = torch.tensor([1.0] * len(likelihoods)).flip(0)
    for i in range(1, len(returns)):
        returns[i] = 1 + 0.99 * returns[i - 1]
    returns = returns.flip(0)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = -(torch.stack(likelihoods) * returns).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 20 == 19:
        mean = sum(lengths[-20:]) / 20
        print(f"episode {episode + 1}: balanced {mean:.0f} of 200 steps")
        if mean > 120:
            break
print("balances" if max(sum(lengths[i : i + 20]) / 20 for i in range(len(lengths) - 19)) > 100 else "falls")
