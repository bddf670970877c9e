"""Two-layer networks in the ways tutorials write them: by hand, with autograd, with a Function of one's own, with nn
and optim.

Each takes a module with PyTorch's API and the same starting arrays, and returns the losses of its steps.
"""

import numpy as np

SIZES = (64, 1000, 100, 10)  # samples, inputs, hidden units, outputs


def start(seed=0):
    """Inputs, targets and both weights as float32 arrays."""
    rng = np.random.default_rng(seed)
    n, inputs, hidden, outputs = SIZES
    shapes = ((n, inputs), (n, outputs), (inputs, hidden), (hidden, outputs))
    return tuple(rng.standard_normal(shape).astype(np.float32) for shape in shapes)


def numpy_by_hand(x, y, w1, w2, steps, rate=1e-6):
    """The reference: forward and backward in NumPy, in float64."""
    x, y, w1, w2 = (a.astype(np.float64) for a in (x, y, w1, w2))
    losses = []
    for _ in range(steps):
        h = x @ w1
        relu = np.maximum(h, 0)
        error = relu @ w2 - y
        losses.append(float((error**2).sum()))
        grad_w2 = relu.T @ (2 * error)
        grad_w1 = x.T @ ((2 * error @ w2.T) * (h > 0))
        w1 -= rate * grad_w1
        w2 -= rate * grad_w2
    return losses


def tensors_by_hand(torch, x, y, w1, w2, steps, rate=1e-6):
    """The same with tensors and no autograd."""
    x, y, w1, w2 = (torch.tensor(a) for a in (x, y, w1, w2))
    losses = []
    for _ in range(steps):
        h = x.mm(w1)
        relu = h.clamp(min=0)
        predicted = relu.mm(w2)
        losses.append((predicted - y).pow(2).sum().item())
        grad_predicted = 2.0 * (predicted - y)
        grad_w2 = relu.t().mm(grad_predicted)
        grad_h = grad_predicted.mm(w2.t()).clone()
        grad_h[h < 0] = 0
        w1 -= rate * x.t().mm(grad_h)
        w2 -= rate * grad_w2
    return losses


def autograd(torch, x, y, w1, w2, steps, rate=1e-6, relu=lambda h: h.clamp(min=0)):
    """Gradients by autograd, the update by hand."""
    x, y = torch.tensor(x), torch.tensor(y)
    w1, w2 = torch.tensor(w1, requires_grad=True), torch.tensor(w2, requires_grad=True)
    losses = []
    for _ in range(steps):
        loss = (relu(x.mm(w1)).mm(w2) - y).pow(2).sum()
        losses.append(loss.item())
        loss.backward()
        with torch.no_grad():
            w1 -= rate * w1.grad
            w2 -= rate * w2.grad
            w1.grad.zero_()
            w2.grad.zero_()
    return losses


def custom_function(torch, x, y, w1, w2, steps):
    """The activation as a Function with a backward of its own."""

    class Clipped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input):
            ctx.save_for_backward(input)
            return input.clamp(min=0)

        @staticmethod
        def backward(ctx, grad_output):
            (input,) = ctx.saved_tensors
            grad_input = grad_output.clone()
            grad_input[input < 0] = 0
            return grad_input

    return autograd(torch, x, y, w1, w2, steps, relu=Clipped.apply)


def two_layer_net(torch):
    """The network as a Module, which lays out its own parameters."""

    class TwoLayerNet(torch.nn.Module):
        def __init__(self, inputs, hidden, outputs):
            super().__init__()
            self.linear1 = torch.nn.Linear(inputs, hidden)
            self.linear2 = torch.nn.Linear(hidden, outputs)

        def forward(self, x):
            return self.linear2(self.linear1(x).clamp(min=0))

    return TwoLayerNet


def module(torch, w1, w2):
    """The network as a Module with the given weights and zero biases."""
    net = two_layer_net(torch)(w1.shape[0], w1.shape[1], w2.shape[1])
    with torch.no_grad():
        net.linear1.weight.copy_(torch.tensor(w1).t())
        net.linear2.weight.copy_(torch.tensor(w2).t())
        net.linear1.bias.zero_()
        net.linear2.bias.zero_()
    return net


def optimized(torch, x, y, w1, w2, steps, optimizer="SGD", **options):
    """The Module trained by an optimizer."""
    net = module(torch, w1, w2)
    loss_fn = torch.nn.MSELoss(reduction="sum")
    optimizer = getattr(torch.optim, optimizer)(net.parameters(), **options)
    x, y = torch.tensor(x), torch.tensor(y)
    losses = []
    for _ in range(steps):
        loss = loss_fn(net(x), y)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


def sequential(torch, x, y, w1, w2, steps, rate=1e-4):
    """The same as a Sequential, updated through `parameters()`."""
    net = torch.nn.Sequential(torch.nn.Linear(SIZES[1], SIZES[2]), torch.nn.ReLU(), torch.nn.Linear(SIZES[2], SIZES[3]))
    first = module(torch, w1, w2).state_dict()
    net.load_state_dict({name.replace("linear1", "0").replace("linear2", "2"): value for name, value in first.items()})
    x, y = torch.tensor(x), torch.tensor(y)
    losses = []
    for _ in range(steps):
        loss = torch.nn.functional.mse_loss(net(x), y, reduction="sum")
        losses.append(loss.item())
        net.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.data -= rate * 1e-2 * parameter.grad
    return losses
