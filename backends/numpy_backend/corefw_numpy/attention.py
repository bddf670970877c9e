"""Attention: scores, their softmax, and the average of the values, one whole score matrix after the other."""


def kernels(xp):
    """Ops that compute."""
    inf = float("inf")

    def broadcasts(shape, target):
        sizes = zip(reversed(shape), reversed(target))
        return len(shape) <= len(target) and all(size in (1, wanted) for size, wanted in sizes)

    def check(query, key, value, bias):
        if not (
            min(query.ndim, key.ndim, value.ndim) >= 2
            and query.shape[:-2] == key.shape[:-2] == value.shape[:-2]
            and query.shape[-1] == key.shape[-1]
            and key.shape[-2] == value.shape[-2]
        ):
            raise ValueError("query (*, L, E), key (*, S, E) and value (*, S, V) expected")
        scores = (*query.shape[:-1], key.shape[-2])
        if bias is not None and not broadcasts(bias.shape, scores):
            raise ValueError("a mask that broadcasts to the scores expected")

    def transposed(x):
        return x.swapaxes(-1, -2)

    def scored(query, key, bias, is_causal, scale):
        scores = xp.matmul(query * query.dtype.type(scale), transposed(key))
        if bias is not None:
            scores += bias
        if is_causal:
            scores = xp.where(xp.tri(*scores.shape[-2:], dtype=bool), scores, scores.dtype.type(-inf))
        return scores

    def attention(query, key, value, bias, is_causal, scale):
        check(query, key, value, bias)
        if not key.shape[-2]:
            nothing = xp.zeros((*query.shape[:-1], value.shape[-1]), query.dtype)
            return nothing, xp.full(query.shape[:-1], inf, query.dtype)
        weights = scored(query, key, bias, is_causal, scale)
        largest = weights.max(-1, keepdims=True)
        largest = xp.where(largest == -inf, largest.dtype.type(0), largest)
        weights -= largest
        xp.exp(weights, out=weights)
        total = weights.sum(-1, keepdims=True)
        nowhere = total == 0
        output = xp.matmul(weights, value)
        output /= xp.where(nowhere, total.dtype.type(1), total)
        logsumexp = xp.where(nowhere, total.dtype.type(inf), xp.log(total) + largest)
        return output, logsumexp[..., 0]

    def attention_backward(gradient, query, key, value, output, logsumexp, bias, is_causal, scale):
        check(query, key, value, bias)
        if gradient.shape != output.shape or output.shape != (*logsumexp.shape, value.shape[-1]):
            raise ValueError("a gradient of the output's shape expected")
        if logsumexp.shape != query.shape[:-1]:
            raise ValueError("one logarithm per query expected")
        weights = scored(query, key, bias, is_causal, scale)
        weights -= logsumexp[..., None]
        xp.exp(weights, out=weights)
        of_scores = xp.matmul(gradient, transposed(value))
        of_scores -= (gradient * output).sum(-1, keepdims=True)
        of_scores *= weights
        of_scores *= of_scores.dtype.type(scale)
        return (
            xp.matmul(of_scores, key),
            xp.matmul(transposed(of_scores), query),
            xp.matmul(transposed(weights), gradient),
        )

    return {"attention": attention, "attention_backward": attention_backward}


def data_movement(xp):
    """Ops that only move elements: none."""
    return {}
