"""Hooks of modules see what PyTorch's see, in the same order: each call's own gradients, once."""

import warnings
from collections import namedtuple

import pytest

import corefw
from tests.parity import import_torch

Pair = namedtuple("Pair", ["value", "index"])


def layers(library, count):
    """Linear layers of two units whose weights and biases are 1/2."""
    made = [library.nn.Linear(2, 2) for _ in range(count)]
    with library.no_grad():
        for layer in made:
            for parameter in layer.parameters():
                parameter.fill_(0.5)
    return made


def listed(values):
    return [None if value is None else value.tolist() for value in values]


def shared_input(library, seen):
    """An input of two layers, several times: the hook sees what comes through its layer."""
    first, second = layers(library, 2)
    first.register_full_backward_hook(lambda module, before, after: seen.append((listed(before), listed(after))))
    x = library.ones(1, 2, requires_grad=True)
    for _ in range(3):
        (first(x) + second(x) * 10).sum().backward()
    seen.append(x.grad.tolist())


def changed_gradients(library, seen):
    first, second = layers(library, 2)
    first.register_full_backward_pre_hook(lambda module, after: (after[0] * 2,))
    second.register_full_backward_hook(lambda module, before, after: (before[0] * 3,))
    x = library.ones(1, 2, requires_grad=True)
    (first(x) + second(x)).sum().backward()
    seen += [listed([x.grad, first.weight.grad, second.weight.grad])]


def without_inputs(library, seen):
    (layer,) = layers(library, 1)
    layer.register_full_backward_hook(lambda module, before, after: seen.append((listed(before), listed(after))))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        layer(library.ones(1, 2)).sum().backward()
    seen.append([str(warning.message)[:110] for warning in caught])


def sequences(library, seen):
    """What is no tensor, or has no gradient, is None among the gradients."""

    class Several(library.nn.Module):
        def forward(self, a, b):
            return a * b, "text", a.detach()

    module = Several()
    module.register_full_backward_hook(lambda module, before, after: seen.append((listed(before), listed(after))))
    result = module(library.ones(2, requires_grad=True), 2.0)
    seen += [type(result).__name__, result[1], result[2].requires_grad]
    result[0].sum().backward()


def named_tuples(library, seen):
    class Best(library.nn.Module):
        def forward(self, a):
            return Pair(a.max(), a.argmax())

    module = Best()
    module.register_full_backward_hook(lambda module, before, after: seen.append((listed(before), listed(after))))
    result = module(library.tensor([1.0, 3.0], requires_grad=True))
    seen += [type(result).__name__, result.value.item(), result.index.item()]
    result.value.backward()


def all_modules(library, seen):
    module = library.nn.modules.module

    def note(kind):
        def hook(module, *values):
            seen.append((kind, type(module).__name__, len(values)))

        return hook

    model = library.nn.Sequential(*layers(library, 1), library.nn.ReLU())
    model[0].register_forward_hook(note("own"))
    model[1].register_full_backward_hook(note("own backward"))
    handles = [
        module.register_module_forward_pre_hook(note("before")),
        module.register_module_forward_hook(note("after"), with_kwargs=True),
        module.register_module_full_backward_pre_hook(note("backward before")),
        module.register_module_full_backward_hook(note("backward")),
    ]
    x = library.ones(1, 2, requires_grad=True)
    model(x).sum().backward()
    for handle in handles:
        handle.remove()
    model(x).sum().backward()


@pytest.mark.oracle
@pytest.mark.parametrize(
    "program", [shared_input, changed_gradients, without_inputs, sequences, named_tuples, all_modules]
)
def test_hooks_see_what_pytorchs_see(program):
    expected, found = [], []
    program(import_torch(), expected)
    program(corefw, found)
    assert found == expected and found


@pytest.mark.parametrize("name", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_hooks_give_as_many_gradients_as_they_were_given(name):
    module = corefw.nn.Identity()
    getattr(module, name)(lambda module, gradients, *others: (*gradients, *gradients))
    with pytest.raises(RuntimeError, match=r"returned an invalid number of grad_(in|out)put, got 2, but expected 1"):
        module(corefw.ones(1, requires_grad=True)).sum().backward()


def test_modules_without_inputs_that_have_gradients_cannot_change_any():
    module = corefw.nn.Linear(2, 2)
    module.register_full_backward_hook(lambda module, before, after: (corefw.ones(1, 2),))
    with pytest.warns(UserWarning, match="no inputs require gradients"), pytest.raises(RuntimeError, match="None"):
        module(corefw.ones(1, 2)).sum().backward()


def test_a_hook_of_all_modules_changes_outputs_until_it_is_removed():
    handle = corefw.nn.modules.module.register_module_forward_hook(lambda module, args, output: output * 2)
    assert corefw.nn.Identity()(corefw.ones(1)).item() == 2
    handle.remove()
    assert corefw.nn.Identity()(corefw.ones(1)).item() == 1


def test_results_of_ops_keep_their_fields():
    class Best(corefw.nn.Module):
        def forward(self, a):
            return a.max(0)

    seen, module = [], Best()
    module.register_full_backward_hook(lambda module, before, after: seen.append((listed(before), listed(after))))
    result = module(corefw.tensor([1.0, 3.0], requires_grad=True))
    assert result.indices.item() == 1
    result.values.backward()
    assert seen == [([[0.0, 1.0]], [1.0, None])]
