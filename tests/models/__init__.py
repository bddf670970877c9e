"""Well-known models in small, each written once against `torch`, a module with PyTorch's API.

A file offers `build(torch)`, the model; `arrays(rng)`, one batch as NumPy arrays; `evaluate(torch, model, *batch)`, the
loss and what the model gave; and `train(torch, model, batch)`, which makes one step after the other and yields losses.

Of its constants, STEPS of training bring the loss below FACTOR times the first; DTYPE is what it is compared with
PyTorch in, where float32 would not do; GIVEN is how many arrays it trains on, where the others stand for random
numbers. A `build` with dropout takes its rate.
"""


def fit(torch, model, evaluate, optimizer, batch):
    """Yield the loss before each step of `optimizer` on the one batch."""
    while True:
        optimizer.zero_grad()
        loss, _ = evaluate(torch, model, *batch)
        loss.backward()
        optimizer.step()
        yield loss.item()
