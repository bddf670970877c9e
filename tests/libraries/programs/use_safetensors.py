"""Files of tensors and of models, views refused, slices read."""

import tempfile

import torch
from common import fill, numbers, report
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from torch import nn

with tempfile.TemporaryDirectory() as folder:
    path = f"{folder}/weights.safetensors"
    save_file({"a": numbers(3, 4), "b": numbers(2).bfloat16(), "c": torch.arange(3)}, path, {"kind": "test"})
    read = load_file(path)
    with safe_open(path, framework="pt", device="cpu") as file:
        part, kind = file.get_slice("a")[1:, :2], file.metadata()["kind"]
    one, other = fill(nn.Linear(3, 2)), nn.Linear(3, 2)
    save_model(one, path)
    missing, unexpected = load_model(other, path)
shared = numbers(6)
try:
    save({"a": shared, "b": shared})
    refused = False
except RuntimeError:
    refused = True
report(
    a=read["a"],
    b=read["b"].float(),
    c=load(save({"c": read["c"]}))["c"],
    part=part,
    kind=kind,
    weight=other.weight,
    missing=list(missing),
    unexpected=list(unexpected),
    refused=refused,
    dtype=str(read["b"].dtype),
)
