"""Lines that a type checker refuses, and shall: a checker that accepted one would find its comment unused."""

from __future__ import annotations

import corefw as torch
import corefw.nn as nn
from corefw import Tensor, optim
from corefw.utils.data import DataLoader, Dataset, TensorDataset


class Words(Dataset[str]):
    """A data set of words."""

    def __getitem__(self, index: int) -> str:
        return "word"

    def __len__(self) -> int:
        return 1


def mistakes(x: Tensor) -> None:
    """One mistake a line."""
    x.softmx(dim=0)  # type: ignore[attr-defined]
    torch.zeroes(3)  # type: ignore[attr-defined]
    nn.Linaer(2, 3)  # type: ignore[attr-defined]
    nn.Linear(2)  # type: ignore[call-arg]
    nn.Linear(2, 3, biass=False)  # type: ignore[call-arg]
    nn.Linear("two", 3)  # type: ignore[arg-type]
    nn.MaxPool2d("2")  # type: ignore[arg-type]
    torch.zeros("3")  # type: ignore[arg-type]
    torch.cat(3)  # type: ignore[arg-type]
    torch.softmax(x)  # type: ignore[call-arg]
    x.sum(dim="0")  # type: ignore[arg-type]
    x.to(torch.flaot32)  # type: ignore[attr-defined]
    x.view("a")  # type: ignore[arg-type]
    _ = x + "one"  # type: ignore[operator]
    optim.SGD(x.parameters())  # type: ignore[attr-defined]
    optim.Adam([x], learning_rate=0.1)  # type: ignore[call-arg]
    DataLoader(TensorDataset(x), batch_size="8")  # type: ignore[arg-type]
    word: int = Words()[0]  # type: ignore[assignment]
    size: str = x.shape  # type: ignore[assignment]
    values: Tensor = x.topk(2)  # type: ignore[assignment]
    grad: Tensor = x.grad  # type: ignore[assignment]
    with torch.no_grad(1):  # type: ignore[call-overload]
        pass
    torch.manual_seed("0")  # type: ignore[arg-type]
    print(word, size, values, grad)
