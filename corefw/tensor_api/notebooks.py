"""Tensors in notebooks: small matrices as tables, pictures as pictures."""

from __future__ import annotations

import io
from binascii import b2a_base64
from importlib.util import find_spec

from corefw.dtypes import uint8
from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor
from corefw.tensor_api.attach import method

_MOST = 20  # rows and columns of a table
_LEAST = 8  # pixels each way of a picture


@method
def _repr_html_(self: Tensor) -> str | None:
    """What a notebook shows: a picture of (H, W), (1, H, W) or (3, H, W) bytes or reals from 0 to 1, a table of a small
    matrix or vector; None, for the text, of anything else.

    >>> import corefw as torch
    >>> torch.tensor([[1, 2], [3, 4]])._repr_html_().count("<td")
    4
    """
    if self.device.type == "meta" or self.is_sparse or not self.numel():
        return None
    with no_recording():
        values = self.detach().cpu()
        if _is_picture(values):
            return _picture(values)
        if values.dim() not in (1, 2) or max(values.shape) > _MOST:
            return None
        rows = values.tolist() if values.dim() == 2 else [values.tolist()]
    cells = "".join("<tr>" + "".join(f"<td>{_shown(x)}</td>" for x in row) + "</tr>" for row in rows)
    return f"<table>{cells}</table><code>{self.dtype} {list(self.shape)} on {self.device}</code>"


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_picture(values: Tensor) -> bool:
    if (
        values.dim() not in (2, 3)
        or min(values.shape[-2:]) < _LEAST
        or (values.dim() == 3 and len(values) not in (1, 3))
    ):
        return False
    if values.dtype is uint8:
        return find_spec("PIL") is not None
    if not values.is_floating_point() or find_spec("PIL") is None:
        return False
    return bool((values >= 0).all()) and bool((values <= 1).all())


def _picture(values: Tensor) -> str:
    from PIL import Image

    if values.dtype is not uint8:
        values = (values * 255).round().to(uint8)
    if values.dim() == 3:
        values = values[0] if len(values) == 1 else values.permute(1, 2, 0).contiguous()
    file = io.BytesIO()
    Image.fromarray(values.numpy()).save(file, format="PNG")
    height, width = values.shape[:2]
    larger = max(1, 128 // max(height, width))
    data = b2a_base64(file.getvalue(), newline=False).decode()
    return (
        f'<img src="data:image/png;base64,{data}" width="{width * larger}" height="{height * larger}" '
        'style="image-rendering: pixelated">'
    )
