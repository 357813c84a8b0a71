"""Sharing memory with other libraries."""

from __future__ import annotations

import gc
from typing import Any

import keel
import numpy as np
import pytest

HOST, CUDA, EXTENSION = 1, 2, 12


class Foreign:
    """A tensor of another library: no more than the protocol."""

    def __init__(self, array: keel.Array, versioned: bool = True) -> None:
        self.array = array
        self.versioned = versioned
        self.streams: list[int | None] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream: int | None = None, **rest: Any) -> object:
        if rest and not self.versioned:
            raise TypeError(f"unexpected {list(rest)}")
        self.streams.append(stream)
        return self.array.__dlpack__(stream=stream, **rest)


# --- On a device that others do not know ---


def test_simulated_memory_is_not_exported() -> None:
    a = keel.zeros(3)
    assert a.__dlpack_device__() == (EXTENSION, 0)
    with pytest.raises(BufferError, match=r"sim:0.*numpy\(\)"):
        np.from_dlpack(a)
    with pytest.raises(BufferError, match="copy only"):
        a.__dlpack__(dl_device=(HOST, 0), copy=False)
    with pytest.raises(BufferError, match=r"\(2, 0\)"):
        a.__dlpack__(dl_device=(CUDA, 0))
    assert not hasattr(a, "__cuda_array_interface__")


def test_a_copy_in_host_memory_is_exported_from_anywhere() -> None:
    source = np.arange(24, dtype="int16").reshape(2, 3, 4)
    a = keel.from_numpy(source)
    host = np.from_dlpack(a, device="cpu")
    a.close()
    assert np.array_equal(host, source)
    old = keel.from_numpy(source).__dlpack__(dl_device=(HOST, 0))
    assert "dltensor" in repr(old)
    assert "versioned" not in repr(old)
    del old  # taken by nobody


def test_between_arrays_of_keel_memory_is_shared() -> None:
    a = keel.from_numpy(np.arange(5))
    b = keel.from_dlpack(a)
    assert b.address == a.address
    a.close()
    assert b.numpy().tolist() == [0, 1, 2, 3, 4]
    c = keel.from_dlpack(b, copy=True)
    assert c.address != b.address
    d = keel.from_dlpack(b, device="sim:1")
    assert d.device == "sim:1"
    assert c.numpy().tolist() == d.numpy().tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(BufferError, match="sim:0 to sim:1"):
        keel.from_dlpack(b, device="sim:1", copy=False)


def test_host_memory_is_copied() -> None:
    source = np.arange(6, dtype="float32").reshape(2, 3)
    a = keel.from_dlpack(source, device="sim:1")
    assert (a.device, a.shape, a.dtype) == ("sim:1", (2, 3), "float32")
    assert np.array_equal(a.numpy(), source)
    with pytest.raises(BufferError, match="copy is False"):
        keel.from_dlpack(source, copy=False)
    with pytest.raises(BufferError, match="contiguous"):
        keel.from_dlpack(source.T)
    with pytest.raises(TypeError, match="__dlpack__"):
        keel.from_dlpack([1, 2])


def test_strange_capsules_are_refused() -> None:
    class Odd:
        def __init__(self, device: tuple[int, int], capsule: object) -> None:
            self.device = device
            self.capsule = capsule

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.device

        def __dlpack__(self, **_: object) -> object:
            return self.capsule

    with pytest.raises(TypeError, match="capsule"):
        keel.from_dlpack(Odd((HOST, 0), object()))
    used = np.arange(3).__dlpack__()
    keel.from_dlpack(Odd((HOST, 0), used))
    with pytest.raises(TypeError, match="already"):
        keel.from_dlpack(Odd((HOST, 0), used))
    with pytest.raises(BufferError, match=r"\(99, 3\)"):
        keel.from_dlpack(Odd((99, 3), None))


# --- On one that they do: a stand-in of CUDA's library ---


def test_cuda_memory_is_shared_both_ways(cuda: str) -> None:
    a = keel.from_numpy(np.arange(1000, dtype="float64").reshape(10, 100), device=cuda)
    assert a.__dlpack_device__() == (CUDA, 0)
    for versioned in (True, False):
        foreign = Foreign(a, versioned)
        b = keel.from_dlpack(foreign)
        assert foreign.streams == [1]  # the legacy default stream
        assert (b.address, b.shape, b.dtype, b.device) == (a.address, a.shape, a.dtype, cuda)
        assert np.array_equal(b.numpy(), a.numpy())
        b.copy_from(2 * a.numpy())
        assert np.array_equal(b.numpy(), a.numpy())
        b.close()


def test_shared_memory_lives_until_the_last_lets_go(cuda: str) -> None:
    before = keel.memory.memory_allocated(cuda)
    a = keel.from_numpy(np.arange(1000), device=cuda)
    b = keel.from_dlpack(Foreign(a))
    a.close()
    assert keel.memory.memory_allocated(cuda) > before
    assert b.numpy().tolist() == list(range(1000))
    del a
    b.close()
    gc.collect()
    assert keel.memory.memory_allocated(cuda) == before
    capsule = keel.empty(1000, device=cuda).__dlpack__(stream=-1)
    assert keel.memory.memory_allocated(cuda) > before
    del capsule
    assert keel.memory.memory_allocated(cuda) == before


def test_memory_that_must_not_be_written_stays_so(cuda: str) -> None:
    a = keel.from_numpy(np.arange(10), device=cuda)
    theirs = keel.Array._of(a._storage.share(), a.shape, a._dtype, read_only=True)
    b = keel.from_dlpack(Foreign(theirs))
    assert (b.address, b.read_only) == (a.address, True)
    assert not a.read_only
    with pytest.raises(ValueError, match="another library's"):
        b.copy_from(np.zeros(10, "int64"))
    with pytest.raises(ValueError, match="another library's"):
        a.copy_to(b)
    assert b.numpy().tolist() == list(range(10))
    assert b.__cuda_array_interface__["data"] == (a.address, True)
    assert keel.from_dlpack(b).read_only  # also when it is handed on
    assert keel.from_dlpack(Foreign(b)).read_only
    with pytest.raises(BufferError, match=r"DLPack 1\.0"):
        b.__dlpack__(stream=-1)
    copied = keel.from_dlpack(b, copy=True)
    assert not copied.read_only
    copied.copy_from(np.zeros(10, "int64"))


def test_the_consumers_stream_waits_and_keeps_the_memory(cuda: str) -> None:
    mine, theirs = keel.device.Stream(cuda), keel.device.Stream(cuda)
    a = keel.zeros(1 << 20, "uint8", stream=mine)
    with theirs:
        b = keel.from_dlpack(Foreign(a))
        assert b.stream.handle == theirs.handle
    assert not b.numpy().any()
    for wrong, error in ((0, ValueError), (-2, ValueError), ("1", TypeError)):
        with pytest.raises(error):
            a.__dlpack__(stream=wrong)  # type: ignore[arg-type]


def test_a_copy_on_the_device_can_be_asked_for(cuda: str) -> None:
    a = keel.from_numpy(np.arange(10), device=cuda)

    class Copying(Foreign):
        def __dlpack__(self, *, stream: int | None = None, **rest: Any) -> object:
            return self.array.__dlpack__(stream=stream, copy=True, **rest)

    b = keel.from_dlpack(Copying(a))
    assert b.address != a.address
    assert b.numpy().tolist() == list(range(10))


def test_the_cuda_array_interface(cuda: str) -> None:
    a = keel.zeros((2, 3), "int32", device=cuda)
    assert a.__cuda_array_interface__ == {
        "shape": (2, 3),
        "typestr": "<i4",
        "data": (a.address, False),
        "strides": None,
        "stream": 1,
        "version": 3,
    }
    with pytest.raises(AttributeError, match="bfloat16"):
        _ = keel.zeros(1, "bfloat16", device=cuda).__cuda_array_interface__
