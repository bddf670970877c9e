"""A decoder: loss, gradients and greedy generation; an encoder."""

import torch
from common import fill, report
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper

decoder = Decoder(dim=32, depth=2, heads=4, attn_dim_head=8, rotary_pos_emb=True)
model = AutoregressiveWrapper(fill(TransformerWrapper(num_tokens=30, max_seq_len=32, attn_layers=decoder)))
tokens = torch.arange(24).reshape(2, 12) * 7 % 30
loss = model(tokens)
loss.backward()
encoder = fill(
    TransformerWrapper(num_tokens=30, max_seq_len=32, attn_layers=Encoder(dim=32, depth=1, heads=4, attn_dim_head=8))
)
report(
    loss=loss,
    generated=model.generate(tokens[:, :4], 8, temperature=0.0),
    gradient=model.net.token_emb.emb.weight.grad[:3],
    encoded=encoder(tokens)[:, 0, :5],
)
