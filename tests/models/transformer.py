"""nn.Transformer learning to reverse sequences of unequal lengths (Vaswani et al., 2017)."""

import math

import numpy as np

from tests.models import fit

STEPS, FACTOR = 40, 0.6
WORDS, PADDING, START = 10, 0, 1
#: attention does not depend on the bias of its keys: its gradient is zero, of which float32 leaves noise for Adam
DTYPE = "float64"


def build(torch, dropout=0.1):
    nn = torch.nn

    class PositionalEncoding(nn.Module):
        def __init__(self, size, longest=20):
            super().__init__()
            self.dropout = nn.Dropout(dropout)
            position = torch.arange(longest).unsqueeze(1)
            frequency = torch.exp(torch.arange(0, size, 2) * (-math.log(10000.0) / size))
            encoding = torch.zeros(1, longest, size)
            encoding[0, :, 0::2] = torch.sin(position * frequency)
            encoding[0, :, 1::2] = torch.cos(position * frequency)
            self.register_buffer("encoding", encoding)

        def forward(self, x):
            return self.dropout(x + self.encoding[:, : x.size(1)])

    class Seq2Seq(nn.Module):
        def __init__(self, size=16, heads=2):
            super().__init__()
            self.size = size
            self.embedding = nn.Embedding(WORDS, size, padding_idx=PADDING)
            self.position = PositionalEncoding(size)
            self.transformer = nn.Transformer(
                size,
                heads,
                num_encoder_layers=1,
                num_decoder_layers=2,
                dim_feedforward=32,
                dropout=dropout,
                batch_first=True,
            )
            self.generator = nn.Linear(size, WORDS)

        def forward(self, source, target):
            causal = torch.triu(torch.ones(target.size(1), target.size(1), dtype=torch.bool), diagonal=1)
            embedded = [self.position(self.embedding(words) * math.sqrt(self.size)) for words in (source, target)]
            output = self.transformer(
                *embedded,
                tgt_mask=causal,
                src_key_padding_mask=source == PADDING,
                tgt_key_padding_mask=target == PADDING,
                memory_key_padding_mask=source == PADDING,
            )
            return self.generator(output)

    return Seq2Seq()


def arrays(rng):
    """Eight padded sequences, and each reversed after a start symbol."""
    source, target = np.full((8, 6), PADDING), np.full((8, 7), PADDING)
    for s, t, length in zip(source, target, (6, 3, 5, 6, 4, 2, 6, 5)):
        s[:length] = rng.integers(2, WORDS, length)
        t[0], t[1 : length + 1] = START, s[:length][::-1]
    return source, target


def evaluate(torch, model, source, target):
    output = model(source, target[:, :-1])
    criterion = torch.nn.CrossEntropyLoss(ignore_index=PADDING)
    return criterion(output.reshape(-1, WORDS), target[:, 1:].reshape(-1)), output


def train(torch, model, batch):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, betas=(0.9, 0.98), eps=1e-9)
    return fit(torch, model, evaluate, optimizer, batch)
