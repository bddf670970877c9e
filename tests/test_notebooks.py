"""What notebooks show: small matrices as tables, pictures as pictures, models as their tables."""

import base64
import io
import re

import numpy as np
import pytest

import corefw as torch


def test_small_matrices_are_tables():
    shown = torch.tensor([[1.0, 2.5], [float("nan"), -3.0]])._repr_html_()
    assert re.findall(r"<td>([^<]*)</td>", shown) == ["1", "2.5", "nan", "-3"]
    assert "torch.float32 [2, 2] on cpu" in shown
    assert torch.tensor([True, False])._repr_html_().count("<td>") == 2


@pytest.mark.parametrize("shape", [(), (0,), (2, 2, 2), (21, 2)])
def test_others_are_text(shape):
    assert torch.zeros(shape)._repr_html_() is None
    assert torch.zeros(3, device="meta")._repr_html_() is None


@pytest.mark.parametrize("shape", [(9, 12), (1, 9, 12), (3, 9, 12)])
def test_pictures(shape):
    image = pytest.importorskip("PIL.Image")
    values = torch.rand(shape, generator=torch.Generator().manual_seed(0)).requires_grad_()
    for given in (values, (values.detach() * 255).round().to(torch.uint8)):
        data = re.search(r"base64,([^\"]*)\"", given._repr_html_())[1]
        seen = np.asarray(image.open(io.BytesIO(base64.b64decode(data))))
        expected = (values.detach() * 255).round().to(torch.uint8)
        expected = expected[0] if shape[0] == 1 else expected.permute(1, 2, 0) if len(shape) == 3 else expected
        assert np.array_equal(seen, np.asarray(expected))
    assert "img" not in ((values * 2)._repr_html_() or "")


def test_models_are_tables():
    assert "Linear" in torch.nn.Sequential(torch.nn.Linear(2, 1)).summary(torch.ones(1, 2))._repr_html_()
