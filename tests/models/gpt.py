"""GPT, decoder only: causal attention, GELU, and the output weights tied to the embedding (Radford et al., 2019)."""

import math

import numpy as np

from tests.models import fit

WORDS, BLOCK, SIZE, HEADS, LAYERS = 12, 12, 16, 2, 2
STEPS, FACTOR = 30, 0.5
#: attention does not depend on the bias of its keys: its gradient is zero, of which float32 leaves noise for AdamW
DTYPE = "float64"


def build(torch, dropout=0.1):
    nn, F = torch.nn, torch.nn.functional

    class CausalSelfAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_attn = nn.Linear(SIZE, 3 * SIZE)
            self.c_proj = nn.Linear(SIZE, SIZE)
            self.resid_dropout = nn.Dropout(dropout)

        def forward(self, x):
            B, T, C = x.size()
            q, k, v = self.c_attn(x).split(C, dim=2)
            q, k, v = (t.view(B, T, HEADS, C // HEADS).transpose(1, 2) for t in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout if self.training else 0.0, is_causal=True)
            y = y.transpose(1, 2).contiguous().view(B, T, C)
            return self.resid_dropout(self.c_proj(y))

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_fc = nn.Linear(SIZE, 4 * SIZE)
            self.gelu = nn.GELU(approximate="tanh")
            self.c_proj = nn.Linear(4 * SIZE, SIZE)
            self.dropout = nn.Dropout(dropout)

        def forward(self, x):
            return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1 = nn.LayerNorm(SIZE)
            self.attn = CausalSelfAttention()
            self.ln_2 = nn.LayerNorm(SIZE)
            self.mlp = MLP()

        def forward(self, x):
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.transformer = nn.ModuleDict(
                {
                    "wte": nn.Embedding(WORDS, SIZE),
                    "wpe": nn.Embedding(BLOCK, SIZE),
                    "drop": nn.Dropout(dropout),
                    "h": nn.ModuleList([Block() for _ in range(LAYERS)]),
                    "ln_f": nn.LayerNorm(SIZE),
                }
            )
            self.lm_head = nn.Linear(SIZE, WORDS, bias=False)
            self.transformer.wte.weight = self.lm_head.weight
            self.apply(self._init_weights)
            for name, p in self.named_parameters():
                if name.endswith("c_proj.weight"):
                    nn.init.normal_(p, mean=0.0, std=0.1 / math.sqrt(2 * LAYERS))

        def _init_weights(self, module):
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, mean=0.0, std=0.1)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, mean=0.0, std=0.1)

        def forward(self, words, targets):
            pos = torch.arange(0, words.size(1), dtype=torch.long, device=words.device)
            x = self.transformer.drop(self.transformer.wte(words) + self.transformer.wpe(pos))
            for block in self.transformer.h:
                x = block(x)
            logits = self.lm_head(self.transformer.ln_f(x))
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1), ignore_index=-1)
            return loss, logits

    return GPT()


def arrays(rng):
    """Four passages of a sentence that comes again and again, and the next words; the first two are not asked."""
    text = np.resize(rng.permutation(WORDS), 4 * BLOCK)
    windows = np.stack([text[start : start + BLOCK + 1] for start in (0, 5, 10, 15)])
    targets = windows[:, 1:].copy()
    targets[:, :2] = -1
    return windows[:, :-1], targets


def evaluate(torch, model, words, targets):
    return model(words, targets)


def train(torch, model, batch):
    """AdamW decays the matrices and not the vectors."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.1},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return fit(torch, model, evaluate, torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95)), batch)
