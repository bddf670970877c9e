"""Rearrange, reduce, repeat, einsum, packing and the layers."""

from common import fill, numbers, report
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from torch import nn

x = numbers(2, 4, 6, 3).requires_grad_()
patches = rearrange(x, "b (h p) (w q) c -> b (h w) (p q c)", p=2, q=3)
packed, shapes = pack([patches, patches[:, :1]], "b * c")
model = fill(
    nn.Sequential(
        Rearrange("b n c -> b c n"),
        EinMix("b c n -> b d n", weight_shape="c d", c=18, d=5),
        Reduce("b d n -> b d", "max"),
    )
)
out = model(patches)
(out.sum() + einsum(x, x, "b h w c, b h w d -> c d").sum()).backward()
report(
    out=out,
    mean=reduce(x, "b h w c -> b c", "mean"),
    repeated=repeat(out, "b d -> b d k", k=2),
    unpacked=unpack(packed, shapes, "b * c")[1],
    gradient=x.grad,
)
