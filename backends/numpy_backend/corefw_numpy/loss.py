"""Losses of the training hot path, each in one step forward and one backward."""


def kernels(xp):
    """Ops that compute."""

    def squared_error(input, target, reduction):
        difference = input - target
        if reduction == "none":
            return difference * difference
        if difference.size <= 4096:  # BLAS is fast; its float32 sums are exact enough only for few elements
            total = xp.vdot(difference, difference)
        else:
            total = (difference * difference).sum()
        return total / difference.size if reduction == "mean" else total

    def squared_error_backward(grad, input, target, reduction):
        difference = input - target
        difference *= grad * difference.dtype.type(
            2 / difference.size if reduction == "mean" and difference.size else 2
        )
        return difference

    def class_axis(array):
        return 0 if array.ndim == 1 else 1

    def classes(target, count, ignore_index, axis):
        """(positions of the classes, mask of those that count or None for all); raises for a class out of range."""
        positions = xp.expand_dims(target.astype("int64", copy=False), axis)
        if positions.view("uint64").max(initial=0) < count:  # negative ones are huge
            return positions, None
        counted = positions != ignore_index
        positions = xp.where(counted, positions, 0)
        wrong = positions[(positions < 0) | (positions >= count)]
        if wrong.size:
            raise IndexError(f"Target {int(wrong[0])} is out of bounds for {count} classes.")
        return positions, counted

    def check_shapes(input, target):
        axis = class_axis(input)
        if target.shape != input.shape[:axis] + input.shape[axis + 1 :]:
            raise ValueError("one class per sample expected")
        return axis

    def reduced(loss, weights, reduction):
        if reduction == "none":
            return loss
        return loss.sum() / (loss.size if weights is None else weights.sum()) if reduction == "mean" else loss.sum()

    def class_weights(positions, counted, weight):
        weights = None if weight is None else weight[positions]
        if counted is None:
            return weights
        return counted if weights is None else weights * counted

    def class_nll(input, target, weight, ignore_index, reduction):
        axis = check_shapes(input, target)
        positions, counted = classes(target, input.shape[axis], ignore_index, axis)
        loss = -xp.take_along_axis(input, positions, axis)
        weights = class_weights(positions, counted, weight)
        if weights is not None:
            loss = xp.where(weights == 0, input.dtype.type(0), loss * weights)
        return reduced(loss.squeeze(axis), weights, reduction)

    def shares(grad, weights, size, reduction, axis):
        """What of the gradient each sample gets."""
        if reduction == "none":
            grad = xp.expand_dims(grad, axis)
        elif reduction == "mean":
            grad = grad / grad.dtype.type(size if weights is None else weights.sum())
        return grad if weights is None else grad * weights

    def class_nll_backward(grad, target, weight, shape, ignore_index, reduction):
        out = xp.zeros(shape, grad.dtype)
        axis = class_axis(out)
        positions, counted = classes(target, shape[axis], ignore_index, axis)
        weights = class_weights(positions, counted, weight)
        xp.put_along_axis(out, positions, -shares(grad, weights, target.size, reduction, axis), axis)
        return out

    def class_cross_entropy(input, target, ignore_index, reduction):
        axis = check_shapes(input, target)
        positions, counted = classes(target, input.shape[axis], ignore_index, axis)
        largest = input.max(axis, keepdims=True)
        total = xp.log(xp.exp(input - largest).sum(axis, keepdims=True))
        total += largest
        loss = total - xp.take_along_axis(input, positions, axis)
        if counted is not None:
            loss = xp.where(counted, loss, input.dtype.type(0))
        return reduced(loss.squeeze(axis), counted, reduction), total.squeeze(axis)

    def class_cross_entropy_backward(grad, input, logsumexp, target, ignore_index, reduction):
        axis = class_axis(input)
        positions, counted = classes(target, input.shape[axis], ignore_index, axis)
        out = xp.exp(input - xp.expand_dims(logsumexp, axis))
        xp.put_along_axis(out, positions, xp.take_along_axis(out, positions, axis) - 1, axis)
        out *= shares(grad, counted, target.size, reduction, axis)
        return out

    def bernoulli_nll(input, target):
        if not xp.all((input >= 0) & (input <= 1)):
            raise RuntimeError("all elements of input should be between 0 and 1")
        least = input.dtype.type(-100)
        return (target - 1) * xp.maximum(xp.log1p(-input), least) - target * xp.maximum(xp.log(input), least)

    def logistic_loss(input, target):
        return xp.maximum(input, 0) - input * target + xp.log1p(xp.exp(-xp.abs(input)))

    return {
        "bernoulli_nll": bernoulli_nll,
        "class_cross_entropy": class_cross_entropy,
        "class_cross_entropy_backward": class_cross_entropy_backward,
        "class_nll": class_nll,
        "class_nll_backward": class_nll_backward,
        "logistic_loss": logistic_loss,
        "squared_error": squared_error,
        "squared_error_backward": squared_error_backward,
    }


def movements(xp):
    """Ops that only move elements: none."""
    return {}
