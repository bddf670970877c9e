"""vision.models: the keys of torchvision's files, the networks' parts, models and weights by name."""

import hashlib
import pickle

import pytest

import corefw as torch
from corefw import nn
from corefw.vision import models
from corefw.vision.models._utils import IntermediateLayerGetter

#: of torchvision 0.29's models with 7 classes, what identifies the names and shapes of all they hold
KEYS = {
    "resnet101": "553c48072c28b59b",
    "resnet152": "a542235f06f0ae93",
    "resnet18": "c972e808829cfff5",
    "resnet34": "41b30d8b033bab01",
    "resnet50": "2dbe56215a156992",
    "resnext101_32x8d": "07a6af76b985dc45",
    "resnext101_64x4d": "da3b57944cffaf73",
    "resnext50_32x4d": "b96c97a3dde0fba4",
    "vgg11": "587eedd90082cd59",
    "vgg11_bn": "bdb4d748d8502671",
    "vgg13": "26d5d3e7179f513f",
    "vgg13_bn": "68df603bbdc01b80",
    "vgg16": "64097bd329218d75",
    "vgg16_bn": "7dc0d877ea72bfb9",
    "vgg19": "1cc0fd7a2316d1d5",
    "vgg19_bn": "e33f91144feb7878",
    "wide_resnet101_2": "5fd9e7107b4bc4f1",
    "wide_resnet50_2": "27284c9d5e729e68",
}


@pytest.mark.parametrize("name", KEYS)
def test_models_have_torchvisions_keys(name):
    with torch.device("meta"):
        model = models.get_model(name, num_classes=7)
    held = [(key, tuple(value.shape)) for key, value in model.state_dict().items()]
    assert hashlib.sha256(repr(held).encode()).hexdigest()[:16] == KEYS[name]


def test_all_are_compared():
    assert models.list_models() == sorted(KEYS)
    assert models.list_models(models.resnet, include=["resnet*"], exclude="*1*") == ["resnet34", "resnet50"]


def by_hand(model, x):
    """A residual network of bottlenecks, written out."""

    def norm(layer, x):
        return nn.functional.batch_norm(x, layer.running_mean, layer.running_var, layer.weight, layer.bias)

    def convolve(layer, x):
        return nn.functional.conv2d(x, layer.weight, None, layer.stride, layer.padding, layer.dilation, layer.groups)

    x = nn.functional.max_pool2d(norm(model.bn1, convolve(model.conv1, x)).relu(), 3, 2, 1)
    for stage in (model.layer1, model.layer2, model.layer3, model.layer4):
        for block in stage:
            y = norm(block.bn1, convolve(block.conv1, x)).relu()
            y = norm(block.bn3, convolve(block.conv3, norm(block.bn2, convolve(block.conv2, y)).relu()))
            x = (
                y + (x if block.downsample is None else norm(block.downsample[1], convolve(block.downsample[0], x)))
            ).relu()
    return nn.functional.linear(x.mean((2, 3)), model.fc.weight, model.fc.bias)


@pytest.mark.parametrize(
    "options", [{}, {"groups": 4, "width_per_group": 8}, {"replace_stride_with_dilation": [0, 1, 1]}]
)
def test_a_network_is_its_parts(options):
    torch.manual_seed(0)
    model = models.ResNet(models.resnet.Bottleneck, [1, 2, 1, 2], num_classes=5, **options).double().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    x = torch.randn(2, 3, 40, 40, dtype=torch.float64)
    torch.testing.assert_close(model(x), by_hand(model, x), rtol=1e-10, atol=1e-12)
    last = model.layer4[1].conv2
    dilated = "replace_stride_with_dilation" in options
    assert last.dilation == ((4, 4) if dilated else (1, 1)) and last.groups == options.get("groups", 1)


def test_networks_learn():
    torch.manual_seed(0)
    model = models.ResNet(models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=2, zero_init_residual=True)
    assert not model.layer1[0].bn2.weight.any() and model.layer1[0].bn1.weight.all()
    x, target = torch.randn(8, 3, 32, 32), torch.tensor([0, 1] * 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_blocks_refuse_what_they_are_not_for():
    with pytest.raises(ValueError, match="groups=1"):
        models.resnet18(groups=2)
    with pytest.raises(NotImplementedError, match="Dilation > 1"):
        models.resnet18(replace_stride_with_dilation=[False, True, True])
    with pytest.raises(ValueError, match="3-element tuple"):
        models.resnet50(replace_stride_with_dilation=[True])


# -- by name ----------------------------------------------------------------------------------------------------------
def test_weights_by_name():
    weights = models.get_weight("ResNet50_Weights.IMAGENET1K_V2")
    assert weights is models.ResNet50_Weights.DEFAULT is models.get_model_weights("resnet50").IMAGENET1K_V2
    assert weights.url == "https://download.pytorch.org/models/resnet50-11ad3fa6.pth"
    assert pickle.loads(pickle.dumps(weights)) is weights and repr(weights) == "ResNet50_Weights.IMAGENET1K_V2"
    pictures = weights.transforms()(torch.zeros(2, 3, 300, 260, dtype=torch.uint8))
    assert pictures.shape == (2, 3, 224, 224)
    torch.testing.assert_close(pictures[0, :, 0, 0], torch.tensor([-0.485 / 0.229, -0.456 / 0.224, -0.406 / 0.225]))


def test_weights_come_from_the_folder_of_downloads(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    trained = models.resnet18()
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    torch.save(trained.state_dict(), folder / "resnet18-f37072fd.pth")
    for weights in ("IMAGENET1K_V1", "ResNet18_Weights.DEFAULT", models.ResNet18_Weights.DEFAULT):
        model = models.resnet18(weights=weights)
        assert torch.equal(model.fc.weight, trained.fc.weight) and model.fc.out_features == 1000
    with pytest.raises(ValueError, match="expected value 1000 but got 5"):
        models.resnet18(weights="DEFAULT", num_classes=5)


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: models.get_model("resnet19"), ValueError, r"Unknown model resnet19\. \(did you mean"),
        (lambda: models.get_weight("ResNet18_Weights"), ValueError, "Invalid weight name"),
        (lambda: models.get_weight("ResNet19_Weights.DEFAULT"), ValueError, "couldn't be retrieved"),
        (lambda: models.resnet18(weights="V9"), ValueError, "has no weights 'V9'"),
        (lambda: models.resnet18(weights=models.ResNet34_Weights.DEFAULT), TypeError, "expected ResNet18_Weights"),
    ],
)
def test_wrong_names_are_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_layers_between():
    model, x = models.resnet18(num_classes=3).eval(), torch.randn(1, 3, 32, 32)
    found = IntermediateLayerGetter(model, {"layer1": "low", "layer2": "high"})(x)
    low = model.layer1(model.maxpool(model.relu(model.bn1(model.conv1(x)))))
    assert list(found) == ["low", "high"]
    torch.testing.assert_close(found["low"], low)
    torch.testing.assert_close(found["high"], model.layer2(low))
    with pytest.raises(ValueError, match="not present"):
        IntermediateLayerGetter(model, {"layer9": "x"})
