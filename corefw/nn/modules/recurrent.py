"""Recurrent layers, over whole sequences and step by step."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

from corefw.dispatch.declare import ops
from corefw.nn import init
from corefw.nn.modules.module import Module
from corefw.nn.parameter import Parameter
from corefw.nn.utils.rnn import PackedSequence
from corefw.tensor import Tensor

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _draw(module: Module, hidden_size: int) -> None:
    """Fill all parameters from U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
    bound = 1.0 / math.sqrt(hidden_size) if hidden_size > 0 else 0
    for parameter in module.parameters():
        init.uniform_(parameter, -bound, bound)


class RNNBase(Module):
    """What RNN, LSTM and GRU share: parameters, checks, and the handling of padded, packed and single sequences.

    Attributes: for each layer k ``weight_ih_l[k]``, ``weight_hh_l[k]`` and, with `bias`, ``bias_ih_l[k]``,
    ``bias_hh_l[k]``; with `proj_size` ``weight_hr_l[k]``; for the second direction the same with the suffix
    ``_reverse``. All are from U(-1/sqrt(hidden_size), 1/sqrt(hidden_size)).
    """

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device=None,
        dtype=None,
    ):  # fmt: skip
        super().__init__()
        _check_options(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        directions = 2 if bidirectional else 1
        rows, output_size = _GATES[mode] * hidden_size, proj_size or hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in (f"l{layer}", f"l{layer}_reverse")[:directions]:
                sizes: dict[str, tuple[int, ...]] = {
                    "weight_ih_": (rows, output_size * directions if layer else input_size),
                    "weight_hh_": (rows, output_size),
                }
                if bias:
                    sizes |= {"bias_ih_": (rows,), "bias_hh_": (rows,)}
                if proj_size:
                    sizes["weight_hr_"] = (proj_size, hidden_size)
                for name, size in sizes.items():
                    setattr(self, name + suffix, Parameter(ops.empty(size, device=device, dtype=dtype)))
                self._all_weights.append([name + suffix for name in sizes])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        _draw(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Nothing: parameters need no particular place in memory."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [getattr(self, name) for names in self._all_weights for name in names]

    # -- checks -------------------------------------------------------------------------------------------------
    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuse an input of the wrong dtype, number of dimensions or features."""
        wanted = self._flat_weights[0].dtype
        if input.dtype != wanted:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({wanted}). "
                f"Convert input: input.to({wanted}), or convert model: model.to({input.dtype})"
            )
        ndim = 3 if batch_sizes is None else 2
        if input.ndim != ndim:
            raise RuntimeError(f"input must have {ndim} dimensions, got {input.ndim}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )

    def _expected_size(self, input: Tensor, batch_sizes: Tensor | None, size: int) -> tuple[int, int, int]:
        batch = input.shape[0 if self.batch_first else 1] if batch_sizes is None else int(batch_sizes[0])
        return self.num_layers * (2 if self.bidirectional else 1), batch, size

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the states h for an input."""
        return self._expected_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Refuse a state of another shape."""
        if hx.shape != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden, batch_sizes: Tensor | None) -> None:
        """Refuse an input or state that does not fit the layer."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation: Tensor | None):
        """The states in another order of the batch."""
        return hx if permutation is None else self._each(hx, lambda state: state.index_select(1, permutation))

    # -- computing ----------------------------------------------------------------------------------------------
    def _each(self, hx, function):
        """`function` of the state."""
        return function(hx)

    def _zero_state(self, input: Tensor, batch_sizes: Tensor | None):
        return input.new_zeros(self.get_expected_hidden_size(input, batch_sizes))

    def _check_state_dimensions(self, hx, ndim: int) -> None:
        if hx.ndim != ndim:
            kind = "batched 3-D" if ndim == 3 else "unbatched 2-D"
            raise RuntimeError(f"For {kind} input, hx should also be {ndim}-D but got {hx.ndim}-D tensor")

    def _run(self, given: tuple, hx, *last):
        """The function's results as (output, state)."""
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        function = getattr(ops, self.mode.lower())
        output, *states = function(*given, hx, self._flat_weights, *options, *last)
        return output, states[0] if len(states) == 1 else tuple(states)

    def forward(self, input: Tensor | PackedSequence, hx=None):
        if isinstance(input, PackedSequence):
            data, batch_sizes, sorted_indices, unsorted_indices = input
            hx = self._zero_state(data, batch_sizes) if hx is None else self.permute_hidden(hx, sorted_indices)
            self.check_forward_args(data, hx, batch_sizes)
            output, state = self._run((data, batch_sizes), hx)
            packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
            return packed, self.permute_hidden(state, unsorted_indices)
        if input.ndim not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.ndim}D tensor instead")
        if hx is not None:
            self._check_state_dimensions(hx, input.ndim)
        single = input.ndim == 2
        if single:
            input = input.unsqueeze(0 if self.batch_first else 1)
            hx = None if hx is None else self._each(hx, lambda state: state.unsqueeze(1))
        if hx is None:
            hx = self._zero_state(input, None)
        self.check_forward_args(input, hx, None)
        output, state = self._run((input,), hx, self.batch_first)
        if single:
            return output.squeeze(0 if self.batch_first else 1), self._each(state, lambda state: state.squeeze(1))
        return output, state

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0}
        for name, default in {**defaults, "bidirectional": False}.items():
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text


def _check_options(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size) -> None:
    if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:  # type: ignore[operator]
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:  # type: ignore[operator]
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
            f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )
    for name, value, kind in (
        ("bias", bias, bool),
        ("batch_first", batch_first, bool),
        ("input_size", input_size, int),
        ("hidden_size", hidden_size, int),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


_NO_PROJECTION = "proj_size argument is only supported for LSTM, not RNN or GRU"


class RNN(RNNBase):
    """A simple recurrent network (Elman 1990): ``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`` at every step.

    Args:
        input_size: the number of features of a step.
        hidden_size: the number of features of a state.
        num_layers: how many networks are stacked, each reading the states of the one before.
        nonlinearity: "tanh" or "relu".
        bias: whether to add b_ih and b_hh.
        batch_first: whether input and output are (batch, steps, features) instead of (steps, batch, features).
        dropout: the probability with which outputs between layers are zero in training.
        bidirectional: whether each layer also reads the sequences from their ends.

    Input: (steps, batch, input_size), one sequence (steps, input_size), or a `PackedSequence`; and a first state
    (layers * directions, batch, hidden_size), zero by default. Output: the last layer's states at all steps,
    (steps, batch, directions * hidden_size), and the last states of all layers.

    >>> import corefw as torch
    >>> output, state = torch.nn.RNN(4, 3)(torch.zeros(5, 2, 4))
    >>> output.shape, state.shape
    (torch.Size([5, 2, 3]), torch.Size([1, 2, 3]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", *args, **kwargs,
    ):  # fmt: skip
        if "proj_size" in kwargs:
            raise ValueError(_NO_PROJECTION)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """Gated recurrent units (Cho et al. 2014), at every step

    ``r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)``, ``z = sigmoid(W_iz x + b_iz + W_hz h + b_hz)``,
    ``n = tanh(W_in x + b_in + r * (W_hn h + b_hn))``, ``h' = (1 - z) * n + z * h``.

    Arguments, input and output as for `RNN`, without `nonlinearity`. The weights hold the rows of r, z and n, in this
    order.

    >>> import corefw as torch
    >>> output, state = torch.nn.GRU(4, 3, num_layers=2)(torch.zeros(5, 2, 4))
    >>> output.shape, state.shape
    (torch.Size([5, 2, 3]), torch.Size([2, 2, 3]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError(_NO_PROJECTION)
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter & Schmidhuber 1997), at every step

    ``i = sigmoid(W_ii x + b_ii + W_hi h + b_hi)``, ``f = sigmoid(W_if x + b_if + W_hf h + b_hf)``,
    ``g = tanh(W_ig x + b_ig + W_hg h + b_hg)``, ``o = sigmoid(W_io x + b_io + W_ho h + b_ho)``,
    ``c' = f * c + i * g``, ``h' = o * tanh(c')``.

    Arguments, input and output as for `RNN`, without `nonlinearity`; the state is a pair ``(h, c)``. The weights hold
    the rows of i, f, g and o, in this order.

    Args:
        proj_size: if not 0, h is projected to so many features, ``h' = W_hr (o * tanh(c'))`` (Sak et al. 2014).

    >>> import corefw as torch
    >>> output, (h, c) = torch.nn.LSTM(4, 3, bidirectional=True)(torch.zeros(5, 2, 4))
    >>> output.shape, h.shape, c.shape
    (torch.Size([5, 2, 6]), torch.Size([2, 2, 3]), torch.Size([2, 2, 3]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the states c for an input."""
        return self._expected_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden, batch_sizes: Tensor | None) -> None:
        """Refuse an input or states that do not fit the layer."""
        self.check_input(input, batch_sizes)
        h, c = hidden
        expected = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(h, expected, "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(c, self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}")

    def _each(self, hx, function):
        return tuple(map(function, hx))

    def _zero_state(self, input, batch_sizes):
        cell = input.new_zeros(self.get_expected_cell_size(input, batch_sizes))
        return super()._zero_state(input, batch_sizes), cell

    def _check_state_dimensions(self, hx, ndim: int) -> None:
        h, c = hx
        if h.ndim != ndim or c.ndim != ndim:
            kind = "batched 3-D" if ndim == 3 else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {ndim}-D but got ({h.ndim}-D, {c.ndim}-D) tensors"
            )


# -- cells ------------------------------------------------------------------------------------------------------------
class RNNCellBase(Module):
    """What the cells share: parameters ``weight_ih``, ``weight_hh``, ``bias_ih`` and ``bias_hh``."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(ops.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(ops.empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            parameter = Parameter(ops.empty((rows,), device=device, dtype=dtype)) if bias else None
            self.register_parameter(name, parameter)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        _draw(self, self.hidden_size)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _check_dimensions(self, what: str, tensor: Tensor) -> None:
        if tensor.ndim not in (1, 2):
            raise ValueError(f"{self._get_name()}: Expected {what} to be 1D or 2D, got {tensor.ndim}D instead")

    def _step(self, function, input: Tensor, hx: Tensor | None):
        """One step of a cell with one state."""
        self._check_dimensions("input", input)
        if hx is None:
            hx = input.new_zeros((*input.shape[:-1], self.hidden_size))
        self._check_dimensions("hidden", hx)
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if input.ndim == 2:
            return function(input, hx, *weights)
        return function(input.unsqueeze(0), hx.unsqueeze(0), *weights).squeeze(0)


class RNNCell(RNNCellBase):
    """One step of a simple recurrent network, ``tanh(W_ih x + b_ih + W_hh h + b_hh)``.

    Args:
        input_size: the number of features of a step.
        hidden_size: the number of features of the state.
        bias: whether to add b_ih and b_hh.
        nonlinearity: "tanh" or "relu".

    Input: (batch, input_size) or (input_size), and the state (batch, hidden_size) or (hidden_size), zero by default.
    Output: the next state.

    >>> import corefw as torch
    >>> torch.nn.RNNCell(4, 3)(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device=None, dtype=None,
    ):  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(ops.rnn_tanh_cell if self.nonlinearity == "tanh" else ops.rnn_relu_cell, input, hx)


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit; formulas as for `GRU`.

    Args:
        input_size: the number of features of a step.
        hidden_size: the number of features of the state.
        bias: whether to add biases.

    Input: (batch, input_size) or (input_size), and the state (batch, hidden_size) or (hidden_size), zero by default.
    Output: the next state.

    >>> import corefw as torch
    >>> torch.nn.GRUCell(4, 3)(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(ops.gru_cell, input, hx)


class LSTMCell(RNNCellBase):
    """One step of long short-term memory; formulas as for `LSTM`.

    Args:
        input_size: the number of features of a step.
        hidden_size: the number of features of the states.
        bias: whether to add biases.

    Input: (batch, input_size) or (input_size), and the pair of states (h, c), each (batch, hidden_size) or
    (hidden_size), zero by default. Output: the next pair.

    >>> import corefw as torch
    >>> h, c = torch.nn.LSTMCell(4, 3)(torch.zeros(2, 4))
    >>> h.shape
    torch.Size([2, 3])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        self._check_dimensions("input", input)
        if hx is None:
            zeros = input.new_zeros((*input.shape[:-1], self.hidden_size))
            hx = (zeros, zeros)
        for i, state in enumerate(hx):
            self._check_dimensions(f"hx[{i}]", state)
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if input.ndim == 2:
            return ops.lstm_cell(input, hx, *weights)
        h, c = ops.lstm_cell(input.unsqueeze(0), [state.unsqueeze(0) for state in hx], *weights)
        return h.squeeze(0), c.squeeze(0)
