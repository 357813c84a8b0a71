"""The tests run on two simulated devices, and on a stand-in of CUDA's library where one was built.

KEEL_TEST_BUILD is the folder of a build (build/) that has the command line and the stand-in.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KEEL_TEST_BUILD", ROOT / "build"))
STANDIN = BUILD / "test" / "cuda_standin.so"
CLI = BUILD / "bin" / "keel"

# Read once by the library, so before anything imports it.
os.environ["KEEL_DRIVER"] = "sim"
os.environ["KEEL_SIM"] = "devices:2,memory:256MiB,arena:16GiB"
os.environ["KEEL_CUDA_LIBRARY"] = str(STANDIN)
os.environ["KEEL_LOG"] = "warn"
os.environ.pop("KEEL_ALLOC_CONF", None)

import keel  # noqa: E402
from keel import task  # noqa: E402

Run = Callable[..., subprocess.CompletedProcess[str]]

# In the environment of a program, and so of all that it starts.
MARK = "KEEL_TEST_MARK"


def processes_with(mark: str) -> list[int]:
    """The processes that have the mark, whoever their parents are by now."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended
                if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def seconds_until_none(mark: str) -> float:
    """How long it takes until no process has the mark; those that are left then are killed."""
    began = time.monotonic()
    while left := processes_with(mark):
        if time.monotonic() > began + 20:
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            pytest.fail(f"left: {left}")
        time.sleep(0.01)
    return time.monotonic() - began


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """Every test gives back what it took, on every device."""
    before = {name: keel.memory.memory_allocated(name) for name in keel.device.in_use()}
    yield
    gc.collect()
    for name in keel.device.in_use():
        assert keel.memory.memory_allocated(name) == before.get(name, 0), f"{name} leaks"
        keel.memory.set_per_process_memory_fraction(1.0, name)
    keel.memory.record_memory_history(None, clear_history=True)


@pytest.fixture
def run() -> Run:
    """Runs a program in a process of its own, as a user would. No process of it is left."""

    def start(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
        mark = uuid.uuid4().hex
        result = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, MARK: mark, **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert processes_with(mark) == []
        return result

    return start


@pytest.fixture
def cuda() -> Iterator[str]:
    """A device of the stand-in, closed afterwards: a snapshot has no two devices of one number."""
    if not STANDIN.exists():
        pytest.skip(f"{STANDIN} is not built")
    yield "cuda:0"
    gc.collect()
    if "cuda:0" in keel.device.in_use():
        assert keel.memory.memory_allocated("cuda:0") == 0
        keel.device.forget("cuda:0")


@pytest.fixture
def command_line() -> Path:
    if not CLI.exists():
        pytest.skip(f"{CLI} is not built")
    return CLI


@pytest.fixture
def orchestrator() -> Iterator[task.Orchestrator]:
    with task.Orchestrator(["sim:0", "sim:1"]) as made:
        yield made


@pytest.fixture(params=["thread", "process"])
def either(request: pytest.FixtureRequest) -> Iterator[task.Orchestrator]:
    with task.Orchestrator([0, 1], transport=request.param) as made:
        yield made
