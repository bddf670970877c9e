"""A classifier and a regressor of scikit-learn's kind, in a search over a grid."""

import torch
from common import fill, numbers, report
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EpochScoring, LRScheduler
from torch import nn


class Net(nn.Module):
    """Two layers with weights of our own."""

    def __init__(self, outputs=2, width=8):
        super().__init__()
        self.layers = fill(nn.Sequential(nn.Linear(5, width), nn.Tanh(), nn.Linear(width, outputs)))

    def forward(self, x):
        return self.layers(x)


x = numbers(80, 5).numpy()
labels = (x.sum(-1) > 0).astype("int64")
classifier = NeuralNetClassifier(
    Net,
    criterion=nn.CrossEntropyLoss,
    max_epochs=5,
    lr=0.5,
    iterator_train__shuffle=False,
    verbose=0,
    callbacks=[LRScheduler("StepLR", step_size=2), EpochScoring("roc_auc", lower_is_better=False)],
)
classifier.fit(x, labels)
regressor = NeuralNetRegressor(
    Net, module__outputs=1, max_epochs=5, lr=0.1, optimizer=torch.optim.Adam, verbose=0, iterator_train__shuffle=False
)
regressor.fit(x, x[:, :1])
search = GridSearchCV(classifier, {"module__width": [4, 8]}, cv=2, scoring="neg_log_loss")
search.fit(x, labels)
report(
    losses=classifier.history[:, "train_loss"],
    probabilities=classifier.predict_proba(x[:5]).tolist(),
    regression=regressor.predict(x[:5]).tolist(),
    width=search.best_params_["module__width"],
    score=float(search.best_score_),
)
