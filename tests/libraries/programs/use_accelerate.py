"""A loop on one process: prepare, accumulate, clip, gather, save and load the state."""

import tempfile

import torch
from accelerate import Accelerator
from common import fill, numbers, report
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = numbers(32, 4)
model = fill(nn.Linear(4, 1))
optimizer = torch.optim.AdamW(model.parameters(), 0.1)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
data = DataLoader(TensorDataset(x, x.sum(-1, keepdim=True)), batch_size=8)
model, optimizer, data = accelerator.prepare(model, optimizer, data)
losses = []
for _ in range(3):
    for features, target in data:
        with accelerator.accumulate(model):
            loss = nn.functional.mse_loss(model(features), target)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(accelerator.gather(loss).item())
with tempfile.TemporaryDirectory() as folder:
    accelerator.save_state(folder)
    with torch.no_grad():
        model.weight.zero_()
    accelerator.load_state(folder)
report(losses=losses, weight=accelerator.unwrap_model(model).weight)
