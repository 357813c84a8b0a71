"""keel.task with ranks as workers: a script under mpirun, as docs/tasks.md says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from task_callables import code_of

# What launchers leave in the environment: this may itself be part of a job.
LAUNCHERS = ("OMPI_", "PMIX_", "PMI_", "PRTE_", "SLURM_", "MPI_LOCALRANKID")

ADD = """
import sys, numpy as np
import keel
from keel import task

with task.Orchestrator([None, 1, "sim:2"], transport="mpi") as orchestrator:
    print(orchestrator.devices, orchestrator)
    add = orchestrator.register(task.Image.build(sys.argv[1], kernels=["keel_add"]))
    # More than a message has room for, too.
    for count in (10, 1 << 20):
        a = np.arange(count, dtype="float32")
        resident = orchestrator.upload(1, a)
        c = np.zeros_like(a)
        done = orchestrator.submit(add, resident, a, task.Out(c), timeout=60.0)
        assert done.result(60) is c and done.worker == 1
        assert np.array_equal(c, a + a), c
        assert np.array_equal(resident.numpy(), a)
    group = orchestrator.submit_group(add, [(a, a, task.Out(np.zeros_like(a))) for _ in range(3)])
    assert all(np.array_equal(c, a + a) for c in group.result(60))
    for refused in (lambda: orchestrator.register(lambda call: None),
                    lambda: orchestrator.register_memory(1, keel.zeros(4, device="sim:0"))):
        try:
            refused()
        except keel.UnsupportedError:
            print("refused")
    report = orchestrator.report()[1]
    print(report.worker, report.device, report.up, report.tasks, report.restarts)
    resident.free()
print("closed")
"""

DIE = """
import sys
import keel
from keel import task

with task.Orchestrator([None], transport="mpi", control_timeout=30) as orchestrator:
    crash = orchestrator.register(task.Image.build(sys.argv[1]))
    lost = orchestrator.malloc(0, 16)
    try:
        crash().wait(60)
    except keel.UnavailableError as error:
        print("SIGSEGV" in str(error))
    orchestrator.malloc(0, 16)  # of the worker that was started again
    try:
        lost.numpy()
    except keel.UnavailableError as error:
        print("lost" in str(error))
    print(orchestrator.report()[0].restarts)
"""


def run_ranks(
    folder: Path, command_line: Path, program: list[str], *workers: list[str], sim: str
) -> subprocess.CompletedProcess[str]:
    """Rank 0 is the program; the words of each worker are its options."""
    mpirun = shutil.which("mpirun")
    if mpirun is None or not (command_line.parents[1] / "lib" / "libkeel-mpi.so").exists():
        pytest.skip("there is no mpirun, or Keel was built without MPI")
    words = [mpirun, "--oversubscribe", "-n", "1", *program]
    for worker in workers:
        words += [":", "-n", "1", "env", f"KEEL_SIM={sim}", str(command_line), "worker", *worker]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    return subprocess.run(
        words,
        env={
            **clean,
            "TMPDIR": str(folder),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            # Everything is on this machine, which may have no network.
            "OMPI_MCA_btl": "self,vader",
            "OMPI_MCA_btl_vader_backing_directory": str(folder),
            "OMPI_MCA_pml": "ob1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_a_script_and_its_ranks(tmp_path: Path, command_line: Path) -> None:
    add = tmp_path / "add.so"
    add.write_bytes(code_of("Add"))
    # The script itself has the devices 0 and 1.
    done = run_ranks(
        tmp_path,
        command_line,
        [sys.executable, "-c", ADD, str(add)],
        ["--device", "sim:3"],
        [],
        [],
        sim="devices:4",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    devices = "['sim:3', 'sim:1', 'sim:2'] <keel.task.Orchestrator of sim:3, sim:1, sim:2>"
    assert done.stdout.splitlines() == [
        devices, "refused", "refused", "1 sim:1 True 3 0", "closed"
    ]  # fmt: skip


def test_a_rank_whose_worker_dies(tmp_path: Path, command_line: Path) -> None:
    crash = tmp_path / "crash.so"
    crash.write_bytes(code_of("Crash"))
    program = [sys.executable, "-c", DIE, str(crash)]
    done = run_ranks(tmp_path, command_line, program, [], sim="devices:1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == ["True", "True", "1"]
