"""Keel: a memory runtime for accelerators.

    import keel

    a = keel.from_numpy(numpy.arange(6, dtype="float32"))
    print(a.device, keel.memory.memory_allocated(), a.numpy())

Importing opens no device and needs none. ``keel.memory`` has the numbers, snapshots and limits of
the allocators that the whole process shares; ``keel.device`` the devices, streams and events;
``keel.graph`` programs that are recorded once and replayed; ``keel.task`` devices as workers.
"""

from keel import _keel, device, graph, memory, task
from keel._array import Array, empty, from_dlpack, from_numpy, zeros
from keel.errors import (
    DeviceLostError,
    Error,
    ForkedProcessError,
    InvalidArgumentError,
    NotFoundError,
    OutOfMemoryError,
    StateError,
    UnavailableError,
    UnsupportedError,
    WaitTimeoutError,
)

__version__ = _keel.VERSION

__all__ = [
    "Array",
    "DeviceLostError",
    "Error",
    "ForkedProcessError",
    "InvalidArgumentError",
    "NotFoundError",
    "OutOfMemoryError",
    "StateError",
    "UnavailableError",
    "UnsupportedError",
    "WaitTimeoutError",
    "__version__",
    "device",
    "empty",
    "from_dlpack",
    "from_numpy",
    "graph",
    "memory",
    "task",
    "zeros",
]
