"""Losses of pairs, triplets and classes with their gradients, miners, a memory bank, and the accuracy of a search."""

import torch
from common import fill, numbers, report
from pytorch_metric_learning import distances, losses, miners, reducers, regularizers
from pytorch_metric_learning.utils.inference import CustomKNN

embeddings, labels = numbers(12, 8), torch.arange(12) % 4
kinds = {
    "contrastive": losses.ContrastiveLoss(),
    "triplet": losses.TripletMarginLoss(distance=distances.CosineSimilarity(), reducer=reducers.MeanReducer()),
    "ntxent": losses.NTXentLoss(0.1),
    "supcon": losses.SupConLoss(),
    "multi_similarity": losses.MultiSimilarityLoss(),
    "circle": losses.CircleLoss(),
    "lifted": losses.LiftedStructureLoss(),
    "angular": losses.AngularLoss(),
    "npairs": losses.NPairsLoss(embedding_regularizer=regularizers.LpRegularizer()),
    "arcface": losses.ArcFaceLoss(4, 8),
    "cosface": losses.CosFaceLoss(4, 8),
    "proxy": losses.ProxyAnchorLoss(4, 8),
    "proxy_nca": losses.ProxyNCALoss(4, 8),
    "soft_triple": losses.SoftTripleLoss(4, 8, centers_per_class=2),
    "softmax": losses.NormalizedSoftmaxLoss(4, 8),
    "margin": losses.MarginLoss(),
    "fast_ap": losses.FastAPLoss(),
    "vicreg": losses.VICRegLoss(),
}
found = {}
for name, loss in kinds.items():
    x = embeddings.clone().requires_grad_()
    fill(loss)
    if name == "vicreg":
        value = loss(x, ref_emb=numbers(12, 8, seed=3))
    else:
        value = loss(x, labels)
    value.backward()
    found[name] = [value.item(), *x.grad[:2].flatten().tolist()]
for name, miner in {
    "hard": miners.BatchHardMiner(),
    "pairs": miners.PairMarginMiner(),
    "similar": miners.MultiSimilarityMiner(),
    "triplets": miners.TripletMarginMiner(type_of_triplets="semihard"),
    "easy": miners.BatchEasyHardMiner(),
}.items():
    found[name] = [sorted(part.tolist()) for part in miner(embeddings, labels)]
memory = losses.CrossBatchMemory(losses.ContrastiveLoss(), 8, memory_size=24)
found["memory"] = [memory(numbers(12, 8, seed=seed), labels).item() for seed in range(3)]
near, which = CustomKNN(distances.LpDistance())(embeddings, 3, embeddings)
model = fill(torch.nn.Linear(6, 8))
optimizer, curve = torch.optim.Adam(model.parameters(), 0.01), []
for _ in range(5):
    loss = kinds["triplet"](model(numbers(12, 6)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    curve.append(loss.item())
report(**found, near=near, which=which, curve=curve)
