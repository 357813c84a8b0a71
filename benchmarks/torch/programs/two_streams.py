"""Trains while a second stream fetches and prepares the next batch and a third takes statistics.

What the second stream allocates is used on the first, what the first allocates is used on the
third: both say so by record_stream and let go of it at once.
"""

from contextlib import nullcontext
from dataclasses import dataclass

from program import Run
import torch
from torch import nn
from torch.nn import functional


@dataclass
class Sizes:
    features: int
    width: int
    layers: int
    fewest: int
    most: int


GPU = Sizes(features=1024, width=6144, layers=4, fewest=2048, most=16384)
CPU = Sizes(features=16, width=32, layers=2, fewest=4, most=16)


class Streams:
    """The three. On the CPU there is one, and everything happens in order."""

    def __init__(self, on_gpu):
        self.main = torch.cuda.current_stream() if on_gpu else None
        self.fetching = torch.cuda.Stream() if on_gpu else None
        self.statistics = torch.cuda.Stream() if on_gpu else None

    @staticmethod
    def on(stream):
        return torch.cuda.stream(stream) if stream else nullcontext()

    @staticmethod
    def after(stream, other):
        """What comes on `stream` waits for what there is on `other`."""
        if stream:
            stream.wait_stream(other)

    @staticmethod
    def uses(stream, *tensors):
        for tensor in tensors if stream else ():
            tensor.record_stream(stream)


def main():
    run = Run(__doc__, gpu=GPU, cpu=CPU, steps=40, warm_up=8)
    sizes = run.sizes
    streams = Streams(run.on_gpu)
    if not run.on_gpu:
        run.note("streams", "left out: there are none on the CPU")
    with run.device:
        layers = [nn.Linear(sizes.features, sizes.width), nn.GELU()]
        for _ in range(sizes.layers - 1):
            layers += [nn.Linear(sizes.width, sizes.width), nn.GELU()]
        model = nn.Sequential(*layers)
        scores = nn.Linear(sizes.width, 10)
    optimizer = torch.optim.SGD([*model.parameters(), *scores.parameters()], lr=0.01, momentum=0.9)
    host = torch.rand(sizes.most, sizes.features, pin_memory=run.on_gpu)
    # Also used by the other streams, which must find it ready.
    spread = torch.linspace(0.5, 1.5, sizes.features, device=run.device)
    if run.on_gpu:
        torch.cuda.synchronize()

    def fetch():
        count = run.random.randint(sizes.fewest, sizes.most)
        with streams.on(streams.fetching):
            raw = host[:count].to(run.device, non_blocking=True)
            rows = (raw - raw.mean(dim=0)) * spread
            return rows, (rows.sum(dim=1) > 0).long()

    batch = fetch()

    def step(index):
        nonlocal batch
        rows, classes = batch
        streams.after(streams.main, streams.fetching)
        streams.uses(streams.main, rows, classes)
        batch = fetch()
        hidden = model(rows)
        loss = functional.cross_entropy(scores(hidden), classes)
        streams.after(streams.statistics, streams.main)
        with streams.on(streams.statistics), torch.no_grad():
            largest = hidden.abs().amax()
            mean = hidden.mean()
        streams.uses(streams.statistics, hidden)
        del rows, classes, hidden
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach(), largest, mean

    run.steps(step)
    run.finish()


if __name__ == "__main__":
    main()
