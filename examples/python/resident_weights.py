"""Weights that stay on the device while batches come and go, and what that does to memory.

Run it: python examples/python/resident_weights.py [SNAPSHOT]. It needs the package (`pip install
.`) and NumPy, and no device: without one it uses the simulated one. With a file name it leaves a
snapshot of the memory there, for `keel replay` and for PyTorch's viewer.
"""

from __future__ import annotations

import sys

import keel
import numpy as np


def main() -> None:
    keel.memory.record_memory_history()
    random = np.random.default_rng(7)
    layers = [random.standard_normal((256, 256), dtype=np.float32) for _ in range(8)]
    with keel.memory.tag("weights"):
        weights = [keel.from_numpy(layer) for layer in layers]
    keel.memory.reset_peak_memory_stats()

    # Batches of changing size, each on the device only for as long as it is used. The stream orders
    # what happens to their memory: nothing here waits for the device but the copy back.
    with keel.device.Stream() as stream:
        for step in range(20):
            batch = random.standard_normal((32 * (1 + step % 4), 256), dtype=np.float32)
            with keel.from_numpy(batch, tag="batch") as resident:
                assert np.array_equal(resident.numpy(), batch)
    stream.synchronize()

    for weight, layer in zip(weights, layers, strict=True):
        assert np.array_equal(weight.numpy(), layer)
    stats = keel.memory.memory_stats()
    print(f"{len(weights)} layers on {keel.device.current()}, 20 batches, all verified")
    print(f"weights now: {stats['keel.tag_bytes.weights'] >> 10} KiB")
    print(keel.memory.memory_summary(abbreviated=True))
    if len(sys.argv) > 1:
        keel.memory.dump_snapshot(sys.argv[1])


if __name__ == "__main__":
    main()
