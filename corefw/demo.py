"""The demonstration: a network learns handwritten digits on every installed backend, or in several processes, from the
same seed."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import corefw as torch
from corefw import distributed, nn
from corefw.dispatch.registry import registry
from corefw.files import replacing
from corefw.nn import functional as F
from corefw.progress import shown
from corefw.utils.data import DataLoader, TensorDataset
from corefw.vision.datasets import Digits

BATCH, EPOCHS, RATE, NOISE, SMOOTHING = 64, 15, 5e-3, 0.1, 0.1
GOAL = 0.975  # of the held-out quarter


class Reader(nn.Module):
    """Reads 8x8 digits: a 3x3 convolution written as a matrix product over patches, pooling, and two linear layers.

    Args:
        channels: features per patch.
        hidden: width of the hidden layer.
    """

    def __init__(self, channels: int = 32, hidden: int = 128):
        super().__init__()
        self.patch = nn.Linear(9, channels)
        self.hidden = nn.Linear(16 * channels, hidden)
        self.output = nn.Linear(hidden, 10)

    def forward(self, images):
        count = len(images)
        padded = images.new_zeros(count, 10, 10)
        padded[:, 1:9, 1:9] = images
        patches = padded.unfold(1, 3, 1).unfold(2, 3, 1).reshape(count, 64, 9)
        features = F.relu(self.patch(patches))
        pooled = features.view(count, 4, 2, 4, 2, features.shape[-1]).amax((2, 4)).flatten(1)
        return self.output(F.relu(self.hidden(pooled)))


@dataclass
class Run:
    """What one backend did: loss and held-out accuracy per epoch, and the seconds the training took.

    Attributes: ``ranks`` how many processes trained together.
    """

    backend: str
    device: str
    ranks: int = 1
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    seconds: float = 0.0


def _images(digits: Digits, device: str):
    return (digits.data.float() / Digits.maximum).to(device), digits.targets.to(device)


def train(backend: str, device: str, *, epochs: int = EPOCHS, seed: int = 0, progress: bool = True) -> Run:
    """Train on one backend and measure on the held-out digits after each epoch. Processes that are joined train one
    network: each draws the whole batches, with their noise, and computes its part of them.

    Args:
        backend: the backend asked first.
        device: a device that it serves.
        epochs: passes over the training digits.
        seed: of the weights, the order and the noise.
        progress: whether to show a line per epoch.
    """
    is_joined = distributed.is_initialized()
    rank, ranks = (distributed.get_rank(), distributed.get_world_size()) if is_joined else (0, 1)
    run = Run(backend, device, ranks)
    with torch.backend(backend):
        torch.manual_seed(seed)
        images, targets = _images(Digits(train=True), device)
        held_out, labels = _images(Digits(train=False), device)
        loader = DataLoader(TensorDataset(images, targets), batch_size=BATCH, shuffle=True)
        model: nn.Module = Reader().to(device)
        if is_joined:
            model = nn.parallel.DistributedDataParallel(model)
        loss_fn = nn.CrossEntropyLoss(label_smoothing=SMOOTHING, reduction="sum")
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
        for epoch in range(epochs):
            optimizer.param_groups[0]["lr"] = RATE * (1 - epoch / epochs)
            begun, total = time.perf_counter(), torch.zeros((), dtype=torch.float64, device=device)
            for batch, wanted in shown(loader, f"{backend} epoch {epoch + 1}/{epochs}", "batches", progress):
                part = slice(rank * len(batch) // ranks, (rank + 1) * len(batch) // ranks)
                noisy = batch + NOISE * torch.randn_like(batch)
                loss = loss_fn(model(noisy[part]), wanted[part])
                optimizer.zero_grad()
                (loss * (ranks / len(batch))).backward()  # processes average: the mean over the whole batch
                optimizer.step()
                total += loss.detach()
            if is_joined:
                distributed.all_reduce(total)
            run.seconds += time.perf_counter() - begun
            with torch.no_grad():
                right = (model(held_out).argmax(1) == labels).float().mean().item()
            run.losses.append(total.item() / len(images))
            run.accuracies.append(right)
            if progress:
                print(
                    f"{backend:>8}  epoch {epoch + 1:>2}/{epochs}  loss {run.losses[-1]:.4f}  held-out accuracy "
                    f"{100 * right:.2f} %"
                )
    return run


def draw(runs: list[Run], path: Path) -> bool:
    """Save the curves of all runs as a PNG; False where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    for i, run in enumerate(runs):
        label, style = (
            f"{run.backend} on {run.device}{_told(run)} ({run.seconds:.1f} s)",
            {"linewidth": 4 - 2 * i / len(runs), "alpha": 0.7},
        )
        left.plot(range(1, len(run.losses) + 1), run.losses, label=label, **style)
        right.plot(range(1, len(run.losses) + 1), [100 * a for a in run.accuracies], label=label, **style)
    left.set(title="training loss", xlabel="epoch")
    right.set(title="accuracy on the held-out quarter, %", xlabel="epoch")
    right.axhline(100 * GOAL, color="grey", linestyle=":", linewidth=1)
    left.legend()
    figure.tight_layout()
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=120)
    pyplot.close(figure)
    return True


def targets() -> list[tuple[str, str]]:
    """The usable backends, each with a device that it serves."""
    found = []
    for backend in torch.backends():
        for device in backend.devices:
            if backend.usable and registry.runtime(device).device_count():
                found.append((backend.name, device))
                break
    return found


def _told(run: Run) -> str:
    """How many processes trained, if there were several."""
    return f", {run.ranks} processes" if run.ranks > 1 else ""


def main(epochs: int = EPOCHS, seed: int = 0, picture: str = "corefw-demo.png") -> int:
    """Run the demonstration on every backend; the exit status is 1 if one misses the goal."""
    return _report([train(backend, device, epochs=epochs, seed=seed) for backend, device in targets()], picture)


def together(epochs: int = EPOCHS, seed: int = 0, picture: str = "corefw-demo.png") -> int:
    """Run the demonstration in the processes of a job, which train one network on the CPU; then the first one trains
    alone, to compare. The exit status is 1 if a run misses the goal."""
    usable = [backend for backend in torch.backends() if backend.usable and "cpu" in backend.devices]
    backend = max(usable, key=lambda backend: backend.priority).name
    distributed.init_process_group()
    is_first = distributed.get_rank() == 0
    run = train(backend, "cpu", epochs=epochs, seed=seed, progress=is_first)
    distributed.destroy_process_group()
    if not is_first:
        return 0
    return _report([train(backend, "cpu", epochs=epochs, seed=seed), run], picture)


def _report(runs: list[Run], picture: str) -> int:
    """Print the table of all runs and draw them; returns the exit status."""
    print(f"\n{'backend':>8}  {'device':<8} {'seconds':>8}  {'loss':>8}  held-out accuracy")
    for run in runs:
        print(
            f"{run.backend:>8}  {run.device:<8} {run.seconds:>8.2f}  {run.losses[-1]:>8.4f}  "
            f"{100 * run.accuracies[-1]:.2f} %{_told(run)}"
        )
    if len(runs) > 1:
        print(f"largest difference of the losses: {_spread(runs):.2e}")
    path = Path(picture).resolve()
    print(
        f"curves: {path}" if draw(runs, path) else "curves: not drawn; install matplotlib (pip install 'corefw[demo]')"
    )
    return 0 if runs and all(run.accuracies[-1] >= GOAL for run in runs) else 1


def _spread(runs: list[Run]) -> float:
    """The largest difference between the losses of two runs in one epoch."""
    by_epoch: Any = zip(*(run.losses for run in runs), strict=True)
    return max(max(losses) - min(losses) for losses in by_epoch)


if __name__ == "__main__":
    sys.exit(together(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
