"""The callables that the tests of tasks run."""

from __future__ import annotations

import pytest
from conftest import BUILD
from keel import task


def code_of(behaviour: str) -> bytes:
    """Orchestration code that the tests in C++ have."""
    path = BUILD / "test" / f"task_test_{behaviour}.so"
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path.read_bytes()


def launch_add(call: task.Call) -> None:
    a, b, c = call.tensors
    call.launch("keel_add", a, b, c, task.u64(c.size))
