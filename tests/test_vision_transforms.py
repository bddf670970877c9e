"""Transforms of images against plain references."""

import pickle

import numpy as np
import pytest

import corefw
from corefw.vision import datasets, transforms
from corefw.vision.transforms import InterpolationMode
from corefw.vision.transforms import functional as F
from tests.pictures import Image, both, pixels, random_pixels


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "transform",
    [
        F.hflip,
        F.vflip,
        lambda x: F.crop(x, 1, 2, 3, 4),
        lambda x: F.crop(x, -2, -1, 5, 20),
        lambda x: F.center_crop(x, 3),
        lambda x: F.center_crop(x, (4, 12)),
        lambda x: F.pad(x, 2, fill=7),
        lambda x: F.pad(x, [1, 2, 3, 0], padding_mode="edge"),
        lambda x: F.pad(x, (1, 2), padding_mode="reflect"),
        lambda x: F.pad(x, [2], padding_mode="symmetric"),
        lambda x: F.pad(x, [-1, 2, 0, -2]),
        lambda x: F.rotate(x, 180),
        lambda x: F.resize(x, (3, 5), InterpolationMode.NEAREST_EXACT),
    ],
)
def test_kinds_of_images_agree_exactly(transform, channels):
    image, tensor = both(channels)
    np.testing.assert_array_equal(pixels(transform(image)), pixels(transform(tensor)))


@pytest.mark.parametrize(
    "transform, tolerance",
    [
        (lambda x: F.resize(x, (3, 5)), 1),
        (lambda x: F.resize(x, (13, 20)), 1),
        (lambda x: F.resize(x, 12, InterpolationMode.BICUBIC), 20),  # Pillow cuts off between rows and columns
        (lambda x: F.resized_crop(x, 1, 1, 4, 5, (8, 8)), 1),
        (lambda x: F.rgb_to_grayscale(x), 1),
        (lambda x: F.rgb_to_grayscale(x, 3), 1),
        (lambda x: F.adjust_brightness(x, 1.4), 1),
        (lambda x: F.adjust_contrast(x, 0.6), 2),
        (lambda x: F.adjust_saturation(x, 1.7), 2),
        (lambda x: F.adjust_hue(x, 0.2), 12),
    ],
)
def test_kinds_of_images_agree_in_steps_of_brightness(transform, tolerance):
    image, tensor = both()
    difference = pixels(transform(image)).astype(int) - pixels(transform(tensor))
    assert np.abs(difference).max() <= tolerance


def test_padding_is_numpys():
    _, tensor = both()
    for mode in ("constant", "edge", "reflect", "symmetric"):
        wanted = np.pad(tensor.numpy(), ((0, 0), (2, 4), (1, 3)), mode=mode)
        np.testing.assert_array_equal(F.pad(tensor, [1, 2, 3, 4], padding_mode=mode).numpy(), wanted)


def naive_bilinear(image, height, width):
    """Resized without smoothing, a pixel at a time."""
    old_height, old_width = image.shape
    result = np.zeros((height, width))
    for i, j in np.ndindex(height, width):
        y = max((i + 0.5) * old_height / height - 0.5, 0)
        x = max((j + 0.5) * old_width / width - 0.5, 0)
        top, left = int(y), int(x)
        below, right = min(top + 1, old_height - 1), min(left + 1, old_width - 1)
        upper = image[top, left] * (1 - x + left) + image[top, right] * (x - left)
        lower = image[below, left] * (1 - x + left) + image[below, right] * (x - left)
        result[i, j] = upper * (1 - y + top) + lower * (y - top)
    return result


@pytest.mark.parametrize("size", [(3, 4), (11, 5), (12, 30)])
def test_resize_without_smoothing(size):
    image = np.random.default_rng(0).random((6, 9))
    resized = F.resize(corefw.from_numpy(image)[None], size, antialias=False)
    np.testing.assert_allclose(resized.numpy()[0], naive_bilinear(image, *size), rtol=1e-12)


def test_resize_by_whole_factors_averages_and_repeats():
    image = np.arange(24.0).reshape(1, 4, 6)
    near = F.resize(corefw.from_numpy(image), (8, 12), InterpolationMode.NEAREST).numpy()
    np.testing.assert_array_equal(near, image.repeat(2, 1).repeat(2, 2))
    half = F.resize(corefw.from_numpy(image), (2, 3)).numpy()
    assert half.mean() == pytest.approx(image.mean()) and np.all(np.diff(half) > 0)


@pytest.mark.parametrize(
    "size, max_size, wanted",
    [(4, None, (4, 8)), (20, 30, (15, 30)), ([5], None, (5, 10)), (None, 8, (4, 8)), ((7, 3), None, (7, 3))],
)
def test_size_of_resize(size, max_size, wanted):
    for image in both(3, 10, 20):
        assert tuple(F.get_dimensions(transforms.Resize(size, max_size=max_size)(image))[1:]) == wanted
        turned = F.resize(F.rotate(image, 90, expand=True), size, max_size=max_size)
        assert tuple(F.get_dimensions(turned)[1:]) == (wanted if isinstance(size, tuple) else wanted[::-1])


def test_resize_is_differentiable():
    image = corefw.rand(1, 4, 4, requires_grad=True)
    F.resize(image, (2, 2)).sum().backward()
    assert float(image.grad.sum()) == pytest.approx(4)


@pytest.mark.parametrize("quarter", [0, 1, 2, 3])
@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_rotation_by_quarters(quarter, mode):
    array = random_pixels(3, 7, 7)
    tensor = corefw.from_numpy(array)
    rotated = F.rotate(tensor, 90 * quarter, InterpolationMode(mode))
    np.testing.assert_array_equal(rotated.numpy(), np.rot90(array, quarter, (1, 2)))
    wide = corefw.from_numpy(random_pixels(3, 6, 8))
    expanded = F.rotate(wide, 90 * quarter, InterpolationMode(mode), expand=True)
    np.testing.assert_array_equal(expanded.numpy(), np.rot90(wide.numpy(), quarter, (1, 2)))


def test_rotation_by_any_angle():
    image, tensor = both(3, 21, 21)
    turned, wanted = pixels(F.rotate(tensor, 33.0, fill=[9.0])), pixels(F.rotate(image, 33.0, fill=9))
    assert (turned == wanted).mean() > 0.97
    middle = F.rotate(tensor, 33.0, center=[10.5, 10.5])
    np.testing.assert_array_equal(middle.numpy(), F.rotate(tensor, 33.0).numpy())
    assert tuple(F.rotate(tensor, 45.0, expand=True).shape) == (3, 31, 31)


def test_to_tensor_and_back():
    for mode in ("1", "L", "LA", "P", "I", "F", "RGB", "YCbCr", "RGBA", "CMYK"):
        image = Image.fromarray(random_pixels(4, 5, 3)).convert("L" if mode == "LA" else "RGB").convert(mode)
        tensor = F.to_tensor(image)
        assert tuple(tensor.shape) == (len(image.getbands()), 4, 5)
        assert tensor.dtype == (corefw.int32 if mode == "I" else corefw.float32)
        scale = {"1": 1, "I": 1, "F": 1}.get(mode, 255)
        np.testing.assert_allclose(tensor.numpy() * scale, pixels(image), rtol=1e-6)
        if mode in ("L", "LA", "RGB", "RGBA"):
            assert F.to_pil_image(tensor) == image == F.to_pil_image(F.pil_to_tensor(image))
    array = random_pixels(4, 5, 3)
    np.testing.assert_array_equal(F.to_tensor(array.astype(np.float32)).numpy(), array.transpose(2, 0, 1))
    corefw.set_default_dtype(corefw.float64)
    try:
        assert F.to_tensor(array).dtype == corefw.float64
    finally:
        corefw.set_default_dtype(corefw.float32)


def test_modes_of_images():
    modes = {np.uint8: "L", np.int16: "I;16", np.int32: "I"}
    for dtype, mode in modes.items():
        array = np.arange(6, dtype=dtype).reshape(2, 3)
        image = F.to_pil_image(array)
        assert image.mode == mode
        np.testing.assert_array_equal(np.asarray(image), array)
    assert F.to_pil_image(np.ones((2, 3, 1), np.float32), "F").mode == "F"
    assert F.to_pil_image(random_pixels(2, 3, 3), "HSV").mode == "HSV"
    assert F.to_pil_image(random_pixels(2, 3, 4), "CMYK").mode == "CMYK"


@pytest.mark.parametrize("old, new", [("uint8", "int16"), ("uint8", "int64"), ("int16", "int32"), ("uint8", "float32")])
def test_convert_image_dtype_and_back(old, new):
    old, new = getattr(corefw, old), getattr(corefw, new)
    image = corefw.arange(128).to(old)
    there = transforms.ConvertImageDtype(new)(image)
    assert there.dtype == new
    np.testing.assert_array_equal(F.convert_image_dtype(there, old).numpy(), image.numpy())


def test_convert_image_dtype_limits():
    assert F.convert_image_dtype(corefw.tensor([0.0, 1.0]), corefw.uint8).tolist() == [0, 255]
    assert F.convert_image_dtype(corefw.tensor([255], dtype=corefw.uint8)).tolist() == [1.0]
    with pytest.raises(RuntimeError, match="cannot be performed safely"):
        F.convert_image_dtype(corefw.ones(1), corefw.int32)


def test_normalize():
    image = corefw.rand(2, 3, 4, 5)
    mean, std = [0.1, 0.2, 0.3], [1.0, 2.0, 4.0]
    wanted = (image.numpy() - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    np.testing.assert_allclose(transforms.Normalize(mean, std)(image).numpy(), wanted, rtol=1e-5, atol=1e-7)
    assert transforms.Normalize(mean, std, inplace=True)(image) is image
    np.testing.assert_allclose(image.numpy(), wanted, rtol=1e-5, atol=1e-7)


def test_hue_goes_round_and_colours_keep_their_value():
    tensor = corefw.rand(3, 5, 6)
    turned = F.adjust_hue(tensor, 0.5)
    np.testing.assert_allclose(turned.numpy().max(0), tensor.numpy().max(0), rtol=1e-5)
    np.testing.assert_allclose(F.adjust_hue(turned, 0.5).numpy(), tensor.numpy(), atol=1e-5)
    red = corefw.tensor([1.0, 0.0, 0.0]).view(3, 1, 1)
    np.testing.assert_allclose(F.adjust_hue(red, 1 / 3).numpy().ravel(), [0, 1, 0], atol=1e-6)


RANDOM = {
    "RandomCrop": transforms.RandomCrop(4, padding=2),
    "RandomCrop needed": transforms.RandomCrop((20, 4), pad_if_needed=True, padding_mode="symmetric"),
    "RandomResizedCrop": transforms.RandomResizedCrop((5, 7)),
    "RandomHorizontalFlip": transforms.RandomHorizontalFlip(),
    "RandomVerticalFlip": transforms.RandomVerticalFlip(),
    "RandomRotation": transforms.RandomRotation(40),
    "RandomRotation fill": transforms.RandomRotation((10, 50), InterpolationMode.BILINEAR, True, (1, 2), (1, 2, 3)),
    "ColorJitter": transforms.ColorJitter(0.5, 0.5, 0.5, 0.2),
    "RandomGrayscale": transforms.RandomGrayscale(0.5),
    "RandomApply": transforms.RandomApply([transforms.Grayscale(3)]),
    "RandomChoice": transforms.RandomChoice([transforms.Pad(1), transforms.Pad(2), transforms.Grayscale()]),
    "RandomOrder": transforms.RandomOrder(
        [transforms.Pad(1), transforms.CenterCrop(4), transforms.RandomVerticalFlip()]
    ),
}


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("kind", [0, 1], ids=["pillow", "tensor"])
def test_a_seed_repeats(name, kind):
    image, transform = both(3, 12, 10)[kind], RANDOM[name]
    corefw.manual_seed(5)
    first = [pixels(transform(image)).tolist() for _ in range(12)]
    corefw.manual_seed(5)
    assert [pixels(transform(image)).tolist() for _ in range(12)] == first
    assert any(result != first[0] for result in first), "chance has no hand in it"
    assert type(transform(image)) is type(image)


def test_random_erasing():
    image = corefw.ones(3, 20, 30)
    corefw.manual_seed(0)
    erased = transforms.RandomErasing(p=1, value=(2, 3, 4))(image)
    rectangle = erased.numpy()[0] == 2
    rows, columns = rectangle.any(1).sum(), rectangle.any(0).sum()
    assert rectangle.sum() == rows * columns and 0.01 < rectangle.mean() < 0.4 and 0.2 < rows / columns < 4
    assert (erased.numpy()[:, rectangle].T == [2, 3, 4]).all() and bool((image == 1).all())
    assert transforms.RandomErasing(p=1, value="random", inplace=True)(image) is image and bool((image != 1).any())
    assert transforms.RandomErasing(p=0)(image) is image
    with pytest.raises(TypeError):
        transforms.RandomErasing(p=1)(both()[0])


def test_chance_is_fair():
    corefw.manual_seed(0)
    image = corefw.tensor([[[0, 1]]])
    flipped = sum(int(transforms.RandomHorizontalFlip(0.3)(image)[0, 0, 0]) for _ in range(1000))
    assert 240 < flipped < 360
    choice = transforms.RandomChoice([lambda x: 0, lambda x: 1, lambda x: 2], p=[1, 0, 3])
    counts = np.bincount([choice(None) for _ in range(1000)], minlength=3)
    assert counts[1] == 0 and 180 < counts[0] < 320
    places = {transforms.RandomCrop.get_params(corefw.zeros(1, 4, 5), (3, 3))[:2] for _ in range(200)}
    assert places == {(i, j) for i in range(2) for j in range(3)}
    for _ in range(100):
        top, left, height, width = transforms.RandomResizedCrop.get_params(
            corefw.zeros(1, 40, 30), (0.2, 0.5), (0.5, 2)
        )
        assert 0 <= top <= 40 - height and 0 <= left <= 30 - width and 0.18 < height * width / 1200 < 0.53


@pytest.mark.parametrize("kind", [transforms.RandomCrop, transforms.RandomResizedCrop])
@pytest.mark.parametrize("padding", [None, 1])
def test_a_subclass_may_draw_its_own_parameters(kind, padding):
    class Fixed(kind):
        @staticmethod
        def get_params(img, *_):
            assert F.get_dimensions(img)[1:] == ([6, 7] if padding else [4, 5])
            return 0, 0, 3, 3

    options = {"padding": padding} if kind is transforms.RandomCrop else {}
    padding = padding if options else None
    image = corefw.arange(20).reshape(1, 4, 5)
    wanted = F.pad(image, 1) if padding else image
    assert Fixed(3, **options)(image).tolist() == wanted[:, :3, :3].tolist()


def test_compose_applies_in_order():
    steps = transforms.Compose([transforms.Lambda(lambda x: x + 1), transforms.Lambda(lambda x: x * 2)])
    assert steps(3) == 8
    model = corefw.nn.Sequential(transforms.CenterCrop(2), transforms.Normalize([0.0], [2.0]))
    assert model(corefw.ones(1, 4, 4)).tolist() == [[[0.5, 0.5], [0.5, 0.5]]]


@pytest.mark.parametrize(
    "transform, text",
    [
        (transforms.ToTensor(), "ToTensor()"),
        (transforms.ToPILImage("L"), "ToPILImage(mode=L)"),
        (transforms.ConvertImageDtype(corefw.float32), "ConvertImageDtype()"),
        (transforms.Normalize([0.5], (2,)), "Normalize(mean=[0.5], std=(2,))"),
        (transforms.Resize(4), "Resize(size=4, interpolation=bilinear, max_size=None, antialias=True)"),
        (transforms.CenterCrop(4), "CenterCrop(size=(4, 4))"),
        (transforms.Pad(2), "Pad(padding=2, fill=0, padding_mode=constant)"),
        (transforms.RandomCrop([4]), "RandomCrop(size=(4, 4), padding=None)"),
        (
            transforms.RandomResizedCrop(4),
            "RandomResizedCrop(size=(4, 4), scale=(0.08, 1.0), ratio=(0.75, 1.3333), "
            "interpolation=bilinear, antialias=True)",
        ),
        (transforms.RandomHorizontalFlip(), "RandomHorizontalFlip(p=0.5)"),
        (
            transforms.RandomRotation(3),
            "RandomRotation(degrees=[-3.0, 3.0], interpolation=nearest, expand=False, fill=0)",
        ),
        (
            transforms.ColorJitter(0.5, (0.5, 2)),
            "ColorJitter(brightness=(0.5, 1.5), contrast=(0.5, 2.0), saturation=None, hue=None)",
        ),
        (
            transforms.RandomErasing(),
            "RandomErasing(p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace=False)",
        ),
        (transforms.RandomApply([transforms.ToTensor()]), "RandomApply(\n    p=0.5\n    ToTensor()\n)"),
        (
            transforms.RandomChoice([transforms.Grayscale()]),
            "RandomChoice(\n    Grayscale(num_output_channels=1)\n)(p=None)",
        ),
        (transforms.Compose([]), "Compose(\n)"),
    ],
)
def test_texts(transform, text):
    assert repr(transform) == text
    assert repr(pickle.loads(pickle.dumps(transform))) == text


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: transforms.Resize("a" * 3), ValueError),
        (lambda: transforms.Resize(2.5), TypeError),
        (lambda: transforms.Resize(5, interpolation=99), TypeError),
        (lambda: transforms.RandomCrop((1, 2, 3)), ValueError),
        (lambda: transforms.RandomCrop(9)(corefw.zeros(1, 4, 4)), ValueError),
        (lambda: transforms.Pad("x"), TypeError),
        (lambda: transforms.Pad((1, 2, 3)), ValueError),
        (lambda: transforms.Pad(1, padding_mode="wrap"), ValueError),
        (lambda: transforms.Lambda(3), TypeError),
        (lambda: transforms.ColorJitter(-1), ValueError),
        (lambda: transforms.ColorJitter(hue=0.7), ValueError),
        (lambda: transforms.RandomRotation(-1), ValueError),
        (lambda: transforms.RandomErasing(p=2), ValueError),
        (lambda: transforms.RandomErasing(value="other"), ValueError),
        (lambda: transforms.RandomChoice(3), TypeError),
        (lambda: transforms.ToTensor()(corefw.zeros(1)), TypeError),
        (lambda: transforms.ToTensor()(np.zeros(3)), ValueError),
        (lambda: transforms.PILToTensor()(np.zeros((3, 3))), TypeError),
        (lambda: transforms.ToPILImage()([1]), TypeError),
        (lambda: transforms.ToPILImage()(corefw.zeros(5, 2, 2)), ValueError),
        (lambda: transforms.ToPILImage("RGB")(corefw.zeros(1, 2, 2)), ValueError),
        (lambda: transforms.Normalize([0.0], [0.0])(corefw.zeros(1, 2, 2)), ValueError),
        (lambda: transforms.Normalize([0.0], [1.0])(corefw.zeros(2, 2)), ValueError),
        (lambda: transforms.Normalize([0], [1])(corefw.zeros(1, 2, 2, dtype=corefw.uint8)), TypeError),
        (lambda: transforms.Grayscale(2)(corefw.zeros(3, 2, 2)), ValueError),
        (lambda: transforms.Grayscale()(corefw.zeros(2, 2, 2)), TypeError),
        (lambda: F.hflip([1, 2]), TypeError),
        (lambda: F.adjust_hue(corefw.zeros(3, 2, 2), 0.6), ValueError),
        (lambda: F.resize(corefw.zeros(1, 4, 4), 2, InterpolationMode.LANCZOS), ValueError),
        (lambda: datasets.VisionDataset("r", transforms=len, transform=len), ValueError),
    ],
)
def test_mistakes_have_torchvisions_types(make, error):
    with pytest.raises(error):
        make()
