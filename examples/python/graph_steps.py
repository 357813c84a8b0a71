"""A graph that is recorded once and replayed for batches that are somewhere else every time.

Run it: python examples/python/graph_steps.py. It needs the package (`pip install .`) and NumPy, and
no device: without one it uses the simulated one.
"""

from __future__ import annotations

import keel
import numpy as np
from keel import graph

SIDE = 32


def make_program() -> graph.Program:
    """y = relu(x @ w), by two of Keel's kernels, and a library that reads the result."""
    kernels = graph.standard_kernels()
    program = graph.Program("layer")
    program.binding("x", shape=(SIDE, SIDE), dtype="float32")
    program.binding("w", shape=(SIDE, SIDE), dtype="float32", access="resident")
    program.binding("h", shape=(SIDE, SIDE), dtype="float32", access="scratch")
    program.binding("y", shape=(SIDE, SIDE), dtype="float32", access="out", policy="in-place")
    side = graph.u64(SIDE)
    as_stored = graph.u32(0)
    product = (graph.read("x"), graph.read("w"), graph.write("h"), as_stored, side, side, side)
    program.kernel(kernels["keel_matmul"], *product, grid=4, block=64)

    # A library's work: captured from the stream, twice (once for each slot), and then replayed. A
    # real one would be told call.handle, the stream's number, and the addresses.
    @program.traced(reads=["h"], writes=["y"])
    def library(call: graph.Call) -> None:
        call["y"].copy_from(call["h"])

    program.kernel(
        kernels["keel_relu"], graph.read("h"), graph.write("y"), graph.u64(SIDE * SIDE), block=64
    )
    return program


def main() -> None:
    random = np.random.default_rng(7)
    weights = random.integers(-3, 4, (SIDE, SIDE)).astype("float32")
    executable = graph.Executable(make_program(), slots=2)
    executable.bind(w=keel.from_numpy(weights))

    with keel.device.Stream():
        for number in range(1, 11):
            batch = random.integers(-3, 4, (SIDE, SIDE)).astype("float32")
            step = executable.step(x=keel.from_numpy(batch), hold="y")
            y = step["y"]  # where the graph made it: no copy, and kept until it is gone
            assert np.array_equal(y.numpy(), np.maximum(batch @ weights, 0)), number
            if step.report.actions:
                print(step.report)

    stats = executable.stats()
    print(
        f"{stats['steps']} steps, verified; {stats['graphs_recorded']} graphs recorded, "
        f"{stats['commands_traced']} traces"
    )


if __name__ == "__main__":
    main()
