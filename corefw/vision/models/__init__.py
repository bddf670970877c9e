"""Models of images, in the form of `torchvision.models`, whose weights they take."""

from corefw.vision.models._api import *
from corefw.vision.models.alexnet import *
from corefw.vision.models.convnext import *
from corefw.vision.models.densenet import *
from corefw.vision.models.efficientnet import *
from corefw.vision.models.googlenet import *
from corefw.vision.models.inception import *
from corefw.vision.models.maxvit import *
from corefw.vision.models.mnasnet import *
from corefw.vision.models.mobilenet import *
from corefw.vision.models.regnet import *
from corefw.vision.models.resnet import *
from corefw.vision.models.shufflenetv2 import *
from corefw.vision.models.squeezenet import *
from corefw.vision.models.swin_transformer import *
from corefw.vision.models.vgg import *
from corefw.vision.models.vision_transformer import *
