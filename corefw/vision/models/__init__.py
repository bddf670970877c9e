"""Models of images, in the form of `torchvision.models`, whose weights they take."""

from corefw.vision.models import resnet, vgg
from corefw.vision.models.registry import (
    Weights,
    WeightsEnum,
    get_model,
    get_model_builder,
    get_model_weights,
    get_weight,
    list_models,
)
from corefw.vision.models.resnet import *
from corefw.vision.models.vgg import *

__all__ = [
    "Weights",
    "WeightsEnum",
    "get_model",
    "get_model_builder",
    "get_model_weights",
    "get_weight",
    "list_models",
    *resnet.__all__,
    *vgg.__all__,
]
