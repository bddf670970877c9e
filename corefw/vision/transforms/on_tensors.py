"""Transforms of tensor images, of shape (..., channels, height, width); a tensor (height, width) has one channel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import corefw
from corefw import Tensor
from corefw.nn.functional import conv2d
from corefw.vision.transforms.resampling import resize
from corefw.vision.transforms.sampling import affine, elastic_transform, perspective
from corefw.vision.transforms.values import colours, computable, convert_image_dtype, get_dimensions, restored, white

__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "adjust_sharpness",
    "affine",
    "autocontrast",
    "convert_image_dtype",
    "crop",
    "elastic_transform",
    "equalize",
    "erase",
    "gaussian_blur",
    "get_dimensions",
    "hflip",
    "invert",
    "normalize",
    "pad",
    "perspective",
    "posterize",
    "resize",
    "rgb_to_grayscale",
    "solarize",
    "vflip",
]


def normalize(tensor: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool) -> Tensor:
    """``(tensor - mean) / std`` for each channel."""
    if not tensor.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.ndim < 3:
        raise ValueError(
            f"Expected tensor to be a tensor image of size (..., C, H, W). Got tensor.size() = {tensor.size()}"
        )
    shift, scale = (corefw.as_tensor(v, dtype=tensor.dtype, device=tensor.device) for v in (mean, std))
    if bool((scale == 0).any()):
        raise ValueError(f"std evaluated to zero after conversion to {tensor.dtype}, leading to division by zero.")
    shift, scale = (v.view(-1, 1, 1) if v.ndim == 1 else v for v in (shift, scale))
    return tensor.sub_(shift).div_(scale) if inplace else (tensor - shift) / scale


def hflip(img: Tensor) -> Tensor:
    """Left and right exchanged."""
    get_dimensions(img)
    return img.flip(-1)


def vflip(img: Tensor) -> Tensor:
    """Top and bottom exchanged."""
    get_dimensions(img)
    return img.flip(-2)


def crop(img: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """The pixels of a rectangle; what lies outside of the image is 0."""
    _, rows, columns = get_dimensions(img)
    bottom, right = top + height, left + width
    inside = img[..., max(top, 0) : max(min(bottom, rows), 0), max(left, 0) : max(min(right, columns), 0)]
    if inside.shape[-2:] == (height, width):
        return inside
    framed = img.new_zeros((*img.shape[:-2], height, width))
    if inside.numel():
        y, x = max(-top, 0), max(-left, 0)
        framed[..., y : y + inside.shape[-2], x : x + inside.shape[-1]] = inside
    return framed


def pad(img: Tensor, borders: Sequence[int], fill: float | Sequence[float], padding_mode: str) -> Tensor:
    """A frame around the image; `borders` are left, top, right and bottom, and a negative one cuts off."""
    _, height, width = get_dimensions(img)
    left, top, right, bottom = borders
    if min(borders) < 0:
        kept = [max(-border, 0) for border in borders]
        img = crop(img, kept[1], kept[0], height - kept[1] - kept[3], width - kept[0] - kept[2])
        return pad(img, [max(border, 0) for border in borders], fill, padding_mode)
    if padding_mode == "constant":
        if not isinstance(fill, int | float):
            raise TypeError("Got inappropriate fill arg")
        framed = img.new_full((*img.shape[:-2], height + top + bottom, width + left + right), fill)
        framed[..., top : top + height, left : left + width] = img
        return framed
    mode = padding_mode  # by NumPy's name
    rows, columns = (
        corefw.from_numpy(np.pad(np.arange(size), border, mode=mode)).to(img.device)  # type: ignore[call-overload]
        for size, border in ((height, (top, bottom)), (width, (left, right)))
    )
    return img.index_select(-2, rows).index_select(-1, columns)


def rgb_to_grayscale(img: Tensor, num_output_channels: int) -> Tensor:
    """The luma of the ITU-R 601-2 transform: 0.2989 red + 0.587 green + 0.114 blue."""
    if img.ndim < 3:
        raise TypeError(f"Input image tensor should have at least 3 dimensions, but found {img.ndim}")
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    if colours(img) == 3:
        red, green, blue = img.unbind(-3)
        luma = (0.2989 * red + 0.587 * green + 0.114 * blue).to(img.dtype).unsqueeze(-3)
    else:
        luma = img.clone()
    return luma.expand(*luma.shape[:-3], 3, *luma.shape[-2:]) if num_output_channels == 3 else luma


def _blend(img: Tensor, other: Tensor | float, ratio: float) -> Tensor:
    return (img * ratio + other * (1.0 - ratio)).clamp(0, white(img.dtype)).to(img.dtype)


def adjust_brightness(img: Tensor, brightness_factor: float) -> Tensor:
    """Blended with black."""
    colours(img)
    return _blend(img, 0.0, brightness_factor)


def adjust_contrast(img: Tensor, contrast_factor: float) -> Tensor:
    """Blended with the mean of its luma."""
    luma = rgb_to_grayscale(img, 1) if colours(img) == 3 else img
    mean = (luma if img.is_floating_point() else luma.to(corefw.float32)).mean(
        tuple(range(-min(luma.ndim, 3), 0)), keepdim=True
    )
    return _blend(img, mean, contrast_factor)


def adjust_saturation(img: Tensor, saturation_factor: float) -> Tensor:
    """Blended with its luma."""
    return img if colours(img) == 1 else _blend(img, rgb_to_grayscale(img, 1), saturation_factor)


def adjust_hue(img: Tensor, hue_factor: float) -> Tensor:
    """The hue turned by `hue_factor` turns."""
    if colours(img) == 1:
        return img
    hue, saturation, value = _hsv(convert_image_dtype(img, corefw.float32))
    turned = _rgb((hue + hue_factor) % 1.0, saturation, value)
    return convert_image_dtype(turned, img.dtype)


def _hsv(img: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue, saturation and value, each from 0 to 1 (A. Smith, Color gamut transform pairs, 1978)."""
    red, green, blue = img.unbind(-3)
    value, low = img.amax(-3), img.amin(-3)
    chroma = value - low
    grey = chroma == 0
    divisor = corefw.where(grey, 1.0, chroma)
    sextant = corefw.where(
        value == red,
        (green - blue) / divisor,
        corefw.where(value == green, 2.0 + (blue - red) / divisor, 4.0 + (red - green) / divisor),
    )
    return (sextant / 6.0) % 1.0, chroma / corefw.where(grey, 1.0, value), value


def _rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """The inverse of `_hsv`: each colour is ``value * (1 - saturation * clamp(min(k, 4 - k), 0, 1))`` with
    ``k = (n + 6 hue) mod 6`` and n = 5, 3, 1 for red, green and blue."""
    channels = []
    for n in (5.0, 3.0, 1.0):
        k = (n + hue * 6.0) % 6.0
        channels.append(value * (1.0 - saturation * corefw.minimum(k, 4.0 - k).clamp(0.0, 1.0)))
    return corefw.stack(channels, -3)


def adjust_gamma(img: Tensor, gamma: float, gain: float) -> Tensor:
    """``gain * img ** gamma``, with full brightness as 1."""
    colours(img)
    image = img if img.is_floating_point() else convert_image_dtype(img, corefw.float32)
    return convert_image_dtype((gain * image**gamma).clamp(0, 1), img.dtype)


def _channels_of(img: Tensor) -> int:
    if img.ndim < 3:
        raise TypeError(f"Input image tensor should have at least 3 dimensions, but found {img.ndim}")
    return colours(img)


def _bytes_of(img: Tensor) -> Tensor:
    if img.dtype != corefw.uint8:
        raise TypeError(f"Only torch.uint8 image tensors are supported, but found {img.dtype}")
    return img


def invert(img: Tensor) -> Tensor:
    """Bright and dark exchanged."""
    _channels_of(img)
    return white(img.dtype) - img


def posterize(img: Tensor, bits: int) -> Tensor:
    """The highest `bits` bits of each value."""
    _channels_of(img)
    return _bytes_of(img) & (256 - 2 ** (8 - bits))


def solarize(img: Tensor, threshold: float) -> Tensor:
    """Bright and dark exchanged from `threshold` on."""
    _channels_of(img)
    if threshold > white(img.dtype):
        raise TypeError("Threshold should be less than bound of img.")
    return corefw.where(img >= threshold, invert(img), img)


def autocontrast(img: Tensor) -> Tensor:
    """The values of each channel stretched from 0 to full brightness; a channel of one value stays."""
    _channels_of(img)
    top = white(img.dtype)
    image = img if img.is_floating_point() else img.to(corefw.float32)
    low, high = image.amin((-2, -1), keepdim=True), image.amax((-2, -1), keepdim=True)
    scale = (high - low).reciprocal() * top
    flat = scale.isfinite().logical_not()
    stretched = (image - low.masked_fill(flat, 0)) * scale.masked_fill(flat, 1)
    return stretched.clamp(0, top).to(img.dtype)


def equalize(img: Tensor) -> Tensor:
    """Each channel's values mapped so that all are about as frequent; a channel that has too few of them stays."""
    _channels_of(_bytes_of(img))
    if img.numel() == 0:
        return img
    channels = img.reshape(-1, img.shape[-2] * img.shape[-1])
    return corefw.stack([_equalized(channel) for channel in channels]).reshape(img.shape)


def _equalized(channel: Tensor) -> Tensor:
    counts = channel.bincount(minlength=256)
    step = int(counts.sum() - counts[channel.max().long()]) // 255
    if step == 0:
        return channel
    before = counts.cumsum(0) - counts
    return ((before + step // 2) // step).clamp(0, 255).to(corefw.uint8)[channel.long()]


def _filtered(img: Tensor, kernel: Tensor, borders: Sequence[int]) -> Tensor:
    """Each channel convolved with `kernel`, mirrored at its edges by as much as `borders` say."""
    image = computable(img)
    stack = image.reshape(-1, 1, *img.shape[-2:])
    if any(borders):
        stack = pad(stack, borders, 0, "reflect")
    filtered = conv2d(stack, kernel.to(stack.device, stack.dtype)[None, None])
    return restored(filtered.reshape(*img.shape[:-2], *filtered.shape[-2:]), img.dtype)


def adjust_sharpness(img: Tensor, sharpness_factor: float) -> Tensor:
    """Blended with a smoothed image, whose outermost pixels are not smoothed."""
    colours(img)
    if min(img.shape[-2:]) <= 2:
        return img
    kernel = corefw.ones(3, 3, dtype=computable(img).dtype)
    kernel[1, 1] = 5.0
    smooth = img.clone()
    smooth[..., 1:-1, 1:-1] = _filtered(img, kernel / kernel.sum(), ())
    return _blend(img, smooth, sharpness_factor)


def _bell(size: int, sigma: float, dtype: corefw.dtype) -> Tensor:
    """A Gaussian function at `size` whole distances from its middle, with the sum 1."""
    distances = corefw.linspace(-(size - 1) * 0.5, (size - 1) * 0.5, size, dtype=dtype)
    values = (-0.5 * (distances / sigma) ** 2).exp()
    return values / values.sum()


def gaussian_blur(img: Tensor, kernel_size: Sequence[int], sigma: Sequence[float]) -> Tensor:
    """Convolved with a Gaussian function, of so many columns and rows."""
    get_dimensions(img)
    dtype = computable(img).dtype
    across, down = (_bell(size, width, dtype) for size, width in zip(kernel_size, sigma, strict=True))
    x, y = kernel_size[0] // 2, kernel_size[1] // 2
    return _filtered(img, down[:, None] * across[None, :], (x, y, x, y))


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool) -> Tensor:
    """`v` in the rectangle of `h` rows from row `i` and `w` columns from column `j`."""
    get_dimensions(img)
    if not inplace:
        img = img.clone()
    img[..., i : i + h, j : j + w] = v
    return img
