"""A language model of two LSTM layers, trained by truncated backpropagation through time."""

import numpy as np

WORDS, BATCH, WINDOW = 12, 4, 10
STEPS, FACTOR = 80, 0.5


def build(torch, dropout=0.2):
    nn = torch.nn

    class RNNModel(nn.Module):
        def __init__(self, embedded=16, hidden=24, layers=2):
            super().__init__()
            self.drop = nn.Dropout(dropout)
            self.encoder = nn.Embedding(WORDS, embedded)
            self.rnn = nn.LSTM(embedded, hidden, layers, dropout=dropout)
            self.decoder = nn.Linear(hidden, WORDS)
            self.init_weights()

        def init_weights(self):
            nn.init.uniform_(self.encoder.weight, -0.3, 0.3)
            nn.init.zeros_(self.decoder.bias)
            nn.init.uniform_(self.decoder.weight, -0.3, 0.3)

        def init_hidden(self, batch):
            weight = next(self.parameters())
            return tuple(weight.new_zeros(self.rnn.num_layers, batch, self.rnn.hidden_size) for _ in range(2))

        def forward(self, words, hidden):
            output, hidden = self.rnn(self.drop(self.encoder(words)), hidden)
            return self.decoder(self.drop(output)).view(-1, WORDS), hidden

    return RNNModel()


def arrays(rng):
    """A text of (time, batch) words: four windows of a sentence that comes again and again."""
    sentence = rng.integers(0, WORDS, 7)
    text = np.stack([np.resize(np.roll(sentence, shift), 4 * WINDOW + 1) for shift in range(BATCH)], axis=1)
    return (text,)


def evaluate(torch, model, text, hidden=None):
    hidden = model.init_hidden(text.shape[1]) if hidden is None else hidden
    output, (h, c) = model(text[:-1], hidden)
    return torch.nn.functional.cross_entropy(output, text[1:].reshape(-1)), (output, h, c)


def train(torch, model, batch):
    """One window after the other; the state is carried over, its history is not."""
    (text,) = batch
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
    while True:
        hidden = model.init_hidden(text.size(1))
        for start in range(0, text.size(0) - 1, WINDOW):
            hidden = tuple(h.detach() for h in hidden)
            model.zero_grad()
            loss, (_, *hidden) = evaluate(torch, model, text[start : start + WINDOW + 1], hidden)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            yield loss.item()
