"""Metrics of classification and regression, in a collection, over batches, and as a module's state."""

import torch
import torchmetrics
from common import numbers, report
from torchmetrics import functional

scores = numbers(60, 4).softmax(-1)
labels = (torch.arange(60) * 7) % 4
metrics = torchmetrics.MetricCollection(
    {
        "accuracy": torchmetrics.Accuracy(task="multiclass", num_classes=4),
        "f1": torchmetrics.F1Score(task="multiclass", num_classes=4, average="macro"),
        "auroc": torchmetrics.AUROC(task="multiclass", num_classes=4),
        "precision": torchmetrics.AveragePrecision(task="multiclass", num_classes=4),
        "confusion": torchmetrics.ConfusionMatrix(task="multiclass", num_classes=4),
        "calibration": torchmetrics.CalibrationError(task="multiclass", num_classes=4),
    }
)
for part in range(3):
    metrics.update(scores[part * 20 : part * 20 + 20], labels[part * 20 : part * 20 + 20])
x, y = numbers(50, seed=1), numbers(50, seed=2)
mean = torchmetrics.MeanMetric()
mean(x)
mean(y)
report(
    **metrics.compute(),
    mse=functional.mean_squared_error(x, y),
    pearson=functional.pearson_corrcoef(x, y),
    spearman=functional.spearman_corrcoef(x, y),
    r2=functional.r2_score(x, y),
    ssim=functional.structural_similarity_index_measure(
        numbers(1, 1, 16, 16).abs(), numbers(1, 1, 16, 16, seed=1).abs(), data_range=1.0
    ),
    retrieval=torchmetrics.RetrievalMAP()(scores[:, 0], labels == 0, indexes=torch.arange(60) // 10),
    mean=mean.compute(),
)
