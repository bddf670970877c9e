"""A search over the rate and the width of a network, with pruning."""

import optuna
import torch
from common import fill, numbers, report
from torch import nn

optuna.logging.set_verbosity(optuna.logging.WARNING)
x = numbers(64, 4)
y = x.sum(-1, keepdim=True).tanh()


def objective(trial):
    """The loss after some steps."""
    rate, width = trial.suggest_float("rate", 0.01, 0.5, log=True), trial.suggest_categorical("width", [4, 8])
    model = fill(nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1)))
    optimizer = torch.optim.SGD(model.parameters(), rate)
    for step in range(10):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        trial.report(loss.item(), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return loss.item()


study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), pruner=optuna.pruners.MedianPruner(3))
study.optimize(objective, n_trials=12)
report(best=study.best_value, parameters=study.best_params, states=[trial.state.name for trial in study.trials])
