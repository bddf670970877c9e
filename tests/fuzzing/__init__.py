"""Differential fuzzing: random programs on every backend and on PyTorch, compared step by step (scripts/fuzz)."""
