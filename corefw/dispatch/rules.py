"""Dtype rules: from the dtypes of an op's tensors to the dtype it computes in and those of its results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from corefw import dtypes
from corefw.dtypes import BOOL, COMPLEX, FLOATING, INTEGER, dtype

_CATEGORIES = {"bool": BOOL, "integer": INTEGER, "floating": FLOATING, "complex": COMPLEX}


def _itself(d: dtype) -> dtype:
    return d


def _to_floating(d: dtype) -> dtype:
    return d if d.category >= FLOATING else dtypes.get_default_dtype()


def computed(d: dtype) -> dtype:
    """The dtype in which elements are computed: float32 for half types."""
    return dtypes.float32 if d.itemsize == 2 and d.category == FLOATING else d


def _wide_integer(d: dtype) -> dtype:
    return d if d.category >= FLOATING else dtypes.int64


@dataclass(frozen=True)
class DtypeRule:
    """How an op treats element types.

    Attributes: ``promotes`` whether operands of different dtypes are brought to their common one (else they must
    agree); ``compute`` from the common dtype to the one the kernel sees; ``results`` from the common dtype to each
    output's; ``categories`` what the op takes; ``follows`` whether other operands are converted to the first one's
    dtype; ``strict`` whether a category that the op does not take is refused beside others too; ``agreeing`` whether
    only the last operand, a number or 0-d tensor, is brought to the common dtype, while the others must agree;
    ``bounds`` whether a number that this dtype cannot hold is refused; ``arithmetic`` whether 0-d operands beside half
    types enter the computation, which is in float32, as they are, instead of being rounded to the common dtype first;
    ``exponents`` whether numbers after the first operand are exponents, of which integers take those that are not
    negative and fit their dtype; ``moves`` whether a composite only moves elements, so that those of half types need
    not be widened for its steps.
    """

    name: str
    promotes: bool = True
    compute: Callable[[dtype], dtype] = _itself
    results: tuple[Callable[[dtype], dtype], ...] = (_itself,)
    categories: frozenset[int] = frozenset(_CATEGORIES.values())
    follows: bool = False
    strict: bool = False
    agreeing: bool = False
    bounds: bool = False
    arithmetic: bool = False
    exponents: bool = False
    moves: bool = False

    def without(self, *names: str) -> DtypeRule:
        """The rule for an op that does not take these categories: "bool", "integer", "floating", "complex"."""
        return replace(self, categories=self.categories - {_CATEGORIES[n] for n in names})

    def strictly(self) -> DtypeRule:
        """The rule that refuses every operand of a category it does not take, also where the common dtype is
        another."""
        return replace(self, strict=True)

    def of_one_dtype(self) -> DtypeRule:
        """The rule that converts a last number or 0-d tensor, but wants the others to agree."""
        return replace(self, agreeing=True)

    def bounded(self) -> DtypeRule:
        """The rule that refuses numbers which the common dtype cannot hold."""
        return replace(self, bounds=True)

    def with_exponents(self) -> DtypeRule:
        """The rule of powers."""
        return replace(self, exponents=True)

    def rounding(self) -> DtypeRule:
        """The rule for an op that compares or moves elements: beside half types it sees numbers rounded to them."""
        return replace(self, arithmetic=False)

    def moving(self) -> DtypeRule:
        """The rule of a composite that only moves elements."""
        return replace(self, moves=True)

    def giving(self, *results: DtypeRule) -> DtypeRule:
        """The rule of an op with several outputs, each of the dtype that one of `results` gives."""
        return replace(self, results=tuple(r.results[0] for r in results))

    def accepts(self, d: dtype) -> bool:
        """Whether the op takes elements of dtype `d`: of its categories, and with results that can be held."""
        held = (d, *(result(d) for result in self.results))
        return d.category in self.categories and all(one.numpy is not None for one in held)


#: operands agree already; the result is of their dtype
same = DtypeRule("same", promotes=False)
#: as same, of integers, floating and complex numbers
numbers = same.without("bool")
#: as same, of what has an order: all but complex numbers
ordered = same.without("complex")
#: as same, of floating and complex numbers alone
floats = same.without("bool", "integer")
#: as same, of floating numbers alone
real_floats = same.without("bool", "integer", "complex")
#: as same, of integers and floating numbers
real_numbers = same.without("bool", "complex")
#: the result is of the first operand's dtype, to which the others are converted (fill values)
first = DtypeRule("first", promotes=False, follows=True, bounds=True)
#: operands are brought to their common dtype, which the result has
promote = DtypeRule("promote", arithmetic=True)
#: as promote, of what has an order: all but complex numbers
promoted_ordered = promote.without("complex")
#: as promote, of floating and complex numbers alone
promoted_floats = promote.without("bool", "integer")
#: as promote, of floating numbers alone
promoted_real_floats = promote.without("bool", "integer", "complex")
#: as promote, of integers and floating numbers
promoted_real_numbers = promote.without("bool", "complex")
#: as promote, but integers become the default floating dtype first
floating = DtypeRule("floating", compute=_to_floating, results=(_to_floating,), arithmetic=True)
#: a comparison or predicate: operands promoted, result bool
boolean = DtypeRule("boolean", results=(lambda d: dtypes.bool_,))
#: statistics that are kept for a gradient: half types keep them in float32, in which they compute
statistic = DtypeRule("statistic", results=(computed,))
#: positions: result int64
index = DtypeRule("index", results=(lambda d: dtypes.int64,))
#: exponents of numbers: result int32
exponents = DtypeRule("exponents", results=(lambda d: dtypes.int32,))
#: elements that are picked by their order, and their positions
picks = ordered.giving(same, index)
#: sums and products: integers and bool give int64
accumulate = DtypeRule("accumulate", results=(_wide_integer,))
#: moduli and real parts: complex gives its real dtype
real = DtypeRule("real", results=(dtype.to_real,))
#: pairs of reals seen as complex numbers
complex_of = DtypeRule("complex", results=(dtype.to_complex,), categories=frozenset({FLOATING}))
#: real results of floating computations (std, norm)
floating_real = DtypeRule("floating_real", compute=_to_floating, results=(lambda d: _to_floating(d).to_real(),))
#: as floating_real, of floating and complex numbers alone
moments = floating_real.without("bool", "integer")
