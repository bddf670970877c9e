"""A softmax of many classes, of which the rare ones are computed in clusters."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from itertools import pairwise

from corefw.dispatch.declare import ops
from corefw.nn.modules.container import ModuleList, Sequential
from corefw.nn.modules.linear import Linear
from corefw.nn.modules.module import Module
from corefw.tensor import Tensor

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log-probabilities of targets among classes that are sorted by their frequency (Grave et al., "Efficient
    softmax approximation for GPUs", 2017): the head has the frequent classes and one for each cluster of rare ones,
    whose layers are the narrower the rarer they are.

    Args:
        in_features: size D of the input's last dimension.
        n_classes: how many classes there are.
        cutoffs: where the clusters begin, in ascending order.
        div_value: by how much each cluster's layer is narrower than the one before.
        head_bias: whether the head adds a bias.

    It gives the target's log-probabilities and the loss, the negative of their mean.

    >>> import corefw as torch
    >>> layer = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 10, [3, 6])
    >>> output, loss = layer(torch.zeros(2, 16), torch.tensor([1, 7]))
    >>> output.shape, layer.log_prob(torch.zeros(2, 16)).shape
    (torch.Size([2]), torch.Size([2, 10]))
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        ascending = all(low < high for low, high in pairwise([0, *cutoffs, n_classes]))
        if not ascending or any(int(cutoff) != cutoff for cutoff in cutoffs):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                f"value is between 1 and n_classes-1, but got {cutoffs} for {n_classes} classes"
            )
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            width = int(in_features // div_value ** (i + 1))
            narrow = Linear(in_features, width, False, device, dtype)
            self.tail.append(Sequential(narrow, Linear(width, high - low, False, device, dtype)))

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        self.head.reset_parameters()
        for layer in (layer for cluster in self.tail for layer in cluster.children()):
            layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        if target_.ndim > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input_.ndim != target_.ndim + 1:
            raise RuntimeError(
                f"{target_.ndim}D target tensor expects {target_.ndim + 1}D input tensors, but found inputs with size "
                f"{input_.shape}"
            )
        if target_.ndim and input_.shape[0] != target_.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        input, target = (input_, target_) if target_.ndim else (input_.unsqueeze(0), target_.unsqueeze(0))
        self._check_classes(target)
        place, output = target, None
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            rows = (target >= low).logical_and(target < high).nonzero().squeeze(1)
            if not rows.numel():
                continue
            logs = ops.log_softmax(self.tail[i](input.index_select(0, rows)), 1)
            within = logs.gather(1, (target.index_select(0, rows) - low).unsqueeze(1)).squeeze(1)
            output = within.new_zeros(target.shape) if output is None else output
            output = output.index_copy(0, rows, within)
            place = place.index_fill(0, rows, self.shortlist_size + i)
        head = ops.log_softmax(self.head(input), 1).gather(1, place.unsqueeze(1)).squeeze(1)
        output = head if output is None else output + head
        return _ASMoutput(output if target_.ndim else output.squeeze(0), (-output).mean())

    def _check_classes(self, target) -> None:
        if not target.numel() or bool(((target >= 0) & (target < self.n_classes)).all()):
            return
        raise RuntimeError(
            f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
            f"{target.max().item()}] were found. "
        )

    def _log_prob_behind(self, input, head):
        """The log-probabilities of all classes, of which the head gave those that it has."""
        found = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            found.append(ops.log_softmax(cluster(input), 1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return ops.cat(found, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes, shape (N, n_classes), for inputs (N, D)."""
        return self._log_prob_behind(input, ops.log_softmax(self.head(input), 1))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each input, which costs less than `log_prob`: (N, D) gives (N,).

        As PyTorch's, it looks into the clusters only where one of them is what the head holds most probable.
        """
        head = ops.log_softmax(self.head(input), 1)
        found = head.argmax(1)
        rows = (found >= self.shortlist_size).nonzero().squeeze(1)
        if not rows.numel():
            return found
        logs = self._log_prob_behind(input.index_select(0, rows), head.index_select(0, rows))
        return found.index_copy(0, rows, logs.argmax(1))
