"""The loss of labels whose places in time are not known."""

from corefw.dispatch.backend import Kernel
from corefw_c.arrays import FLOATS, dense, empty
from corefw_c.library import OUT_OF_RANGE, fail


def kernels(lib):
    """The family's kernels."""

    def refuse(op, status, classes):
        if status == OUT_OF_RANGE:
            raise IndexError(
                f"ctc_loss: a label or blank is out of bounds for {classes} classes, or a length too large"
            )
        fail(op, status)

    def ctc_costs(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
        arrays = [dense(array) for array in (log_probs, targets, input_lengths, target_lengths)]
        losses = empty(log_probs.shape[1:2], log_probs.dtype)
        if status := lib.ctc_costs(*map(id, arrays), blank, zero_infinity, id(losses)):
            refuse("ctc_costs", status, log_probs.shape[-1])
        return losses

    def ctc_costs_backward(grad, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
        arrays = [dense(array) for array in (grad, log_probs, targets, input_lengths, target_lengths)]
        result = empty(log_probs.shape, log_probs.dtype)
        if status := lib.ctc_costs_backward(*map(id, arrays), blank, zero_infinity, id(result)):
            refuse("ctc_costs_backward", status, log_probs.shape[-1])
        return result

    return [Kernel(function.__name__, function, FLOATS) for function in (ctc_costs, ctc_costs_backward)]
