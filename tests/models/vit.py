"""A vision transformer: patches, a class token, and an encoder (Dosovitskiy et al., 2020)."""

import numpy as np

from tests.models import fit

STEPS, FACTOR = 20, 0.4
SIZE, PATCH, PATCHES = 16, 4, 9
#: attention does not depend on the bias of its keys: its gradient is zero, of which float32 leaves noise for AdamW
DTYPE = "float64"


def build(torch, dropout=0.1):
    nn = torch.nn

    class ViT(nn.Module):
        def __init__(self, classes=4):
            super().__init__()
            self.conv_proj = nn.Conv2d(3, SIZE, kernel_size=PATCH, stride=PATCH)
            self.class_token = nn.Parameter(torch.zeros(1, 1, SIZE))
            self.pos_embedding = nn.Parameter(torch.empty(1, PATCHES + 1, SIZE).normal_(std=0.02))
            self.dropout = nn.Dropout(dropout)
            layer = nn.TransformerEncoderLayer(
                SIZE, nhead=4, dim_feedforward=32, dropout=dropout, activation="gelu", batch_first=True, norm_first=True
            )
            self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(SIZE), enable_nested_tensor=False)
            self.head = nn.Linear(SIZE, classes)

        def forward(self, images):
            x = self.conv_proj(images).flatten(2).permute(0, 2, 1)
            x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1)
            x = self.encoder(self.dropout(x + self.pos_embedding))
            return self.head(x[:, 0])

    return ViT()


def arrays(rng):
    """Eight colour images of twelve by twelve pixels, of four classes."""
    targets = np.arange(8) % 4
    patterns = rng.standard_normal((4, 3, 12, 12))
    return (patterns[targets] + 0.3 * rng.standard_normal((8, 3, 12, 12))).astype(np.float32), targets


def evaluate(torch, model, images, targets):
    output = model(images)
    return torch.nn.functional.cross_entropy(output, targets), output


def train(torch, model, batch):
    return fit(torch, model, evaluate, torch.optim.AdamW(model.parameters(), lr=5e-3), batch)
