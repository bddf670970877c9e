"""Agents that learn a corridor of ten fields, by PPO, A2C and DQN: their policies, saved, loaded and evaluated."""

import tempfile

import gymnasium
import numpy as np
import torch
from common import fill, report
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3


class Corridor(gymnasium.Env):
    """Right is rewarded at its end."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, continuous=False):
        self.action_space = gymnasium.spaces.Box(-1, 1, (1,)) if continuous else gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.count = 0, 0
        return self._seen(), {}

    def _seen(self):
        return np.array([self.place / 10, self.count / 50], np.float32)

    def step(self, action):
        right = np.asarray(action).flatten()[0] > 0
        self.place, self.count = max(0, self.place + (1 if right else -1)), self.count + 1
        done = self.place >= 10
        return self._seen(), float(done), done, self.count >= 50, {}


found = {}
for kind, options in (
    (PPO, {"n_steps": 32, "batch_size": 16, "n_epochs": 2}),
    (A2C, {"n_steps": 8}),
    (DQN, {"learning_starts": 16, "buffer_size": 200, "train_freq": 4}),
    (SAC, {"learning_starts": 16, "buffer_size": 200}),
    (TD3, {"learning_starts": 16, "buffer_size": 200}),
):
    env = Corridor(continuous=kind in (SAC, TD3))
    agent = kind("MlpPolicy", env, seed=0, device="cpu", **options)
    fill(agent.policy)
    agent.learn(64)
    assert all(torch.isfinite(weight).all() for weight in agent.policy.parameters())
    with tempfile.TemporaryDirectory() as folder:
        agent.save(f"{folder}/agent")
        again = kind.load(f"{folder}/agent", env=env)
    seen = np.array([[0.1, 0.2], [0.5, -0.5]], np.float32)
    assert (agent.predict(seen, deterministic=True)[0] == again.predict(seen, deterministic=True)[0]).all()
    found[kind.__name__] = [agent.num_timesteps, agent._n_updates > 0, len(agent.policy.state_dict())]
agent = PPO("MlpPolicy", Corridor(), seed=0, device="cpu", n_steps=32)
fill(agent.policy)
values, log_prob, entropy = agent.policy.evaluate_actions(torch.tensor([[0.1, 0.2], [0.5, -0.5]]), torch.tensor([0, 1]))
(values.sum() + log_prob.sum() + entropy.sum()).backward()
gradient = agent.policy.mlp_extractor.policy_net[0].weight.grad.flatten()[:10]
report(**found, values=values, log_prob=log_prob, entropy=entropy, gradient=gradient)
