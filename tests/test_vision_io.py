"""Pictures as files and bytes."""

import io
import os

import numpy as np
import pytest

import corefw
from corefw import vision
from corefw.vision.io import (
    ImageReadMode,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    decode_webp,
    encode_jpeg,
    encode_png,
    read_file,
    read_image,
    write_file,
    write_jpeg,
    write_png,
)
from tests.pictures import Image, both, random_pixels


def stored(image, format, **options):
    file = io.BytesIO()
    image.save(file, format, **options)
    return corefw.from_numpy(np.frombuffer(file.getvalue(), np.uint8).copy())


@pytest.mark.parametrize("channels", [1, 3])
def test_png_is_exact_and_replaces_whole_files(tmp_path, channels):
    image, picture = both(channels, 16, 16)
    path = tmp_path / "picture.png"
    write_png(picture, path)
    write_png(picture, str(path), compression_level=0)
    assert os.listdir(tmp_path) == ["picture.png"]
    for found in (read_image(path), decode_image(read_file(path)), decode_png(encode_png(picture)), decode_image(path)):
        assert found.dtype is corefw.uint8
        np.testing.assert_array_equal(found.numpy(), picture.numpy())
    with Image.open(path) as opened:
        assert opened.convert(image.mode) == image
    assert len(encode_png(picture, 0)) > 256 * channels


def test_jpeg_is_pillows(tmp_path):
    image, picture = both(3, 16, 16)
    wanted = np.asarray(Image.open(io.BytesIO(stored(image, "JPEG", quality=40).numpy().tobytes())))
    found = decode_jpeg(encode_jpeg(picture, 40))
    np.testing.assert_array_equal(found.numpy(), wanted.transpose(2, 0, 1))
    write_jpeg(picture, tmp_path / "a.jpg", 40)
    np.testing.assert_array_equal(read_image(tmp_path / "a.jpg").numpy(), found.numpy())
    assert len(encode_jpeg(picture, 5)) < len(encode_jpeg(picture, 95))


@pytest.mark.parametrize(
    "mode, wanted", [("UNCHANGED", 4), ("GRAY", 1), ("gray_alpha", 2), ("RGB", 3), (ImageReadMode.RGB_ALPHA, 4)]
)
def test_modes(mode, wanted):
    image = Image.fromarray(random_pixels(5, 4, 4))
    found = decode_image(stored(image, "PNG"), mode)
    assert found.shape == (wanted, 5, 4)
    if wanted == 4:
        np.testing.assert_array_equal(found.numpy(), np.asarray(image).transpose(2, 0, 1))


def test_other_kinds_of_pictures():
    grey = Image.fromarray(random_pixels(4, 5))
    assert decode_image(stored(grey.convert("1"), "PNG")).unique().tolist() == [0, 255]
    assert decode_image(stored(grey.convert("P"), "PNG")).shape == (3, 4, 5)
    deep = np.arange(20, dtype=np.uint16).reshape(4, 5) * 3000
    found = decode_png(stored(Image.fromarray(deep), "PNG"))
    assert found.dtype is corefw.uint16
    np.testing.assert_array_equal(found.numpy()[0], deep)
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    turned = stored(grey, "JPEG", exif=exif)
    assert decode_image(turned).shape == (1, 4, 5) and decode_jpeg(turned, apply_exif_orientation=True).shape == (
        1,
        5,
        4,
    )
    frames = [Image.new("RGB", (5, 4), (value, 0, 0)) for value in (0, 255)]
    moving = decode_gif(stored(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    assert moving.shape == (2, 3, 4, 5) and moving[:, 0].amax((1, 2)).tolist() == [0, 255]
    assert decode_gif(stored(frames[0], "GIF")).shape == (3, 4, 5)
    assert decode_webp(stored(frames[1], "WEBP", lossless=True)).amax((1, 2)).tolist() == [255, 0, 0]


def test_bytes_as_files(tmp_path):
    data = corefw.arange(256).to(corefw.uint8)
    write_file(tmp_path / "bytes", data)
    assert read_file(str(tmp_path / "bytes")).tolist() == list(range(256))
    assert len(read_file(os.devnull)) == 0


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: decode_image(corefw.zeros(9, dtype=corefw.uint8)), RuntimeError),
        (lambda: decode_png(encode_png(both()[1])[:60]), RuntimeError),
        (lambda: decode_png(encode_jpeg(both()[1])), RuntimeError),
        (lambda: decode_jpeg(encode_png(both()[1])), RuntimeError),
        (lambda: decode_image(corefw.zeros(9)), RuntimeError),
        (lambda: decode_jpeg([1, 2]), TypeError),
        (lambda: read_image("no such file"), FileNotFoundError),
        (lambda: decode_image(encode_png(both()[1]), "COLOUR"), KeyError),
        (lambda: encode_png(corefw.zeros(3, 4, 4)), RuntimeError),
        (lambda: encode_png(both()[1], 10), RuntimeError),
        (lambda: encode_jpeg(both()[1][:2]), RuntimeError),
        (lambda: encode_jpeg(both()[1], 0), ValueError),
        (lambda: vision.io.read_video("a.mp4"), NotImplementedError),
        (lambda: vision.io.write_video("a.mp4", None), NotImplementedError),
    ],
)
def test_mistakes(call, error):
    with pytest.raises(error):
        call()
