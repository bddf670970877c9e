"""U-Net of two levels, segmenting rectangles (Ronneberger et al., "U-Net", 2015)."""

import numpy as np

from tests.models import fit

STEPS, FACTOR = 25, 0.6
#: a convolution's bias before normalisation has the gradient zero, of which float32 leaves noise for Adam to scale up
DTYPE = "float64"


def build(torch, width=4):
    nn, F = torch.nn, torch.nn.functional

    class DoubleConv(nn.Sequential):
        def __init__(self, inputs, outputs):
            super().__init__(
                nn.Conv2d(inputs, outputs, 3, padding=1),
                nn.BatchNorm2d(outputs),
                nn.ReLU(inplace=True),
                nn.Conv2d(outputs, outputs, 3, padding="same", padding_mode="reflect"),
                nn.BatchNorm2d(outputs),
                nn.ReLU(inplace=True),
            )

    class Up(nn.Module):
        def __init__(self, inputs, outputs, transposed):
            super().__init__()
            if transposed:
                self.up = nn.ConvTranspose2d(inputs, outputs, kernel_size=2, stride=2)
            else:
                upsample = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
                self.up = nn.Sequential(upsample, nn.Conv2d(inputs, outputs, 1))
            self.conv = DoubleConv(2 * outputs, outputs)

        def forward(self, x, skipped):
            x = self.up(x)
            below, right = skipped.shape[2] - x.shape[2], skipped.shape[3] - x.shape[3]
            x = F.pad(x, [right // 2, right - right // 2, below // 2, below - below // 2])
            return self.conv(torch.cat([skipped, x], dim=1))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.inc = DoubleConv(1, width)
            self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(width, 2 * width))
            self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(2 * width, 4 * width))
            self.up1 = Up(4 * width, 2 * width, transposed=True)
            self.up2 = Up(2 * width, width, transposed=False)
            self.outc = nn.Conv2d(width, 1, kernel_size=1)

        def forward(self, x):
            x1 = self.inc(x)
            x2 = self.down1(x1)
            x3 = self.down2(x2)
            return self.outc(self.up2(self.up1(x3, x2), x1))

    return UNet()


def arrays(rng):
    """Four noisy images of 18 by 15 pixels with a bright rectangle each, and the rectangles."""
    masks = np.zeros((4, 1, 18, 15), np.float32)
    for mask, (row, column) in zip(masks, rng.integers(0, 8, (4, 2))):
        mask[0, row : row + 8, column : column + 6] = 1
    return (masks + 0.5 * rng.standard_normal(masks.shape)).astype(np.float32), masks


def evaluate(torch, model, images, masks):
    """Cross entropy and, as is usual for areas, the Dice loss."""
    logits = model(images)
    probabilities = torch.sigmoid(logits)
    overlap = (probabilities * masks).sum(dim=(1, 2, 3))
    total = probabilities.sum(dim=(1, 2, 3)) + masks.sum(dim=(1, 2, 3))
    dice = 1 - (2 * overlap / (total + 1e-6)).mean()
    return torch.nn.BCEWithLogitsLoss()(logits, masks) + dice, logits


def train(torch, model, batch):
    return fit(torch, model, evaluate, torch.optim.Adam(model.parameters(), lr=0.02), batch)
