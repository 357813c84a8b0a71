"""Generates text from prompts of many lengths, with a cache of keys and values that grows."""

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
    generated: int


GPU = Sizes(layers=12, width=1024, heads=16, words=16384, batch=16, shortest=64, longest=1024,
            generated=32)
CPU = Sizes(layers=2, width=32, heads=2, words=64, batch=2, shortest=4, longest=12, generated=4)


class Block(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.heads = sizes.heads
        self.before_attention = nn.LayerNorm(sizes.width)
        self.query_key_value = nn.Linear(sizes.width, 3 * sizes.width)
        self.attended = nn.Linear(sizes.width, sizes.width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(sizes.width), nn.Linear(sizes.width, 4 * sizes.width), nn.GELU(),
            nn.Linear(4 * sizes.width, sizes.width))

    def forward(self, x, cached):
        batch, length, width = x.shape
        packed = self.query_key_value(self.before_attention(x))
        query, key, value = packed.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if cached is not None:
            key = torch.cat((cached[0], key), dim=2)
            value = torch.cat((cached[1], value), dim=2)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=cached is None)
        x = x + self.attended(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed_forward(x), (key, value)


class Decoder(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.words = nn.Embedding(sizes.words, sizes.width)
        self.places = nn.Parameter(torch.randn(sizes.longest + sizes.generated, sizes.width) / 50)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.layers))
        self.last = nn.LayerNorm(sizes.width)
        self.scores = nn.Linear(sizes.width, sizes.words, bias=False)

    def forward(self, tokens, cache):
        """Scores of what comes after the tokens, which themselves come after what the cache has."""
        begin = cache[0][0].shape[2] if cache else 0
        x = self.words(tokens) + self.places[begin: begin + tokens.shape[1]]
        grown = []
        for index, block in enumerate(self.blocks):
            x, pair = block(x, cache[index] if cache else None)
            grown.append(pair)
        return self.scores(self.last(x[:, -1])), grown


def main():
    run = Run(__doc__, gpu=GPU, cpu=CPU, steps=14, warm_up=3)
    sizes = run.sizes
    with run.device:
        model = Decoder(sizes).to(torch.bfloat16).eval()

    def step(index):
        """One prompt, and as many words after it as are asked for."""
        length = run.random.randint(sizes.shortest, sizes.longest)
        tokens = torch.randint(sizes.words, (sizes.batch, length)).to(run.device)
        cache, surprise = [], 0
        for _ in range(sizes.generated):
            scores, cache = model(tokens, cache)
            best, tokens = functional.log_softmax(scores.float(), dim=-1).max(dim=-1, keepdim=True)
            surprise = surprise - best.mean()
        return surprise / sizes.generated, tokens.double().mean()

    # One way for all lengths.
    attention = sdpa_kernel(SDPBackend.FLASH_ATTENTION if run.on_gpu else SDPBackend.MATH)
    with torch.inference_mode(), attention:
        run.steps(step)
    run.finish()


if __name__ == "__main__":
    main()
