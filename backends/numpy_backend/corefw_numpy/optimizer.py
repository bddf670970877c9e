"""Optimizer steps over a whole parameter list, in place."""


def kernels(xp):
    """Ops that compute."""
    return {}


def movements(xp):
    """Updates in place: every dtype is stepped in its own arithmetic."""

    def descent(param, grad, weight_decay, maximize):
        """The gradient to follow: signed, with the decay added."""
        if maximize:
            grad = -grad
        return grad + weight_decay * param if weight_decay else grad

    def sgd_step(params, grads, buffers, first, lr, momentum, dampening, weight_decay, nesterov, maximize):
        for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
            step = descent(param, grad, weight_decay, maximize)
            if momentum:
                buffer = buffers[i]
                if first[i]:
                    buffer[...] = step
                else:
                    buffer *= momentum
                    buffer += step if dampening == 0 else (1 - dampening) * step
                step = step + momentum * buffer if nesterov else buffer
            param -= lr * step

    def adam_step(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        steps,
        lr,
        beta1,
        beta2,
        eps,
        weight_decay,
        decoupled,
        amsgrad,
        maximize,
    ):
        for i, (param, grad, mean, square, step) in enumerate(
            zip(params, grads, exp_avgs, exp_avg_sqs, steps, strict=True)
        ):
            step += 1
            t = float(step)
            if decoupled and weight_decay:
                param *= 1 - lr * weight_decay
            grad = descent(param, grad, 0 if decoupled else weight_decay, maximize)
            mean += (1 - beta1) * (grad - mean)
            square *= beta2
            square += (1 - beta2) * (grad * grad.conj())
            if amsgrad:
                largest = max_exp_avg_sqs[i]
                xp.maximum(largest, square, out=largest)
                square = largest
            denominator = xp.sqrt(square)
            denominator /= (1 - beta2**t) ** 0.5
            denominator += eps
            param -= lr / (1 - beta1**t) * (mean / denominator)

    return {"sgd_step": sgd_step, "adam_step": adam_step}
