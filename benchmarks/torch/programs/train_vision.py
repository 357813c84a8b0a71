"""Trains a small residual network on images; the last batch of an epoch is a smaller one."""

from dataclasses import dataclass

from program import Run
import torch
from torch import nn
from torch.nn import functional


@dataclass
class Sizes:
    images: int
    batch: int
    side: int
    widths: tuple
    classes: int


GPU = Sizes(images=2300, batch=512, side=96, widths=(64, 128, 256, 512), classes=100)
CPU = Sizes(images=10, batch=4, side=16, widths=(8, 16), classes=5)


class Residual(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
        self.shortcut = nn.Identity() if before == after and stride == 1 else nn.Sequential(
            nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        return functional.relu(self.body(x) + self.shortcut(x))


class Network(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        first, *_ = sizes.widths
        layers = [nn.Conv2d(3, first, 3, 2, 1, bias=False), nn.BatchNorm2d(first), nn.ReLU()]
        before = first
        for after in sizes.widths:
            layers.append(Residual(before, after, 1 if before == after else 2))
            layers.append(Residual(after, after, 1))
            before = after
        self.layers = nn.Sequential(*layers)
        self.scores = nn.Linear(before, sizes.classes)

    def forward(self, images):
        # A mean, because the gradient of adaptive pooling is not the same every time.
        return self.scores(self.layers(images).mean(dim=(2, 3)))


def main():
    run = Run(__doc__, gpu=GPU, cpu=CPU, steps=25, warm_up=5)
    sizes = run.sizes
    with run.device:
        model = Network(sizes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    batches = [min(sizes.batch, sizes.images - begin)
               for begin in range(0, sizes.images, sizes.batch)]

    def step(index):
        batch = batches[index % len(batches)]
        images = torch.randn(batch, 3, sizes.side, sizes.side, device=run.device)
        classes = torch.randint(sizes.classes, (batch,), device=run.device)
        loss = functional.cross_entropy(model(images), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    run.steps(step)
    run.finish()


if __name__ == "__main__":
    main()
