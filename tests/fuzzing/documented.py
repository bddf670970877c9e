"""Where corefw differs from PyTorch on purpose, or where nobody promises anything: what the fuzzer does not report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from corefw.errors import CorefwError, OutOfMemoryError
from corefw.tensor import Tensor
from tests.fuzzing.programs import Leaf, Program, Ref, Step, references, words
from tests.fuzzing.runs import Picture, Raised, Run

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
    (r"not enough values to unpack|takes no arguments", "one number for several, an option that changes nothing"),
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
    (r"start out of range|0 sized dimensions, and they aren't selected", "no element, from no element"),
    (r"dilation_width: -\d", "sizes of 64 bits"),
)
#: faults of PyTorch's gradients: of an integer operand, of no elements, of a start that counts from the end
THEIR_GRADIENT_FAULTS = r"can't be cast to the desired output type|returned an invalid gradient|size of tensor a \(0\)"
#: what corefw alone refuses: (part of its message, why)
OUR_REFUSALS = (
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
#: results that are left open: (function, number of the result), of ties, and of what is not sorted
OPEN_RESULTS = frozenset((name, 1) for name in words("sort topk mode median nanmedian kthvalue cummax cummin"))
#: decompositions whose factors are not unique, and solutions that follow from them
FACTORS = frozenset(words("eigh svd qr lstsq linalg_eigh linalg_svd linalg_qr"))
#: functions that draw random numbers; those of PyTorch are others
RANDOM = frozenset(
    words("""
        dropout alpha_dropout feature_dropout feature_alpha_dropout native_dropout dropout1d dropout2d dropout3d
        bernoulli multinomial normal uniform random exponential cauchy log_normal geometric rand_like randn_like
        randint_like gumbel_softmax rand randn randint randperm
    """)
)
#: functions that PyTorch computes whatever the dtype or the dimension is, where there is no element or no reader
_UNCHECKED = frozenset(
    words("cummax cummin log_softmax softmax cholesky mode nansum vecdot rnn_relu_cell rnn_tanh_cell soft_margin_loss")
)
COMPARISONS = frozenset(words("eq ne lt le gt ge logical_and logical_or logical_xor logical_not"))
#: functions whose gradient goes to one of several equal elements: nobody says to which
TIES = frozenset(words("quantile nanquantile median nanmedian kthvalue mode topk cummax cummin cdist"))
#: gradients that PyTorch computes with a constant of float32, for NaN as for a number, with another guard against
#: division by zero, of parts that are not read, or of what was overwritten by a comparison
THEIR_GRADIENTS = COMPARISONS | frozenset(
    words("hardsigmoid hardswish hardtanh binary_cross_entropy mish polar cholesky cholesky_solve")
)
#: results that cannot be differentiated, which PyTorch says when it is asked to
CONSTANT = frozenset(words("unique unique_consecutive lstsq heaviside nextafter"))
#: functions whose results are constant for a number of 0, or given back as they came where nothing is recorded
IDENTITIES = frozenset(words("matrix_power linalg_matrix_power addr diff"))
#: products whose factors NumPy hands to BLAS as numbers if they have one element
PRODUCTS = frozenset(words("mm matmul addmm linear matmul_adjoint adjoint_matmul"))
#: functions whose results are conjugates, or may be (decision 18)
CONJUGATES = frozenset(words("conj adjoint conj_physical"))
#: functions that change an argument without counting it
UNCOUNTED = frozenset(words("batch_norm instance_norm kron dropout dropout1d dropout2d dropout3d"))


def _matches(table, error: Exception) -> bool:
    return any(re.search(pattern, str(error)) for pattern, _ in table)


def short(function: str) -> str:
    """A function's name without its namespace and the mark of its form."""
    return function.rpartition(".")[2].removeprefix("op:").removesuffix("_")


def refusal(entry: Step, a, b, sides: tuple[str, str]) -> bool:
    """Whether one side may refuse what the other computes."""
    if sides[1] != "torch":
        return sides[0] == "numpy" and type(a) is Raised and isinstance(a.error, OutOfMemoryError)  # of paddings
    if type(b) is Raised:
        known = _their_refusal(entry, str(b.error))
        if known is None:
            known = isinstance(b.error, NotImplementedError) or _matches(THEIR_REFUSALS, b.error)
        return known
    return _matches(OUR_REFUSALS, a.error) or _our_refusal(short(entry.function), str(a.error))


def _their_refusal(entry: Step, text: str) -> bool | None:
    """Whether PyTorch alone refuses what this function does, None if the function does not matter."""
    name = short(entry.function)
    if entry.function == "gradients" and re.search(THEIR_GRADIENT_FAULTS, text):
        return True
    if "cannot be converted to type int without overflow" in text:
        return entry.function.startswith("nn.functional.")  # sizes of 64 bits
    if "cannot be broadcast to indexing result" in text:
        return name == "index_put"  # which takes values with further dimensions of size 1, as x[key] does
    if "dim must be a 2-tuple" in text:
        return name == "norm"  # of any number of dimensions
    if "result type Float can't be cast" in text:
        return name == "soft_margin_loss"  # of integers, which are promoted
    if "Invalid computed output size: 0" in text:
        return _beyond_32_bits(entry)  # a stride: max_pool1d alone counts no window
    if "the input matrix is singular" in text:
        return entry.keywords.get("left") is False  # of infinities: another factorization meets no pivot of 0
    return False if entry.function == ".view" and "view size" in text else None


def _beyond_32_bits(entry: Step) -> bool:
    """Whether an option is a number of more than 32 bits."""
    given = (*entry.arguments, *entry.keywords.values())
    return any(isinstance(value, int) and value >= 2**31 for value in given)


def _our_refusal(name: str, text: str) -> bool:
    """Whether corefw alone refuses what this function does."""
    if "leaf Variable that requires grad" in text:
        return name in COMPARISONS  # PyTorch overwrites a leaf by truths
    if "more than one element of the written-to tensor" in text:
        # PyTorch warns at most; its sums write such an out=, while mean, add and the others refuse it
        return name in ("index_put", "setitem", "masked_fill", "copy", "norm", "sum", "nansum")
    if re.search(r"broadcast shape \[.*\b0\b|must be batches of square|at least 2 dim|size of tensor a", text):
        # PyTorch looks at no shape where there is no element
        return name in ("addbmm", "cholesky", "matrix_rank", "scaled_dot_product_attention")
    if "Dimension out of range" in text or "is not supported for" in text:
        return name in _UNCHECKED  # nor at the dimension, or the dtype, of these
    if "cast to the desired output type" in text and name.startswith(("cumsum", "cumprod", "dropout")):
        return True  # of no dimension in place, of a probability of 1
    if "expects input to be at least one-dimensional" in text:
        return "trapezoid" in name or name == "trapz"  # of one position: PyTorch takes it for no intervals
    if "Can't detach views" in text:
        return name == "detach"  # a tensor that is turned in place while it has views is one of them
    if "expected all tensors to have the same dtype" in text:
        return name == "index_put"  # of a mask and one value, with which PyTorch fills
    if "non-zero size for non-batch dimensions" in text:
        return name.startswith("adaptive_avg_pool")  # of planes without elements, whose mean PyTorch takes for size 1
    if "Storage size calculation overflowed" in text:
        return name.startswith("conv")  # sizes of 64 bits
    if "ComplexFloat can't be cast" in text or "ComplexDouble can't be cast" in text:
        return name in ("logsumexp", "mean")  # PyTorch drops the imaginary part
    if "without overflow" in text:  # an end of less than two steps, a bound beside one of another dtype
        return name in ("linspace", "logspace", "clamp", "clip")
    if "does not require grad" in text:
        return name == "gradients"  # a difference of histories is reported where it arises
    if "failed to converge" in text:
        return name in ("lstsq", "svd", "pinv", "pinverse")  # of infinities and NaN: PyTorch gives anything
    return False


def classes(ours: Exception, theirs: Exception) -> bool:
    """Whether both may be raised by one call: which of several faults is found first, nobody says."""
    kinds = (RuntimeError, IndexError, ValueError, ZeroDivisionError)
    alike = isinstance(theirs, kinds) or "Overflow when unpacking" in str(theirs)  # of a size, as a TypeError
    return (isinstance(ours, CorefwError | MemoryError) and alike) or type(ours) is type(theirs)


def open_result(entry: Leaf | Step, number) -> bool:
    """Whether several values of this result are right, or PyTorch gives another one: it takes no second argument of
    unique_consecutive by position."""
    if isinstance(entry, Step) and short(entry.function) == "unique_consecutive" and len(entry.arguments) > 1:
        return number == 1
    return isinstance(entry, Step) and isinstance(number, int) and (short(entry.function), number) in OPEN_RESULTS


def open_values(entry: Step, run: Run, sides: tuple[str, str]) -> bool:
    """Whether nobody says what the values are."""
    name = short(entry.function)
    if name in RANDOM or name in FACTORS:
        return sides[1] == "torch"
    if "conv" in name or "attention" in name:  # whether a zero that pads or masks meets an infinity is left open
        return not all(np.isfinite(t.detach().array).all() for t in _tensors(entry.arguments, run))
    if entry.keywords.get("assume_unique"):
        return True
    if name in ("unique", "unique_values"):  # which of several NaN comes first
        return any(
            t.dtype.is_floating_point and np.isnan(t.detach().array).any() for t in _tensors(entry.arguments, run)
        )
    if sides[1] == "torch" and _unordered(name, entry, run):
        return True
    if sides[1] != "torch" and _numpys(name, entry, run):
        return True
    if "out" in entry.keywords and _begins_in(entry, run):
        return True
    written = _written(entry)
    return written is not None and _overlaps(entry, written, run, aligned="out" not in entry.keywords)


def _unordered(name: str, entry: Step, run: Run) -> bool:
    """Whether the order of the result's elements, or of what is written, is left open."""
    if name == "argsort":
        return not entry.keywords.get("stable")
    if name == "topk":
        return False in (*entry.arguments[4:], entry.keywords.get("sorted"))
    if name != "as_strided_scatter":
        return False
    sizes, strides = (
        (*entry.arguments[2:4], *(entry.keywords.get(k) for k in ("size", "stride")))[i::2] for i in (0, 1)
    )
    return _on_top(next(filter(None, strides), ()), next(filter(None, sizes), ()))


def _numpys(name: str, entry: Step, run: Run) -> bool:
    """Whether NumPy rounds otherwise, or leaves out a product with 0: of a matrix of one element."""
    arrays = [t.detach().array for t in _tensors((entry.arguments, tuple(entry.keywords.values())), run)]
    if name in ("kl_div", "polar"):  # functions of integers, in float32, are part of a float64
        return any(array.dtype.kind in "iu" for array in arrays)
    if name in PRODUCTS:
        return any(array.size == 1 for array in arrays) and not all(np.isfinite(array).all() for array in arrays)
    return False


def half_written(entry: Step, run: Run) -> set[int]:
    """The memory that a step which raised was to change: what it leaves there, nobody says."""
    return _memories(_written(entry), run)


def _written(entry: Step):
    """What a step changes: an argument, None if nothing."""
    return entry.keywords.get("out") or (entry.arguments[0] if _writes(entry) else None)


def _memories(value, run: Run) -> set[int]:
    """Where the memory of tensors began when they were made; they may have been given other since."""
    pictures = (run.pictures[number] for number in references(Step("", (value,))))
    return {picture.memory for picture in pictures if type(picture) is Picture and picture.memory}


def meets(entry: Step, memories: set[int], run: Run) -> bool:
    """Whether a step is given a tensor in such memory."""
    return not memories.isdisjoint(_memories((entry.arguments, tuple(entry.keywords.values())), run))


def _writes(entry: Step) -> bool:
    """Whether a step changes its first argument."""
    name = entry.function
    in_place = name.endswith("_") and not name.endswith("__")
    return (
        in_place or name == "operator.setitem" or entry.keywords.get("inplace", False) or name.startswith("operator.i")
    )


def _tensors(value, run: Run) -> Iterator[Tensor]:
    if isinstance(value, Ref):
        found = run.values[value.number]
        yield from [found] if isinstance(found, Tensor) else []
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item, run)


def _begins_in(entry: Step, run: Run) -> bool:
    """Whether the memory of out= was an operand's when the tensor was made."""
    others = {k: v for k, v in entry.keywords.items() if k != "out"}
    return meets(replace(entry, keywords=others), _memories(entry.keywords["out"], run), run)


def _overlaps(entry: Step, written, run: Run, aligned: bool) -> bool:
    """Whether what is written has elements on top of each other, or lies over an operand: `aligned` allows the very
    elements of one."""
    for target in _tensors(written, run):
        a = target.array
        if _on_top(a.strides, a.shape):
            return True
        for other in _tensors((entry.arguments, tuple(v for k, v in entry.keywords.items() if k != "out")), run):
            b = other.array
            if other is target and aligned:
                continue
            same = aligned and a.ctypes.data == b.ctypes.data and a.shape == b.shape and a.strides == b.strides
            if not same and np.may_share_memory(a, b):
                return True
    return False


def _on_top(strides: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether elements with these strides lie on top of each other."""
    reach = 0
    for stride, n in sorted((abs(s), n) for s, n in zip(strides, shape) if n > 1):
        if stride <= reach:
            return True
        reach += stride * (n - 1)
    return False


def history(steps: Iterable[Leaf | Step], sides: tuple[str, str]) -> bool:
    """Whether `requires_grad` may differ after these steps: a gradient that is constant has a history in PyTorch where
    its formula names the input, and so have a tensor that a comparison was written to, and a view that out= resized.
    What a view has whose base was detached, or became a leaf, changes there with any change of its elements."""
    return sides[1] == "torch" and any(_constant(step) for step in steps if isinstance(step, Step))


def _constant(step: Step) -> bool:
    name = short(step.function)
    resized = "out" in step.keywords and not step.records  # or nothing differs
    rebased = step.function in (".detach_", ".requires_grad_")
    untouched = name in IDENTITIES and 0 in (*step.arguments, *step.keywords.values(), int(step.records))
    constant = name in CONSTANT or untouched
    return step.function == "gradients" or constant or overwritten(step) or resized or rebased


def overwritten(step: Step) -> bool:
    """Whether a comparison is written to its operand."""
    return _writes(step) and short(step.function) in COMPARISONS


def conjugate(program: Program, sides: tuple[str, str]) -> bool:
    """Whether a step gives a conjugate: PyTorch's shares memory with what was conjugated."""
    names = {short(step.function) for step in program.entries if isinstance(step, Step)}
    return sides[1] == "torch" and not names.isdisjoint(CONJUGATES)


def tied(function: str) -> bool:
    """Whether the gradient ("gradient of f") may go to another element."""
    return short(function.rpartition(" ")[2]) in TIES


def uncounted(program: Program, sides: tuple[str, str]) -> bool:
    """Whether a step of the program changes tensors without counting it."""
    steps = (entry for entry in program.entries if isinstance(entry, Step))
    return sides[1] == "torch" and any(short(step.function) in UNCOUNTED for step in steps)


def rough(function: str, steps: Iterable[Leaf | Step], sides: tuple[str, str]) -> bool:
    """Whether PyTorch's gradient ("gradient of f") through these steps is no reference."""
    changed = any(overwritten(step) for step in steps if isinstance(step, Step))
    return sides[1] == "torch" and (changed or short(function.rpartition(" ")[2]) in THEIR_GRADIENTS)


def amplified(steps: Iterable[Leaf | Step]) -> bool:
    """Whether the steps take differences of random numbers, which double precision cannot judge: it draws others."""
    return any(short(step.function) in ("gumbel_softmax", "normal") for step in steps if isinstance(step, Step))


def relaid(program: Program, sides: tuple[str, str]) -> bool:
    """Whether a step copies or not as the layout is that of a result, which is computed in another order."""
    names = {step.function for step in program.entries if isinstance(step, Step)}
    return sides[1] == "torch" and not names.isdisjoint((".contiguous", "contiguous"))
