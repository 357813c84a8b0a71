"""Two devices as workers: weights stay on one of them, tasks go to where their tensors are.

Runs on the simulated device without a GPU: python task_pipeline.py
"""

from __future__ import annotations

import numpy as np
from keel import task

N = 1 << 12
STEPS = 20


def axpy(call: task.Call) -> None:
    """y += a * x, in the worker's thread; launched for every task."""
    x, y = call.tensors
    a = call.scalar(0, "float32")
    call.launch("keel_axpy", x, y, task.f32(a), task.u64(y.size), grid=8, block=256)


def main() -> None:
    batches = [np.full(N, i, "float32") for i in range(STEPS)]
    with task.Orchestrator(["sim:0", "sim:1"]) as orchestrator, orchestrator.scope() as scope:
        function = orchestrator.register(axpy, kernels=["keel_axpy"])
        sums = [scope.upload(worker, np.zeros(N, "float32")) for worker in (0, 1)]
        # Nobody says in which order: each task reads and writes the sum of its worker.
        for i, batch in enumerate(batches):
            orchestrator.submit(function, batch, task.InOut(sums[i % 2]), task.f32(0.5))
        even, odd = (each.numpy() for each in sums)
        assert np.array_equal(even, sum(batches[0::2]) * np.float32(0.5))
        assert np.array_equal(odd, sum(batches[1::2]) * np.float32(0.5))
        tasks = [report.tasks for report in orchestrator.report()]
        print(f"{STEPS} tasks, verified; {tasks[0]} on worker 0, {tasks[1]} on worker 1")


if __name__ == "__main__":
    main()
