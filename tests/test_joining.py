"""Joining tensors: dtypes, overloads and errors beside the rows in cases."""

import pytest

import corefw as torch


def test_joined_dtypes_are_promoted():
    assert torch.cat([torch.ones(1, dtype=torch.int32), torch.ones(1)]).dtype is torch.float32
    assert torch.stack([torch.ones(1, dtype=torch.float64), torch.ones(1)]).dtype is torch.float64
    assert torch.cat([torch.ones(1, dtype=torch.bfloat16), torch.ones(1, dtype=torch.bfloat16)]).dtype is torch.bfloat16


def test_out():
    out = torch.empty(2)
    assert torch.cat([torch.ones(1), torch.zeros(1)], out=out) is out
    assert out.tolist() == [1.0, 0.0]


def test_gradients_of_joined_tensors_of_several_dtypes():
    a, b = torch.ones(2, requires_grad=True), torch.ones(1, dtype=torch.float64, requires_grad=True)
    (torch.cat([a, b]) * torch.tensor([1, 2, 3])).sum().backward()
    assert a.grad.dtype is torch.float32
    assert a.grad.tolist() == [1.0, 2.0]
    assert b.grad.tolist() == [3.0]


def test_aliases():
    pair = torch.ones(2), torch.zeros(2)
    assert torch.equal(torch.concat(pair), torch.cat(pair))
    assert torch.equal(torch.concatenate(pair), torch.cat(pair))
    assert torch.equal(torch.row_stack(pair), torch.vstack(pair))


def test_methods_take_separate_numbers():
    x = torch.arange(4).reshape(2, 2)
    assert torch.equal(x.repeat(2, 1), x.repeat((2, 1)))
    assert torch.equal(x.flip(0, 1), x.flip((0, 1)))
    assert torch.equal(x.tile(2, 2), torch.tile(x, (2, 2)))


def test_triangles_in_place():
    x = torch.ones(2, 2)
    x.triu_(1)
    assert x.tolist() == [[0.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    "error, message, call",
    [
        (RuntimeError, "Expected size 3 but got size 2 for tensor number 1", lambda x: torch.cat([x, x[:, :2]])),
        (RuntimeError, "zero-dimensional tensor", lambda x: torch.cat([x.sum(), x.sum()])),
        (RuntimeError, "same number of dimensions", lambda x: torch.cat([x, x[0]])),
        (IndexError, "Dimension out of range", lambda x: torch.cat([x, x], 2)),
        ((RuntimeError, ValueError), "non-empty list", lambda x: torch.cat([])),
        (TypeError, "Tensor as element 1", lambda x: torch.cat([x, 1])),
        (RuntimeError, "each tensor to be equal size", lambda x: torch.stack([x, x[0]])),
        (IndexError, "Dimension out of range", lambda x: torch.stack([x, x], 3)),
        (RuntimeError, "can not be smaller than number of dimensions", lambda x: x.repeat(2)),
        (RuntimeError, "negative dimension", lambda x: x.repeat(2, -1)),
        (RuntimeError, "appears multiple times", lambda x: x.flip(0, 0)),
        (IndexError, "Dimension out of range", lambda x: x.flip(2)),
        (RuntimeError, "shifts and dimensions must align", lambda x: x.roll(1, (0, 1))),
        (RuntimeError, "shifts and dimensions must align", lambda x: x.roll((1, 2))),
        (RuntimeError, "at least 2 dimensions", lambda x: x[0].tril()),
        (RuntimeError, "rotation dims to be different", lambda x: x.rot90(1, (0, 0))),
        (RuntimeError, "Supports 1D or 2D", lambda x: torch.diag(x[None])),
        (RuntimeError, "non-negative", lambda x: x.repeat_interleave(-1)),
        (RuntimeError, "same size as input along dim", lambda x: x.repeat_interleave(torch.tensor([1, 2, 3]), 0)),
        (RuntimeError, "divisible by the square of upscale_factor", lambda x: torch.pixel_shuffle(x[None], 2)),
        (RuntimeError, "same dtype", lambda x: torch.meshgrid(x[0], x[0].int(), indexing="ij")),
        (RuntimeError, "indexing must be one of", lambda x: torch.meshgrid(x[0], indexing="ji")),
    ],
)
def test_errors(error, message, call):
    with pytest.raises(error, match=message):
        call(torch.zeros(2, 3))


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("size", [2, 60])  # joined by NumPy, and by a kernel
def test_what_is_joined_lies_in_row_major_order_but_for_images_with_channels_last(backend, size):
    with torch.backend(backend):
        transposed = torch.arange(3.0 * size).reshape(3, size).t()
        joined = torch.cat([transposed, transposed])
        assert joined.is_contiguous() and joined.view(-1).tolist() == 2 * transposed.flatten().tolist()
        images = torch.rand(2, 3, size, 5).contiguous(memory_format=torch.channels_last)
        joined = torch.cat([images, images], 1)
        assert joined.is_contiguous(memory_format=torch.channels_last)
        assert torch.equal(joined, torch.cat([images.contiguous()] * 2, 1))
        assert torch.cat([images, images.contiguous()]).is_contiguous()
