"""Whose memory a result is: itself, a view or a copy, beside PyTorch's answer."""

import numpy as np
import pytest

import corefw
from tests.parity import import_torch

INPUTS = {
    "cube": lambda t: t.arange(24.0).reshape(2, 3, 4),
    "vector": lambda t: t.arange(6.0),
    "scalar": lambda t: t.tensor(2.0),
    "matrix": lambda t: t.arange(9.0).reshape(3, 3),
    "row of one": lambda t: t.arange(4.0).reshape(1, 4, 1),
    "integers": lambda t: t.arange(6),
    "mask": lambda t: t.tensor([True, False, True]),
    "complex": lambda t: t.complex(t.arange(9.0).reshape(3, 3), t.ones(3, 3)),
    "transposed": lambda t: t.arange(6.0).reshape(2, 3).t(),
    "channels last": lambda t: t.zeros(2, 3, 4, 5).contiguous(memory_format=t.channels_last),
}

EXPRESSIONS = """
x.reshape(-1); x.reshape(x.shape); x.contiguous(); x.to(x.dtype); x.to(t.float64); x.to(x); x.to("cpu")
x.to(x.dtype, copy=True); x.to(memory_format=t.preserve_format); x.flatten(); x.ravel(); x.expand_as(x)
x.movedim(0, -1); x.moveaxis(0, 0); x.squeeze(); x.squeeze(0); x.squeeze(()); x.squeeze((0,)); x.narrow(0, 0, 1)
x.split(1); x.split(100); x.split([x.shape[0]]); x.unbind(0); x.diagonal(); x.real; t.real(x); x.imag
t.view_as_real(x); x.nan_to_num(); x.tile(1); x.tile(()); x.tile((1, 1)); x.repeat(1); x.repeat(1, 1, 1); x.repeat(())
t.meshgrid(x, indexing="ij"); t.meshgrid(x, x, indexing="xy"); t.broadcast_tensors(x); t.broadcast_tensors(x, x)
t.broadcast_tensors(x, x[None]); t.broadcast_to(x, x.shape); t.atleast_1d(x); t.atleast_2d(x); t.atleast_3d(x)
t.atleast_1d(x, x); x.swapaxes(0, -1); x.swapaxes(0, 0); x.transpose(0, -1); x.T; x.rot90(0); x.rot90(1); x.rot90(4)
x.flip(()); x.flip(-1) if x.ndim else x; x.fliplr(); x.flipud(); x.roll(0); x.roll(1); x.unfold(0, 1, 1); x.chunk(1)
x.chunk(2); x.tensor_split(1); x.tensor_split([1]); x.hsplit(1); x.vsplit(1); x.dsplit(1); x.select(0, 0)
x.masked_select(x == x); x.index_select(0, t.arange(x.shape[0])); x.take(t.arange(2)); t.cat([x]); t.stack([x])
t.hstack([x]); t.vstack([x]); t.dstack([x]); t.column_stack([x]); x.clone(); x.type(x.dtype); x.type(t.float64)
x.type_as(x); x.float(); x.double(); x.cpu(); x.detach(); x.data; x.requires_grad_(False); x[...]; x[:]; x[None]; x[0]
x[()]; x[x == x]; x[[0]]; x[t.tensor([0])]; x[t.tensor(0)]; x[True]; x[None, ...]; x.view(x.shape); x.view(x.dtype)
x.view(-1); x.view_as(x); x.reshape_as(x); x.expand(x.shape); x.expand(2, *x.shape); x.expand(x.shape).contiguous()
x.sum(()); x.sum_to_size(x.shape); x.positive(); +x; x.abs(); x.clamp(min=-100); x.round(); x.ceil(); x.floor()
x.tril(100); x.triu(-100); x.diag(); x.diagflat(); x.diag_embed(); x.as_strided(x.shape, x.stride()); x.unsqueeze(0)
x.unflatten(0, (-1, 1)); x.permute(*range(x.ndim)); x.repeat_interleave(1); x.repeat_interleave(3)
x.repeat_interleave(1, dim=-1) if x.ndim else x; x.repeat_interleave(t.tensor([1])); x.repeat_interleave(t.tensor(1))
x.gather(0, t.zeros_like(x, dtype=t.int64)); t.where(x == x, x, x); x.masked_fill(x != x, 0); x.sort(0)[0]; x.cumsum(0)
t.asarray(x); t.as_tensor(x); t.asarray(x, dtype=x.dtype); t.as_tensor(x.numpy()); t.from_numpy(x.numpy()); t.tensor(x)
t.nn.functional.dropout(x, 0.5, False); t.nn.functional.pad(x, (0, 0)); t.nn.functional.relu(x); t.nn.Identity()(x)
t.nn.Flatten()(x); t.nn.Dropout(0.5).eval()(x); t.nn.functional.alpha_dropout(x, 0.5, False); t.einsum("ij->ij", x)
t.einsum("...->...", x); t.einsum("ij->ji", x); t.einsum("ii->i", x); x.mean(()); x.pow(1); x.half().half()
x.bool().bool(); x.long().long(); x.int().int(); t.nn.functional.pixel_shuffle(x[None], 1); x.nonzero(); x.new_tensor(x)
t.nn.functional.channel_shuffle(x, 1); t.linalg.matrix_power(x, 1); t.linalg.diagonal(x); x.diff(0); x.nansum(())
t.select_scatter(x, x[0], 0, 0); t.slice_scatter(x, x); t.diagonal_scatter(x, x.diagonal()); x.amax(())
t.flatten(x, 0, 0); t.flatten(x, 1); x.masked_scatter(x != x, x); x.numpy(); x.conj() if not x.is_complex() else x
t.cartesian_prod(x); t.block_diag(x); x.argwhere(); t.nn.utils.parameters_to_vector([x]); x.logical_and(x)
t.nn.functional.interpolate(x[None], scale_factor=1.0); t.nn.functional.hardtanh(x, -1e9, 1e9)
t.fft.fftn(x + 0j, dim=()); t.fft.ifftn(x); t.fft.fftn(x, s=(), dim=()); t.fft.fftshift(x, 0)
"""


def sharing(t, result, x):
    """Whether a result, or each of several, is `x` itself, and whether it lies in its memory."""
    if isinstance(result, tuple | list):
        return [sharing(t, part, x) for part in result]
    if isinstance(result, np.ndarray):
        return result.__array_interface__["data"][0] == x.data_ptr()
    return result is x, result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", [e.strip() for e in EXPRESSIONS.replace("\n", ";").split(";") if e.strip()])
def test_results_share_memory_as_in_pytorch(expression):
    torch = import_torch()
    compared = 0
    for name, make in INPUTS.items():
        theirs, ours = make(torch), make(corefw)
        try:
            expected = sharing(torch, eval(expression, {"t": torch, "x": theirs}), theirs)
        except (RuntimeError, IndexError, ValueError, TypeError):
            continue  # nothing is said of whose memory an error is
        assert sharing(corefw, eval(expression, {"t": corefw, "x": ours}), ours) == expected, name
        compared += 1
    assert compared


def test_repetitions_are_memory_of_their_own():
    x = corefw.arange(3.0)
    repeated = corefw.repeat_interleave(x, 1)
    repeated[0] = 9
    assert x.tolist() == [0, 1, 2]
    repeated = corefw.repeat_interleave(corefw.tensor(2.0), 3)
    repeated[0] = 9
    assert repeated.tolist() == [9, 2, 2]


def test_a_view_has_at_least_the_dimensions_of_what_it_shows():
    with pytest.raises(RuntimeError, match="number of sizes provided"):
        corefw.zeros(1, 4, 1).expand(4, 2)


# -- parts written into a copy ----------------------------------------------------------------------------------------
BASES = {
    "vector": lambda t: t.arange(8.0),
    "matrix": lambda t: t.arange(8.0).reshape(2, 4),
    "transposed": lambda t: t.arange(8.0).reshape(2, 4).t(),
    "part": lambda t: t.arange(10.0)[2:],
    "expanded": lambda t: t.zeros(1, 4).expand(2, 4),
}


@pytest.mark.oracle
@pytest.mark.parametrize("base", BASES)
def test_a_part_by_strides_is_written_where_the_memory_of_the_input_has_it(base):
    torch = import_torch()
    for size, stride, offset in [
        ((2,), (1,), None),
        ((2, 2), (2, 1), 1),
        ((3,), (2,), 0),
        ((), (), 2),
        ((0,), (1,), 0),
    ]:
        results = []
        for t in (torch, corefw):
            result = t.as_strided_scatter(BASES[base](t), t.full(size, -1.0), size, stride, offset)
            results.append((result.tolist(), result.stride(), result.storage_offset()))
        assert results[0] == results[1], (size, stride, offset)


@pytest.mark.parametrize("base", BASES)
def test_the_gradient_of_a_part_by_strides(base):
    x, src = BASES[base](corefw).double(), corefw.ones(2, dtype=corefw.float64, requires_grad=True)
    x.requires_grad_()
    assert corefw.autograd.gradcheck(lambda x, src: corefw.as_strided_scatter(1 * x, src, (2,), (3,), 2), (x, src))
    if base != "expanded":
        assert corefw.autograd.gradcheck(lambda src: corefw.as_strided_scatter(x.detach(), src, (2,), (3,), 2), (src,))


@pytest.mark.parametrize(
    "change",
    ["select_scatter(x, src[0], 0, 1)", "slice_scatter(x, src, 0, 1, 3)", "as_strided_scatter(x, src, (2,), (1,))"],
)
def test_parts_take_the_dtype_of_what_they_are_written_into(change):
    x, src = corefw.zeros(4, dtype=corefw.int64), corefw.full((2,), 1.5)
    assert eval(f"corefw.{change}", {"corefw": corefw, "x": x, "src": src}).dtype is corefw.int64


# -- conjugates -------------------------------------------------------------------------------------------------------
CONJUGATES = {
    "conj": lambda x: x.conj(),
    "adjoint": lambda x: x.adjoint(),
    "mH": lambda x: x.mH,
    "H": lambda x: x.H,
    "a part of one": lambda x: x.conj()[0],
    "one turned": lambda x: x.mH.transpose(0, 1),
    "one of a part of one": lambda x: x.conj()[0].conj(),
    "the real part of one": lambda x: x.conj().real,
    "the imaginary part of one": lambda x: x.conj().imag,
    "detached": lambda x: x.conj().detach(),
    "as pairs": lambda x: corefw.view_as_real(x.conj()),
}
CHANGES = {
    "add_": lambda y: y.add_(1),
    "fill_": lambda y: y.fill_(1),
    "copy_": lambda y: y.copy_(corefw.ones(y.shape, dtype=y.dtype)),
    "setitem": lambda y: y.__setitem__(0, 1),
    "setitem by positions": lambda y: y.__setitem__(corefw.tensor([0]), 1),
    "out": lambda y: corefw.add(corefw.ones(y.shape, dtype=y.dtype), 1, out=y),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", CONJUGATES)
def test_changes_of_conjugates_reach_their_base_or_are_refused(name, change):
    """In PyTorch a conjugate is a view: a change of it is one of its base."""
    x = corefw.tensor([[1 + 2j, 3 - 1j], [2 + 0j, 1 + 1j]])
    with pytest.raises(RuntimeError, match="conjugate"):
        CHANGES[change](CONJUGATES[name](x))
    for real in (corefw.zeros(2, 2), corefw.zeros(2, 2, dtype=corefw.int64)):
        if "real" not in name and "imaginary" not in name and name != "as pairs":
            before = real.tolist()
            CHANGES[change](CONJUGATES[name](real))
            assert real.tolist() != before


def test_the_conjugate_of_a_conjugate_is_a_view():
    x = corefw.tensor([[1 + 2j, 3 - 1j]])
    x.conj().conj().add_(1)
    assert x.tolist() == [[2 + 2j, 4 - 1j]]
    assert not x.conj().conj().is_conj()


@pytest.mark.oracle
@pytest.mark.parametrize("name", [name for name in CONJUGATES if name != "as pairs"])  # which PyTorch refuses
@pytest.mark.parametrize("dtype", ["complex64", "float32"])
def test_what_is_a_conjugate(name, dtype):
    if dtype == "float32" and "imaginary" in name:
        return  # real tensors have no such part
    torch = import_torch()
    ours, theirs = (CONJUGATES[name](t.ones(2, 2, dtype=getattr(t, dtype))) for t in (corefw, torch))
    assert ours.is_conj() == theirs.is_conj()
    assert (ours.resolve_conj() is ours) == (theirs.resolve_conj() is theirs)
    assert not ours.resolve_conj().is_conj()


def test_copies_of_conjugates_may_be_changed():
    x = corefw.tensor([[1 + 2j, 3 - 1j]])
    for copy in (x.conj().resolve_conj(), x.conj_physical(), x.conj().clone(), x.mH + 0, x.H.resolve_conj()):
        copy.fill_(0)
    assert x.tolist() == [[1 + 2j, 3 - 1j]]
    assert x.resolve_conj() is x


def test_gradients_of_conjugates_may_be_changed():
    x = corefw.tensor([[1 + 2j, 3 - 1j]], requires_grad=True)
    for function in (corefw.conj, lambda x: x.mH, lambda x: x.conj().conj()):
        x.grad = None
        function(x).real.sum().backward()
        x.grad.zero_()
    assert corefw.autograd.gradcheck(
        lambda x: x.conj().conj() * x.conj(), (x.detach().to(corefw.complex128).requires_grad_(),)
    )


def test_results_built_from_conjugates_may_be_changed():
    A = corefw.tensor([[2 + 0j, 1j], [-1j, 2 + 0j]])
    corefw.linalg.cholesky(A, upper=True).zero_()
    for part in (*corefw.svd(A), *corefw.linalg.svd(A), *corefw.linalg.qr(A)):
        part.zero_()
