"""A classifier and a regressor of tables by TabNet: layers, sparsemax, gradients; trained, explained, saved."""

import tempfile

import numpy as np
import torch
from common import fill, numbers, report
from pytorch_tabnet.pretraining import TabNetPretrainer
from pytorch_tabnet.sparsemax import entmax15, sparsemax
from pytorch_tabnet.tab_model import TabNetClassifier, TabNetRegressor
from pytorch_tabnet.tab_network import TabNet

x = numbers(64, 5).requires_grad_()
found = {}
for name, function in {"sparsemax": sparsemax, "entmax15": entmax15}.items():
    result = function(x, -1)
    (gradient,) = torch.autograd.grad(result.pow(2).sum(), x)
    found[name] = [result[:3].tolist(), gradient[:3].tolist()]
network = fill(TabNet(5, 3, n_d=4, n_a=4, group_attention_matrix=torch.eye(5)))
network.train()
scores, penalty = network(x)
(scores.pow(2).mean() + penalty).backward()
found["network"] = [
    scores[:4].tolist(),
    penalty.item(),
    network.tabnet.final_mapping.weight.grad.flatten()[:5].tolist(),
]
table = x.detach().numpy()
classes, targets = (table.sum(1) > 0).astype(np.int64), table[:, :1] * 2
quiet = {"verbose": 0, "n_d": 4, "n_a": 4, "seed": 0, "device_name": "cpu"}
classifier = TabNetClassifier(**quiet, optimizer_params={"lr": 0.05})
pretrainer = TabNetPretrainer(**quiet)
pretrainer.fit(table, max_epochs=1, batch_size=32, virtual_batch_size=16)
classifier.fit(
    table, classes, eval_set=[(table, classes)], max_epochs=4, batch_size=32, virtual_batch_size=16,
    from_unsupervised=pretrainer,
)  # fmt: skip
regressor = TabNetRegressor(**quiet)
regressor.fit(table, targets, max_epochs=2, batch_size=32, virtual_batch_size=16)
with tempfile.TemporaryDirectory() as folder:
    path = classifier.save_model(f"{folder}/model")
    again = TabNetClassifier()
    again.load_model(path)
same = bool(np.allclose(again.predict_proba(table), classifier.predict_proba(table), atol=1e-6))
explained, _ = classifier.explain(table)
report(
    **found, same=same, shapes=[list(explained.shape), list(regressor.predict(table).shape)],
    importances=abs(float(classifier.feature_importances_.sum()) - 1) < 1e-5, epochs=len(classifier.history["loss"]),
)  # fmt: skip
