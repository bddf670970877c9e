"""Ops, and families of ops, that neither a row nor a behaviour checks by name, with the reason."""

_ARBITRARY = "the elements are arbitrary: the runtime's empty memory is checked"
_INPLACE = "changes its input; the rows of the op without underscore cover it"
_WORDS = "PyTorch's numbers, which tests/test_pytorch_numbers.py compares with PyTorch's; the CPU has them alone"
_STREAM = "made of the random ops, whose streams are checked"

WITHOUT_ROW: dict[str, str] = {
    **dict.fromkeys(("empty", "empty_like", "empty_permuted", "empty_strided"), _ARBITRARY),
    **dict.fromkeys(("new_empty", "new_empty_strided"), _ARBITRARY),
    **dict.fromkeys(("scatter_", "index_reduce_"), _INPLACE),
    "fill_diagonal_": "changes its input; made of diagonal and fill, which have rows",
    "embedding_renorm_": "changes its input; made of norms and products, which have rows",
    "split_tensor": "split, as a method with another word for its argument",
    "range": "warns that it is deprecated; made of arange_at",
    "view_as_complex": "takes one memory layout only; the inverse of view_as_real, which has a row",
    "select_backward": "the gradient of picking elements (amax, median, sort), checked through it",
    "distribute": "the gradient among equal elements (amax, norms), checked through it",
    "mersenne": _WORDS,
    "collective": "of several processes, which tests/test_distributed.py joins",
    **dict.fromkeys(("sampling", "filling", "gamma_sampling"), _STREAM),
    **dict.fromkeys(("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like"), _STREAM),
    **dict.fromkeys(("dropout", "native_dropout", "feature_dropout", "alpha_dropout"), _STREAM),
    **dict.fromkeys(("feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "rrelu"), _STREAM),
}
