"""Runs a compiled model in mode "reduce-overhead", which replays graphs, on batches of two sizes.

An allocator that cannot do what that mode needs refuses it: then the reason is printed, and there
are no figures.
"""

from dataclasses import dataclass
import os

# The model is too small for a pool of processes that compile it.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

from program import Run  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402


@dataclass
class Sizes:
    width: int
    blocks: int
    rows: tuple


GPU = Sizes(width=2048, blocks=4, rows=(8192, 32768))
CPU = Sizes(width=16, blocks=2, rows=(4, 8))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.narrow(nn.functional.gelu(self.wide(self.norm(x))))


def main():
    # A size is compiled at its first step, recorded at its second and replayed from then on.
    run = Run(__doc__, gpu=GPU, cpu=CPU, steps=30, warm_up=8)
    sizes = run.sizes
    # The compiler's own choices too.
    torch.use_deterministic_algorithms(True)
    with run.device:
        model = nn.Sequential(*(Block(sizes.width) for _ in range(sizes.blocks)))
    model = model.to(torch.bfloat16).eval()
    compiled = torch.compile(model, mode="reduce-overhead", dynamic=False)
    inputs = [torch.randn(rows, sizes.width, device=run.device, dtype=torch.bfloat16)
              for rows in sizes.rows]

    def step(index):
        torch.compiler.cudagraph_mark_step_begin()
        out = compiled(inputs[index % len(inputs)])
        return out.float().square().mean()

    with torch.no_grad():
        try:
            run.steps(step)
        except RuntimeError as error:
            run.refused(error)
        else:
            # Without an error the compiler can still have decided against graphs.
            from torch._dynamo.utils import counters
            run.note("graphs skipped", counters["inductor"]["cudagraph_skips"])
    run.finish()


if __name__ == "__main__":
    main()
