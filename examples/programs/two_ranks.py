"""Two processes train one network, each on its half of the digits: corefw launch -n 2 --plain two_ranks.py"""

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from corefw.vision.datasets import Digits

distributed.init_process_group()
rank, ranks = distributed.get_rank(), distributed.get_world_size()
torch.manual_seed(rank)  # different weights, until DistributedDataParallel sends those of rank 0

digits = Digits(train=True)
samples = TensorDataset(digits.data.float().flatten(1) / Digits.maximum, digits.targets)
sampler = DistributedSampler(samples)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    sampler.set_epoch(epoch)
    total = torch.zeros(())
    for x, y in DataLoader(samples, batch_size=32, sampler=sampler):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()  # gradients become their average over the processes meanwhile
        optimizer.step()
        total += loss.detach() / len(sampler) * 32
    distributed.all_reduce(total)
    if rank == 0:
        print(f"epoch {epoch + 1}: loss {total.item() / ranks:.3f} in {ranks} processes")

weights = nn.utils.parameters_to_vector(model.parameters()).detach()
everywhere = [torch.empty_like(weights) for _ in range(ranks)]
distributed.all_gather(everywhere, weights)
if rank == 0:
    same = all(torch.equal(weights, others) for others in everywhere)
    print("learned, with the same weights everywhere" if same and total.item() / ranks < 0.4 else "went apart")
distributed.destroy_process_group()
