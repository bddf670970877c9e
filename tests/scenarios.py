"""Scenarios: programs with their outcome written down; where torch is importable it must have the same outcome."""

import importlib.util

import pytest

import corefw

FRAMEWORKS = [corefw, *([importlib.import_module("torch")] if importlib.util.find_spec("torch") else [])]


class Scenarios:
    """A file's scenarios; an instance is the decorator that adds one."""

    def __init__(self):
        self.programs = []

    def __call__(self, outcome):
        """Register a program with what it returns, or with a part of the message of the RuntimeError it raises."""

        def register(program):
            self.programs.append(pytest.param(program, outcome, id=program.__name__))
            return program

        return register

    def test(self):
        """The test of all: as `test_scenario` in the file it runs every program on every framework."""

        @pytest.mark.parametrize("torch", FRAMEWORKS, ids=lambda framework: framework.__name__)
        @pytest.mark.parametrize("program, outcome", self.programs)
        def test_scenario(torch, program, outcome):
            if isinstance(outcome, str):
                with pytest.raises(RuntimeError, match=outcome):
                    program(torch)
            else:
                assert program(torch) == outcome

        return test_scenario


def leaf(torch, *values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def rounded(*tensors):
    return [round(value, 6) for tensor in tensors for value in tensor.tolist()]
