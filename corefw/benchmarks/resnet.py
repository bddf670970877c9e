"""ResNet-18 in the form for CIFAR, and ResNet-50 (He et al., "Deep residual learning", 2015)."""


def build(torch, width=8):
    """The network in a module with PyTorch's API, `width` channels after its first convolution."""
    nn, F = torch.nn, torch.nn.functional

    class BasicBlock(nn.Module):  # type: ignore[name-defined]
        expansion = 1

        def __init__(self, in_planes, planes, stride=1):
            super().__init__()
            self.conv1 = nn.Conv2d(in_planes, planes, kernel_size=3, stride=stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(planes)
            self.conv2 = nn.Conv2d(planes, planes, kernel_size=3, stride=1, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(planes)
            self.shortcut = nn.Sequential()
            if stride != 1 or in_planes != planes:
                self.shortcut = nn.Sequential(
                    nn.Conv2d(in_planes, planes, kernel_size=1, stride=stride, bias=False), nn.BatchNorm2d(planes)
                )

        def forward(self, x):
            out = F.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            out += self.shortcut(x)
            return F.relu(out)

    class ResNet(nn.Module):  # type: ignore[name-defined]
        def __init__(self, blocks, classes=10):
            super().__init__()
            self.in_planes = width
            self.conv1 = nn.Conv2d(3, width, kernel_size=3, stride=1, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.layer1 = self._make_layer(width, blocks[0], stride=1)
            self.layer2 = self._make_layer(2 * width, blocks[1], stride=2)
            self.layer3 = self._make_layer(4 * width, blocks[2], stride=2)
            self.layer4 = self._make_layer(8 * width, blocks[3], stride=2)
            self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
            self.linear = nn.Linear(8 * width, classes)
            for module in self.modules():
                if isinstance(module, nn.Conv2d):
                    nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                elif isinstance(module, nn.BatchNorm2d):
                    nn.init.constant_(module.weight, 1)
                    nn.init.constant_(module.bias, 0)

        def _make_layer(self, planes, count, stride):
            layers = []
            for s in [stride] + [1] * (count - 1):
                layers.append(BasicBlock(self.in_planes, planes, s))
                self.in_planes = planes
            return nn.Sequential(*layers)

        def forward(self, x):
            out = F.relu(self.bn1(self.conv1(x)))
            out = self.layer4(self.layer3(self.layer2(self.layer1(out))))
            out = self.avgpool(out)
            return self.linear(out.view(out.size(0), -1))

    return ResNet([2, 2, 2, 2])


def bottlenecks(torch, width=64, blocks=(3, 4, 6, 3), classes=1000):
    """ResNet-50 by default, for images of 224 x 224."""
    nn = torch.nn

    class Bottleneck(nn.Module):  # type: ignore[name-defined]
        def __init__(self, before, planes, stride):
            super().__init__()
            after = 4 * planes
            self.conv1, self.bn1 = nn.Conv2d(before, planes, 1, bias=False), nn.BatchNorm2d(planes)
            self.conv2 = nn.Conv2d(planes, planes, 3, stride, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(planes)
            self.conv3, self.bn3 = nn.Conv2d(planes, after, 1, bias=False), nn.BatchNorm2d(after)
            self.relu = nn.ReLU(inplace=True)
            self.shortcut = nn.Sequential()
            if stride != 1 or before != after:
                self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

        def forward(self, x):
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.relu(self.bn2(self.conv2(out)))
            out = self.bn3(self.conv3(out))
            out += self.shortcut(x)
            return self.relu(out)

    layers = [nn.Conv2d(3, width, 7, 2, padding=3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
    layers.append(nn.MaxPool2d(3, 2, padding=1))
    before = width
    for stage, count in enumerate(blocks):
        for i in range(count):
            layers.append(Bottleneck(before, width << stage, 2 if stage and i == 0 else 1))
            before = 4 * width << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))
