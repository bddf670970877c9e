"""What models of images are, in few numbers: with the names that torchvision and corefw share, so that either can be
described (`scripts/make_torchvision` does it with torchvision)."""

import hashlib
import math
import zlib

import numpy as np


def digest(fact):
    """What identifies a fact."""
    return hashlib.sha256(repr(fact).encode()).hexdigest()[:16]


def described(model):
    """Digests of the names and shapes of all that a model holds, and of its text."""
    held = [(key, tuple(value.shape)) for key, value in model.state_dict().items()]
    return [digest(held), digest(repr(model).replace("NonDynamicallyQuantizable", ""))]


def weights(kinds):
    """A digest of an enumeration of weights: names, addresses, numbers, and what pictures go through."""
    facts = []
    for name, one in kinds.__members__.items():
        crop = one.transforms()
        shown = (*crop.crop_size, *crop.resize_size, crop.interpolation.value, [*crop.mean], [*crop.std])
        meta = (one.meta["num_params"], [*one.meta["min_size"]], one.meta["_metrics"])
        facts.append((name, one.name, one.url, meta, shown))
    return digest(facts)


def fill(model, tensor):
    """Give what a model holds values that follow from its names alone."""
    for key, value in model.state_dict().items():
        if not value.is_floating_point() or "relative_coords" in key:
            continue
        drawn = np.random.default_rng(zlib.crc32(key.encode())).standard_normal(tuple(value.shape))
        if key.endswith("running_var"):
            drawn = 0.5 + np.abs(drawn)
        elif value.ndim == 1:
            drawn = 0.1 * drawn + key.endswith("weight")
        elif "logit_scale" in key:
            drawn = 0.1 * drawn + 2.3
        else:
            drawn = drawn / math.sqrt(math.prod(value.shape[1:]))
        value.copy_(tensor(np.asarray(drawn)))
    return model


def picture(height, width=None):
    """Two pictures of noise."""
    return np.random.default_rng(1).standard_normal((2, 3, height, width or height))


def _efficient(models):
    kinds = models.efficientnet
    stages = [kinds.FusedMBConvConfig(1, 3, 1, 8, 8, 1), kinds.FusedMBConvConfig(2, 3, 2, 8, 8, 2)]
    stages += [kinds.MBConvConfig(4, 3, 2, 8, 16, 2, 1.0, 0.7), kinds.MBConvConfig(2, 5, 1, 16, 16, 1, 0.5)]
    stages[-1].input_channels = 16
    return models.EfficientNet(stages, dropout=0.0, num_classes=5)


def _regnet(models):
    return models.RegNet(
        models.regnet.BlockParams.from_init_params(5, 8, 8.0, 2.0, 8, se_ratio=0.25), num_classes=5, stem_width=8
    )


def _convnext(models):
    kind = models.convnext.CNBlockConfig
    return models.ConvNeXt([kind(8, 16, 1), kind(16, None, 2)], 0.1, 0.5, num_classes=5)


def _vit(models, **options):
    return models.VisionTransformer(16, 4, 2, 2, 8, 12, num_classes=5, **options)


def _stem(models):
    kind = models.vision_transformer.ConvStemConfig
    return _vit(models, representation_size=6, conv_stem_configs=[kind(4, 3, 2), kind(6, 3, 2)])


def _swin(models, second=False):
    kinds = models.swin_transformer
    options = {"block": kinds.SwinTransformerBlockV2, "downsample_layer": kinds.PatchMergingV2} if second else {}
    return models.SwinTransformer([2, 2], 8, [2, 2], [2, 4], [3, 2], num_classes=5, **options)


#: {name: (a narrow network, height and width of pictures)}
SMALL = {
    "convnext": (_convnext, (33, 36)),
    "densenet": (lambda models: models.DenseNet(4, (1, 2, 1), 8, num_classes=5), (40, 33)),
    "efficientnet": (_efficient, (32, 40)),
    "googlenet": (lambda models: models.GoogLeNet(5, transform_input=True, init_weights=False), (32, 40)),
    "inception_a": (lambda models: models.inception.InceptionA(6, 4), (9, 10)),
    "inception_b": (lambda models: models.inception.InceptionB(6), (9, 10)),
    "inception_c": (lambda models: models.inception.InceptionC(6, 5), (9, 10)),
    "inception_d": (lambda models: models.inception.InceptionD(6), (9, 10)),
    "inception_e": (lambda models: models.inception.InceptionE(6), (4, 5)),
    "maxvit": (lambda models: models.MaxVit((24, 24), 4, 3, [4, 8], [1, 2], 4, 0.1, num_classes=5), (24, 24)),
    "mnasnet": (lambda models: models.MNASNet(0.1, num_classes=5), (40, 33)),
    "mobilenet_v2": (
        lambda models: models.MobileNetV2(5, 0.25, [[1, 16, 1, 1], [6, 24, 2, 2], [3, 32, 1, 1]]),
        (40, 33),
    ),
    "mobilenet_v3": (lambda models: models.mobilenet_v3_small(width_mult=0.1, num_classes=5), (64, 40)),
    "mobilenet_v3_dilated": (
        lambda models: models.mobilenet_v3_large(width_mult=0.1, num_classes=5, reduced_tail=True, dilated=True),
        (64, 40),
    ),
    "regnet": (_regnet, (40, 33)),
    "shufflenet": (lambda models: models.ShuffleNetV2([1, 2, 1], [8, 8, 16, 16, 32], num_classes=5), (40, 33)),
    "squeezenet": (lambda models: models.SqueezeNet("1_1", num_classes=5), (40, 33)),
    "swin": (_swin, (25, 22)),
    "swin_v2": (lambda models: _swin(models, second=True), (25, 22)),
    "vit": (_vit, (16, 16)),
    "vit_stem": (_stem, (16, 16)),
}


def measured(name, library, models):
    """Of a network of `SMALL` filled in float64, some of its results and of the gradient of its pictures.

    Args:
        name: the network.
        library: torch or corefw.
        models: its models of images.
    """
    build, size = SMALL[name]
    model = fill(build(models).double().eval(), library.from_numpy)
    image = picture(*size)
    if name.startswith("inception"):
        image = np.concatenate([image, image[:, :, ::-1]], axis=1)  # six channels
    x = library.tensor(image, requires_grad=True)
    out = model(x)
    slope = library.arange(out.numel()).double().cos().reshape(out.shape)
    (gradient,) = library.autograd.grad((out * slope).sum(), [x])
    some = out.detach().numpy().ravel()[:: max(1, out.numel() // 10)][:10]
    return [float(f"{number:.12g}") for number in (*some, *gradient.numpy().ravel()[:5])]
