"""Twenty families of models of images, small: outputs, gradients, state dicts; features, traced graphs, optimizers."""

import timm
import torch
from common import numbers, report
from timm.data import Mixup
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.models import create_feature_extractor
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV3, accuracy

FOUR = {"depths": (1, 1, 1, 1), "num_heads": (1, 2, 2, 2)}
VIT = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 2}
MODELS = {
    "beit_base_patch16_224": VIT,
    "cait_xxs24_224": VIT,
    "convnext_atto": {"depths": (1, 1, 1, 1), "dims": (8, 16, 24, 32)},
    "davit_tiny": {"depths": (1, 1, 1, 1), "embed_dims": (16, 16, 32, 32), "num_heads": (1, 1, 2, 2)},
    "densenet121": {"growth_rate": 8, "block_config": (2, 2, 2, 2)},
    "edgenext_xx_small": {"depths": (1, 1, 1, 1), "dims": (8, 16, 24, 32), "heads": (2, 2, 2, 2)},
    "eva02_tiny_patch14_224": {**VIT, "embed_dim": 32},
    "mnasnet_small": {},
    "mobilenetv3_small_050": {},
    "tiny_vit_5m_224": {"embed_dims": (16, 16, 32, 32), "window_sizes": (4, 4, 4, 4), **FOUR},
    "pvt_v2_b0": {"embed_dims": (8, 16, 24, 32), **FOUR},
    "regnetx_002": {},
    "repghostnet_050": {},
    "resnet10t": {"channels": (8, 16, 24, 32)},
    "skresnet18": {"channels": (8, 16, 24, 32)},
    "swin_tiny_patch4_window7_224": {
        "img_size": 32, "window_size": 4, "embed_dim": 16, "depths": (1, 1), "num_heads": (2, 2),
    },
    "vit_tiny_patch16_224": VIT,
    "visformer_tiny": {"img_size": 32, "init_channels": 8, "embed_dim": 32, "depth": (1, 1, 1), "num_heads": 2},
    "twins_svt_small": {"img_size": 64, "embed_dims": (16, 16, 32, 32), **FOUR},
    "xcit_nano_12_p16_224": {"img_size": 32, "embed_dim": 32, "depth": 2, "num_heads": 2},
}  # fmt: skip
found = {}


def fill(model):
    """Weights of a rule that keeps the sizes of values, whatever the depth."""
    with torch.no_grad():
        for seed, (name, p) in enumerate(sorted(model.named_parameters())):
            if p.ndim > 1:
                p.copy_(numbers(*p.shape, seed=seed) * (3 / p[0].numel()) ** 0.5)
            else:
                p.copy_(numbers(*p.shape, seed=seed) * 0.1 + (0 if name.endswith("bias") else 0.9))
    return model


def count(model):
    """Parameters, and names of the state."""
    state = model.state_dict()
    return [sum(p.numel() for p in model.parameters()), len(state), sorted(state)[len(state) // 2]]


target = torch.tensor([1, 3])
for name, options in MODELS.items():
    size = options.get("img_size", 64)
    images = numbers(2, 3, size, size)
    model = fill(timm.create_model(name, num_classes=4, **options)).eval()
    output = model(images)
    LabelSmoothingCrossEntropy(0.1)(output, target).backward()
    slopes = [p.grad.double().norm().item() for p in model.parameters() if p.grad is not None]
    again = timm.create_model(name, num_classes=4, **options).eval()
    again.load_state_dict(model.state_dict())
    output = output.detach()
    found[name] = [
        *output.flatten().tolist(),
        slopes[0],
        sum(slopes),
        *count(model),
        torch.equal(again(images), output),
    ]

images = numbers(2, 3, 64, 64)
features = fill(timm.create_model("resnet10t", features_only=True, out_indices=(1, 3), channels=(8, 16, 24, 32))).eval()
found["features"] = [[*map(float, part.shape), part.abs().mean().item()] for part in features(images)]
extractor = create_feature_extractor(
    fill(timm.create_model("resnet10t", channels=(8, 16, 24, 32))).eval(), ["layer1", "layer3.0.conv1"]
)
found["traced"] = {key: value.abs().mean().item() for key, value in extractor(images).items()}

model = fill(timm.create_model("mobilenetv3_small_050", num_classes=4, drop_rate=0.0))
average = ModelEmaV3(model, decay=0.9)
losses = []
optimizer = create_optimizer_v2(model, "lamb", lr=0.01, weight_decay=0.05)
scheduler = CosineLRScheduler(optimizer, t_initial=4, warmup_t=1, warmup_lr_init=1e-3)
mixed = Mixup(mixup_alpha=1.0, label_smoothing=0.1, num_classes=4, prob=0.0)(numbers(4, 3, 64, 64), torch.arange(4))
for epoch in range(4):
    scheduler.step(epoch)
    optimizer.zero_grad()
    loss = SoftTargetCrossEntropy()(model(mixed[0]), mixed[1])
    loss.backward()
    optimizer.step()
    average.update(model)
    losses.append(loss.item())
found["losses"] = losses
found["rate"] = optimizer.param_groups[0]["lr"]
found["accuracy"] = accuracy(model(mixed[0]), torch.arange(4), (1, 2))[1].item() >= 0
for name in ("adamp", "lion", "nadamw", "madgrad", "adabelief", "sgdp", "rmsproptf", "adan", "laprop"):
    layer = torch.nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.copy_(numbers(2, 3))
        layer.bias.zero_()
    optimizer = create_optimizer_v2(layer, name, lr=0.01, weight_decay=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        layer(numbers(5, 3)).square().sum().backward()
        optimizer.step()
    found[name] = layer.weight.flatten().tolist()
report(**found)
