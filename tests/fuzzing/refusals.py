"""What one side refuses and the other computes, on purpose or because nobody promises anything: the fuzzer does not
report it."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from corefw.errors import CorefwError, OutOfMemoryError, PositionError
from tests.fuzzing.documented import short
from tests.fuzzing.programs import Step, references
from tests.fuzzing.runs import Raised, Run

#: what PyTorch alone refuses: (part of its message, why corefw does not)
THEIR_REFUSALS = (
    (r"not implemented for|not supported|does not support|[Uu]nsupported|Expected both inputs to be", "more dtypes"),
    (r"only supports floating-point dtypes|result dtype \w+ does not match input dtype", "the same"),
    (r"doesn't handle types other|of float, double|expected input to have floating|Integer division with", "the same"),
    (r"could not infer output dtype|Expected a floating point or complex tensor as input", "the same"),
    (r"cannot be converted to type c10::Half", "numbers keep their precision beside half types"),
    (r"refers? to a single memory location|overlap", "operands that overlap are read before they are written"),
    (r"Such functions do not allow the output views", "a view among several may be changed in place as any other"),
    (r"leaf Variable that requires grad is being used", "a view is a leaf or not as its base now is"),
    (r"must be \w[\w ]*, not|missing \d+ required positional|invalid combination of arguments", "numbers for tensors"),
    (
        r"unexpected keyword|positional arguments? but|multiple values for",
        "one signature of a function in all namespaces",
    ),
    (
        r"not enough values to unpack|tuple index out of range|takes no arguments",
        "one number for several, an option that changes nothing",
    ),
    (r"It is expected \w+ equals to \d, but got size 1|There should be exactly .* but got 1 elements", "the same"),
    (r"must be torch\.\w+, not", "of several wrong arguments, another is named first"),
    (r"Expected object of scalar type", "promotion"),
    (r"expected dtype|did not match|different dtypes|(have|be) (the )?same dtype|Expected dtype int64", "promotion"),
    (r"Expected out|only supports bool tensor for result|the output given to|the base given to", "out= of more dtypes"),
    (r"result must have the same scalar type|dtype of out: \w+ should|expected out tensor (to have|dtype)", "the same"),
    (r"only supports boolean masks", "masks of bytes"),
    (r"dtype must match dtype of result|Found dtype \w+ but expected|floating point output tensor", "the same"),
    (r"dtype for input and out to match|the output tensor to have dtype|output tensor's dtype is wrong", "the same"),
    (
        r"expected scalar.type \w+ but found|without narrowing to the specified dtype",
        "dtype= of more dtypes",
    ),
    (r"derivative for .* is not implemented|Autograd not support dtype|is not differentiable", "more gradients"),
    (r"modified by an inplace operation", "corefw saves less: not the result where an input says as much"),
    (r"half of kernel size", "the padding of a dilated pool is at most half of what its windows span"),
    (r"smaller than kernel size", "a window that reaches beyond the end, with ceil_mode"),
    (r"eps must be positive", "no division by zero happens unless a variance is zero"),
    (r"all elements of target should be between|only supports non-negative p|must be of length 1 or 2", "any number"),
    (r"pin_memory=True requires", "memory of a CPU alone is pinned by nobody"),
    (r"mat2 must be a matrix|Weights and input must have the same size", "operands that broadcast"),
    (r"input.dim\(\) must be greater or equal to other.dim\(\)", "the same"),
    (r"expected Tensor as element \d+ in argument \d+, but got NoneType", "None for a dimension taken whole"),
    (r"INTERNAL ASSERT FAILED|Could this error message be improved|invalid python storage", "a fault of PyTorch's own"),
    (r"tensor does not have a device|is invalid for input of size|non-zero size for non-batch", "the same, when empty"),
    (r"because the unspecified dimension size -1 can be any value|output with shape .* doesn't match", "the same"),
    (r"`shifts` required|last dimension with stride 1|ArrayRef: invalid|at least one index must be", "the same"),
    (
        r"undefined Tensor|nullptr|MKL FFT error|could not create a primitive descriptor|Trying to resize storage",
        "the same",
    ),
    (r"view size is not compatible with input tensor's size and stride", "the same, inside of other functions"),
    (r"grad_input must be contiguous", "the same"),
    (r"not implemented on the CPU|tensors, but got (BFloat16|Half)", "more algorithms and dtypes"),
    (r"sparse transpose: transposed dimensions", "a gradient of no element"),
    (r"using it on lu_solve would result in a division", "a pivot beside NaN"),
    (r"start out of range|0 sized dimensions, and they aren't selected", "no element, from no element"),
    (r"dilation_width: -\d", "sizes of 64 bits"),
)
#: faults of PyTorch's gradients: of an integer operand, of no elements, of a start that counts from the end, of strides
#: that leave elements out, of a mask that was changed since, of a matrix that is singular, of a constant
THEIR_GRADIENT_FAULTS = (
    r"can't be cast to the desired output type|returned an invalid gradient|size of tensor a \(0\)|"
    r"setStorage: sizes|cannot be broadcast to indexing result|input matrix is singular|does not require grad|"
    r"groups to divide channels in"
)
#: what corefw alone refuses: (part of its message, why)
OUR_REFUSALS = (
    (
        r"0 is none, 1 the mean and 2 the sum|to be 0 \(sum\), 1 \(mean\) or 2",
        "PyTorch takes any number for one of them",
    ),
    (r"repeats \[|are too large to count|Output size is too small", "sizes are checked where there is no element, too"),
    (r"not implemented for", "dtypes are checked where there is no element, too"),
    (r"dtype must be a floating point but|dtype of indices should be Long|Expected a floating point or", "the same"),
    (r"Unable to allocate", "what is padded is held in memory"),
    (r"output padding must be smaller|running_mean must be defined", "arguments are checked for empty batches too"),
    (r"out of bounds for dimension", "positions are checked where nothing is read, too"),
    (r"padding must either be a single int", "one number for each dimension: PyTorch reads the first ones"),
    (r"in-place changes of a conjugate are refused", "decision 18"),
    (r"functions with out=\.\.\. arguments don't support", "every function; PyTorch lets some record a history"),
    (r"Only zero batch or zero channel inputs", "places are counted for empty batches, too"),
    (r"label_smoothing must be between", "a negative one, too, which PyTorch takes for 0"),
    (r"wants heads in dimension -3", "heads are looked for where there is no element, too"),
    (r"selected index k out of range", "none of one element: PyTorch returns memory that nobody wrote"),
)
#: what PyTorch alone refuses of some functions: (part of its message, functions, why)
THEIR_REFUSALS_OF = (
    (r"must match the size of tensor", "matmul", "out= of another size, in which it makes room elsewhere"),
    (r"cannot be broadcast to indexing result", "index_put", "values with further dimensions of size 1, as x[key]"),
    (r"dim must be a 2-tuple", "norm", "any number of dimensions"),
    (r"result type Float can't be cast", "soft_margin_loss native_dropout", "integers, which are promoted"),
    (r"result type \w+ can't be cast", "binary_cross_entropy_with_logits huber_loss", "a target of another dtype"),
    (r"bias size does not match weight size", "bilinear", "a bias that broadcasts, for empty weights"),
    (
        r"hardtanh on an unsigned type|cannot be converted to type uint8_t",
        "hardtanh threshold constant_pad_nd",
        "numbers below 0",
    ),
    (r"The size of tensor a", "lstsq", "batches that broadcast, of no element"),
    (r"inconsistent tensor size", "vecdot", "one element against several"),
    (r"too many indices", "index_put", "a mask without dimensions"),
    (r"is only supported for half, float and double", "view_as_complex", "bfloat16, of no element"),
    (r"strides should be greater than zero", "max_unpool3d max_unpool2d", "of no element"),
    (r"dilation should be greater than zero, .* 0$", "conv_transpose1d conv_transpose2d", "sizes of 64 bits"),
    (
        r"attn_mask should not be set",
        "scaled_dot_product_attention",
        "a mask beside the causal one",
    ),
    (r"input matrix is singular", "tensorinv inv inverse", "a pivot that is 0 but for a rounding"),
    (r"cannot be converted to type u?int8_t", "setitem", "numbers that are written nowhere"),
    (r"to negative integer powers", "pow", "truths, of which none is a negative power"),
    (r"cannot be converted to type float without", "lerp", "complex weights"),
    (r"index -\d+ is out of bounds", "take_along_dim", "positions that count from the end, without a dimension"),
    (r"algorithm failed to converge", "matrix_rank", "infinities: another routine finds an end"),
    (r"not positive-definite", "cholesky", "a pivot that is 0 but for a rounding"),
)
#: what corefw alone refuses of some functions, or of those whose names begin so (an asterisk): (part of its message,
#: functions, why)
OUR_REFUSALS_OF = (
    (
        r"leaf Variable that requires grad",
        "eq ne lt le gt ge logical_and logical_or logical_xor logical_not",
        "PyTorch overwrites a leaf by truths",
    ),
    (
        r"more than one element of the written-to tensor",
        "index_put setitem masked_fill copy norm sum nansum prod vecdot amax amin",
        "PyTorch warns at most; its sums write such an out=, while mean, add and the others refuse it",
    ),
    (
        r"broadcast shape \[.*\b0\b|must be batches of square|at least 2 dim|size of tensor a",
        "addbmm cholesky matrix_rank scaled_dot_product_attention",
        "PyTorch looks at no shape where there is no element",
    ),
    (r"output with shape \[1?\] doesn't match", "addbmm", "PyTorch makes room in a tensor of one element"),
    (
        r"Dimension out of range|is not supported for",
        """
        cummax cummin log_softmax softmax cholesky mode nansum nanmean vecdot inner rnn_relu_cell rnn_tanh_cell
        soft_margin_loss kthvalue matrix_rank roll diff native_dropout pow lerp amax amin clamp embedding cat
        smooth_l1_loss lu_factor lu_factor_ex scaled_dot_product_attention
        """,
        "PyTorch looks at no dimension and no dtype where there is no element, one, or no reader",
    ),
    (
        r"cast to the desired output type",
        "cumsum* cumprod* dropout* feature_dropout alpha_dropout",
        "nothing to do, or to keep",
    ),
    (r"expects input to be at least one-dimensional", "trapezoid cumulative_trapezoid trapz", "of no interval"),
    (r"Can't detach views", "detach", "a tensor that is turned in place while it has views is one of them"),
    (r"expected all tensors to have the same dtype", "index_put", "of a mask and one value, with which PyTorch fills"),
    (r"expected all tensors to have the same dtype", "solve_triangular", "of no element"),
    (r"non-zero size for non-batch", "adaptive_avg_pool* interpolate", "planes whose mean PyTorch takes for size 1"),
    (r"Storage size calculation overflowed", "conv* unfold", "sizes of 64 bits"),
    (r"Complex(Float|Double) can't be cast", "logsumexp mean", "PyTorch drops the imaginary part"),
    (r"without overflow", "linspace logspace clamp clip", "an end of less than two steps, a bound of another dtype"),
    (
        r"max_pool_backward.* out of (bounds|range)",
        "gradients",
        "windows that lie in the padding: PyTorch writes anywhere",
    ),
    (r"does not require grad", "gradients", "a difference of histories is reported where it arises"),
    (r"failed to converge", "lstsq svd svdvals cond pinv pinverse", "infinities and NaN: PyTorch gives anything"),
    (r"not positive-definite", "cholesky", "a pivot that is 0 but for a rounding"),
    (r"input matrix is singular", "inv inverse solve tensorinv", "a pivot that is 0 but for a rounding"),
    (r"weight tensor is provided", "histogram histogramdd", "PyTorch looks at no weight where there is no element"),
    (r"expected target size \[\]", "nll_loss", "PyTorch takes scores without a batch for a batch of one"),
    (r"linear: expected all tensors", "linear", "a vector of weights, with which PyTorch promotes"),
    (r"bias size does not match", "bilinear", "a bias of which nothing is read"),
    (r"expects to return a \[from, to\) range", "uniform", "of no element"),
    (r"dropout probability has to be between", "scaled_dot_product_attention", "of no element"),
    (r"(stride|padding) must either be a single int", "max_unpool1d", "PyTorch reads the first of several numbers"),
    (r"bias_\w+ must have shape", "gru_cell lstm_cell rnn_tanh_cell rnn_relu_cell", "a bias that broadcasts"),
)


def _matches(table, error: Exception) -> bool:
    return any(re.search(pattern, str(error)) for pattern, _ in table)


def _matches_of(table, name: str, error: Exception) -> bool:
    """Whether a table of single functions has this one with this error."""
    return any(
        re.search(pattern, str(error)) and any(fnmatchcase(name, function) for function in functions.split())
        for pattern, functions, _ in table
    )


def of_changes(a) -> bool:
    """Whether corefw refuses a gradient because of a change that PyTorch does not count."""
    return type(a) is Raised and "modified by an inplace operation" in str(a.error)


def refusal(entry: Step, a, b, sides: tuple[str, str], run: Run) -> bool:
    """Whether one side may refuse what the other computes."""
    name = short(entry.function)
    if sides[1] != "torch":  # of paddings, of a position where a mask selects nothing, of views that were turned
        if type(b) is Raised and "basic_index_backward" in str(b.error):
            return True
        refused = type(a) is Raised and sides[0] == "numpy"
        return refused and (
            isinstance(a.error, OutOfMemoryError) or (name, type(a.error)) == ("index_put", PositionError)
        )
    if type(b) is Raised:
        known = _their_refusal(entry, str(b.error), run)
        if known is None:
            known = isinstance(b.error, NotImplementedError) or _matches(THEIR_REFUSALS, b.error)
        return known or _matches_of(THEIR_REFUSALS_OF, name, b.error)
    return _matches(OUR_REFUSALS, a.error) or _matches_of(OUR_REFUSALS_OF, name, a.error)


def _their_refusal(entry: Step, text: str, run: Run) -> bool | None:
    """Whether PyTorch alone refuses what is asked of this function, None if the function does not matter."""
    if entry.function == "gradients" and re.search(THEIR_GRADIENT_FAULTS, text):
        return True
    if "cannot be converted to type int without overflow" in text:
        return entry.function.startswith("nn.functional.")  # sizes of 64 bits
    if "Invalid computed output size: 0" in text:
        return _beyond_32_bits(entry)  # a stride: max_pool1d alone counts no window
    if "the input matrix is singular" in text:
        return entry.keywords.get("left") is False  # of infinities: another factorization meets no pivot of 0
    if entry.function == ".view" and "view size" in text:  # a dimension of size 1 has no place in an order of memory
        return None if 1 in run.values[next(references(entry))].shape else False
    return None


def _beyond_32_bits(entry: Step) -> bool:
    """Whether an option is a number of more than 32 bits."""
    given = (*entry.arguments, *entry.keywords.values())
    return any(isinstance(value, int) and value >= 2**31 for value in given)


def classes(ours: Exception, theirs: Exception) -> bool:
    """Whether both may be raised by one call: which of several faults is found first, nobody says."""
    kinds = (RuntimeError, IndexError, ValueError, ZeroDivisionError, AssertionError)
    alike = isinstance(theirs, kinds) or "Overflow when unpacking" in str(theirs)  # of a size, as a TypeError
    return (isinstance(ours, CorefwError | MemoryError) and alike) or type(ours) is type(theirs)
