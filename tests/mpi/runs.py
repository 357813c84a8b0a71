"""How the tests run programs under mpirun, and find what is left of them.

KEEL_MPIRUN, KEEL_CLI, KEEL_MPI_PROGRAM and KEEL_TASK_TEST are paths of programs.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import uuid
from pathlib import Path

MPIRUN = os.environ["KEEL_MPIRUN"]
KEEL = os.environ["KEEL_CLI"]
PROGRAM = os.environ["KEEL_MPI_PROGRAM"]
TASK_TEST = os.environ["KEEL_TASK_TEST"]

# Longer than anything takes.
LONG = 120


def environment(process):
    return (process / "environ").read_bytes().decode(errors="replace").split("\0")


class Run:
    """One mpirun, whose processes, of whatever parents, have a mark in their environment."""

    def __init__(self, *arguments, options=(), stdin=subprocess.DEVNULL):
        self.mark = f"KEEL_TEST_MARK={uuid.uuid4().hex}"
        # What a killed MPI leaves behind goes with the test.
        self.folder = tempfile.mkdtemp(prefix="keel-mpi-")
        env = dict(os.environ, KEEL_DRIVER="sim", TMPDIR=self.folder)
        env[self.mark.partition("=")[0]] = self.mark.partition("=")[2]
        # MPI itself is not built with the sanitizers, and frees nothing at its end.
        if "address" in env.get("KEEL_SANITIZE", ""):
            env["ASAN_OPTIONS"] = "detect_leaks=0"
        env.update(
            OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
            OMPI_MCA_btl_vader_backing_directory=self.folder,
            # Everything is on this machine, which may have no network.
            OMPI_MCA_btl="self,vader",
            OMPI_MCA_pml="ob1",
        )
        self.process = subprocess.Popen(
            (MPIRUN, "--oversubscribe", *options, *arguments),
            env=env,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_ready(self):
        """What was printed before the program said that it is."""
        before = ""
        for line in self.process.stdout:
            if line == "ready\n":
                return before
            before += line
        raise AssertionError(f"it ended: {before}")

    def finish(self, timeout=LONG):
        """(exit code, output)"""
        output, _ = self.process.communicate(timeout=timeout)
        return self.process.returncode, output

    def processes(self):
        """{process: command line} of what is there, without mpirun."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == self.process.pid:
                continue
            try:
                if self.mark not in environment(entry):
                    continue
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:  # it has ended
                continue
            found[int(entry.name)] = [word.decode() for word in words[:-1]]
        return found

    def ranks(self):
        """The processes of `keel worker`, by rank; 0 is the one that has started the program."""
        found = {}
        for pid, words in self.processes().items():
            if words[:2] == [KEEL, "worker"]:
                (rank,) = (
                    word.partition("=")[2]
                    for word in environment(Path(f"/proc/{pid}"))
                    if word.startswith("OMPI_COMM_WORLD_RANK=")
                )
                found[int(rank)] = pid
        return found

    def program(self):
        (pid,) = (pid for pid, words in self.processes().items() if words[0] == PROGRAM)
        return pid

    def wait_gone(self, timeout):
        """Whether nothing is left in time."""
        until = time.monotonic() + timeout
        while self.processes():
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        if self.process.stdin:
            self.process.stdin.close()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)


class MpiTest(unittest.TestCase):
    def start(self, *arguments, **options):
        run = Run(*arguments, **options)
        self.addCleanup(run.close)
        return run

    def start_workers(self, workers, *program, **options):
        return self.start(
            "-n", str(workers + 1), KEEL, "worker", "--", *program, **options
        )
