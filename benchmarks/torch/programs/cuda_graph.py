"""Trains by graphs: one that is a whole step, and parts of a model that are graphs of their own."""

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
    rows: int


GPU = Sizes(features=1024, width=4096, layers=4, rows=8192)
CPU = Sizes(features=16, width=32, layers=2, rows=8)


def perceptron(sizes, before, after):
    layers = [nn.Linear(before, sizes.width), nn.GELU()]
    for _ in range(sizes.layers):
        layers += [nn.Linear(sizes.width, sizes.width), nn.GELU(), nn.Dropout(0.1)]
    return nn.Sequential(*layers, nn.Linear(sizes.width, after))


def batch_of(sizes, device):
    rows = torch.randn(sizes.rows, sizes.features, device=device)
    return rows, rows.flip(1) * 0.5


class WholeStep:
    """Forward, backward and the optimizer in one graph. It owns what the graph works on."""

    def __init__(self, run):
        with run.device:
            self.model = perceptron(run.sizes, run.sizes.features, run.sizes.features)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=1e-4, capturable=run.on_gpu)
        self.rows, self.targets = batch_of(run.sizes, run.device)
        self.graph = self.capture() if run.on_gpu else None

    def train(self):
        loss = functional.mse_loss(self.model(self.rows), self.targets)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.optimizer.zero_grad(set_to_none=True)
                self.train()
        torch.cuda.current_stream().wait_stream(side)
        # So that the gradients are the graph's own memory.
        self.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.loss = self.train()
        return graph

    def __call__(self, rows, targets):
        self.rows.copy_(rows)
        self.targets.copy_(targets)
        if self.graph is not None:
            self.graph.replay()
            return self.loss.clone()
        self.optimizer.zero_grad()
        return self.train()


def in_parts(run):
    """A function from a batch to its loss: two parts of a model by graphs, the rest not."""
    sizes = run.sizes
    with run.device:
        first = perceptron(sizes, sizes.features, sizes.features)
        second = perceptron(sizes, sizes.features, sizes.features)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
    if run.on_gpu:
        rows, _ = batch_of(sizes, run.device)
        between = torch.randn_like(rows, requires_grad=True)
        first, second = torch.cuda.make_graphed_callables((first, second), ((rows,), (between,)))

    def train(rows, targets):
        optimizer.zero_grad(set_to_none=True)
        loss = functional.mse_loss(second(torch.tanh(first(rows))), targets)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return train


def main():
    run = Run(__doc__, gpu=GPU, cpu=CPU, steps=24, warm_up=4)
    if not run.on_gpu:
        run.note("graphs", "left out: there are none on the CPU")
    one, other = WholeStep(run), in_parts(run)

    def step(index):
        rows, targets = batch_of(run.sizes, run.device)
        return one(rows, targets), other(rows, targets)

    run.steps(step)
    run.finish()


if __name__ == "__main__":
    main()
