"""The tests run on two simulated devices, and on a stand-in of CUDA's library where one was built.

KEEL_TEST_BUILD is the folder of a build (build/) that has the command line and the stand-in.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
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
    """Runs a program in a process of its own, as a user would."""

    def start(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

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
