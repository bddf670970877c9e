"""Recurrent layers: agreement with PyTorch's from its weights, sequences in all forms, errors."""

import copy
import pickle

import numpy as np
import pytest

import corefw as torch

rnn = torch.nn.utils.rnn
LAYERS = ["RNN", "GRU", "LSTM"]
CELLS = ["RNNCell", "GRUCell", "LSTMCell"]
OPTIONS = [
    {},
    {"num_layers": 2, "bidirectional": True, "batch_first": True},
    {"bias": False, "bidirectional": True},
    {"proj_size": 2, "num_layers": 2},
]
BUILDERS = [
    *((name, options) for name in LAYERS for options in OPTIONS if name == "LSTM" or "proj_size" not in options),
    ("RNN", {"nonlinearity": "relu", "num_layers": 2}),
]


def twins(name, *arguments, **options):
    """A layer of PyTorch and one here with its weights, in double precision."""
    oracle = pytest.importorskip("torch")
    theirs = getattr(oracle.nn, name)(*arguments, **options).double()
    ours = getattr(torch.nn, name)(*arguments, **options).double()
    state = {key: torch.from_numpy(value.numpy().copy()) for key, value in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    assert str(ours) == str(theirs)
    ours.load_state_dict(state)
    return oracle, theirs, ours


def flat(result):
    if isinstance(result, tuple) and not hasattr(result, "batch_sizes"):
        return [tensor for part in result for tensor in flat(part)]
    return [result.data if hasattr(result, "batch_sizes") else result]


def compare(theirs, ours, their_inputs, our_inputs, run):
    """Outputs, and the gradients of a weighted sum of them all, for inputs and parameters."""
    found = [flat(run(module, inputs)) for module, inputs in ((theirs, their_inputs), (ours, our_inputs))]
    for results in found:
        sum((r * r * (i + 1)).sum() for i, r in enumerate(results)).backward()
    pairs = [*zip(*found), *((a.grad, b.grad) for a, b in zip(their_inputs, our_inputs))]
    pairs += [(a.grad, b.grad) for a, b in zip(theirs.parameters(), ours.parameters())]
    for expected, actual in pairs:
        np.testing.assert_allclose(actual.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-11)


def inputs(oracle, *shapes):
    arrays = [np.random.standard_normal(shape) for shape in shapes]
    return [[module.from_numpy(array.copy()).requires_grad_() for array in arrays] for module in (oracle, torch)]


def states(name, options, *batch):
    count = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    h = (count, *batch, options.get("proj_size", 0) or 4)
    return [h, (count, *batch, 4)] if name == "LSTM" else [h]


def of(tensors):
    return tuple(tensors) if len(tensors) > 1 else tensors[0]


@pytest.mark.parametrize("form", ["padded", "single", "packed", "unsorted", "no state"])
@pytest.mark.parametrize(("name", "options"), BUILDERS)
def test_layer_is_pytorchs(name, options, form):
    oracle, theirs, ours = twins(name, 3, 4, **options)
    batch = () if form == "single" else (3,)
    shape = (*batch, 5, 3) if options.get("batch_first") else (5, *batch, 3)
    pairs = inputs(oracle, shape, *([] if form == "no state" else states(name, options, *batch)))
    lengths = {"packed": [5, 4, 2], "unsorted": [2, 5, 3]}.get(form)

    def run(module, given):
        x, *state = given
        if lengths:
            functions = rnn if module is ours else oracle.nn.utils.rnn
            ordered = form == "packed"
            x = functions.pack_padded_sequence(x, lengths, options.get("batch_first", False), enforce_sorted=ordered)
        return module(x, of(state)) if state else module(x)

    compare(theirs, ours, *pairs, run)


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("options", [{}, {"bias": False}, {"nonlinearity": "relu"}])
@pytest.mark.parametrize("name", CELLS)
def test_cell_is_pytorchs(name, options, batch):
    if "nonlinearity" in options and name != "RNNCell":
        return
    oracle, theirs, ours = twins(name, 3, 4, **options)
    shapes = [(*batch, 3)] + [(*batch, 4)] * (1 + (name == "LSTMCell"))
    compare(theirs, ours, *inputs(oracle, *shapes), lambda module, given: module(given[0], of(given[1:])))
    compare(theirs, ours, *inputs(oracle, (*batch, 3)), lambda module, given: module(given[0]))


@pytest.mark.parametrize(
    ("name", "gates"), [("rnn_tanh_cell", 1), ("rnn_relu_cell", 1), ("gru_cell", 3), ("lstm_cell", 4)]
)
def test_cell_refuses_weights_of_other_shapes(name, gates):
    rows = gates * 3
    for ih, hh, text in (
        ((rows + 1, 5), (rows, 3), rf"weight_ih first dim must be {gates} \* hidden_size = {rows}, but got {rows + 1}"),
        ((rows, 5), (rows - 1, 3), rf"weight_hh first dim must be {gates} \* hidden_size = {rows}, but got {rows - 1}"),
        ((rows, 4), (rows, 3), "input has inconsistent input_size: got 5 expected 4"),
        ((rows, 5), (rows, 2), "hidden0 has inconsistent hidden_size: got 3, expected 2"),
        ((rows,), (rows, 3), rf"must have 2 dimensions, got shapes \[{rows}\] and \[{rows}, 3\]"),
        ((rows, 5), (), r"must have 2 dimensions"),
    ):
        state = (torch.zeros(2, 3),) * 2 if name == "lstm_cell" else torch.zeros(2, 3)
        with pytest.raises(RuntimeError, match=text):
            getattr(torch, name)(torch.zeros(2, 5), state, torch.zeros(ih), torch.zeros(hh))


def test_dropout_between_layers():
    layer = torch.nn.GRU(3, 4, num_layers=2, dropout=0.5)
    x = torch.randn(5, 2, 3)
    torch.manual_seed(0)
    first = layer(x)[0]
    torch.manual_seed(0)
    assert torch.equal(layer(x)[0], first)
    assert not torch.equal(layer(x)[0], first)
    layer.eval()
    assert torch.equal(layer(x)[0], layer(x)[0])
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        torch.nn.GRU(3, 4, dropout=0.5)


def test_both_forms_of_the_functions():
    x, state, params = torch.randn(4, 2, 3), torch.zeros(1, 2, 5), [torch.randn(5, 3), torch.randn(5, 5)]
    options = {"has_biases": False, "num_layers": 1, "dropout": 0.0, "train": False, "bidirectional": False}
    padded = torch.rnn_tanh(x, hx=state, params=params, batch_first=False, **options)
    packed = torch.rnn_tanh(data=x.flatten(0, 1), batch_sizes=torch.tensor([2] * 4), hx=state, params=params, **options)
    assert torch.equal(padded[0].flatten(0, 1), packed[0])
    assert torch.equal(padded[1], packed[1])
    with pytest.raises(TypeError, match=r"expected \(input, hx, params"):
        torch.rnn_tanh(x, state, params)
    with pytest.raises(RuntimeError, match="incorrect number of RNN parameters: 2, expected 4"):
        torch.rnn_tanh(x, state, params, True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="larger than 0"):
        torch.rnn_tanh(x[:0], state, params, False, 1, 0.0, False, False, False)


def test_half_precision():
    layer = torch.nn.LSTM(3, 4).bfloat16()
    output, _ = layer(torch.randn(5, 2, 3).bfloat16())
    output.float().sum().backward()
    assert output.dtype == layer.weight_hh_l0.grad.dtype == torch.bfloat16


def test_second_derivative_through_a_layer():
    layer = torch.nn.LSTM(2, 2).double()
    x = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: layer(x)[0], (x,))


def test_copies_are_independent():
    layer = torch.nn.GRU(2, 3, num_layers=2, bidirectional=True)
    x = torch.randn(4, 1, 2)
    expected = layer(x)[0]
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(x)[0], expected)
        other.weight_ih_l0.data.zero_()
        assert torch.equal(layer(x)[0], expected)
    layer.weight_ih_l0 = torch.nn.Parameter(torch.zeros(9, 2))
    assert not torch.equal(layer(x)[0], expected)
    assert [len(weights) for weights in layer.all_weights] == [4] * 4
    layer.flatten_parameters()


def test_parameters_are_drawn_by_the_hidden_size():
    layer = torch.nn.LSTM(3, 16)
    largest = max(p.abs().max().item() for p in layer.parameters())
    assert 0.2 < largest <= 0.25


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        ((0, 4), {}, ValueError, "input_size must be greater than zero"),
        ((3, 0), {}, ValueError, "hidden_size must be greater than zero"),
        ((3, 4, 0), {}, ValueError, "num_layers must be greater than zero"),
        ((3, 4.0), {}, TypeError, "hidden_size should be of type int, got: float"),
        ((3, 4), {"dropout": 2}, ValueError, "dropout should be a number in range"),
        ((3, 4), {"bias": 1}, TypeError, "bias should be of type bool, got: int"),
        ((3, 4), {"proj_size": 4}, ValueError, "proj_size has to be smaller than hidden_size"),
        ((3, 4), {"proj_size": -1}, ValueError, "proj_size should be a positive integer"),
    ],
)
def test_wrong_options(arguments, options, error, text):
    with pytest.raises(error, match=text):
        torch.nn.LSTM(*arguments, **options)
    if "proj_size" in options:
        with pytest.raises(ValueError, match="only supported for LSTM"):
            torch.nn.GRU(*arguments, **options)


@pytest.mark.parametrize(
    ("name", "shapes", "error", "text"),
    [
        ("GRU", [(3,)], ValueError, "GRU: Expected input to be 2D or 3D, got 1D"),
        ("GRU", [(2, 2, 5)], RuntimeError, r"Expected 3, got 5"),
        ("GRU", [(2, 3), (1, 2, 4)], RuntimeError, "unbatched 2-D input, hx should also be 2-D but got 3-D"),
        ("RNN", [(2, 2, 3), (1, 4)], RuntimeError, "batched 3-D input, hx should also be 3-D but got 2-D"),
        ("RNN", [(2, 2, 3), (1, 3, 4)], RuntimeError, r"Expected hidden size \(1, 2, 4\), got \[1, 3, 4\]"),
        ("LSTM", [(2, 2, 3), (1, 2, 4), (1, 2, 5)], RuntimeError, r"Expected hidden\[1\] size \(1, 2, 4\), got"),
        ("LSTM", [(2, 3), (1, 4), (1, 2, 4)], RuntimeError, r"2-D but got \(2-D, 3-D\) tensors"),
        ("LSTM", [(0, 2, 3)], RuntimeError, "Expected sequence length to be larger than 0 in RNN"),
        ("RNNCell", [(1, 2, 3)], ValueError, "RNNCell: Expected input to be 1D or 2D, got 3D instead"),
        ("RNNCell", [(2, 5)], RuntimeError, "input has inconsistent input_size: got 5 expected 3"),
        ("GRUCell", [(2, 3), (3, 4)], RuntimeError, "Input batch size 2 doesn't match hidden0 batch size 3"),
        ("GRUCell", [(2, 3), (2, 5)], RuntimeError, "hidden0 has inconsistent hidden_size: got 5, expected 4"),
        ("LSTMCell", [(2, 3), (2, 4), (1, 2, 4)], ValueError, r"LSTMCell: Expected hx\[1\] to be 1D or 2D"),
    ],
)
def test_wrong_inputs(name, shapes, error, text):
    x, *state = map(torch.zeros, shapes)
    with pytest.raises(error, match=text):
        getattr(torch.nn, name)(3, 4)(x, *([of(state)] if state else []))


def test_wrong_dtype():
    with pytest.raises(ValueError, match=r"RNN input dtype \(torch.float64\) does not match weight dtype"):
        torch.nn.LSTM(3, 4)(torch.zeros(2, 2, 3, dtype=torch.float64))


def test_unknown_nonlinearity():
    with pytest.raises(ValueError, match="Unknown nonlinearity 'sin'"):
        torch.nn.RNN(3, 4, nonlinearity="sin")
    with pytest.raises(RuntimeError, match="Unknown nonlinearity: sin"):
        torch.nn.RNNCell(3, 4, nonlinearity="sin")(torch.zeros(3))


def test_batch_of_nothing():
    output, state = torch.nn.GRU(3, 4)(torch.zeros(2, 0, 3))
    assert output.shape == (2, 0, 4)
    assert state.shape == (1, 0, 4)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 3), (3, 3)])
def test_orthogonal(shape):
    weight = torch.nn.init.orthogonal_(torch.empty(shape, dtype=torch.float64), gain=2).flatten(1).numpy()
    products = weight @ weight.T if weight.shape[0] <= weight.shape[1] else weight.T @ weight
    np.testing.assert_allclose(products, 4 * np.eye(len(products)), atol=1e-12)
    with pytest.raises(ValueError, match="2 or more dimensions"):
        torch.nn.init.orthogonal_(torch.empty(3))


def test_layers_and_cells_share_their_bases():
    assert all(issubclass(getattr(torch.nn, name), torch.nn.RNNBase) for name in LAYERS)
    assert all(issubclass(getattr(torch.nn, name), torch.nn.RNNCellBase) for name in CELLS)
