"""What the kit checks beside the rows: a module for each part of a backend."""

from corefw.testing.behaviour import BEHAVIOURS
from corefw.testing.behaviours import creation, optimizer, processes, pytorch_numbers, random, runtime, training

__all__ = ["BEHAVIOURS", "creation", "optimizer", "processes", "pytorch_numbers", "random", "runtime", "training"]
