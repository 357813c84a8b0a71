"""CuPy on Keel's memory.

    import cupy, keel.cupy

    keel.cupy.install()
    a = cupy.ones(1 << 20)          # of Keel's memory, on CuPy's current stream

Device memory and pinned host memory then come from the allocators that the whole process shares,
so that ``keel.memory`` has the numbers, snapshots and limits. Memory is freed when CuPy lets
go of it, in the order of the stream that it was allocated on, as with CuPy's own pool.

A stream that CuPy made is kept until the memory that was allocated on it is gone, and a while
longer if it was among the last that were used. A stream of another library (ExternalStream) must
outlive its memory. The per-thread default stream keeps CuPy's own pool: for Keel it would be one
stream, and it is one for each thread.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from keel import _keel
from keel.errors import OutOfMemoryError
from keel.memory import current_tag

__all__ = ["install", "is_installed", "uninstall"]

_LEGACY_STREAMS = (0, 1)
_PER_THREAD_STREAM = 2
_KEPT_STREAMS = 64

Allocator = Callable[[int], Any]


class _Lease:
    """A stream of CuPy's, as Keel sees it. Every block that was allocated on it holds this too."""

    __slots__ = ("raw", "stream")

    def __init__(self, raw: _keel.Stream, stream: Any) -> None:
        self.raw = raw
        self.stream = stream  # so that CuPy does not destroy it before Keel has let go of it


class _Streams:
    """The streams that were used, by device and handle, the last one last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leases: OrderedDict[tuple[int, int], _Lease] = OrderedDict()

    def lease(self, cupy: Any, device_id: int, stream: Any) -> _Lease:
        key = (device_id, stream.ptr)
        with self._lock:
            lease = self._leases.get(key)
            if lease is None:
                raw = _keel.borrow_stream(_device(cupy, device_id), stream.ptr)
                lease = self._leases[key] = _Lease(raw, stream)
                if len(self._leases) > _KEPT_STREAMS:
                    self._release(cupy, _KEPT_STREAMS // 2)
            self._leases.move_to_end(key)
            return lease

    def release(self, cupy: Any) -> None:
        with self._lock:
            self._release(cupy, 0)

    def _release(self, cupy: Any, keep: int) -> None:
        """Of those that CuPy made and that no memory is of any more, the oldest. Waits for them."""
        for key in list(self._leases)[: len(self._leases) - keep]:
            # The table, the argument, and whoever has a block or is about to.
            if sys.getrefcount(self._leases[key]) > 2:
                continue
            lease = self._leases.pop(key)
            if key[1] not in _LEGACY_STREAMS and isinstance(lease.stream, cupy.cuda.Stream):
                lease.raw.close()


class _Pinned:
    """What CuPy expects behind a PinnedMemoryPointer."""

    __slots__ = ("_raw", "ptr", "size")

    def __init__(self, raw: _keel.Pinned | None) -> None:
        self._raw = raw
        self.ptr = 0 if raw is None else raw.address
        self.size = 0 if raw is None else raw.size


class _Adapter:
    """What CuPy calls."""

    def __init__(self, cupy: Any, devices: frozenset[int] | None) -> None:
        self._cupy = cupy
        self._devices = devices
        self._pool: Allocator = cupy.get_default_memory_pool().malloc
        self._pinned_pool: Allocator = cupy.get_default_pinned_memory_pool().malloc

    def malloc(self, size: int) -> Any:
        cuda = self._cupy.cuda
        device_id = cuda.runtime.getDevice()
        stream = cuda.get_current_stream()
        if not self._serves(device_id) or stream.ptr == _PER_THREAD_STREAM:
            return self._pool(size)
        if size == 0:
            return cuda.MemoryPointer(cuda.UnownedMemory(0, 0, None, device_id), 0)
        lease = _streams.lease(self._cupy, device_id, stream)
        try:
            block = _keel.allocate(lease.raw, size, current_tag())
        except OutOfMemoryError as error:
            raise self._out_of_memory(size, device_id, error) from error
        # Its parts go from the last to the first: the block before the hold on its stream.
        owner = (lease, block)
        return cuda.MemoryPointer(cuda.UnownedMemory(block.address, size, owner, device_id), 0)

    def malloc_pinned(self, size: int) -> Any:
        cuda = self._cupy.cuda
        device_id = cuda.runtime.getDevice()
        if not self._serves(device_id):
            return self._pinned_pool(size)
        if size == 0:
            return cuda.PinnedMemoryPointer(_Pinned(None), 0)
        raw = _keel.allocate_pinned(_device(self._cupy, device_id), size)
        return cuda.PinnedMemoryPointer(_Pinned(raw), 0)

    def _serves(self, device_id: int) -> bool:
        return self._devices is None or device_id in self._devices

    def _out_of_memory(self, size: int, device_id: int, error: OutOfMemoryError) -> MemoryError:
        device = _device(self._cupy, device_id)
        kind: Any = self._cupy.cuda.memory.OutOfMemoryError
        ours: MemoryError = kind(size, device.usage()[0], device.limit)
        ours.args = (str(error),)
        return ours


_streams = _Streams()
# What runs now, and what CuPy had before it.
_installed: tuple[_Adapter, Allocator] | None = None


def _device(cupy: Any, device_id: int) -> _keel.Device:
    driver = "hip" if cupy.cuda.runtime.is_hip else "cuda"
    return _keel.open_device(f"{driver}:{device_id}")


def install(device: int | Iterable[int] | None = None) -> None:
    """CuPy takes device memory and pinned memory from Keel from now on, on these devices.

    ``None``: on all of them; the others keep CuPy's default pool. Opens no device. What CuPy has
    allocated before stays where it is. Again: for other devices.
    """
    global _installed
    devices = None if device is None else frozenset([device] if isinstance(device, int) else device)
    if devices is not None and not all(isinstance(d, int) and d >= 0 for d in devices):
        raise ValueError(f"devices are numbers from 0 on, not {device!r}")
    cupy: Any = importlib.import_module("cupy")
    before = cupy.cuda.get_allocator() if _installed is None else _installed[1]
    adapter = _Adapter(cupy, devices)
    cupy.cuda.set_allocator(adapter.malloc)
    cupy.cuda.set_pinned_memory_allocator(adapter.malloc_pinned)
    _installed = (adapter, before)


def uninstall() -> None:
    """CuPy allocates as it did before; pinned memory comes from its default pool.

    Arrays that are there keep their memory, which goes back to Keel when they go. If nothing is
    installed: nothing.
    """
    global _installed
    if _installed is None:
        return
    cupy: Any = importlib.import_module("cupy")
    cupy.cuda.set_allocator(_installed[1])
    cupy.cuda.set_pinned_memory_allocator(cupy.get_default_pinned_memory_pool().malloc)
    _installed = None
    _streams.release(cupy)


def is_installed() -> bool:
    """Whether CuPy's allocators are Keel's, as far as nobody has replaced them since."""
    return _installed is not None
