"""Pictures as files and bytes, read and written by Pillow, in the form of `torchvision.io`."""

from __future__ import annotations

import io
import os
from enum import Enum
from typing import Any, NoReturn

import numpy as np

import corefw
from corefw import Tensor
from corefw.files import replacing
from corefw.vision.pillow import image_from_array, pillow, tensor_from_array

__all__ = [
    "ImageReadMode",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_webp",
    "encode_jpeg",
    "encode_png",
    "read_file",
    "read_image",
    "read_video",
    "read_video_timestamps",
    "write_file",
    "write_jpeg",
    "write_png",
    "write_video",
]


class ImageReadMode(Enum):
    """The channels that a picture is read with: its own, or of grey or colours, without or with transparency.

    >>> ImageReadMode("RGB")
    <ImageReadMode.RGB: 'RGB'>
    """

    UNCHANGED = "UNCHANGED"
    GRAY = "GRAY"
    GRAY_ALPHA = "GRAY_ALPHA"
    RGB = "RGB"
    RGB_ALPHA = "RGB_ALPHA"


_PILLOW_MODES = {
    ImageReadMode.GRAY: "L",
    ImageReadMode.GRAY_ALPHA: "LA",
    ImageReadMode.RGB: "RGB",
    ImageReadMode.RGB_ALPHA: "RGBA",
}


def read_file(path: str | os.PathLike) -> Tensor:
    """A file's bytes, of shape (bytes,)."""
    return corefw.from_numpy(np.fromfile(path, np.uint8))


def write_file(filename: str | os.PathLike, data: Tensor) -> None:
    """Write bytes, of shape (bytes,); a file that is there already is replaced when the new one is complete."""
    with replacing(filename) as file:
        file.write(_bytes("write_file", data).tobytes())


def _bytes(name: str, data: Any) -> np.ndarray:
    if not isinstance(data, Tensor):
        raise TypeError(f"{name}: a tensor of bytes is expected, not {type(data)}")
    if data.dtype != corefw.uint8 or data.ndim != 1:
        raise RuntimeError(f"{name}: bytes of shape (n,) are expected, got {data.dtype} of shape {tuple(data.shape)}")
    return data.cpu().numpy()


def _decoded(
    name: str, input: Tensor, mode: ImageReadMode | str, formats: tuple[str, ...] | None, turned: bool
) -> Tensor:
    mode = ImageReadMode[mode.upper()] if isinstance(mode, str) else mode
    stored = io.BytesIO(_bytes(name, input).tobytes())
    try:
        with pillow().open(stored, formats=formats) as image:
            image = pillow("ImageOps").exif_transpose(image) if turned else image
            if mode is not ImageReadMode.UNCHANGED:
                image = image.convert(_PILLOW_MODES[mode])
            elif image.mode == "P":
                image = image.convert("RGBA" if "transparency" in image.info else "RGB")
            elif image.mode == "1":
                image = image.convert("L")
            pixels = np.array(image)
    except (OSError, SyntaxError, ValueError) as error:  # Pillow raises any of them of damaged bytes
        raise RuntimeError(f"{name}: these bytes are no picture that can be read: {error}") from error
    return tensor_from_array(pixels)


def decode_image(
    input: Tensor | str | os.PathLike,
    mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
    apply_exif_orientation: bool = False,
) -> Tensor:
    """A picture (C, H, W), uint8 or of 16-bit PNGs uint16, from a file's bytes or from a file.

    Args:
        input: the bytes, of shape (n,), or a path.
        mode: the channels that are wanted, as an `ImageReadMode` or its name.
        apply_exif_orientation: turn the picture as its metadata say.

    Raises:
        RuntimeError: it is no picture.
    """
    stored = read_file(input) if isinstance(input, str | os.PathLike) else input
    return _decoded("decode_image", stored, mode, None, apply_exif_orientation)


def read_image(
    path: str | os.PathLike,
    mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
    apply_exif_orientation: bool = False,
) -> Tensor:
    """A picture (C, H, W) from a file, as `decode_image` gives it.

    >>> import tempfile, corefw as torch
    >>> path = tempfile.mkdtemp() + "/red.png"
    >>> write_png(torch.tensor([255, 0, 0], dtype=torch.uint8).view(3, 1, 1), path)
    >>> read_image(path).flatten()
    tensor([255,   0,   0], dtype=torch.uint8)
    """
    return _decoded("read_image", read_file(path), mode, None, apply_exif_orientation)


def decode_png(
    input: Tensor, mode: ImageReadMode | str = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False
) -> Tensor:
    """A picture from the bytes of a PNG file."""
    return _decoded("decode_png", input, mode, ("PNG",), apply_exif_orientation)


def decode_jpeg(
    input: Tensor,
    mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
    device: Any = "cpu",
    apply_exif_orientation: bool = False,
) -> Tensor:
    """A picture from the bytes of a JPEG file, decoded by the CPU and then moved to `device`."""
    return _decoded("decode_jpeg", input, mode, ("JPEG",), apply_exif_orientation).to(device)


def decode_webp(input: Tensor, mode: ImageReadMode | str = ImageReadMode.UNCHANGED) -> Tensor:
    """A picture from the bytes of a WebP file."""
    return _decoded("decode_webp", input, mode, ("WEBP",), False)


def decode_gif(input: Tensor) -> Tensor:
    """A picture (3, H, W) from the bytes of a GIF file, or its frames (frames, 3, H, W) if there are several."""
    try:
        with pillow().open(io.BytesIO(_bytes("decode_gif", input).tobytes()), formats=("GIF",)) as image:
            frames = []
            for index in range(image.n_frames):
                image.seek(index)
                frames.append(tensor_from_array(np.array(image.convert("RGB"))))
    except (OSError, SyntaxError, ValueError) as error:
        raise RuntimeError(f"decode_gif: these bytes are no picture that can be read: {error}") from error
    return frames[0] if len(frames) == 1 else corefw.stack(frames)


def _encoded(name: str, input: Tensor, format: str, **options: Any) -> Tensor:
    if not isinstance(input, Tensor) or input.dtype != corefw.uint8:
        raise RuntimeError(f"{name}: the picture should be a uint8 tensor, got {getattr(input, 'dtype', type(input))}")
    if input.ndim != 3 or input.shape[0] not in (1, 3):
        raise RuntimeError(f"{name}: the picture should have shape (1 or 3, H, W), got {tuple(input.shape)}")
    pixels = input.cpu().numpy().transpose(1, 2, 0)
    file = io.BytesIO()
    image_from_array(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).save(file, format, **options)
    return corefw.from_numpy(np.frombuffer(file.getvalue(), np.uint8).copy())


def encode_png(input: Tensor, compression_level: int = 6) -> Tensor:
    """The bytes of a PNG file of a picture: uint8 of shape (1 or 3, H, W).

    Args:
        input: the picture.
        compression_level: from 0, the largest file, to 9, the slowest to write.

    >>> import corefw as torch
    >>> bool((decode_png(encode_png(torch.full((1, 2, 2), 7, dtype=torch.uint8))) == 7).all())
    True
    """
    if not 0 <= compression_level <= 9:
        raise RuntimeError(f"Compression level should be between 0 and 9, got {compression_level}")
    return _encoded("encode_png", input, "PNG", compress_level=compression_level)


def encode_jpeg(input: Tensor, quality: int = 75) -> Tensor:
    """The bytes of a JPEG file of a picture: uint8 of shape (1 or 3, H, W); `quality` is from 1 to 100."""
    if not 1 <= quality <= 100:
        raise ValueError(f"Image quality should be a positive number between 1 and 100, got {quality}")
    return _encoded("encode_jpeg", input, "JPEG", quality=quality)


def write_png(input: Tensor, filename: str | os.PathLike, compression_level: int = 6) -> None:
    """Write a picture as a PNG file; one that is there already is replaced when the new one is complete."""
    write_file(filename, encode_png(input, compression_level))


def write_jpeg(input: Tensor, filename: str | os.PathLike, quality: int = 75) -> None:
    """Write a picture as a JPEG file; one that is there already is replaced when the new one is complete."""
    write_file(filename, encode_jpeg(input, quality))


def _no_videos(name: str) -> NoReturn:
    raise NotImplementedError(
        f"torchvision.io.{name}: videos need FFmpeg, which corefw does not bind; read their frames with PyAV or "
        "TorchCodec, and stack them: a video is a tensor (frames, channels, height, width)"
    )


def read_video(filename: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: there is no reader of videos."""
    _no_videos("read_video")


def read_video_timestamps(filename: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: there is no reader of videos."""
    _no_videos("read_video_timestamps")


def write_video(filename: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: there is no writer of videos."""
    _no_videos("write_video")
