"""Transforms of samples: images with their videos, masks and boxes."""

import copy
import pickle

import numpy as np
import pytest

import corefw
from corefw.vision import transforms, tv_tensors
from corefw.vision.transforms import v2
from corefw.vision.transforms.v2 import functional as F
from corefw.vision.tv_tensors import BoundingBoxes, BoundingBoxFormat, Image, Mask, Video, wrap
from tests.pictures import both, pixels, random_pixels

HEIGHT, WIDTH = 12, 16
XYXY = [[1, 2, 5, 6], [4, 3, 15, 11]]


def boxes(format="XYXY", dtype=corefw.float32, **options):
    made = BoundingBoxes(XYXY, format="XYXY", canvas_size=(HEIGHT, WIDTH), dtype=dtype, **options)
    return F.convert_bounding_box_format(made, new_format=format)


def painted():
    """An image and a mask whose bright pixels are the first box."""
    image = corefw.zeros(3, HEIGHT, WIDTH, dtype=corefw.uint8)
    image[:, 2:6, 1:5] = 255
    return Image(image), Mask(image[:1].clone())


def extent(image):
    """The box of an image's bright pixels."""
    rows, columns = np.nonzero(pixels(image)[0] > 127)
    return [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


def xyxy(found):
    return F.convert_bounding_box_format(found, new_format="XYXY").as_subclass(corefw.Tensor)


def test_what_tensors_say_of_themselves():
    image, found = Image(random_pixels(4, 5)), boxes()
    assert type(image) is Image and image.shape == (1, 4, 5) and type(image + 1) is corefw.Tensor
    assert type(image.clone()) is type(image.to(corefw.float32)) is type(image.detach()) is Image
    assert (found.format, found.canvas_size, found.clamping_mode) == (BoundingBoxFormat.XYXY, (12, 16), "soft")
    for same in (found.clone(), copy.deepcopy(found), pickle.loads(pickle.dumps(found)), wrap(found + 0, like=found)):
        assert type(same) is BoundingBoxes and same.tolist() == found.tolist()
        assert (same.format, same.canvas_size) == (found.format, found.canvas_size)
    assert wrap(found + 0, like=found, canvas_size=(3, 4)).canvas_size == (3, 4)
    assert Image(both()[0]).shape == (3, 6, 9) and Mask(both(1)[0]).shape == (1, 6, 9)
    assert Image(corefw.rand(1, 2, 2, requires_grad=True)).requires_grad
    with tv_tensors.set_return_type("Tensor"):
        assert type(image * 2) is corefw.Tensor
    with pytest.raises(NotImplementedError, match="wrap"):
        tv_tensors.set_return_type("TVTensor")


@pytest.mark.parametrize("format", ["XYXY", "XYWH", "CXCYWH"])
@pytest.mark.parametrize(
    "transform",
    [
        F.hflip,
        F.vflip,
        lambda x: F.crop(x, 1, 0, 8, 9),
        lambda x: F.crop(x, -1, -2, 20, 20),
        lambda x: F.pad(x, [1, 2, 3, 4]),
        lambda x: F.center_crop(x, (9, 15)),
        lambda x: F.resize(x, (24, 32)),
        lambda x: F.resized_crop(x, 0, 0, 6, 8, (12, 16)),
        lambda x: F.rotate(x, 90, expand=True),
        lambda x: F.rotate(x, 180),
        lambda x: F.affine(x, 0, (3, 2), 1.0, 0.0),
        lambda x: F.affine(x, 0, (0, 0), 2.0, 0.0, center=(1, 2)),
        lambda x: F.perspective(x, [[0, 0], [16, 0], [16, 12], [0, 12]], [[0, 0], [8, 0], [8, 6], [0, 6]], "nearest"),
        lambda x: F.elastic(x, corefw.full((1, HEIGHT, WIDTH, 2), -0.25)),
    ],
)
def test_boxes_and_masks_go_where_the_image_goes(transform, format):
    image, mask = painted()
    moved, moved_mask, moved_boxes = transform(image), transform(mask), transform(boxes(format))
    assert (type(moved), type(moved_mask), type(moved_boxes)) == (Image, Mask, BoundingBoxes)
    assert moved_boxes.canvas_size == tuple(moved.shape[-2:]) == tuple(moved_mask.shape[-2:])
    assert moved_boxes.format is BoundingBoxFormat[format]
    assert set(np.unique(moved_mask.numpy())) <= {0, 255}
    np.testing.assert_allclose(xyxy(moved_boxes)[0].numpy(), extent(moved), atol=0.5)
    np.testing.assert_allclose(xyxy(moved_boxes)[0].numpy(), extent(moved_mask), atol=0.5)


def test_boxes_are_those_of_their_mapped_corners():
    found = F.rotate(boxes(clamping_mode=None), 30)
    turn = np.radians(-30)
    corners = np.array([[1, 2], [5, 2], [5, 6], [1, 6]]) - [8, 6]
    mapped = corners @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]) + [8, 6]
    np.testing.assert_allclose(found.numpy()[0], [*mapped.min(0), *mapped.max(0)], rtol=1e-5)
    assert float(boxes().max()) == float(F.crop(boxes(clamping_mode=None), 0, 0, 3, 3).max())  # nothing was cut off
    empty = BoundingBoxes(corefw.zeros(0, 4), format="XYXY", canvas_size=(4, 4))
    assert F.rotate(empty, 30).shape == F.hflip(empty).shape == (0, 4)


@pytest.mark.parametrize("dtype", [corefw.float32, corefw.int64])
@pytest.mark.parametrize("old", ["XYXY", "XYWH", "CXCYWH"])
@pytest.mark.parametrize("new", ["XYXY", "xywh", "CXCYWH"])
def test_formats(old, new, dtype):
    forms = {
        "XYXY": [[1, 2, 5, 6], [4, 3, 14, 11]],
        "XYWH": [[1, 2, 4, 4], [4, 3, 10, 8]],
        "CXCYWH": [[3, 4, 4, 4], [9, 7, 10, 8]],
    }
    given = corefw.tensor(forms[old], dtype=dtype)
    found = F.convert_bounding_box_format(given, old, new)
    assert found.dtype is dtype
    np.testing.assert_allclose(found.numpy(), np.array(forms[new.upper()]), atol=0)
    F.convert_bounding_box_format(given, old, new, inplace=True)
    assert given.tolist() == found.tolist()


def test_clamping_and_sanitizing():
    given = BoundingBoxes(
        [[-3, 1, 4, 30], [2, 2, 2, 9], [1, 1, 3, 3]], format="XYXY", canvas_size=(12, 16), clamping_mode=None
    )
    assert v2.ClampBoundingBoxes()(given).tolist() == given.tolist()
    cut = v2.ClampBoundingBoxes("hard")(given)
    assert cut.tolist() == [[0, 1, 4, 12], [2, 2, 2, 9], [1, 1, 3, 3]]
    assert v2.SetClampingMode("soft")(given).clamping_mode == "soft" and given.clamping_mode is None
    masks = Mask(random_pixels(3, 12, 16))
    _, target = v2.SanitizeBoundingBoxes()(
        Image(random_pixels(3, 12, 16)), {"boxes": cut, "labels": corefw.tensor([7, 8, 9]), "masks": masks, "id": 5}
    )
    assert target["labels"].tolist() == [7, 9] and type(target["boxes"]) is BoundingBoxes and target["id"] == 5
    assert target["boxes"].tolist() == [[0, 1, 4, 12], [1, 1, 3, 3]] and type(target["masks"]) is Mask
    np.testing.assert_array_equal(target["masks"].numpy(), masks.numpy()[[0, 2]])
    assert len(v2.SanitizeBoundingBoxes(min_size=3, labels_getter=None)(cut)) == 1
    assert len(v2.SanitizeBoundingBoxes(min_area=5, labels_getter=None)(cut)) == 1
    assert F.sanitize_bounding_boxes(given)[1].tolist() == [False, False, True]


def sample(kind=1):
    image, mask = painted()
    return {
        "image": image if kind else transforms.ToPILImage()(image),
        "target": (boxes(), mask, [corefw.tensor([3, 4]), "text", None, 5]),
    }


GEOMETRIC = {
    "RandomHorizontalFlip": v2.RandomHorizontalFlip(1.0),
    "RandomVerticalFlip": v2.RandomVerticalFlip(1.0),
    "Resize": v2.Resize(18),
    "CenterCrop": v2.CenterCrop((5, 7)),
    "Pad": v2.Pad(2),
    "RandomCrop": v2.RandomCrop((14, 9), padding=1, pad_if_needed=True),
    "RandomResizedCrop": v2.RandomResizedCrop(8),
    "RandomRotation": v2.RandomRotation(40, expand=True),
    "RandomAffine": v2.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 5, fill={Image: 3, "others": 0}),
    "RandomPerspective": v2.RandomPerspective(p=1.0),
    "ElasticTransform": v2.ElasticTransform(5.0, 1.0),
    "RandomZoomOut": v2.RandomZoomOut(p=1.0),
    "RandomIoUCrop": v2.RandomIoUCrop(sampler_options=[0.0]),
    "ScaleJitter": v2.ScaleJitter((20, 20), (0.8, 1.2)),
    "RandomShortestSize": v2.RandomShortestSize([6, 8], 20),
    "RandomResize": v2.RandomResize(6, 9),
}


@pytest.mark.parametrize("name", GEOMETRIC)
@pytest.mark.parametrize("kind", [0, 1], ids=["pillow", "tensor"])
def test_a_sample_is_transformed_as_one(name, kind):
    given, transform = sample(kind), GEOMETRIC[name]
    corefw.manual_seed(3)
    result = transform(given)
    found, mask, rest = result["target"]
    assert type(result["image"]) is type(given["image"]) and type(found) is BoundingBoxes and type(mask) is Mask
    assert rest[0] is given["target"][2][0] and rest[1:] == ["text", None, 5]
    size = tuple(pixels(result["image"]).shape[-2:])
    assert size == found.canvas_size == tuple(mask.shape[-2:])
    seen = np.argwhere(pixels(result["image"])[0] > 200)
    if len(seen) and name != "ElasticTransform":  # the mask and the box are where the image is
        assert (pixels(mask)[0][tuple(seen.T)] == 255).mean() > 0.75
        left, top, right, bottom = found.tolist()[0]
        inside = (seen >= [top - 1, left - 1]) & (seen <= [bottom, right])
        assert inside.all()
    corefw.manual_seed(3)
    again = transform(given)
    np.testing.assert_array_equal(pixels(again["image"]), pixels(result["image"]))
    assert again["target"][0].tolist() == found.tolist()


PICTORIAL = {
    "ColorJitter": v2.ColorJitter(0.5, 0.5, 0.5, 0.2),
    "GaussianBlur": v2.GaussianBlur(3),
    "Grayscale": v2.Grayscale(3),
    "RandomAdjustSharpness": v2.RandomAdjustSharpness(2.0, 1.0),
    "RandomInvert": v2.RandomInvert(1.0),
    "RandomPosterize": v2.RandomPosterize(2, 1.0),
    "RandomSolarize": v2.RandomSolarize(9, 1.0),
    "RandomPhotometricDistort": v2.RandomPhotometricDistort(p=1.0),
    "RandomChannelPermutation": v2.RandomChannelPermutation(),
    "JPEG": v2.JPEG((20, 60)),
}


@pytest.mark.parametrize("name", PICTORIAL)
@pytest.mark.parametrize("kind", [0, 1], ids=["pillow", "tensor"])
def test_colours_are_of_pictures_alone(name, kind):
    given = {**sample(kind), "image": both(3, 12, 16)[kind] if not kind else Image(random_pixels(3, 12, 16))}
    result = PICTORIAL[name](given)
    assert all(new is old for new, old in zip(result["target"][:2], given["target"][:2], strict=True))
    assert type(result["image"]) is type(given["image"])
    assert (pixels(result["image"]) != pixels(given["image"])).any()
    with pytest.raises(TypeError, match="a picture is expected, not a BoundingBoxes"):
        F.adjust_hue(boxes(), 0.1)


def test_v1_and_v2_are_one():
    image = both(3, 12, 16)[1]
    for name in ("ColorJitter", "RandomAffine", "RandomCrop", "RandAugment", "GaussianBlur", "RandomErasing"):
        arguments = {"ColorJitter": (0.5,), "RandomAffine": (30,), "RandomCrop": (5,), "GaussianBlur": (3,)}.get(
            name, ()
        )
        results = []
        for module in (transforms, v2):
            corefw.manual_seed(1)
            results.append(getattr(module, name)(*arguments)(image).numpy())
        np.testing.assert_array_equal(*results)


def test_which_plain_tensor_is_the_picture():
    first, second = corefw.zeros(1, 2, 2), corefw.zeros(1, 2, 2)
    one, other = v2.Pad(1)(first, second)
    assert one.shape == (1, 4, 4) and other is second
    picture, plain = v2.Pad(1)(Image(first), second)
    assert picture.shape == (1, 4, 4) and plain is second


@pytest.mark.parametrize("kind", [v2.MixUp, v2.CutMix])
@pytest.mark.parametrize("labels", [[0, 2, 1], [[1.0, 0, 0], [0, 0, 1.0], [0, 1.0, 0]]])
def test_mixing_two_samples(kind, labels):
    images = corefw.arange(3).float().view(3, 1, 1, 1).expand(3, 2, 8, 8).contiguous()
    targets = corefw.tensor(labels)
    corefw.manual_seed(0)
    mixed, shares = kind(num_classes=3)(images, targets)
    one_hot = np.eye(3)[[0, 2, 1]]
    share = float(shares[0, 0])
    assert 0 < share < 1
    np.testing.assert_allclose(shares.numpy(), share * one_hot + (1 - share) * np.roll(one_hot, 1, 0), rtol=1e-5)
    means = share * np.arange(3) + (1 - share) * np.roll(np.arange(3), 1)
    np.testing.assert_allclose(mixed.numpy().mean((1, 2, 3)), means, rtol=1e-4)
    assert set(np.unique(mixed.numpy())) <= {0.0, 1.0, 2.0} or kind is v2.MixUp
    tree = kind(num_classes=3)({"images": Image(images), "my_labels": corefw.tensor([0, 1, 2])})
    assert type(tree["images"]) is Image and tree["my_labels"].shape == (3, 3)
    assert images[1].unique().tolist() == [1.0], "the input was changed"


def test_shares_follow_the_beta_distribution():
    corefw.manual_seed(0)
    drawn = [v2.MixUp(alpha=0.5).make_params([])["share"] for _ in range(400)]
    assert np.mean(drawn) == pytest.approx(0.5, abs=0.06) and np.var(drawn) == pytest.approx(1 / 8, abs=0.02)


def test_conversions():
    array = random_pixels(4, 5, 3)
    image = v2.ToImage()(array)
    assert type(image) is Image
    np.testing.assert_array_equal(image.numpy(), array.transpose(2, 0, 1))
    scaled = v2.ToDtype(corefw.float32, scale=True)(image)
    assert type(scaled) is Image
    np.testing.assert_allclose(scaled.numpy(), array.transpose(2, 0, 1) / 255, rtol=1e-6)
    mask = Mask(random_pixels(4, 5))
    kinds = {Image: corefw.float64, Mask: corefw.int64, "others": None}
    result = v2.ToDtype(kinds)({"image": image, "mask": mask, "boxes": boxes(), "label": corefw.tensor(1)})
    assert [value.dtype for value in result.values()] == [corefw.float64, corefw.int64, corefw.float32, corefw.int64]
    assert float(result["image"].max()) > 1 and type(result["mask"]) is Mask
    with pytest.raises(ValueError, match="No dtype was specified"):
        v2.ToDtype({Image: corefw.float32})(mask)
    assert [type(x) for x in v2.ToPureTensor()((image, mask))] == [corefw.Tensor] * 2
    assert v2.ToPILImage()(image) == both_of(array) and v2.PILToTensor()(both_of(array)).shape == (3, 4, 5)
    assert v2.Identity()((1, image))[1] is image
    assert v2.Lambda(lambda x: x + 1, int)({"a": 1, "b": "c"}) == {"a": 2, "b": "c"}
    video = Video(corefw.arange(7).view(7, 1, 1, 1))
    sampled = v2.UniformTemporalSubsample(3)(video)
    assert type(sampled) is Video and sampled.flatten().tolist() == [0, 3, 6]
    normal = v2.Normalize([0.5] * 3, [2.0] * 3)(scaled)
    assert type(normal) is Image
    np.testing.assert_allclose(normal.numpy(), (scaled.numpy() - 0.5) / 2, rtol=1e-5, atol=1e-7)
    assert v2.RGB()(Image(random_pixels(1, 2, 2))).shape == (3, 2, 2)
    with pytest.warns(UserWarning, match="deprecated"):
        v2.ToTensor()


def both_of(array):
    return transforms.ToPILImage()(array)


@pytest.mark.parametrize("dtype", [corefw.float32, corefw.int64])
def test_points_go_where_their_pixels_go(dtype):
    image = corefw.zeros(1, HEIGHT, WIDTH)
    image[0, 5, 3] = 1
    points = tv_tensors.KeyPoints([[3, 5]], canvas_size=(HEIGHT, WIDTH), dtype=dtype)
    for transform in (
        F.hflip,
        F.vflip,
        lambda x: F.crop(x, 1, 2, 9, 9),
        lambda x: F.pad(x, [1, 2, 3, 4]),
        lambda x: F.affine(x, 0, (3, 2), 1.0, 0.0),
        lambda x: F.elastic(x, corefw.tensor([-2 / WIDTH, 4 / HEIGHT]).expand(1, HEIGHT, WIDTH, 2), "nearest"),
    ):
        found, moved = transform(points), transform(image)
        assert type(found) is tv_tensors.KeyPoints and found.dtype is dtype
        assert found.canvas_size == tuple(moved.shape[-2:])
        np.testing.assert_allclose(found.numpy(), np.argwhere(moved.numpy()[0] == 1)[:, ::-1], atol=1e-4)
    wide = tv_tensors.KeyPoints([[[0.0, 0.0], [16.0, 12.0]]], canvas_size=(HEIGHT, WIDTH))
    assert F.resize(wide, (6, 32)).tolist() == [[[0, 0], [32, 6]]]
    turned = F.rotate(wide, 90, expand=True)
    np.testing.assert_allclose(turned.numpy(), [[[0, 16], [12, 0]]], atol=1e-4)
    half = F.perspective(wide, [[0, 0], [16, 0], [16, 12], [0, 12]], [[0, 0], [8, 0], [8, 6], [0, 6]])
    np.testing.assert_allclose(half.numpy(), [[[0, 0], [8, 6]]], atol=1e-4)


def test_points_outside():
    points = tv_tensors.KeyPoints([[-1.0, 3.0], [5.0, 5.0], [16.0, 12.0]], canvas_size=(HEIGHT, WIDTH))
    assert v2.ClampKeyPoints()(points).tolist() == [[0, 3], [5, 5], [15, 11]]
    kept = v2.SanitizeKeyPoints("default")({"points": points, "labels": corefw.tensor([1, 2, 3])})
    assert kept["points"].tolist() == [[5, 5]] and kept["labels"].tolist() == [2]
    groups = tv_tensors.KeyPoints([[[1, 1], [2, 2]], [[3, 3], [99, 3]]], canvas_size=(HEIGHT, WIDTH))
    assert v2.SanitizeKeyPoints()((groups,))[0].tolist() == [[[1, 1], [2, 2]]]
    assert repr(groups).endswith("canvas_size=(12, 16))") and v2.get_keypoints([1, groups]) is groups
    for wrong in (lambda: F.clamp_keypoints(corefw.zeros(1, 2)), lambda: tv_tensors.KeyPoints([1], canvas_size=(1, 1)),
                  lambda: F.sanitize_keypoints(groups, (1, 1)), lambda: F.pad(groups, 1, padding_mode="edge"),
                  lambda: v2.get_keypoints([])):  # fmt: skip
        with pytest.raises(ValueError, match=r"canvas_size|shape|supported|No keypoints"):
            wrong()


def test_queries():
    given = [*sample()["target"][:2], sample()["image"], 3]
    assert v2.query_size(given) == (12, 16) and v2.query_chw(given) == (3, 12, 16)
    with pytest.raises(ValueError, match="multiple"):
        v2.query_chw([Image(corefw.zeros(1, 2, 2)), Image(corefw.zeros(1, 2, 3))])
    with pytest.raises(TypeError, match="No image"):
        v2.query_chw([boxes()])


def test_noise():
    corefw.manual_seed(0)
    for dtype, top in ((corefw.float32, 1), (corefw.uint8, 255)):
        picture = Image(corefw.full((1, 64, 64), top // 2 or 0.5, dtype=dtype))
        noisy = v2.GaussianNoise(0.1, 0.05)(picture)
        assert type(noisy) is Image and noisy.dtype is dtype
        assert noisy.numpy().mean() / top == pytest.approx(0.6, abs=0.01)
        assert noisy.numpy().std() / top == pytest.approx(0.05, abs=0.005)


def test_videos_have_the_same_change_in_every_frame():
    frame = random_pixels(3, 8, 8)
    video = Video(np.stack([frame, frame]))
    for transform in (v2.ColorJitter(0.5, 0.5), v2.RandomResizedCrop(5), v2.RandAugment(), v2.RandomEqualize(1.0)):
        changed = transform(video)
        assert type(changed) is Video
        np.testing.assert_array_equal(changed[0].numpy(), changed[1].numpy())


def test_containers():
    given = sample()
    steps = v2.Compose([v2.RandomHorizontalFlip(1.0), v2.Resize((6, 8))])
    assert steps(given)["target"][0].canvas_size == (6, 8)
    image, label = steps(given["image"], 3)
    assert image.shape == (3, 6, 8) and label == 3
    assert v2.RandomApply([v2.Pad(1)], 0.0)(image) is image
    assert v2.RandomOrder([v2.Pad(1), v2.Pad(2)])(image, 1)[0].shape == (3, 12, 14)
    assert {v2.RandomChoice([len, str], p=[0, 1])([1]) for _ in range(9)} == {"[1]"}
    for kind in (v2.Compose, v2.RandomApply, v2.RandomChoice, v2.RandomOrder):
        with pytest.raises(ValueError, match="at least one"):
            kind([])


def test_texts_and_pickles():
    text = "Resize(size=4, max_size=None, interpolation=InterpolationMode.BILINEAR, antialias=True)"
    assert repr(v2.Resize(4)) == text.replace("max_size=None, ", "")
    assert repr(pickle.loads(pickle.dumps(v2.RandomAffine(3)))).startswith("RandomAffine(degrees=[-3.0, 3.0]")
    assert repr(v2.Compose([v2.RandomInvert()])).replace("\n", "").replace(" ", "") == "Compose(RandomInvert(p=0.5))"
    assert repr(v2.Lambda(len, list)) == "Lambda(len, types=['list'])"
    assert pickle.loads(pickle.dumps(F.resize)) is F.resize


IMAGES = corefw.zeros(2, 3, 4, 4)


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: BoundingBoxes(XYXY, format="XYWHR", canvas_size=(1, 1)), NotImplementedError),
        (lambda: BoundingBoxes([[XYXY]], format="XYXY", canvas_size=(1, 1)), ValueError),
        (lambda: BoundingBoxes(XYXY, format="XYXY", canvas_size=(1, 1), clamping_mode="no"), ValueError),
        (lambda: Image([1]), ValueError),
        (lambda: Video([[1]]), ValueError),
        (lambda: F.pad(boxes(), 1, padding_mode="reflect"), ValueError),
        (lambda: F.convert_bounding_box_format(corefw.zeros(1, 4), new_format="XYXY"), ValueError),
        (lambda: F.convert_bounding_box_format(boxes(), "XYXY", "XYWH"), ValueError),
        (lambda: F.clamp_bounding_boxes(corefw.zeros(1, 4)), ValueError),
        (lambda: v2.RandomIoUCrop()(IMAGES), TypeError),
        (lambda: v2.FiveCrop(2)(Image(IMAGES), boxes()), TypeError),
        (lambda: v2.AutoAugment()(Image(IMAGES), boxes()), TypeError),
        (lambda: v2.Normalize([0], [1])(both()[0]), TypeError),
        (lambda: v2.SanitizeBoundingBoxes()({"boxes": boxes(), "labels": corefw.zeros(3)}), ValueError),
        (lambda: v2.SanitizeBoundingBoxes()({"boxes": boxes()}), ValueError),
        (lambda: v2.SanitizeBoundingBoxes(min_size=0), ValueError),
        (lambda: v2.MixUp()(IMAGES, corefw.tensor([0, 1])), ValueError),
        (lambda: v2.MixUp(num_classes=2)(IMAGES, corefw.tensor([0, 1, 1])), ValueError),
        (lambda: v2.MixUp(num_classes=2)(IMAGES[0], corefw.tensor([0, 1, 1])), ValueError),
        (lambda: v2.CutMix(num_classes=2)(IMAGES, "label"), ValueError),
        (lambda: v2.CutMix(num_classes=2)(Mask(IMAGES), corefw.tensor([0, 1])), ValueError),
        (lambda: v2.JPEG(0), ValueError),
        (lambda: v2.JPEG(True), TypeError),
        (lambda: v2.ToDtype("float32"), ValueError),
        (lambda: v2.RandomZoomOut(side_range=(0.5, 1)), ValueError),
        (
            lambda: v2.Pad(1)(Image(IMAGES), Image(IMAGES[..., :2])) and v2.RandomCrop(1)(Image(IMAGES), boxes()),
            ValueError,
        ),
        (lambda: v2.GaussianNoise()(both()[0]), TypeError),
    ],
)
def test_mistakes(make, error):
    with pytest.raises(error):
        make()
