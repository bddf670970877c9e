"""Helpers around modules: padded and packed sequences, gradient clipping, parameters as one vector."""

import copy
import pickle
from math import inf, nan

import numpy as np
import pytest

import corefw as torch

utils = torch.nn.utils
rnn = utils.rnn
SEQUENCES = [[1.0, 2.0, 3.0], [4.0], [5.0, 6.0]]


def sequences(module=torch, width=()):
    return [
        module.from_numpy(np.multiply.outer(np.array(values), np.ones(width)))  # (length, *width)
        for values in SEQUENCES
    ]


# -- sequences --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("width", [(), (2,), (2, 3)])
def test_pad_sequence_is_pytorchs(width, batch_first, side):
    oracle = pytest.importorskip("torch")
    expected = oracle.nn.utils.rnn.pad_sequence(sequences(oracle, width), batch_first, -1.0, side)
    given = [s.requires_grad_() for s in sequences(width=width)]
    actual = rnn.pad_sequence(given, batch_first, -1.0, side)
    np.testing.assert_array_equal(actual.detach().numpy(), expected.numpy())
    (actual * actual).sum().backward()
    for sequence in given:
        np.testing.assert_array_equal(sequence.grad.numpy(), 2 * sequence.detach().numpy())


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(("lengths", "ordered"), [([3, 2, 2], True), ([1, 3, 2], False), ([2, 2, 1], True)])
@pytest.mark.parametrize("total", [None, 5])
def test_packing_is_pytorchs(lengths, ordered, batch_first, total):
    oracle = pytest.importorskip("torch")
    array = np.random.standard_normal((3, 3, 2))
    results = []
    for module in (oracle, torch):
        functions = module.nn.utils.rnn
        x = module.from_numpy(array.copy()).requires_grad_()
        packed = functions.pack_padded_sequence(x, lengths, batch_first, ordered)
        padded, found = functions.pad_packed_sequence(packed, batch_first, 7.0, total)
        weights = module.from_numpy(np.arange(1.0, 1 + padded.numel()).reshape(tuple(padded.shape)))
        (padded * weights).sum().backward()
        results.append([*packed, padded, found, x.grad])
    for expected, actual in zip(*results):
        assert (expected is None) == (actual is None)
        if expected is not None:
            assert str(actual.dtype) == str(expected.dtype)
            np.testing.assert_array_equal(actual.detach().numpy(), expected.detach().numpy())


def test_packing_and_unpacking():
    packed = rnn.pack_sequence(sequences(), enforce_sorted=False)
    assert packed.data.tolist() == [1, 5, 4, 2, 6, 3]
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    assert [s.tolist() for s in rnn.unpack_sequence(packed)] == SEQUENCES
    padded, lengths = rnn.pad_packed_sequence(packed)
    assert [s.tolist() for s in rnn.unpad_sequence(padded, lengths)] == SEQUENCES
    assert padded.shape == (3, 3)


def test_lengths_as_a_tensor():
    packed = rnn.pack_padded_sequence(torch.zeros(3, 2), torch.tensor([3, 1], dtype=torch.int32))
    assert packed.batch_sizes.tolist() == [2, 1, 1]
    assert packed.batch_sizes.dtype == torch.int64


def test_conversions_of_a_packed_sequence():
    packed = rnn.pack_sequence(sequences(), enforce_sorted=False)
    assert packed.to(torch.float64) is packed.cpu() is packed
    for name, dtype in (
        ("float", torch.float32),
        ("half", torch.float16),
        ("long", torch.int64),
        ("byte", torch.uint8),
    ):
        converted = getattr(packed, name)()
        assert isinstance(converted, rnn.PackedSequence)
        assert converted.data.dtype == dtype
        assert converted.sorted_indices.tolist() == packed.sorted_indices.tolist()
    assert not packed.is_cuda
    assert packed.to("meta").data.device.type == "meta"
    for other in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))):
        assert torch.equal(other.data, packed.data)
    text = repr(rnn.pack_sequence([torch.tensor([1, 2])]))
    assert text == (
        "PackedSequence(data=tensor([1, 2]), batch_sizes=tensor([1, 1]), sorted_indices=None, unsorted_indices=None)"
    )
    again = rnn.PackedSequence((packed.data, packed.batch_sizes), sorted_indices=packed.sorted_indices)
    assert torch.equal(again.unsorted_indices, packed.unsorted_indices)


@pytest.mark.parametrize(
    ("shape", "lengths", "text"),
    [
        ((3, 2), [3], r"Expected `len\(lengths\)` to be equal to batch_size, but got 1 \(batch_size=2\)"),
        ((3, 2), [2, 3], "must be sorted in decreasing order when `enforce_sorted` is True"),
        ((3, 2), [3, 0], "Length of all samples has to be greater than 0"),
        ((3, 2), [4, 1], "at most the 3 steps of the input, but got 4"),
        ((0, 2), [1, 1], "Cannot pack empty tensors"),
    ],
)
def test_wrong_lengths(shape, lengths, text):
    with pytest.raises(RuntimeError, match=text):
        rnn.pack_padded_sequence(torch.zeros(shape), lengths)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: rnn.pad_sequence([]), RuntimeError, "received an empty list of sequences"),
        (lambda: rnn.pad_sequence(3), RuntimeError, "Expected iterable for input sequences"),
        (lambda: rnn.pad_sequence([torch.ones(1)], padding_side="top"), RuntimeError, "one of left or right"),
        (lambda: rnn.pad_sequence([torch.ones(1, 2), torch.ones(1, 3)]), RuntimeError, "same sizes after the first"),
        (lambda: rnn.pad_packed_sequence(rnn.pack_sequence([torch.ones(3)]), total_length=2), ValueError, "at least"),
        (lambda: rnn.PackedSequence(torch.ones(1), torch.ones(1, device="meta")), ValueError, "always be on CPU"),
    ],
)
def test_wrong_sequences(call, error, text):
    with pytest.raises(error, match=text):
        call()


# -- clipping ---------------------------------------------------------------------------------------------------------
GRADIENTS = [np.array([3.0, -4.0]), None, np.array([[12.0]])]


def parameters(module=torch):
    found = []
    for gradient in GRADIENTS:
        parameter = module.nn.Parameter(module.zeros(gradient.shape if gradient is not None else (1,)).double())
        parameter.grad = None if gradient is None else module.from_numpy(gradient.copy())
        found.append(parameter)
    return found


@pytest.mark.parametrize("largest", [1.0, 100.0])
@pytest.mark.parametrize("norm_type", [2.0, 1, 0.5, inf, "inf"])
def test_clip_grad_norm_is_pytorchs(norm_type, largest):
    oracle = pytest.importorskip("torch")
    theirs, ours = parameters(oracle), parameters()
    expected = oracle.nn.utils.clip_grad_norm_(theirs, largest, norm_type)
    actual = utils.clip_grad_norm_(iter(ours), largest, norm_type, foreach=True)
    np.testing.assert_allclose(actual.item(), expected.item(), rtol=1e-12)
    for a, b in zip(ours, theirs):
        assert (a.grad is None) == (b.grad is None)
        if a.grad is not None:
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-12)


def test_clip_grad_norm_of_what_has_none():
    assert utils.clip_grad_norm_([], 1.0).item() == 0
    assert utils.clip_grad_norm_(torch.zeros(2), 1.0).item() == 0
    with pytest.warns(UserWarning, match="empty generator"):
        utils.clip_grad_norm_((p for p in ()), 1.0)
    with pytest.warns(FutureWarning, match="deprecated"):
        utils.clip_grad_norm([], 1.0)


@pytest.mark.parametrize("value", [nan, inf])
def test_norms_that_are_not_finite(value):
    parameter = torch.nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([1.0, value])
    with pytest.raises(RuntimeError, match=r"The total norm of order 2.0 .* is non-finite"):
        utils.clip_grad_norm_(parameter, 1.0, error_if_nonfinite=True)
    assert parameter.grad[0].item() == 1.0
    utils.clip_grad_norm_(parameter, 1.0)
    assert parameter.grad[1].isnan()


def test_clip_grad_value():
    found = parameters()
    utils.clip_grad_value_(found, 3.5)
    assert [p.grad.tolist() for p in found if p.grad is not None] == [[3.0, -3.5], [[3.5]]]


def test_total_norm():
    assert utils.get_total_norm(torch.tensor([3.0, 4.0])).item() == 5
    assert utils.get_total_norm([torch.ones(9), torch.ones(16).half()]).item() == 5


# -- vectors ----------------------------------------------------------------------------------------------------------
def test_parameters_as_a_vector():
    model = torch.nn.Linear(2, 3)
    vector = utils.parameters_to_vector(model.parameters())
    assert vector.shape == (9,)
    (vector * vector).sum().backward()
    assert torch.allclose(model.weight.grad, 2 * model.weight)
    utils.vector_to_parameters(torch.arange(9.0), model.parameters())
    assert model.weight.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert model.bias.tolist() == [6, 7, 8]
    with pytest.raises(TypeError, match=r"expected torch.Tensor, but got: list"):
        utils.vector_to_parameters([1.0], model.parameters())
    with pytest.raises(TypeError, match="different devices"):
        utils.parameters_to_vector([torch.zeros(1), torch.zeros(1, device="meta")])


def test_the_order_of_a_packed_sequence_undone():
    order = torch.tensor([2, 0, 1, 3])
    back = rnn.invert_permutation(order)
    assert back.tolist() == [1, 2, 0, 3] and torch.equal(order[back], torch.arange(4))
    assert rnn.invert_permutation(None) is None


def test_clipping_by_a_given_norm():
    """The gradients times min(1, max_norm / (total_norm + 1e-6))."""
    parameters = [torch.zeros(2, requires_grad=True), torch.zeros(1, requires_grad=True), torch.zeros(1)]
    for parameter, values in zip(parameters, ([3.0, 0.0], [4.0]), strict=False):
        parameter.grad = torch.tensor(values)
    assert utils.clip_grads_with_norm_(parameters, 2.5, utils.get_total_norm([p.grad for p in parameters[:2]])) is None
    np.testing.assert_allclose(parameters[0].grad.numpy(), [1.5, 0.0], rtol=1e-6)
    np.testing.assert_allclose(parameters[1].grad.numpy(), [2.0], rtol=1e-6)
    utils.clip_grads_with_norm_(parameters, 100.0, torch.tensor(2.5))  # smaller than asked: as they were
    np.testing.assert_allclose(parameters[1].grad.numpy(), [2.0], rtol=1e-6)
