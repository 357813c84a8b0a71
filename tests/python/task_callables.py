"""The callables that the tests of tasks run."""

from __future__ import annotations

import importlib
import os
import signal

import numpy as np
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


def plus_one(call: task.Call) -> None:
    """A tensor gets one more, and the second one says in which process."""
    call[0].copy_from(call[0].numpy() + 1)
    call[1].copy_from(np.array([os.getpid()], "int64"))


def fail(call: task.Call) -> None:
    raise LookupError(f"nothing is at {call.scalar(0, 'int64')}")


def fail_at_length(call: task.Call) -> None:
    raise LookupError("\u20ac" * 2000)


def die(call: task.Call) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Absent:
    """Cannot be found where it is sent."""

    def __call__(self, call: task.Call) -> None: ...

    def __reduce__(self) -> tuple[object, ...]:
        return importlib.import_module, ("no_such_module",)
