"""Data sets of images, in the form of `torchvision.datasets`."""

from corefw.vision.datasets.base import StandardTransform, VisionDataset
from corefw.vision.datasets.cifar import CIFAR10, CIFAR100
from corefw.vision.datasets.digits import Digits
from corefw.vision.datasets.fakedata import FakeData
from corefw.vision.datasets.folder import DatasetFolder, ImageFolder
from corefw.vision.datasets.imagenet import ImageNet
from corefw.vision.datasets.mnist import KMNIST, MNIST, FashionMNIST

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "KMNIST",
    "MNIST",
    "DatasetFolder",
    "Digits",
    "FakeData",
    "FashionMNIST",
    "ImageFolder",
    "ImageNet",
    "StandardTransform",
    "VisionDataset",
]
