"""Transforms of uint8 pictures whose results are torchvision's, value for value.

`picture_sums.json` has the CRC-32 of what torchvision 0.29.1 makes of each; where torchvision is installed,
``python -m tests.picture_cases`` writes it anew.
"""

import json
import zlib
from pathlib import Path

import numpy as np

SUMS = Path(__file__).parent / "picture_sums.json"
PICTURES = {
    "wide": np.random.default_rng(0).integers(0, 256, (3, 14, 18), dtype=np.uint8),
    "grey": np.random.default_rng(1).integers(40, 120, (1, 17, 15), dtype=np.uint8),
}
CORNERS = [[0, 0], [13, 0], [13, 13], [0, 13]], [[1, 2], [12, 1], [11, 12], [2, 13]]
CASES = {
    **{
        f"rotate {angle} {mode} {fill}": lambda F, x, angle=angle, mode=mode, fill=fill, expand=expand: F.rotate(
            x, angle, F.InterpolationMode(mode), expand, fill=fill
        )
        for angle, expand in ((33.3, True), (123, False), (-71.5, False))
        for mode in ("nearest", "bilinear")
        for fill in (None, [9.0])
    },
    "rotate about a point": lambda F, x: F.rotate(x, 30, center=[2, 5], fill=3),
    "affine": lambda F, x: F.affine(x, 10, [3, -2], 1.2, [5, 0]),
    "affine bilinear": lambda F, x: F.affine(x, -33, [1, 1], 0.7, [3, -8], F.InterpolationMode("bilinear"), 5.0),
    "affine about a corner": lambda F, x: F.affine(x, 0.0, [0, 0], 1.0, [16.7, 0.0], center=[0, 0]),
    "perspective": lambda F, x: F.perspective(x, *CORNERS),
    "perspective nearest": lambda F, x: F.perspective(x, *CORNERS, F.InterpolationMode("nearest"), 5.0),
    "gaussian_blur": lambda F, x: F.gaussian_blur(x, 3),
    "gaussian_blur oblong": lambda F, x: F.gaussian_blur(x, [5, 3], [0.7, 1.5]),
    "five_crop": lambda F, x: F.five_crop(x, (5, 6))[3],
    "ten_crop": lambda F, x: F.ten_crop(x, 4, True)[6],
    "invert": lambda F, x: F.invert(x),
    "autocontrast": lambda F, x: F.autocontrast(x),
    "equalize": lambda F, x: F.equalize(x),
    **{f"posterize {bits}": lambda F, x, bits=bits: F.posterize(x, bits) for bits in (0, 3, 8)},
    "solarize": lambda F, x: F.solarize(x, 100),
    **{
        f"adjust_{name} {factor}": lambda F, x, name=name, factor=factor: getattr(F, f"adjust_{name}")(x, factor)
        for name in ("brightness", "contrast", "saturation", "sharpness", "gamma")
        for factor in (0.3, 1.9)
    },
    "adjust_hue": lambda F, x: F.adjust_hue(x, 0.1),
    "rgb_to_grayscale": lambda F, x: F.rgb_to_grayscale(x),
}
#: these are of `torchvision.transforms.v2`, which computes in fixed point
RESIZES = {
    f"resize {height} {width} {mode} {antialias}": lambda F, x, size=(height, width), mode=mode, antialias=antialias: (
        F.resize(x, list(size), F.InterpolationMode(mode), antialias=antialias)
    )
    for height, width in ((8, 7), (5, 30), (20, 20))
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic")
    for antialias in (True, False)
}


def sums(cases, functional, tensor):
    """The CRC-32 of each case and picture; `tensor` makes one of an array."""
    return {
        f"{name}, {kind}": zlib.crc32(np.ascontiguousarray(case(functional, tensor(picture.copy())).numpy()).tobytes())
        for name, case in cases.items()
        for kind, picture in PICTURES.items()
    }


if __name__ == "__main__":
    import torch
    from torchvision.transforms import functional, v2

    found = sums(CASES, functional, torch.from_numpy) | sums(RESIZES, v2.functional, torch.from_numpy)
    SUMS.write_text(json.dumps(found, indent=0) + "\n")
