"""vision.models: the keys of torchvision's files, the networks' parts, models and weights by name."""

import json
import pickle
from pathlib import Path

import pytest

import corefw as torch
from corefw import nn
from corefw.vision import models
from corefw.vision.models._utils import IntermediateLayerGetter
from tests.described import SMALL, described, measured, picture, weights

#: torchvision 0.29's models and numbers, written by scripts/make_torchvision
FACTS = json.loads((Path(__file__).parent / "fixtures" / "torchvision.json").read_text())


@pytest.mark.parametrize("name", FACTS["models"])
def test_models_are_torchvisions(name):
    kinds = models.get_model_weights(name)
    with torch.device("meta"):
        model = models.get_model(name)
    assert [*described(model), weights(kinds)] == FACTS["models"][name]
    learnt = sum(value.numel() for key, value in model.named_parameters() if not key.startswith("aux"))
    plain = kinds.DEFAULT.meta if name != "vit_h_14" else kinds.IMAGENET1K_SWAG_LINEAR_V1.meta  # for 224 by 224
    assert learnt == plain["num_params"]


def test_all_are_compared():
    assert models.list_models() == models.list_models(models) == sorted(FACTS["models"])
    assert models.list_models(models.resnet, include=["resnet*"], exclude="*1*") == ["resnet34", "resnet50"]


@pytest.mark.parametrize("name", SMALL)
def test_networks_give_torchvisions_numbers(name):
    torch.testing.assert_close(measured(name, torch, models), FACTS["numbers"][name], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", [name for name in SMALL if not name.startswith("inception")])
def test_networks_learn_all_that_they_hold(name):
    torch.manual_seed(0)
    build, size = SMALL[name]
    model, x = build(models).train(), torch.from_numpy(picture(*size)).float()
    out = model(x)
    outs = out if isinstance(out, tuple) else (out,)
    assert all(one.shape == (2, 5) for one in outs)
    sum(one.square().sum() for one in outs).backward()
    assert all(value.grad is not None and value.grad.isfinite().all() for value in model.parameters())
    model.eval()
    assert torch.equal(model(x), model(x))


def test_classifiers_in_the_middle():
    torch.manual_seed(0)
    found = models.GoogLeNet(5, init_weights=False)(torch.randn(2, 3, 32, 32))
    assert isinstance(found, models.GoogLeNetOutputs) and found._fields == ("logits", "aux_logits2", "aux_logits1")
    assert models.GoogLeNet(5, aux_logits=False, init_weights=False).aux1 is None
    with torch.device("meta"):
        model = models.inception_v3(num_classes=5)
        found = model(torch.zeros(2, 3, 299, 299))
        assert isinstance(found, models.InceptionOutputs) and [one.shape for one in found] == [(2, 5)] * 2
        assert model.eval()(torch.zeros(2, 3, 75, 75)).shape == (2, 5)


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


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: models.SqueezeNet("2_0"), ValueError, "SqueezeNet version 2_0"),
        (lambda: models.MobileNetV2(inverted_residual_setting=[[1, 2]]), ValueError, "4-element list"),
        (lambda: models.MobileNetV3([], 8), ValueError, "should not be empty"),
        (lambda: models.ShuffleNetV2([1], [1] * 5), ValueError, "list of 3 positive ints"),
        (lambda: models.shufflenetv2.InvertedResidual(4, 6, 1), ValueError, "Invalid combination of stride"),
        (lambda: models.MNASNet(0.0), ValueError, "greater than 0.0"),
        (lambda: models.EfficientNet([], 0.1), ValueError, "should not be empty"),
        (lambda: models.ConvNeXt([1]), TypeError, "CNBlockConfig"),
        (lambda: models.regnet.BlockParams.from_init_params(2, 7, 1.0, 2.0, 8), ValueError, "Invalid RegNet"),
        (lambda: models.VisionTransformer(10, 4, 1, 1, 4, 4), ValueError, "indivisible by patch size"),
        (lambda: models.MaxVit((32, 32), 4, 3, [4], [1], 4, 0.1), ValueError, "not divisible by partition size 3"),
        (lambda: models.GoogLeNet(blocks=[nn.Conv2d]), ValueError, "blocks length should be 3"),
    ],
)
def test_networks_refuse_what_they_cannot_be(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_pictures_of_another_size():
    model = models.VisionTransformer(16, 4, 1, 2, 8, 12, num_classes=5)
    with pytest.raises(ValueError, match="Wrong image width! Expected 16 but got 20"):
        model(torch.zeros(1, 3, 16, 20))
    larger = models.VisionTransformer(24, 4, 1, 2, 8, 12, num_classes=5)
    state = models.vision_transformer.interpolate_embeddings(24, 4, model.state_dict(), reset_heads=True)
    assert larger.load_state_dict(state, strict=False).missing_keys == ["heads.head.weight", "heads.head.bias"]
    old, new = (one.encoder.pos_embedding[0] for one in (model, larger))
    torch.testing.assert_close(new[[0, 1, 6, -1]], old[[0, 1, 4, -1]])  # the token and corners stay


def test_names_of_older_files():
    vit = models.VisionTransformer(8, 4, 1, 2, 8, 12)
    old = {
        name.replace("mlp.0", "mlp.linear_1").replace("mlp.3", "mlp.linear_2"): v
        for name, v in vit.state_dict().items()
    }
    assert len(old.keys() - vit.state_dict().keys()) == 4
    again = models.VisionTransformer(8, 4, 1, 2, 8, 12)
    again.load_state_dict(old)
    assert torch.equal(again.encoder.layers[0].mlp[3].weight, vit.encoder.layers[0].mlp[3].weight)
    dense = models.DenseNet(4, (1, 1), 8).state_dict()
    files = {name.replace("norm1.", "norm.1.").replace("conv2.", "conv.2."): v for name, v in dense.items()}
    assert files.keys() != dense.keys() and models.densenet._renamed(None, files).keys() == dense.keys()


def test_memory_of_dense_networks():
    plain, lean = (models.DenseNet(4, (2, 2), 8, num_classes=5, memory_efficient=lean) for lean in (False, True))
    lean.load_state_dict(plain.state_dict())
    x = torch.randn(2, 3, 32, 32)
    for model in (plain, lean):
        model(x).square().sum().backward()
    for one, other in zip(plain.parameters(), lean.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


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
    for one in ("IMAGENET1K_V1", "ResNet18_Weights.DEFAULT", models.ResNet18_Weights.DEFAULT):
        model = models.resnet18(weights=one)
        assert torch.equal(model.fc.weight, trained.fc.weight) and model.fc.out_features == 1000
    with pytest.raises(ValueError, match="expected value 1000 but got 5"):
        models.resnet18(weights="DEFAULT", num_classes=5)


def test_what_weights_ask_of_a_model(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    trained = models.GoogLeNet(init_weights=False)
    torch.save(trained.state_dict(), folder / "googlenet-1378be20.pth")
    model = models.googlenet(weights="DEFAULT")
    assert model.transform_input and model.aux1 is None and torch.equal(model.fc.weight, trained.fc.weight)
    whole = models.googlenet(weights="DEFAULT", aux_logits=True)
    assert torch.equal(whole.aux2.fc1.weight, trained.aux2.fc1.weight)
    with pytest.raises(ValueError, match="'transform_input' expected value True but got False"):
        models.googlenet(weights="DEFAULT", transform_input=False)
    with pytest.raises(ValueError, match="'image_size' expected value 384 but got 224"):
        models.vit_b_16(weights="IMAGENET1K_SWAG_E2E_V1", image_size=224)


def test_pretrained_is_the_first_weights(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    trained = models.squeezenet1_1()
    torch.save(trained.state_dict(), folder / "squeezenet1_1-b8a52dc0.pth")
    with pytest.warns(UserWarning, match="'pretrained' is deprecated"):
        model = models.squeezenet1_1(pretrained=True)
    assert torch.equal(model.features[0].weight, trained.features[0].weight)
    with pytest.warns(UserWarning, match="'pretrained' is deprecated"):
        assert models.squeezenet1_1(pretrained=False, num_classes=3).num_classes == 3
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="No weights available for model vit_h_14"):
        models.vit_h_14(pretrained=True)


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
