"""Trains on recordings of many lengths that four forked workers load into pinned memory."""

from dataclasses import dataclass

from program import Run
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset


@dataclass
class Sizes:
    features: int
    width: int
    layers: int
    batch: int
    shortest: int
    longest: int


# What is on its way from the workers is less than the 64 MiB of shared memory that a container has.
GPU = Sizes(features=80, width=4096, layers=5, batch=32, shortest=100, longest=600)
CPU = Sizes(features=8, width=16, layers=2, batch=4, shortest=5, longest=20)
WORKERS = 4
CLASSES = 20


class Recordings(Dataset):
    """Each a piece of one long noise, which takes no time to make. A batch has those of nearly the
    same length, as people arrange them to save work; no two batches are alike."""

    def __init__(self, sizes, count):
        self.sizes = sizes
        self.count = count
        self.noise = torch.randn(sizes.longest + 997, sizes.features)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        sizes = self.sizes
        in_batch = index // sizes.batch * 7919 % (sizes.longest - sizes.shortest + 1)
        length = sizes.shortest + max(0, in_batch - index % 16)
        begin = index * 31 % 997
        return self.noise[begin: begin + length], index % CLASSES


def together(items):
    """A batch as long as its longest, and how long each of them is."""
    recordings, classes = zip(*items)
    lengths = torch.tensor([len(recording) for recording in recordings])
    padded = nn.utils.rnn.pad_sequence(recordings, batch_first=True)
    return padded, lengths, torch.tensor(classes)


class Network(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        layers = [nn.Linear(sizes.features, sizes.width), nn.GELU()]
        for _ in range(sizes.layers):
            layers += [nn.Linear(sizes.width, sizes.width), nn.GELU()]
        self.layers = nn.Sequential(*layers)
        self.scores = nn.Linear(sizes.width, CLASSES)

    def forward(self, recordings, lengths):
        inside = torch.arange(recordings.shape[1], device=recordings.device) < lengths[:, None]
        frames = self.layers(recordings) * inside[:, :, None]
        return self.scores(frames.sum(dim=1) / lengths[:, None])


def main():
    run = Run(__doc__, gpu=GPU, cpu=CPU, steps=32, warm_up=8)
    sizes = run.sizes
    with run.device:
        model = Network(sizes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loader = DataLoader(
        Recordings(sizes, run.count * sizes.batch), batch_size=sizes.batch,
        num_workers=WORKERS, multiprocessing_context="fork", prefetch_factor=1,
        collate_fn=together, pin_memory=run.on_gpu)
    batches = iter(loader)

    def step(index):
        batch = next(batches)
        recordings, lengths, classes = (part.to(run.device, non_blocking=True) for part in batch)
        loss = functional.cross_entropy(model(recordings, lengths), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    run.steps(step)
    run.finish()


if __name__ == "__main__":
    main()
