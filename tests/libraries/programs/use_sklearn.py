"""Array dispatch: every estimator, transformer, metric and kernel that computes on tensors, compared with NumPy too."""

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # dispatch asks for it

import warnings

import numpy as np
import torch
from common import numbers, report
from sklearn import config_context, metrics, model_selection
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import (
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
)
from sklearn.metrics import cluster, pairwise
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KernelCenterer,
    LabelBinarizer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)

warnings.simplefilter("ignore")
x = numbers(60, 4).double()
x[:, 3] += 0.5 * x[:, 0]
y = (x[:, 0] + x[:, 1] > 0).long()
kinds = y + (x[:, 2] > 0.3).long()
target = x @ torch.tensor([1.0, -2.0, 0.5, 0.0], dtype=torch.float64) + 0.1 * numbers(60, seed=3).double()
counts = (3 * target.abs()).floor()
positive = target.abs() + 0.1
guess = target + 0.3 * numbers(60, seed=4).double()
score = torch.sigmoid(x[:, 0] + 0.4 * numbers(60, seed=5).double())
said, said_kinds = (score > 0.5).long(), kinds.roll(7)
both = torch.stack([1 - score, score], 1)
labels = torch.stack([y, (x[:, 2] > 0).long()], 1)
said_labels = labels.roll(5, 0)
weight = positive / positive.max()
kernel = (x @ x.T).clone()


def fitted(estimator, *data, ask=("predict",), tell=()):
    """What a fitted estimator computes of its inputs, and some of its attributes."""

    def run(*arrays):
        made = estimator().fit(*arrays)
        return [getattr(made, name)(arrays[0]) for name in ask] + [getattr(made, name) for name in tell]

    return run, data


def transformed(estimator, *data, **more):
    """What a transformer makes of its inputs."""
    return fitted(estimator, *data, ask=("transform",), **more)


def measured(function, *data, **options):
    """A metric's value."""
    return lambda *arrays: function(*arrays, **options), data


def split(*arrays):
    """Parts for training and testing, and predictions by parts."""
    parts = model_selection.train_test_split(*arrays, random_state=0, shuffle=True)
    return [*parts, model_selection.cross_val_predict(Ridge(solver="svd"), *arrays, cv=3)]


def searched(*arrays):
    """A search over a grid."""
    search = model_selection.GridSearchCV(Ridge(solver="svd"), {"alpha": [0.1, 1.0, 10.0]}, cv=3).fit(*arrays)
    return [search.predict(arrays[0]), float(search.best_score_)]


def union():
    """A pipeline over a union of transformers."""
    return make_pipeline(FeatureUnion([("scale", StandardScaler()), ("reach", MinMaxScaler())]), Ridge(solver="svd"))


CASES = {
    "PCA": transformed(lambda: PCA(2, svd_solver="full"), x, tell=("explained_variance_", "mean_")),
    "PCA eigh": transformed(lambda: PCA(2, svd_solver="covariance_eigh", whiten=True), x),
    "PCA randomized": transformed(
        lambda: PCA(2, svd_solver="randomized", power_iteration_normalizer="QR", random_state=0), x
    ),
    "PCA likelihood": fitted(lambda: PCA(2, svd_solver="full"), x, ask=("score_samples",)),
    "LDA": fitted(LinearDiscriminantAnalysis, x, kinds, ask=("predict", "predict_proba", "transform")),
    "Nystroem": (
        lambda a: (lambda made: made.fit_transform(a) @ made.transform(a).T)(Nystroem(n_components=20, random_state=0)),
        (x,),
    ),
    "LogisticRegression": fitted(lambda: LogisticRegression(tol=1e-8), x, kinds, ask=("predict", "predict_proba")),
    "PoissonRegressor": fitted(lambda: PoissonRegressor(tol=1e-8), x, counts, tell=("coef_",)),
    "Ridge": fitted(lambda: Ridge(solver="svd"), x, target, tell=("coef_", "intercept_")),
    "RidgeClassifier": fitted(lambda: RidgeClassifier(solver="svd"), x, kinds, ask=("predict", "decision_function")),
    "RidgeCV": fitted(lambda: RidgeCV([0.1, 1.0, 10.0]), x, target, tell=("coef_",)),
    "RidgeClassifierCV": fitted(lambda: RidgeClassifierCV([0.1, 1.0]), x, y, ask=("predict", "decision_function")),
    "GaussianMixture": fitted(
        lambda: GaussianMixture(2, init_params="random_from_data", random_state=0),
        x,
        ask=("predict", "predict_proba", "score_samples"),
        tell=("means_",),
    ),
    "GaussianNB": fitted(GaussianNB, x, kinds, ask=("predict", "predict_proba"), tell=("theta_", "var_")),
    "CalibratedClassifierCV": fitted(
        lambda: CalibratedClassifierCV(LinearDiscriminantAnalysis(), method="temperature", ensemble=False, cv=3),
        x,
        y,
        ask=("predict_proba",),
    ),
    "Binarizer": transformed(Binarizer, x),
    "FunctionTransformer": transformed(lambda: FunctionTransformer(lambda a: a * a), x),
    "KernelCenterer": transformed(KernelCenterer, kernel),
    "LabelBinarizer": transformed(LabelBinarizer, kinds),
    "LabelEncoder": transformed(LabelEncoder, 10 * kinds, tell=("classes_",)),
    "MaxAbsScaler": transformed(MaxAbsScaler, x),
    "MinMaxScaler": transformed(MinMaxScaler, x, tell=("data_min_",)),
    "Normalizer": transformed(Normalizer, x),
    "Normalizer l1": transformed(lambda: Normalizer("l1"), x),
    "PolynomialFeatures": transformed(lambda: PolynomialFeatures(3), x),
    "StandardScaler": transformed(StandardScaler, x, tell=("mean_", "var_")),
    "pipeline": fitted(union, x, target),
    "split": (split, (x, target)),
    "search": (searched, (x, target)),
}
CLASSES = {
    **{name: ((y, said), {}) for name in ("accuracy_score", "balanced_accuracy_score", "cohen_kappa_score")},
    **{name: ((y, said), {}) for name in ("f1_score", "jaccard_score", "precision_score", "recall_score")},
    **{name: ((y, said), {}) for name in ("hamming_loss", "zero_one_loss", "confusion_matrix")},
    "class_likelihood_ratios": ((y, said), {}),
    "multilabel_confusion_matrix": ((labels, said_labels), {}),
    "fbeta_score": ((kinds, said_kinds), {"beta": 2.0, "average": "macro"}),
    "precision_recall_fscore_support": ((kinds, said_kinds), {}),
    "brier_score_loss": ((y, score), {"pos_label": 1}),
    "d2_brier_score": ((y, score), {"pos_label": 1}),
    "log_loss": ((y, both), {"sample_weight": weight}),
    "d2_log_loss_score": ((y, both), {}),
    "det_curve": ((y, score), {}),
    "precision_recall_curve": ((y, score), {}),
    "roc_curve": ((y, score), {"drop_intermediate": False}),
    "average_precision_score": ((y, score), {}),
    "calinski_harabasz_score": ((x, kinds), {}),
}
REGRESSION = [
    "d2_absolute_error_score",
    "d2_pinball_score",
    "explained_variance_score",
    "max_error",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_pinball_loss",
    "mean_squared_error",
    "median_absolute_error",
    "r2_score",
    "root_mean_squared_error",
]
POSITIVE = [
    "d2_tweedie_score",
    "mean_gamma_deviance",
    "mean_poisson_deviance",
    "mean_squared_log_error",
    "mean_tweedie_deviance",
    "root_mean_squared_log_error",
]
KERNELS = [
    "cosine_distances",
    "cosine_similarity",
    "euclidean_distances",
    "laplacian_kernel",
    "linear_kernel",
    "manhattan_distances",
    "paired_cosine_distances",
    "paired_euclidean_distances",
    "paired_manhattan_distances",
    "polynomial_kernel",
    "rbf_kernel",
    "sigmoid_kernel",
]
for name, (data, options) in CLASSES.items():
    CASES[name] = measured(getattr(metrics, name), *data, **options)
for name in REGRESSION:
    CASES[name] = measured(getattr(metrics, name), target, guess)
for name in POSITIVE:
    CASES[name] = measured(getattr(metrics, name), positive, positive + score)
for name in KERNELS:
    CASES[name] = measured(getattr(pairwise, name), x[:6], x[6:12])
CASES["additive_chi2_kernel"] = measured(pairwise.additive_chi2_kernel, x[:4].abs(), x[4:8].abs())
CASES["chi2_kernel"] = measured(pairwise.chi2_kernel, x[:4].abs(), x[4:8].abs())
CASES["pairwise_distances"] = measured(metrics.pairwise_distances, x[:5], metric="cityblock")
CASES["pairwise_kernels"] = measured(pairwise.pairwise_kernels, x[:5], metric="rbf")
CASES["entropy"] = measured(cluster.entropy, kinds)


def flat(found):
    """A result's arrays and numbers."""
    return [part for each in found for part in flat(each)] if isinstance(found, list | tuple) else [found]


def compared(run, data):
    """Which parts of a result are tensors, and whether they are what NumPy computes."""
    with config_context(array_api_dispatch=True):
        ours = flat(run(*data))
    theirs = flat(run(*(array.numpy().copy() for array in data)))
    same = len(ours) == len(theirs) and all(
        np.allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-7, equal_nan=True) for a, b in zip(ours, theirs)
    )
    sums = [float(torch.as_tensor(part).double().abs().sum()) if part is not None else None for part in ours]
    return {"tensors": [isinstance(part, torch.Tensor) for part in ours], "as NumPy": same, "sums": sums}


report(**{name: compared(*case) for name, case in CASES.items()})
