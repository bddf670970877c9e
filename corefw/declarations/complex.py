"""Complex numbers: their parts, conjugates and angles, and the views between complex and real memory."""

from __future__ import annotations

from dataclasses import replace

from corefw.dispatch.declare import composite, ops, primitive, view
from corefw.dispatch.rules import complex_of, floating_real, real_floats, same
from corefw.dispatch.rules import real as real_of
from corefw.dtypes import bool_, dtype
from corefw.errors import DtypeError, ShapeError
from corefw.shapes import broadcast, contiguous_strides, same_shape
from corefw.versions import ConjugateCount


@view(dtype=real_of.without("bool", "integer", "floating"), public="corefw")
def view_as_real(input):
    """A view of complex numbers as pairs of real ones, in a new last dimension of size 2.

    >>> import corefw as torch
    >>> torch.view_as_real(torch.tensor([1 + 2j, 3 - 4j]))
    tensor([[ 1.,  2.],
            [ 3., -4.]])
    """
    shape, strides, offset = input
    return (*shape, 2), (*(2 * stride for stride in strides), 1), 2 * offset


view_as_real.gradients(input=lambda grad: ops.view_as_complex(grad.contiguous()))


@view(dtype=complex_of, public="corefw")
def view_as_complex(input):
    """A view of pairs of real numbers, in the last dimension, as complex ones.

    Args:
        input: the last dimension has size 2 and stride 1, the strides of the others are even.

    >>> import corefw as torch
    >>> torch.view_as_complex(torch.tensor([[1.0, 2.0], [3.0, -4.0]]))
    tensor([1.+2.j, 3.-4.j])
    """
    shape, strides, offset = input
    if not shape or shape[-1] != 2:
        raise ShapeError(f"view_as_complex: Tensor must have a last dimension of size 2, but has shape {list(shape)}")
    if 0 in shape:
        return shape[:-1], contiguous_strides(shape[:-1]), offset // 2
    if strides[-1] != 1:
        raise ShapeError(
            f"view_as_complex: Tensor must have a last dimension with stride 1, but has stride {strides[-1]}"
        )
    if any(stride % 2 for n, stride in zip(shape[:-1], strides, strict=False) if n > 1):
        raise ShapeError(
            f"view_as_complex: Tensor must have even strides but for the last one, but has {list(strides)}"
        )
    if offset % 2:
        raise ShapeError(f"view_as_complex: Tensor must have a storage_offset divisible by 2, but has {offset}")
    return shape[:-1], tuple(stride // 2 for stride in strides[:-1]), offset // 2


view_as_complex.gradients(input=lambda grad: ops.view_as_real(grad))


@composite(public="corefw")
def real(input):
    """The real part: a view of complex numbers, a real tensor itself. Also the attribute `Tensor.real`.

    >>> import corefw as torch
    >>> torch.real(torch.tensor([1 + 2j, 3 - 4j]))
    tensor([1., 3.])
    """
    return ops.view_as_real(input).select(-1, 0) if input.dispatch_key.dtype.is_complex else input


@composite(public="corefw")
def imag(input):
    """The imaginary part, a view; a real tensor is refused. Also the attribute `Tensor.imag`.

    >>> import corefw as torch
    >>> torch.imag(torch.tensor([1 + 2j, 3 - 4j]))
    tensor([ 2., -4.])
    """
    if not input.dispatch_key.dtype.is_complex:
        raise DtypeError("imag is not implemented for tensors with non-complex dtypes.")
    return ops.view_as_real(input).select(-1, 1)


@composite()
def conj(input):
    """The complex conjugate, computed at once; a real tensor itself.

    In-place changes of a conjugate are refused, as they would not reach `input`; nor does it show later changes of
    `input`. The conjugate of a conjugate is a view of the tensor that was conjugated first.

    >>> import corefw as torch
    >>> torch.conj(torch.tensor([1 + 2j, 3 - 4j]))
    tensor([1.-2.j, 3.+4.j])
    """
    if not input.dispatch_key.dtype.is_complex:
        return input
    count = input.version[0]
    if count.__class__ is ConjugateCount and count.array is input.array:
        return ops.alias(count.base)
    result = ops.conj_physical(input)
    refusing = ConjugateCount()
    refusing.base, refusing.array, refusing.pending = input, result.array, not is_conj(input)
    result.version = [refusing]
    return result


@primitive(dtype=same, shape=same_shape, inplace=True, out=True)
def conj_physical(input):
    """The complex conjugate in new memory.

    >>> import corefw as torch
    >>> torch.conj_physical(torch.tensor([1 + 2j, 3 - 4j]))
    tensor([1.-2.j, 3.+4.j])
    """


conj_physical.gradients(input=lambda grad: ops.conj_physical(grad))


@composite()
def resolve_conj(input):
    """A copy of a conjugate, which may be changed; every other tensor itself.

    >>> import corefw as torch
    >>> torch.resolve_conj(torch.tensor([1 + 2j]).conj()).zero_()
    tensor([0.+0.j])
    """
    return input.clone() if is_conj(input) else input


@composite()
def resolve_neg(input):
    """`input` itself: no tensor has its negation pending.

    >>> import corefw as torch
    >>> torch.resolve_neg(torch.tensor([1.0]))
    tensor([1.])
    """
    return input


@composite()
def is_neg(input) -> bool:
    """False: no tensor has its negation pending, as the imaginary part of a conjugate has in PyTorch.

    >>> import corefw as torch
    >>> torch.tensor([1 + 2j]).conj().imag.is_neg()
    False
    """
    return False


@composite()
def is_conj(input) -> bool:
    """Whether `input` is what `conj`, `adjoint`, ``mH`` or ``H`` gave, or a view of it.

    >>> import corefw as torch
    >>> x = torch.tensor([1 + 2j])
    >>> torch.is_conj(x), torch.is_conj(x.conj()), torch.is_conj(x.conj().conj())
    (False, True, False)
    """
    count = input.version[0]
    return count.__class__ is ConjugateCount and count.pending and input.dispatch_key.dtype.is_complex


@composite(public="corefw")
def is_complex(input) -> bool:
    """Whether the elements are complex.

    >>> import corefw as torch
    >>> torch.is_complex(torch.tensor([1 + 2j]))
    True
    """
    return input.dispatch_key.dtype.is_complex


@composite()
def isreal(input):
    """Where the imaginary part is 0; everywhere in a real tensor.

    >>> import corefw as torch
    >>> torch.isreal(torch.tensor([1 + 2j, 3 + 0j]))
    tensor([False,  True])
    """
    return imag(input) == 0 if input.dispatch_key.dtype.is_complex else ops.ones_like(input, dtype=bool_)


@primitive(dtype=floating_real, shape=same_shape, out=True)
def angle(input):
    """The angle of complex numbers in radians; of real numbers pi if negative, else 0, NaN for NaN.

    >>> import corefw as torch
    >>> torch.angle(torch.tensor([1 + 1j, -1 + 0j]))
    tensor([0.7854, 3.1416])
    """


@angle.gradient("input")
def angle_vjp(grad, input):
    if not input.dispatch_key.dtype.is_complex:
        return ops.zeros_like(grad)
    modulus = input.abs()
    slope = grad * 1j * input / (modulus * modulus)
    return ops.where(modulus == 0, 0, slope)


# -- from real numbers ------------------------------------------------------------------------------------------------
#: operands agree already; the result is of the complex dtype of the same precision
_to_complex = replace(real_floats, results=(dtype.to_complex,))


@primitive(dtype=_to_complex, shape=broadcast, name="complex", out=True)
def complex_(real, imag):
    """``real + i imag``, elementwise.

    Args:
        real, imag: tensors of the same floating dtype whose shapes broadcast.

    >>> import corefw as torch
    >>> torch.complex(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor([1.+3.j, 2.+4.j])
    """


complex_.gradients(
    real=lambda grad: grad.real,
    imag=lambda grad: grad.imag,
)


@composite(out=True)
def polar(abs, angle):
    """``abs (cos angle + i sin angle)``, elementwise: complex numbers from modulus and argument, as for `complex`.

    >>> import corefw as torch
    >>> torch.polar(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]))
    tensor([1.+0.j, 2.+0.j])
    """
    if abs.dtype is not angle.dtype:
        raise DtypeError(
            f"Expected object of scalar type {abs.dtype.title} but got scalar type {angle.dtype.title} for second "
            "argument"
        )
    return complex_(abs * angle.cos(), abs * angle.sin())
