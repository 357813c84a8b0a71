"""How the tests run programs under mpirun, and find what is left of them.

KEEL_MPIRUN, KEEL_CLI, KEEL_MPI_PROGRAM, KEEL_MPI_OWN_PROGRAM, KEEL_MPI_C_PROGRAM and KEEL_TASK_TEST
are paths of programs.

Nothing waits for ever, and nothing is left: `timeout` ends a run that takes too long, and the run
of a test that was killed.
"""

import ctypes
import os
import select
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
OWN_PROGRAM = os.environ["KEEL_MPI_OWN_PROGRAM"]
C_PROGRAM = os.environ["KEEL_MPI_C_PROGRAM"]
TASK_TEST = os.environ["KEEL_TASK_TEST"]

# Seconds; longer than any run takes. The long versions of the tests take up to two hours.
LONG = 7000 if os.environ.get("KEEL_SOAK") else 180

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)

# What launchers leave in the environment: these tests may themselves be part of a job.
LAUNCHERS = ("OMPI_", "PMIX_", "PMI_", "PRTE_", "SLURM_", "MPI_LOCALRANKID")


def clean_environment():
    return {
        name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)
    }


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def environment(process):
    return (process / "environ").read_bytes().decode(errors="replace").split("\0")


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def named_segments():
    """Memory with a name that is Keel's. All of it should be without."""
    return set(Path("/dev/shm").glob("*keel*"))


class Run:
    """One mpirun, whose processes, of whatever parents, have a mark in their environment."""

    def __init__(self, *arguments, prefix=(), options=(), variables=None, stdin=subprocess.DEVNULL):
        self.mark = f"KEEL_TEST_MARK={uuid.uuid4().hex}"
        # Open MPI's memory is in here: it may leave some behind when mpirun is killed, which goes with
        # the test.
        self.folder = tempfile.mkdtemp(prefix="keel-mpi-")
        env = dict(clean_environment(), KEEL_DRIVER="sim", TMPDIR=self.folder)
        env[self.mark.partition("=")[0]] = self.mark.partition("=")[2]
        env.update(variables or {})
        env.update(
            OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
            OMPI_MCA_btl_vader_backing_directory=self.folder,
            # Everything is on this machine, which may have no network.
            OMPI_MCA_btl="self,vader",
            OMPI_MCA_pml="ob1",
        )
        self.finished = False
        self.segments_before = named_segments()
        self.process = subprocess.Popen(
            ("timeout", "-k", "5", str(LONG), *prefix, MPIRUN, "--oversubscribe", *options, *arguments),
            env=env,
            preexec_fn=die_with_parent,
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
        # Not if mpirun was killed, which `timeout` passes on.
        self.finished = self.process.returncode >= 0
        return self.process.returncode, output

    def processes(self):
        """{process: command line} of what is there, without mpirun."""
        return {
            pid: words
            for pid, words in self.all_processes().items()
            if pid != self.process.pid and words[0] != MPIRUN
        }

    def all_processes(self):
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if self.mark not in environment(entry):
                    continue
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:  # it has ended
                continue
            if words[:-1]:
                found[int(entry.name)] = [word.decode() for word in words[:-1]]
        return found

    def ranks(self):
        """The processes of `keel worker`, by rank; 0 is the one that has started the program."""
        there = [pid for pid, words in self.processes().items() if words[:2] == [KEEL, "worker"]]
        found = {}
        for pid in there:
            try:
                variables = environment(Path(f"/proc/{pid}"))
                parent = parent_of(pid)
            except OSError:  # it has ended
                continue
            # A rank's child has its words until it is a program of its own.
            if parent in there:
                continue
            for variable in variables:
                if variable.startswith("OMPI_COMM_WORLD_RANK="):
                    found[int(variable.partition("=")[2])] = pid
        return found

    def workers(self):
        """The processes that the ranks have started."""
        return [
            pid for pid, words in self.processes().items() if Path(words[0]).name == "keel-worker"
        ]

    def mpirun(self):
        (pid,) = (pid for pid, words in self.all_processes().items() if words[0] == MPIRUN)
        return pid

    def program(self):
        (pid,) = (pid for pid, words in self.processes().items() if words[0] == PROGRAM)
        return pid

    def children(self, parent):
        found = []
        for pid in self.processes():
            try:
                if parent_of(pid) == parent:
                    found.append(pid)
            except OSError:  # it has ended
                continue
        return found

    @staticmethod
    def kill(victim, others, timeout):
        """How many seconds later the last of the others had ended."""
        ended = select.poll()
        left = {os.pidfd_open(pid) for pid in others}
        try:
            for process in left:
                ended.register(process, select.POLLIN)
            began = time.monotonic()
            os.kill(victim, signal.SIGKILL)
            waiting = set(left)
            while waiting:
                for process, _ in ended.poll(1000 * timeout):
                    ended.unregister(process)
                    waiting.remove(process)
                if time.monotonic() > began + timeout:
                    raise AssertionError(f"{len(waiting)} processes have not ended in time")
            return time.monotonic() - began
        finally:
            for process in left:
                os.close(process)

    def wait_gone(self, timeout):
        """Whether nothing is left in time."""
        until = time.monotonic() + timeout
        while self.processes():
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True

    def left_in_memory(self):
        """The segments that are left: Keel's, and all where mpirun came to an end of its own."""
        files = {path for path in Path(self.folder).rglob("*") if not path.is_dir()}
        if not self.finished:
            files = {path for path in files if "keel" in path.name}
        return files | (named_segments() - self.segments_before)

    def close(self):
        # Again, because one that was seen may have started another.
        until = time.monotonic() + 10
        while (left := self.all_processes()) and time.monotonic() < until:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.process.poll()
            time.sleep(0.01)
        self.process.wait()
        self.process.stdout.close()
        if self.process.stdin:
            self.process.stdin.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class MpiTest(unittest.TestCase):
    def start(self, *arguments, **options):
        run = Run(*arguments, **options)
        self.addCleanup(self.end, run)
        return run

    def end(self, run):
        try:
            if run.finished:
                run.wait_gone(20)  # mpirun's daemon on another host
            if not run.processes():
                self.assertEqual(run.left_in_memory(), set())
        finally:
            run.close()

    def start_workers(self, workers, *program, **options):
        return self.start(
            "-n", str(workers + 1), KEEL, "worker", "--", *program, **options
        )
