"""What people write with PyTorch, with annotations: mypy --strict and pyright find nothing wrong in it.

`tests/test_typing.py` runs both over this file; lines of errors.py beside it deserve what they get.
"""

from __future__ import annotations

import argparse
import contextlib
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import corefw as torch
import corefw.nn as nn
import corefw.nn.functional as F
from corefw import Tensor, optim
from corefw.autograd import Function, gradcheck
from corefw.autograd.function import FunctionCtx
from corefw.distributions import Categorical, Normal, kl_divergence
from corefw.nn.utils import clip_grad_norm_, parameters_to_vector, vector_to_parameters
from corefw.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from corefw.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler, OneCycleLR, StepLR
from corefw.utils.data import DataLoader, Dataset, IterableDataset, Sampler, Subset, TensorDataset, random_split
from corefw.vision import transforms


@dataclass
class Config:
    """What the program is told."""

    width: int = 32
    layers: int = 2
    classes: int = 10
    dropout: float = 0.1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    dtype: torch.dtype = torch.float32


class Squares(Dataset[tuple[Tensor, int]]):
    """Vectors and the class of their sum."""

    def __init__(self, count: int, size: int, transform: Callable[[Tensor], Tensor] | None = None) -> None:
        self.data = torch.randn(count, size)
        self.labels: list[int] = (self.data.sum(dim=1) > 0).long().tolist()
        self.transform = transform

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        sample = self.data[index]
        if self.transform is not None:
            sample = self.transform(sample)
        return sample, self.labels[index]


class Counting(IterableDataset[Tensor]):
    """Numbers, one after another."""

    def __iter__(self) -> Iterator[Tensor]:
        for i in range(8):
            yield torch.tensor([i, i + 1.0])


class EveryOther(Sampler[int]):
    """Even positions."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        return iter(range(0, self.count, 2))

    def __len__(self) -> int:
        return (self.count + 1) // 2


class Clamp(Function):
    """A clamp whose gradient passes everywhere."""

    @staticmethod
    def forward(ctx: FunctionCtx, input: Tensor, low: float) -> Tensor:
        ctx.save_for_backward(input)
        return input.clamp(min=low)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (input,) = ctx.saved_tensors
        return grad * torch.ones_like(input), None


class Block(nn.Module):
    """Normalisation, attention, and a perceptron."""

    scale: Tensor

    def __init__(self, width: int, heads: int = 4, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, dropout=dropout, batch_first=True)
        self.mlp = nn.Sequential(
            OrderedDict(
                [
                    ("up", nn.Linear(width, 4 * width)),
                    ("act", nn.GELU()),
                    ("down", nn.Linear(4 * width, width)),
                ]
            )
        )
        self.gain = nn.Parameter(torch.ones(width))
        self.register_buffer("scale", torch.tensor(1.0 / math.sqrt(width)))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        h = self.norm(x)
        attended, _ = self.attention(h, h, h, attn_mask=mask, need_weights=False)
        x = x + attended * self.gain
        out: Tensor = x + self.mlp(x) * self.scale
        return out


class Classifier(nn.Module):
    """A convolution, blocks and a head."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.stem = nn.Conv2d(1, config.width, kernel_size=3, padding=1)
        self.bn = nn.BatchNorm2d(config.width)
        self.pool = nn.AdaptiveAvgPool2d((4, 4))
        self.blocks = nn.ModuleList(Block(config.width, dropout=config.dropout) for _ in range(config.layers))
        heads = {"class": nn.Linear(config.width, config.classes), "value": nn.Linear(config.width, 1)}
        self.heads = nn.ModuleDict(heads)
        self.drop = nn.Dropout(config.dropout)
        self.apply(self.reset)

    @staticmethod
    def reset(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.kaiming_uniform_(module.weight, a=math.sqrt(5))
            if module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        x = F.relu(self.bn(self.stem(images)))
        x = self.pool(x).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        x = self.drop(x.mean(dim=1))
        return {name: head(x) for name, head in self.heads.items()}


def build_optimizer(model: nn.Module, name: str) -> tuple[optim.Optimizer, LRScheduler]:
    """An optimizer with groups, and its schedule."""
    decayed = [p for n, p in model.named_parameters() if p.requires_grad and p.ndim > 1]
    others = [p for n, p in model.named_parameters() if p.requires_grad and p.ndim <= 1]
    optimizer: optim.Optimizer
    scheduler: LRScheduler
    if name == "adamw":
        groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
        optimizer = optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95))
        scheduler = CosineAnnealingLR(optimizer, T_max=10)
    elif name == "sgd":
        optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
        scheduler = StepLR(optimizer, step_size=3, gamma=0.5)
    else:
        optimizer = optim.Adam(model.parameters())
        scheduler = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 5))
    return optimizer, scheduler


def train_epoch(
    model: Classifier, loader: DataLoader[tuple[Tensor, Tensor]], optimizer: optim.Optimizer, device: torch.device
) -> float:
    """One pass over the data; returns the mean loss."""
    model.train()
    total, count = 0.0, 0
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        outputs = model(images)
        loss: Tensor = criterion(outputs["class"], labels) + 0.1 * outputs["value"].pow(2).mean()
        loss.backward()
        norm = clip_grad_norm_(model.parameters(), max_norm=1.0)
        assert torch.isfinite(norm)
        optimizer.step()
        total += loss.item() * len(labels)
        count += labels.size(0)
    return total / max(count, 1)


@torch.no_grad()
def evaluate(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The share of right answers."""
    model.eval()
    logits: Tensor = model(images)["class"]
    predicted = logits.argmax(dim=1)
    best = logits.topk(3, dim=-1)
    values, indices = logits.max(dim=1)
    assert best.indices.shape[-1] == 3 and values.shape == indices.shape
    return (predicted == labels).float().mean().item()


@torch.inference_mode()
def sample(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """Classes drawn in proportion."""
    probabilities = F.softmax(logits / temperature, dim=-1)
    return torch.multinomial(probabilities, num_samples=1).squeeze(-1)


def reinforce(policy: nn.Module, states: Tensor) -> Tensor:
    """The loss of a policy gradient, with a penalty."""
    distribution = Categorical(logits=policy(states))
    action = distribution.sample()
    reward = torch.where(action > 2, 1.0, -1.0)
    prior = Normal(torch.zeros(3), torch.ones(3))
    posterior = Normal(torch.zeros(3, requires_grad=True), torch.full((3,), 0.5))
    return -(distribution.log_prob(action) * reward).mean() + kl_divergence(posterior, prior).sum()


def sequences() -> Tensor:
    """Words of different lengths through a recurrent network."""
    words = [torch.randn(n, 8) for n in (5, 3, 2)]
    padded = pad_sequence(words, batch_first=True)
    lengths = torch.tensor([len(word) for word in words])
    lstm = nn.LSTM(8, 16, num_layers=2, batch_first=True, bidirectional=True)
    packed = pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=True)
    output, (hidden, cell) = lstm(packed)
    unpacked, sizes = pad_packed_sequence(output, batch_first=True)
    embedded = nn.Embedding(100, 8, padding_idx=0)(torch.arange(6).view(2, 3))
    total: Tensor = unpacked.sum() + hidden.sum() + cell.sum() + embedded.sum() + sizes.sum()
    return total


def arithmetic() -> Tensor:
    """Tensors among numbers and arrays."""
    x = torch.linspace(0, 1, steps=12, dtype=torch.float64).reshape(3, 4)
    y = x[..., None] * 2 + x[:, None, :] - 1 / (x.unsqueeze(1) + 1)
    y[0, :2] = 0.0
    y[y > 1] = -1
    y += 1
    parts = torch.split(y, [1, 2], dim=0)
    joined = torch.cat([part.contiguous() for part in parts], dim=0)
    stacked = torch.stack((joined, joined.clone()), dim=1)
    rows, columns = stacked.shape[0], stacked.size(-1)
    product = torch.einsum("bij,bjk->bik", joined, joined.mT)
    matrix = product[0] @ product[1].T + torch.eye(rows + columns - 3 + 0, dtype=torch.float64)[:4, :4]
    eigenvalues, _ = torch.linalg.eigh(matrix + matrix.mT)
    array: np.ndarray[Any, Any] = eigenvalues.detach().cpu().numpy()
    back = torch.from_numpy(np.asarray(array * 2)) + torch.as_tensor([1, 2, 3, 4])
    order = torch.sort(back, descending=True)
    unique, counts = torch.unique(torch.tensor([1, 1, 2]), return_counts=True)
    number: float = float(back[0]) + int(counts[0]) + len(unique)
    flag: bool = bool((back > 0).all()) and torch.allclose(back, back) and bool(-x.min() <= 0)
    shape: torch.Size = back.shape
    total = order.values.sum() + number + flag + shape.numel()
    return total.to(torch.float32).cpu().requires_grad_()


def derivatives() -> tuple[Tensor, ...]:
    """Gradients as functions."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    first.sum().backward()
    assert x.grad is not None
    handle = x.register_hook(lambda grad: grad * 2)
    handle.remove()
    clamped: Tensor = Clamp.apply(x, 0.5)
    assert gradcheck(lambda t: t.exp(), (torch.ones(2, dtype=torch.float64, requires_grad=True),))
    per_sample = torch.func.vmap(torch.func.grad(lambda t: t.square().sum()))(torch.ones(3, 2))
    return x.grad, clamped, per_sample, torch.func.jacrev(torch.sin)(torch.ones(2))


def checkpoint(model: nn.Module, optimizer: optim.Optimizer, path: Path) -> None:
    """State to a file and back."""
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, path)
    loaded: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    missing, unexpected = model.load_state_dict(loaded["model"], strict=False)
    assert not missing and not unexpected
    optimizer.load_state_dict(loaded["optimizer"])
    vector = parameters_to_vector(model.parameters())
    vector_to_parameters(vector, model.parameters())
    for name, module in model.named_modules():
        assert isinstance(name, str) and isinstance(module, nn.Module)


def hooks(model: Classifier, images: Tensor) -> dict[str, torch.Size]:
    """The shapes of what layers compute."""
    shapes: dict[str, torch.Size] = {}

    def remember(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        shapes[type(module).__name__] = output.shape

    handles = [layer.register_forward_hook(remember) for layer in (model.stem, model.bn)]
    with torch.set_grad_enabled(False):
        model(images)
    for handle in handles:
        handle.remove()
    first = model.blocks[0]
    assert isinstance(first, Block)
    assert first.mlp[0].weight.shape[0] == 4 * model.config.width
    return shapes


def backends() -> None:
    """What corefw adds."""
    with torch.backend("numpy"):
        torch.ones(2).sum()
    print(torch.explain("softmax"))
    torch.set_num_threads(2)
    torch.manual_seed(0)


def main() -> None:
    """Train, evaluate, save."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    epochs: int = parser.parse_args([]).epochs
    torch.manual_seed(0)
    config = Config(device=torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    transform = transforms.Compose([transforms.Normalize((0.5,), (0.5,)), transforms.RandomHorizontalFlip()])
    images = transform(torch.rand(24, 1, 8, 8))
    labels = torch.randint(0, config.classes, (24,))
    whole = TensorDataset(images, labels)
    training, held_out = random_split(whole, [20, 4], generator=torch.Generator().manual_seed(1))
    loader: DataLoader[tuple[Tensor, Tensor]] = DataLoader(training, batch_size=8, shuffle=True, num_workers=0)
    model = Classifier(config).to(config.device)
    optimizer, scheduler = build_optimizer(model, "adamw")
    for epoch in range(epochs):
        loss = train_epoch(model, loader, optimizer, config.device)
        scheduler.step()
        print(f"{epoch} {loss:.3f} {scheduler.get_last_lr()[0]:.2e} {optimizer.param_groups[0]['lr']:.2e}")
    print(evaluate(model, images, labels), sample(model(images)["class"])[:3].tolist(), len(held_out))
    print(sum(p.numel() for p in model.parameters()), model.stem.weight.dtype, next(model.parameters()).device)
    data = DataLoader(Squares(6, 4), batch_size=2, sampler=EveryOther(6))
    batches = [batch for batch, _ in data]
    counting = list(DataLoader(Counting(), batch_size=4))
    subset = Subset(whole, [0, 1])
    policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 5))
    cycle = OneCycleLR(optim.SGD(policy.parameters(), lr=0.1), max_lr=1.0, total_steps=10)
    losses = [reinforce(policy, torch.randn(7, 4)), sequences(), arithmetic(), *derivatives()]
    with contextlib.suppress(OSError):
        checkpoint(model, optimizer, Path("model.pt"))
    print(len(batches), len(counting), len(subset), cycle.get_last_lr(), len(losses), hooks(model, images))
    backends()


if __name__ == "__main__":
    main()
