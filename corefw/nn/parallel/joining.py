"""What a `DistributedDataParallel` does in a process that has no more inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from corefw.dispatch.declare import ops
from corefw.distributed.algorithms.join import JoinHook
from corefw.distributed.collectives import all_reduce
from corefw.distributed.reduce_op import ReduceOp
from corefw.graph.grad_mode import no_recording

if TYPE_CHECKING:
    from corefw.nn.parallel.distributed import DistributedDataParallel


class Step(NamedTuple):
    """A step as all processes know it: the ranks that have inputs, whether these send buffers, and whether they average
    gradients."""

    present: list[int]
    sends: bool
    averages: bool


def agreed(model: DistributedDataParallel, is_here: bool, sends: bool = False, averages: bool = False) -> Step:
    """Tell the other processes of a step, and learn of theirs."""
    group = model.process_group
    size = group.size()
    with no_recording():
        word = ops.zeros(size + 2, device=model.join_device)
        if is_here:
            word[group.rank()], word[size], word[size + 1] = 1, sends, averages
        all_reduce(word, group=group)
    told = word.tolist()
    return Step([rank for rank in range(size) if told[rank]], told[size] > 0, told[size + 1] > 0)


class DataParallelHook(JoinHook):
    """Answers the buffers and the averages of the others with zeros, and takes over the model of those that were done
    last.

    Args:
        model: whose hook it is.
        divides_by_all: whether averages are sums divided by the number of all processes, or of those with inputs.
    """

    def __init__(self, model: DistributedDataParallel, divides_by_all: bool):
        self.model = model
        model.divides_by_all = divides_by_all

    def main_hook(self) -> None:
        """Answer one step."""
        self.model.answer(agreed(self.model, is_here=False))

    def post_hook(self, is_last_joiner: bool) -> None:
        """The model becomes that of a process that was done last."""
        group = self.model.process_group
        with no_recording():
            last = ops.full((1,), group.rank() if is_last_joiner else -1, device=self.model.join_device)
            all_reduce(last, ReduceOp.MAX, group)
        self.model.take_over(int(last))
