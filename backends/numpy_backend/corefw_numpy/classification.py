"""Losses of classes, each in one step forward and one backward."""

from corefw.dispatch.flags import unheard


def kernels(xp):
    """Ops that compute."""

    def rows(input):
        """The class scores of each sample as one row."""
        if input.ndim == 2:
            return input
        return input.reshape(1, -1) if input.ndim == 1 else xp.moveaxis(input, 1, -1).reshape(-1, input.shape[1])

    def unrow(array, shape):
        """Undo `rows` for a result of the input's shape."""
        if len(shape) < 3:
            return array.reshape(shape)
        return xp.moveaxis(array.reshape(shape[0], *shape[2:], shape[1]), -1, 1)

    def check_shapes(shape, target):
        axis = 0 if len(shape) == 1 else 1
        if target.shape != shape[:axis] + shape[axis + 1 :]:
            raise ValueError("one class per sample expected")

    def check_gradient(grad, target, reduction):
        if grad.shape != (target.shape if reduction == "none" else ()):
            raise ValueError("a gradient of the loss's shape expected")

    def classes(target, count, ignore_index):
        """(the class of each row, mask of those that count or None for all); raises for a class out of range."""
        found = target.reshape(-1).astype("int64", copy=False)
        if not 0 <= ignore_index < count and found.view("uint64").max(initial=0) < count:  # negative ones are huge
            return found, None
        counted = found != ignore_index
        found = xp.where(counted, found, 0)
        wrong = found[(found < 0) | (found >= count)]
        if wrong.size:
            raise IndexError(f"Target {int(wrong[0])} is out of bounds for {count} classes.")
        return found, counted

    @unheard
    def class_weights(found, counted, weight):
        """The weight of each row, None if all weigh 1."""
        if weight is None:
            return counted
        return weight[found] if counted is None else weight[found] * counted

    @unheard
    def reduced(loss, weights, reduction, shape):
        if reduction == "none":
            return loss.reshape(shape)
        if reduction == "sum":
            return xp.add.reduce(loss)
        count = loss.dtype.type(loss.size) if weights is None else xp.add.reduce(weights, dtype=loss.dtype)
        return xp.add.reduce(loss) / count

    @unheard
    def shares(grad, weights, size, reduction):
        """What of the gradient each row gets."""
        if reduction == "none":
            grad = grad.reshape(-1)
        elif reduction == "mean":
            grad = grad / (grad.dtype.type(size) if weights is None else xp.add.reduce(weights, dtype=grad.dtype))
        return grad if weights is None else grad * weights

    @unheard
    def class_nll(input, target, ignore_index, reduction, weight):
        check_shapes(input.shape, target)
        scores = rows(input)
        if weight is not None and weight.shape != scores.shape[1:]:
            raise ValueError("one weight per class expected")
        found, counted = classes(target, scores.shape[1], ignore_index)
        weights = class_weights(found, counted, weight)
        loss = -scores[xp.arange(len(found)), found]
        if weights is not None:
            loss = xp.where(weights == 0, input.dtype.type(0), loss * weights)
        return reduced(loss, weights, reduction, target.shape)

    @unheard
    def class_nll_backward(grad, target, shape, ignore_index, reduction, weight):
        check_shapes(shape, target)
        check_gradient(grad, target, reduction)
        out = rows(xp.zeros(shape, grad.dtype))
        found, counted = classes(target, out.shape[1], ignore_index)
        weights = class_weights(found, counted, weight)
        out[xp.arange(len(found)), found] = -shares(grad, weights, len(found), reduction)
        return unrow(out, shape)

    def chosen(found, count):
        """Where the score of each row's class stands among all scores."""
        return xp.arange(0, len(found) * count, count) + found

    @unheard
    def class_cross_entropy(input, target, ignore_index, reduction):
        check_shapes(input.shape, target)
        scores = rows(input)
        found, counted = classes(target, scores.shape[1], ignore_index)
        normalizer = xp.empty((2, len(found)), scores.dtype)
        largest, total = normalizer[0], normalizer[1]
        xp.maximum.reduce(scores, 1, None, largest)
        relative = scores - largest[:, None]  # without it neither loss nor gradient is exact beside 1e8
        xp.add.reduce(xp.exp(relative), 1, None, total)
        loss = xp.log(total) - relative.take(chosen(found, scores.shape[1]))
        if counted is not None:
            loss = xp.where(counted, loss, input.dtype.type(0))
        return reduced(loss, counted, reduction, target.shape), normalizer.reshape(2, *target.shape)

    @unheard
    def class_cross_entropy_backward(grad, input, normalizer, target, ignore_index, reduction):
        check_shapes(input.shape, target)
        check_gradient(grad, target, reduction)
        if normalizer.shape != (2, *target.shape):
            raise ValueError("two numbers per sample expected")
        scores = rows(input)
        found, counted = classes(target, scores.shape[1], ignore_index)
        largest, total = normalizer[0].reshape(-1, 1), normalizer[1].reshape(-1, 1)
        out = xp.exp(scores - largest, order="C")
        out /= total
        out.reshape(-1)[chosen(found, scores.shape[1])] -= 1
        share = shares(grad, counted, len(found), reduction)
        out *= share.reshape(-1, 1) if share.ndim else share
        return unrow(out, input.shape)

    return {
        "class_cross_entropy": class_cross_entropy,
        "class_cross_entropy_backward": class_cross_entropy_backward,
        "class_nll": class_nll,
        "class_nll_backward": class_nll_backward,
    }


def data_movement(xp):
    """Ops that only move elements: none."""
    return {}
