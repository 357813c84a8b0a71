"""The program that the tests of graphs run."""

from __future__ import annotations

from typing import Any

import keel
import numpy as np
from keel import graph

N = 256
NBYTES = 4 * N


def ramp(first: float) -> Any:
    return np.arange(N, dtype="float32") + np.float32(first)


def adding(
    policy: str = "copy", *, out: str = "in-place", name: str = "adding"
) -> tuple[graph.Program, list[graph.Call]]:
    """y = x + w by a kernel, and y += x by a library. The calls that were made are listed."""
    calls: list[graph.Call] = []
    kernels = graph.standard_kernels()
    program = graph.Program(name)
    program.binding("x", shape=N, dtype="float32", policy=policy)
    program.binding("w", shape=N, dtype="float32", access="resident")
    program.binding("s", shape=N, dtype="float32", access="scratch")
    program.binding("y", shape=(2, N // 2), dtype="float32", access="out", policy=out)
    add = kernels["keel_add"]
    program.kernel(add, "x", "w", graph.write("s"), graph.u64(N), block=64)

    @program.traced(reads=["s"], writes=["y"])
    def library(call: graph.Call) -> None:
        calls.append(call)
        source = keel.from_dlpack(call["s"])
        assert keel.device.current_stream().handle == call.handle == call.stream.handle
        reshaped = keel.Array._of(source._storage, (2, N // 2), source._dtype)
        call["y"].copy_from(reshaped)

    program.kernel(kernels["keel_axpy"], "x", graph.read_write("y"), np.float32(1), np.uint64(N))
    return program, calls
