"""A small GPT learns the letters of a text, one after the other, and goes on with what it is given."""

from contextlib import redirect_stdout

import torch
from torch import nn

torch.manual_seed(0)
with redirect_stdout(None):  # it prints when it is imported
    import this

poem = "".join(this.d.get(letter, letter) for letter in this.s)  # the Zen of Python, which is kept in cipher
letters = sorted(set(poem))
codes = torch.tensor([letters.index(letter) for letter in poem])
LENGTH, WIDTH = 32, 64


class GPT(nn.Module):
    """Scores (batch, length, letters) of the letter that follows each one."""

    def __init__(self):
        super().__init__()
        self.letter, self.place = nn.Embedding(len(letters), WIDTH), nn.Embedding(LENGTH, WIDTH)
        block = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, 2, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
        self.next = nn.Linear(WIDTH, len(letters))

    def forward(self, codes):
        length = codes.shape[1]
        later = torch.ones(length, length, dtype=torch.bool).triu(1)  # what a letter may not look at
        x = self.letter(codes) + self.place.weight[:length]
        return self.next(self.blocks(x, mask=later, is_causal=True))


@torch.no_grad()
def write(model, text, count, choices=2):
    """Go on with a text: each letter is drawn from those that are likeliest."""
    for _ in range(count):
        given = torch.tensor([[letters.index(letter) for letter in text[-LENGTH:]]])
        scores, likeliest = model(given)[0, -1].topk(choices)
        text += letters[int(likeliest[torch.multinomial(scores.softmax(0), 1)])]
    return text


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
windows = codes.unfold(0, LENGTH + 1, 1)
for step in range(500):
    batch = windows[torch.randint(len(windows), (16,))]
    loss = nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        print(f"step {step + 1}: loss {loss.item():.2f}")

written = write(model.eval(), "Beautiful is", 200)
print(written)
known = [word for word in written.split()[:-1] if word in poem.split()]
print("writes words" if len(known) > 0.5 * len(written.split()) else "babbles")
