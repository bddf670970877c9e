"""Losses whose reduction is a number."""

from corefw.testing.case import Case
from corefw.testing.cases.alignment import TARGETS, ctc_loss, normalized
from corefw.testing.cases.likelihood import kl_div_reduced, poisson
from corefw.testing.cases.loss import (
    PAIRS,
    TRIPLES,
    cosine_embedding,
    elementwise,
    hinge_embedding,
    margin_ranking,
    sign_calls,
    triplet_margin,
)


def coded(reference):
    """A loss whose reduction is a number."""

    def function(*arrays, reduction=0, **attributes):
        return reference(*arrays, reduction=("none", "mean", "sum")[reduction], **attributes)

    return function


def coded_calls(*shapes, attributes=({},)):
    """`sign_calls` with the reductions' numbers."""

    def made(rng, numpy_dtype):
        calls = sign_calls(*shapes, attributes=attributes)(rng, numpy_dtype)
        return [
            (arrays, options | {"reduction": ("none", "mean", "sum").index(options.get("reduction", "mean"))})
            for arrays, options in calls
        ]

    return made


REDUCTION_CODES = ({}, {"reduction": 1}, {"reduction": 2})


def ctc_calls(rng, numpy_dtype):
    options = {"input_lengths": (4, 3), "target_lengths": (2, 1)}
    arrays = [normalized(rng, numpy_dtype, 4, 2, 3), TARGETS[:2]]
    return [(arrays, {**options, **code}) for code in REDUCTION_CODES]


CASES = (
    Case(
        "coded_ctc_loss",
        coded(ctc_loss),
        make=ctc_calls,
        dtypes=("float32", "float64"),
        gradient=False,  # as of the row of ctc_loss
        special=False,
        meta=False,
    ),
    Case(
        "coded_cosine_embedding_loss",
        coded(cosine_embedding),
        make=coded_calls((3, 4), (3, 4), (3,), attributes=({"margin": 0.2},)),
        constant=(2,),
    ),
    Case(
        "coded_hinge_embedding_loss",
        coded(elementwise(hinge_embedding)),
        make=coded_calls((3, 2), (3, 2), attributes=({"margin": 0.5},)),
        constant=(1,),
    ),
    Case(
        "coded_kl_div",
        coded(kl_div_reduced),
        shapes=PAIRS[:1],
        attributes=(*REDUCTION_CODES, {"reduction": 2, "log_target": True}),
        domain=(0.05, 1),
        special=False,
    ),
    Case(
        "coded_margin_ranking_loss",
        coded(margin_ranking),
        make=coded_calls((3, 2), (3, 2), (3, 2), attributes=({"margin": 0.5},)),
        constant=(2,),
    ),
    Case(
        "coded_triplet_margin_loss",
        coded(triplet_margin),
        shapes=TRIPLES,
        attributes=(*REDUCTION_CODES, {"swap": True, "margin": 0.5, "reduction": 1}),
        special=False,
    ),
    Case(
        "coded_poisson_nll_loss",
        coded(elementwise(poisson)),
        shapes=PAIRS[:1],
        attributes=tuple({"log_input": True, "full": False, "eps": 1e-8, "reduction": code} for code in (0, 1, 2)),
        domain=(0.1, 3),
        special=False,
    ),
)
