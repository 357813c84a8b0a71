"""Trains a decoder on sequences whose length changes from batch to batch."""

from dataclasses import dataclass

from program import Run
import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel


@dataclass
class Sizes:
    layers: int
    width: int
    heads: int
    words: int
    batch: int
    shortest: int
    longest: int


GPU = Sizes(layers=8, width=1024, heads=16, words=16384, batch=16, shortest=96, longest=1024)
CPU = Sizes(layers=2, width=32, heads=2, words=64, batch=2, shortest=4, longest=16)


class Block(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.heads = sizes.heads
        self.before_attention = nn.LayerNorm(sizes.width)
        self.query_key_value = nn.Linear(sizes.width, 3 * sizes.width)
        self.attended = nn.Linear(sizes.width, sizes.width)
        self.dropout = nn.Dropout(0.1)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(sizes.width), nn.Linear(sizes.width, 4 * sizes.width), nn.GELU(),
            nn.Linear(4 * sizes.width, sizes.width), nn.Dropout(0.1))

    def forward(self, x):
        batch, length, width = x.shape
        packed = self.query_key_value(self.before_attention(x))
        query, key, value = packed.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.dropout(self.attended(mixed.transpose(1, 2).reshape(batch, length, width)))
        return x + self.feed_forward(x)


class Decoder(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.words = nn.Embedding(sizes.words, sizes.width)
        self.places = nn.Parameter(torch.randn(sizes.longest, sizes.width) / 50)
        self.blocks = nn.Sequential(*(Block(sizes) for _ in range(sizes.layers)))
        self.last = nn.LayerNorm(sizes.width)
        self.scores = nn.Linear(sizes.width, sizes.words, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places[: tokens.shape[1]]
        return self.scores(self.last(self.blocks(x)))


def main():
    run = Run(__doc__, gpu=GPU, cpu=CPU, steps=24, warm_up=6)
    sizes = run.sizes
    with run.device:
        model = Decoder(sizes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    def step(index):
        # The longest first, as careful people do to see early whether it fits.
        length = run.random.randint(sizes.shortest, sizes.longest) if index else sizes.longest
        tokens = torch.randint(sizes.words, (sizes.batch, length)).to(run.device)
        with torch.autocast(run.device.type, torch.bfloat16):
            scores = model(tokens[:, :-1])
            loss = functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    # The only one whose gradient is the same every time.
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION if run.on_gpu else SDPBackend.MATH):
        run.steps(step)
    run.finish()


if __name__ == "__main__":
    main()
