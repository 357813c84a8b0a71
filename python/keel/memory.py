"""Device memory: how much is in use, where it went, and how to get it back.

Names and meanings are those of ``torch.cuda``'s functions. The numbers are those of the allocators
that the whole process shares: arrays of this package, C and C++ code and plugins alike. Asking for
numbers opens no device: one that nobody uses has zeros.

``device`` is None (the current one), a number, or a name such as ``"sim:0"``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

from keel import _keel, errors
from keel._selection import DeviceLike, find_in_use, name_of, open_device
from keel._stream import Stream, stream_of
from keel._summary import summarize
from keel.errors import Error, OutOfMemoryError

__all__ = [
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "current_tag",
    "dump_snapshot",
    "empty_cache",
    "get_allocator_backend",
    "host_memory_stats",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_report",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "on_out_of_memory",
    "record_memory_history",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
    "snapshot",
    "tag",
]

# --- How much ---


def _usage(device: DeviceLike) -> tuple[int, int, int, int]:
    used = find_in_use(device)
    return (0, 0, 0, 0) if used is None else used.usage()


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes that are handed out now."""
    return _usage(device)[0]


def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most bytes that were handed out at once, since the last reset of peaks."""
    return _usage(device)[1]


def memory_reserved(device: DeviceLike = None) -> int:
    """Bytes that the allocator holds from the device now."""
    return _usage(device)[2]


def max_memory_reserved(device: DeviceLike = None) -> int:
    """The most bytes that the allocator held at once, since the last reset of peaks."""
    return _usage(device)[3]


def memory_stats(device: DeviceLike = None) -> dict[str, int]:
    """Every number of the device's allocator, by PyTorch's keys, and Keel's own after ``keel.``."""
    used = find_in_use(device)
    return _keel.no_stats() if used is None else used.stats()


def host_memory_stats(device: DeviceLike = None) -> dict[str, int]:
    """Every number of the device's allocator of pinned host memory, by PyTorch's keys."""
    used = find_in_use(device)
    return _keel.no_host_stats() if used is None else used.host_stats()


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Peaks become what is there now."""
    used = find_in_use(device)
    if used is not None:
        used.reset_peaks()


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Totals (``allocated``, ``freed``, counts of events) become zero."""
    used = find_in_use(device)
    if used is not None:
        used.reset_accumulated()


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """The numbers as a table for people; abbreviated: without the two pools."""
    return summarize(name_of(device), memory_stats(device), abbreviated)


def memory_report(device: DeviceLike = None) -> str:
    """What an OutOfMemoryError would say about the state. Opens the device."""
    return open_device(device).report()


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Free and total bytes of the device, as its driver sees them. Opens it."""
    return open_device(device).memory_info()


# --- How it is handed out ---


def empty_cache(device: DeviceLike = None) -> None:
    """Give free memory back to the device. None: to every device that the process uses."""
    if device is None:
        for used in _keel.devices_in_use():
            used.empty_cache()
        return
    found = find_in_use(device)
    if found is not None:
        found.empty_cache()


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Hold at most this part of the device's memory. What is in use is not disturbed. Opens it."""
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float)):
        raise TypeError(f"fraction must be a number, not {type(fraction).__name__}")
    open_device(device).set_fraction(float(fraction))


def get_allocator_backend() -> str:
    """``"native"``, or ``"passthrough"`` where KEEL_ALLOC_CONF says so."""
    return _keel.backend()


def caching_allocator_alloc(
    size: int, device: DeviceLike = None, stream: Stream | None = None
) -> int:
    """An address without an owner, for code that frees it with :func:`caching_allocator_delete`."""
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"size must be a number of bytes, not {type(size).__name__}")
    if not 0 <= size < 2**63:
        raise ValueError(f"size must be from 0 to 2**63 - 1, not {size}")
    return _keel.allocate_raw(stream_of(stream, device)._raw, size)


def caching_allocator_delete(mem_ptr: int, device: DeviceLike = None) -> None:
    """Free what :func:`caching_allocator_alloc` returned.

    InvalidArgumentError, a ValueError: there is nothing, or it was freed before.
    """
    _keel.free_raw(open_device(device), mem_ptr)


_tag: ContextVar[str] = ContextVar("keel tag", default="")


@contextmanager
def tag(name: str) -> Iterator[None]:
    """What arrays that are made inside are for, in statistics and histories."""
    token = _tag.set(name)
    try:
        yield
    finally:
        _tag.reset(token)


def current_tag() -> str:
    """What the innermost :func:`tag` says; empty: nothing."""
    return _tag.get()


# --- Where it went ---


def _chosen(device: DeviceLike) -> list[_keel.Device]:
    if device is None:
        return _keel.devices_in_use()
    found = find_in_use(device)
    return [] if found is None else [found]


def snapshot(device: DeviceLike = None) -> dict[str, Any]:
    """Segments, blocks and the history, as PyTorch's ``_snapshot()`` has them. None: of every
    device that the process uses."""
    import pickle

    contents: dict[str, Any] = pickle.loads(_keel.snapshot_bytes(_chosen(device), False))
    return contents


def memory_snapshot(device: DeviceLike = None) -> list[dict[str, Any]]:
    """Every segment with its blocks; None: of every device that the process uses."""
    segments: list[dict[str, Any]] = snapshot(device)["segments"]
    return segments


def dump_snapshot(
    filename: str | os.PathLike[str] = "dump_snapshot.pickle", device: DeviceLike = None
) -> None:
    """Write :func:`snapshot` into a file, which PyTorch's viewer and ``keel replay`` read.

    ``.json`` is JSON; ``.pickle`` and ``.pkl`` are a pickle. The file is replaced in one step:
    others see the old one or the new one.
    """
    path = os.fspath(filename)
    ending = os.path.splitext(path)[1].lower()
    if ending not in (".json", ".pickle", ".pkl"):
        raise ValueError(f"{path}: a snapshot is .json, .pickle or .pkl, not {ending or 'nothing'}")
    try:
        _keel.write_snapshot(_chosen(device), path, ending == ".json")
    except Error as error:
        if error.vendor_name.startswith("E") and error.vendor_code > 0:  # the system's own
            raise OSError(error.vendor_code, os.strerror(error.vendor_code), path) from error
        raise


def on_out_of_memory(observer: Callable[[OutOfMemoryError], None]) -> Callable[[], None]:
    """Call ``observer(error)`` in the thread that runs out of memory, before the error is raised.

    For what this package raises, on all devices: the moment to take a snapshot. What the observer
    raises is printed and goes no further. Returns a function that ends it; again: nothing.
    """
    errors._observers.append(observer)

    def end() -> None:
        if observer in errors._observers:
            errors._observers.remove(observer)

    return end


def record_memory_history(
    enabled: Literal["all"] | None = "all",
    context: Literal["all"] | None = None,
    max_entries: int = 100_000,
    clear_history: bool = False,
) -> None:
    """Keep the newest ``max_entries`` things that happen to memory, on all devices, for snapshots.

    ``enabled=None`` stops; what was kept stays. ``context="all"`` keeps the stack of native code
    for each. Python's own stacks are not kept: :func:`tag` says what memory is for.
    """
    if enabled not in ("all", None):
        raise ValueError(f'enabled must be "all" or None, not {enabled!r}')
    if context not in ("all", None):
        raise ValueError(f'context must be "all" or None, not {context!r}')
    if isinstance(max_entries, bool) or not isinstance(max_entries, int):
        raise TypeError(f"max_entries must be a number, not {type(max_entries).__name__}")
    if max_entries < 1:
        raise ValueError(f"max_entries must be at least 1, not {max_entries}")
    if clear_history:
        _keel.clear_history()
    if enabled is None:
        _keel.stop_history()
    else:
        # PyTorch's own default is "as many as there are".
        _keel.start_history(min(max_entries, _keel.MAX_HISTORY), context is not None)
