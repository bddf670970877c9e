"""Transforms that turn, bend and recolour pictures, and those that choose among them."""

import json
import pickle

import numpy as np
import pytest

import corefw
from corefw.vision import transforms
from corefw.vision.transforms import AutoAugmentPolicy, InterpolationMode
from corefw.vision.transforms import functional as F
from tests.picture_cases import CASES, RESIZES, SUMS, sums
from tests.pictures import both, pixels


def test_bytes_are_torchvisions():
    assert sums(CASES | RESIZES, F, corefw.from_numpy) == json.loads(SUMS.read_text())


@pytest.mark.parametrize(
    "transform, tolerance",
    [
        (F.invert, 0),
        (lambda x: F.posterize(x, 3), 0),
        (lambda x: F.solarize(x, 77), 0),
        (F.equalize, 0),
        (F.autocontrast, 1),
        (lambda x: F.adjust_sharpness(x, 1.7), 1),
        (lambda x: F.adjust_gamma(x, 0.7, 0.9), 1),
        (lambda x: F.gaussian_blur(x, (3, 5), 1.1), 0),
        (lambda x: F.elastic_transform(x, corefw.full((1, 16, 20, 2), 0.1), fill=7), 0),
        (lambda x: F.resize(x, (7, 9)), 1),
        (lambda x: F.resize(x, (40, 9), InterpolationMode.BICUBIC), 1),
        (lambda x: F.affine(x, 0, (3, -2), 1.0, 0.0, fill=5), 0),
        (lambda x: F.five_crop(x, 5)[2], 0),
        (lambda x: F.ten_crop(x, (4, 6))[9], 0),
    ],
)
def test_kinds_of_images_agree(transform, tolerance):
    image, tensor = both(3, 16, 20)
    difference = pixels(transform(image)).astype(int) - pixels(transform(tensor))
    assert np.abs(difference).max() <= tolerance


def test_nearest_maps_agree_with_pillows_but_at_ties():
    image, tensor = both(3, 16, 20)
    for transform in (
        lambda x: F.affine(x, 20, (1, 2), 1.3, (5, -7), fill=9),
        lambda x: F.perspective(x, [[0, 0], [19, 0], [19, 15], [0, 15]], [[2, 1], [18, 0], [16, 14], [1, 13]], 0),
    ):
        assert (pixels(transform(image)) == pixels(transform(tensor))).mean() > 0.98


def test_an_affine_map_is_what_its_parameters_say():
    ramp = corefw.arange(64, dtype=corefw.float64).reshape(1, 8, 8)  # linear, so that bilinear values are exact inside
    mapped = F.affine(ramp, 30.0, (1, 0.5), 1.5, (10.0, 20.0), InterpolationMode.BILINEAR).numpy()[0]
    r, x, y = np.radians([30.0, 10.0, 20.0])
    rotation = np.array([[np.cos(r - y) / np.cos(y), -np.cos(r - y) * np.tan(x) / np.cos(y) - np.sin(r)],
                         [np.sin(r - y) / np.cos(y), -np.sin(r - y) * np.tan(x) / np.cos(y) + np.cos(r)]])  # fmt: skip
    for i, j in ((3, 4), (4, 4), (2, 3)):
        column, row = np.linalg.solve(1.5 * rotation, [j - 3.5 - 1, i - 3.5 - 0.5]) + 3.5
        np.testing.assert_allclose(mapped[i, j], 8 * row + column, rtol=1e-10)


def test_float_images_keep_gradients():
    image = corefw.rand(1, 6, 6, requires_grad=True)
    for result in (
        F.rotate(image, 20, InterpolationMode.BILINEAR),
        F.gaussian_blur(image, 3),
        F.adjust_sharpness(image, 2.0),
        F.adjust_gamma(image, 2.0),
    ):
        image.grad = None
        result.sum().backward()
        assert bool((image.grad != 0).any())


@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
def test_leading_sizes_are_kept(leading):
    images = corefw.randint(0, 256, (*leading, 3, 8, 8), dtype=corefw.uint8)
    flat = images.reshape(-1, 3, 8, 8)
    for transform in (
        lambda x: F.rotate(x, 20, fill=[1.0, 2.0, 3.0]),
        lambda x: F.gaussian_blur(x, 3),
        F.equalize,
        F.autocontrast,
        lambda x: F.adjust_sharpness(x, 2.0),
        lambda x: F.adjust_contrast(x, 2.0),
        lambda x: F.resize(x, (5, 6)),
    ):
        wanted = np.stack([transform(image).numpy() for image in flat])
        np.testing.assert_array_equal(transform(images).numpy().reshape(wanted.shape), wanted)


RANDOM = {
    "RandomAffine": transforms.RandomAffine(40, (0.1, 0.2), (0.5, 2.0), (-5, 5, 10, 20), fill=(1, 2, 3)),
    "RandomPerspective": transforms.RandomPerspective(),
    "ElasticTransform": transforms.ElasticTransform(20.0, 1.0),
    "GaussianBlur": transforms.GaussianBlur(3),
    "RandomInvert": transforms.RandomInvert(),
    "RandomPosterize": transforms.RandomPosterize(2),
    "RandomSolarize": transforms.RandomSolarize(100),
    "RandomAdjustSharpness": transforms.RandomAdjustSharpness(2),
    "RandomAutocontrast": transforms.RandomAutocontrast(),
    "RandomEqualize": transforms.RandomEqualize(),
    **{f"AutoAugment {policy.value}": transforms.AutoAugment(policy) for policy in AutoAugmentPolicy},
    "RandAugment": transforms.RandAugment(fill=3),
    "TrivialAugmentWide": transforms.TrivialAugmentWide(),
    "AugMix": transforms.AugMix(),
    "AugMix few": transforms.AugMix(all_ops=False, chain_depth=1, mixture_width=1),
}


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("kind", [0, 1], ids=["pillow", "tensor"])
def test_a_seed_repeats(name, kind):
    image, transform = both(3, 16, 20)[kind], RANDOM[name]
    corefw.manual_seed(5)
    first = [pixels(transform(image)).tolist() for _ in range(8)]
    corefw.manual_seed(5)
    assert [pixels(transform(image)).tolist() for _ in range(8)] == first
    assert any(result != first[0] for result in first), "chance has no hand in it"
    assert type(transform(image)) is type(image) and np.shape(first[0]) == (3, 16, 20)


@pytest.mark.parametrize("kind", [0, 1], ids=["pillow", "tensor"])
@pytest.mark.parametrize("policy", AutoAugmentPolicy)
def test_every_line_of_every_policy_is_applied(policy, kind, monkeypatch):
    transform = transforms.AutoAugment(policy, fill=7)
    assert len(transform.policies) == 25
    image = both(3, 8, 8)[kind]
    for line in range(25):
        drawn = (line, corefw.zeros(2), corefw.tensor([0, 1]))
        monkeypatch.setattr(transform, "get_params", lambda _, drawn=drawn: drawn)
        changes = transform.make_params([image])["changes"]
        wanted = zip(transform.policies[line], (0, 1), strict=True)
        assert len(changes) == 2 and all(name == told[0] for (name, _), (told, _) in zip(changes, wanted, strict=True))
        assert type(transform(image)) is type(image)


def test_magnitudes():
    params = {}
    for number in (0, 15, 30):
        corefw.manual_seed(0)
        transform = transforms.RandAugment(400, number)
        params[number] = {}
        for name, magnitude in transform.make_params([corefw.zeros(3, 331, 662)])["changes"]:
            params[number].setdefault(name, set()).add(round(magnitude, 3))
    assert len(params[15]) == 14 and params[0]["Posterize"] == {8} and params[30]["Posterize"] == {4}
    assert params[15]["Rotate"] == {15.0, -15.0} and params[30]["TranslateX"] == {300.0, -300.0}
    assert params[30]["TranslateY"] == {150.0, -150.0} and params[30]["ShearX"] == {0.3, -0.3}
    assert params[0]["Solarize"] == {255.0} and params[30]["Solarize"] == {0.0} and params[15]["Color"] == {0.45, -0.45}


def test_augmix_is_a_mean():
    image = both(3, 8, 8)[1]
    transform = transforms.AugMix(alpha=1e4)
    corefw.manual_seed(0)
    params = transform.make_params([image])
    assert params["own"] + sum(params["shares"]) == pytest.approx(1) and params["own"] == pytest.approx(0.5, abs=0.05)
    params["chains"] = [[("Identity", 0.0)]] * 3
    assert np.abs(transform.transform(image, params).numpy().astype(int) - image.numpy()).max() <= 1


def test_an_elastic_shift_by_a_pixel():
    image = both(1, 8, 8)[1]
    shift = corefw.tensor([2 / 8, 0.0]).expand(1, 8, 8, 2)
    np.testing.assert_array_equal(F.elastic_transform(image, shift, 0).numpy()[..., :-1], image.numpy()[..., 1:])


def test_five_and_ten_crops_of_a_batch():
    image = corefw.arange(48).reshape(1, 6, 8)
    wanted = [image[:, :2, :3], image[:, :2, 5:], image[:, 4:, :3], image[:, 4:, 5:], image[:, 2:4, 2:5]]
    for found, part in zip(transforms.FiveCrop((2, 3))(image), wanted, strict=True):
        np.testing.assert_array_equal(found.numpy(), part.numpy())
    assert len(transforms.TenCrop(2)(image)) == 10


@pytest.mark.parametrize(
    "transform, text",
    [
        (transforms.FiveCrop(3), "FiveCrop(size=(3, 3))"),
        (transforms.TenCrop(3, True), "TenCrop(size=(3, 3), vertical_flip=True)"),
        (transforms.RandomAffine(3, shear=5), "RandomAffine(degrees=[-3.0, 3.0], shear=[-5.0, 5.0])"),
        (
            transforms.RandomAffine((1, 2), (0.1, 0.2), (1, 2), (1, 2, 3, 4), InterpolationMode.BILINEAR, 3, (1, 1)),
            "RandomAffine(degrees=[1.0, 2.0], translate=(0.1, 0.2), scale=(1, 2), shear=[1.0, 2.0, 3.0, 4.0], "
            "interpolation=bilinear, fill=3, center=(1, 1))",
        ),
        (transforms.RandomPerspective(), "RandomPerspective(p=0.5)"),
        (transforms.GaussianBlur(3, 1.5), "GaussianBlur(kernel_size=(3, 3), sigma=(1.5, 1.5))"),
        (
            transforms.ElasticTransform(),
            "ElasticTransform(alpha=[50.0, 50.0], sigma=[5.0, 5.0], interpolation=InterpolationMode.BILINEAR, "
            "fill=[0.0])",
        ),
        (transforms.RandomPosterize(3), "RandomPosterize(bits=3,p=0.5)"),
        (transforms.RandomSolarize(9, 0.1), "RandomSolarize(threshold=9,p=0.1)"),
        (transforms.RandomEqualize(), "RandomEqualize(p=0.5)"),
        (transforms.AutoAugment(), "AutoAugment(policy=AutoAugmentPolicy.IMAGENET, fill=None)"),
        (
            transforms.TrivialAugmentWide(),
            "TrivialAugmentWide(num_magnitude_bins=31, interpolation=InterpolationMode.NEAREST, fill=None)",
        ),
        (
            transforms.AugMix(),
            "AugMix(severity=3, mixture_width=3, chain_depth=-1, alpha=1.0, all_ops=True, "
            "interpolation=InterpolationMode.BILINEAR, fill=None)",
        ),
    ],
)
def test_texts(transform, text):
    assert repr(transform) == text
    assert repr(pickle.loads(pickle.dumps(transform))) == text


BYTES = corefw.zeros(3, 4, 4, dtype=corefw.uint8)


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: F.affine(BYTES, "a", (0, 0), 1, 0), TypeError),
        (lambda: F.affine(BYTES, 0, 0, 1, 0), TypeError),
        (lambda: F.affine(BYTES, 0, (0,), 1, 0), ValueError),
        (lambda: F.affine(BYTES, 0, (0, 0), 0, 0), ValueError),
        (lambda: F.affine(BYTES, 0, (0, 0), 1, (1, 2, 3)), ValueError),
        (lambda: F.affine(BYTES, 0, (0, 0), 1, 0, center=3), TypeError),
        (lambda: F.rotate(BYTES, 3, InterpolationMode.BICUBIC), ValueError),
        (lambda: F.rotate(BYTES, 3, fill=(1, 2)), ValueError),
        (lambda: F.perspective(BYTES, [[0, 0]], [[0, 0]]), ValueError),
        (lambda: F.gaussian_blur(BYTES, 2), ValueError),
        (lambda: F.gaussian_blur(BYTES, 3, -1), ValueError),
        (lambda: F.gaussian_blur(BYTES, (1, 1, 1)), ValueError),
        (lambda: F.elastic_transform(BYTES, corefw.zeros(1, 3, 4, 2)), ValueError),
        (lambda: F.five_crop(BYTES, 9), ValueError),
        (lambda: F.posterize(BYTES, 9), ValueError),
        (lambda: F.posterize(BYTES.float(), 3), TypeError),
        (lambda: F.equalize(BYTES.float()), TypeError),
        (lambda: F.solarize(BYTES, 256), TypeError),
        (lambda: F.invert(corefw.zeros(2, 4, 4)), TypeError),
        (lambda: F.autocontrast(corefw.zeros(4, 4)), TypeError),
        (lambda: F.adjust_gamma(BYTES, -1), ValueError),
        (lambda: F.adjust_sharpness(BYTES, -1), ValueError),
        (lambda: transforms.RandomAffine(-1), ValueError),
        (lambda: transforms.RandomAffine(1, translate=(2, 0)), ValueError),
        (lambda: transforms.RandomAffine(1, scale=(0, 1)), ValueError),
        (lambda: transforms.RandomAffine(1, shear=(0, 1, 2)), ValueError),
        (lambda: transforms.RandomAffine(1, fill=object()), TypeError),
        (lambda: transforms.RandomPerspective(2), ValueError),
        (lambda: transforms.GaussianBlur(4), ValueError),
        (lambda: transforms.GaussianBlur(3, (2, 1)), ValueError),
        (lambda: transforms.ElasticTransform("a"), TypeError),
        (lambda: transforms.ElasticTransform((1.0, 2.0, 3.0)), ValueError),
        (lambda: transforms.AutoAugment("imagenet"), ValueError),
        (lambda: transforms.AugMix(severity=0), ValueError),
        (lambda: transforms.LinearTransformation(corefw.ones(2, 3), corefw.ones(2)), ValueError),
        (lambda: transforms.LinearTransformation(corefw.ones(2, 2), corefw.ones(3)), ValueError),
        (lambda: transforms.LinearTransformation(corefw.ones(2, 2), corefw.ones(2))(corefw.ones(1, 1, 3)), ValueError),
    ],
)
def test_mistakes_have_torchvisions_types(make, error):
    with pytest.raises(error):
        make()
