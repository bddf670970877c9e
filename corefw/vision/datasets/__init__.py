"""Data sets of images, in the form of `torchvision.datasets`."""

from corefw.vision.datasets.arrays import STL10, SVHN, USPS
from corefw.vision.datasets.base import StandardTransform, VisionDataset
from corefw.vision.datasets.cifar import CIFAR10, CIFAR100
from corefw.vision.datasets.coco import CocoCaptions, CocoDetection
from corefw.vision.datasets.digits import Digits
from corefw.vision.datasets.emnist import EMNIST, QMNIST
from corefw.vision.datasets.fakedata import FakeData
from corefw.vision.datasets.folder import DatasetFolder, ImageFolder
from corefw.vision.datasets.imagenet import ImageNet
from corefw.vision.datasets.images import Caltech101, CelebA, Flowers102, Food101, OxfordIIITPet
from corefw.vision.datasets.mnist import KMNIST, MNIST, FashionMNIST
from corefw.vision.datasets.voc import VOCDetection, VOCSegmentation

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "EMNIST",
    "KMNIST",
    "MNIST",
    "QMNIST",
    "STL10",
    "SVHN",
    "USPS",
    "Caltech101",
    "CelebA",
    "CocoCaptions",
    "CocoDetection",
    "DatasetFolder",
    "Digits",
    "FakeData",
    "FashionMNIST",
    "Flowers102",
    "Food101",
    "ImageFolder",
    "ImageNet",
    "OxfordIIITPet",
    "StandardTransform",
    "VOCDetection",
    "VOCSegmentation",
    "VisionDataset",
]
