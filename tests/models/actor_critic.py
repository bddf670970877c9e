"""An actor-critic that learns, by policy gradient, to walk to the right end of a corridor."""

import numpy as np

from tests.models import fit

CELLS, LONGEST, DISCOUNT = 7, 60, 0.95
SHORTEST = CELLS - 1


class Corridor:
    """Cells in a row; actions 0 and 1 go left and right; the right end gives the reward 1 and ends the episode."""

    def reset(self):
        self.cell, self.steps = 0, 0
        return self.observe()

    def observe(self):
        return np.eye(CELLS, dtype=np.float32)[self.cell]

    def step(self, action):
        self.cell = max(self.cell + (1 if action else -1), 0)
        self.steps += 1
        arrived = self.cell == CELLS - 1
        return self.observe(), float(arrived), arrived or self.steps == LONGEST


def build(torch):
    nn, F = torch.nn, torch.nn.functional

    class Policy(nn.Module):
        def __init__(self, hidden=16):
            super().__init__()
            self.affine1 = nn.Linear(CELLS, hidden)
            self.action_head = nn.Linear(hidden, 2)
            self.value_head = nn.Linear(hidden, 1)

        def forward(self, state):
            x = F.relu(self.affine1(state))
            return torch.distributions.Categorical(logits=self.action_head(x)), self.value_head(x).squeeze(-1)

    return Policy()


def arrays(rng):
    """Observations, actions and returns of a walk at random."""
    states = np.eye(CELLS, dtype=np.float32)[rng.integers(0, CELLS, 20)]
    return states, rng.integers(0, 2, 20), rng.random(20).astype(np.float32)


def evaluate(torch, model, states, actions, returns):
    """Policy gradient with the critic's value as baseline, the critic's own loss, and a little entropy."""
    policy, values = model(states)
    advantages = returns - values.detach()
    policy_loss = -(policy.log_prob(actions) * advantages).mean()
    value_loss = torch.nn.functional.smooth_l1_loss(values, returns)
    return policy_loss + value_loss - 0.01 * policy.entropy().mean(), (policy.probs, values)


def train(torch, model, batch):
    return fit(torch, model, evaluate, torch.optim.Adam(model.parameters(), lr=3e-2), batch)


def play(torch, model):
    """Learn from one episode after the other and yield how long each was."""
    corridor = Corridor()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
    while True:
        state, done = corridor.reset(), False
        states, actions, rewards = [], [], []
        while not done:
            with torch.no_grad():
                action = model(torch.from_numpy(state))[0].sample()
            states.append(torch.from_numpy(state))
            actions.append(action)
            state, reward, done = corridor.step(action.item())
            rewards.append(reward)
        returns = [sum(DISCOUNT**i * r for i, r in enumerate(rewards[start:])) for start in range(len(rewards))]
        optimizer.zero_grad()
        loss, _ = evaluate(torch, model, torch.stack(states), torch.stack(actions), torch.tensor(returns))
        loss.backward()
        optimizer.step()
        yield len(rewards)
