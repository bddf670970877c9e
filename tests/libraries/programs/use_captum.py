"""Attributions of a convolutional network by gradients, by layers and by taking things out."""

import torch
from captum.attr import (
    DeepLift,
    FeatureAblation,
    GuidedBackprop,
    InputXGradient,
    IntegratedGradients,
    LayerGradCam,
    Occlusion,
    Saliency,
)
from common import fill, numbers, report
from torch import nn

model = fill(nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 3)))
x = numbers(2, 1, 6, 6).requires_grad_()
report(
    integrated=IntegratedGradients(model).attribute(x, target=1, n_steps=20),
    saliency=Saliency(model).attribute(x, target=1),
    product=InputXGradient(model).attribute(x, target=1),
    guided=GuidedBackprop(model).attribute(x, target=1),
    lift=DeepLift(model).attribute(x, target=1),
    ablation=FeatureAblation(model).attribute(x, target=1, feature_mask=torch.arange(36).reshape(1, 1, 6, 6) // 12),
    occlusion=Occlusion(model).attribute(x, (1, 3, 3), target=1),
    camera=LayerGradCam(model, model[0]).attribute(x, target=1),
)
