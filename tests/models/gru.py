"""A classifier of sequences of unequal lengths: an embedding and a bidirectional GRU over packed sequences."""

import numpy as np

from tests.models import fit

STEPS, FACTOR = 20, 0.3
#: RMSprop divides a gradient by its own size, so that one of rounding's size in float32 moves as far as any other
DTYPE = "float64"
PADDING, LENGTHS = 0, (5, 9, 2, 7, 1, 9, 4, 6)


def build(torch):
    nn = torch.nn
    rnn = nn.utils.rnn

    class Classifier(nn.Module):
        def __init__(self, words=10, embedded=8, hidden=8, classes=2):
            super().__init__()
            self.embedding = nn.Embedding(words, embedded, padding_idx=PADDING)
            self.gru = nn.GRU(embedded, hidden, num_layers=2, batch_first=True, bidirectional=True)
            self.fc = nn.Linear(4 * hidden, classes)

        def forward(self, words, lengths):
            packed = rnn.pack_padded_sequence(
                self.embedding(words), lengths.cpu(), batch_first=True, enforce_sorted=False
            )
            output, hidden = self.gru(packed)
            output, _ = rnn.pad_packed_sequence(output, batch_first=True)
            mean = output.sum(1) / lengths.unsqueeze(1)
            return self.fc(torch.cat([mean, hidden[-2], hidden[-1]], dim=1)), output

    return Classifier()


def arrays(rng):
    """Padded words, lengths, and whether the greatest word is even."""
    words = rng.integers(1, 10, (len(LENGTHS), max(LENGTHS)))
    words[np.arange(words.shape[1]) >= np.array(LENGTHS)[:, None]] = PADDING
    return words, np.array(LENGTHS), words.max(1) % 2


def evaluate(torch, model, words, lengths, targets):
    logits, output = model(words, lengths)
    return torch.nn.functional.cross_entropy(logits, targets, label_smoothing=0.02), (logits, output)


def train(torch, model, batch):
    return fit(torch, model, evaluate, torch.optim.RMSprop(model.parameters(), lr=0.01), batch)
