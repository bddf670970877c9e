"""What the programs share: weights and inputs that need no generator of random numbers, and their results."""

import json

import torch


def numbers(*shape, seed=0):
    """Numbers of no pattern between -1 and 1, the same on every framework."""
    count = 1
    for size in shape:
        count *= size
    positions = torch.arange(count, dtype=torch.float64) + 1000 * seed
    return (torch.frac(torch.sin(positions * 12.9898) * 437.58) * 2 % 2 - 1).float().reshape(shape)


def fill(module):
    """Give each parameter of a module such numbers, small enough to train."""
    with torch.no_grad():
        for seed, (_, parameter) in enumerate(sorted(module.named_parameters())):
            parameter.copy_(0.3 * numbers(*parameter.shape, seed=seed))
    return module


def report(**results):
    """Print the results, the last line of a program, as JSON."""
    plain = {key: value.tolist() if isinstance(value, torch.Tensor) else value for key, value in results.items()}
    print(json.dumps(plain))
