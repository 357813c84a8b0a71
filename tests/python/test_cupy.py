"""keel.cupy as far as it goes without CuPy and a GPU: which streams it holds on to.

CuPy's streams are played by Keel's own, on the stand-in of CUDA's library. With CuPy:
gpu/cupy_test.py.
"""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import Any

import keel
import keel.cupy
import keel.testing
import pytest
from keel import _keel
from keel.cupy import _KEPT_STREAMS, _Streams


class Stream:
    """One that CuPy made, and destroys with the object."""

    def __init__(self) -> None:
        self._stream = keel.device.Stream("cuda:0")
        self.ptr = self._stream.handle


CUPY: Any = SimpleNamespace(cuda=SimpleNamespace(Stream=Stream, runtime=SimpleNamespace(is_hip=0)))


@pytest.mark.usefixtures("cuda")
def test_streams_that_are_not_used_any_more_are_let_go() -> None:
    streams = _Streams()
    used = Stream()
    lease = streams.lease(CUPY, 0, used)
    block = _keel.allocate(lease.raw, 1000, "")
    held = (lease, block)
    del lease, block
    alive = weakref.ref(used)
    del used
    others = []
    for _ in range(3 * _KEPT_STREAMS):
        stream = Stream()
        others.append(weakref.ref(stream))
        lease = streams.lease(CUPY, 0, stream)
        assert streams.lease(CUPY, 0, stream) is lease
        _keel.allocate(lease.raw, 1000, "").close()
        del stream, lease
    # One that has memory is kept, however old; of the others a bounded number is.
    assert streams.lease(CUPY, 0, alive()) is held[0]
    assert 0 < sum(other() is not None for other in others) <= _KEPT_STREAMS
    streams.release(CUPY)
    assert alive() is not None
    assert not any(other() is not None for other in others)
    del held
    streams.release(CUPY)
    assert alive() is None
    assert keel.memory.memory_allocated("cuda:0") == 0


@pytest.mark.usefixtures("cuda")
def test_pinned_memory_has_an_owner() -> None:
    import ctypes

    device = _keel.open_device("cuda:0")
    pinned = _keel.allocate_pinned(device, 5000)
    assert pinned.size == 5000
    assert keel.memory.host_memory_stats("cuda:0")["active_bytes.current"] >= 5000
    ctypes.memset(pinned.address, 7, 5000)
    assert ctypes.string_at(pinned.address, 5000) == b"\7" * 5000
    del pinned
    assert keel.memory.host_memory_stats("cuda:0")["active_bytes.current"] == 0


def test_devices_are_numbers() -> None:
    with pytest.raises(ValueError, match="-1"):
        keel.cupy.install(-1)
    with pytest.raises(ValueError, match="sim:0"):
        keel.cupy.install(["sim:0"])  # type: ignore[list-item]
    assert not keel.cupy.is_installed()
    keel.cupy.uninstall()
