"""Arrays: what they are, copies, and the mistakes that they name."""

from __future__ import annotations

import array
from typing import Any

import keel
import keel.testing
import numpy as np
import pytest

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


def test_what_an_array_is() -> None:
    a = keel.empty((2, 3, 4), "int16", device="sim:1")
    assert a.shape == (2, 3, 4)
    assert (a.dtype, a.itemsize, a.ndim, a.size, a.nbytes) == ("int16", 2, 3, 24, 48)
    assert a.strides == np.empty((2, 3, 4), "int16").strides
    assert a.device == "sim:1"
    assert a.address != 0
    assert len(a) == 2
    assert repr(a) == "<keel.Array int16 (2, 3, 4) on sim:1>"
    assert np.dtype("int16") == a.dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_survives_the_way_there_and_back(dtype: str) -> None:
    source = np.arange(1, 25).reshape(4, 6).astype(dtype)
    back = keel.from_numpy(source).numpy()
    assert back.dtype == source.dtype
    assert np.array_equal(back, source)


@pytest.mark.parametrize("dtype", [float, np.float64, np.dtype("float64"), "float64"])
def test_types_are_written_in_many_ways(dtype: Any) -> None:
    assert keel.empty(1, dtype).dtype == "float64"


def test_bfloat16_travels_as_bytes() -> None:
    a = keel.zeros(3, "bfloat16")
    a.copy_from(b"\x80\x3f" * 3)  # 1.0
    assert a.tobytes() == b"\x80\x3f" * 3
    with pytest.raises(TypeError, match="ml_dtypes"):
        a.numpy()


def test_zeros_are_zeros_where_something_else_was() -> None:
    with keel.from_numpy(np.full(1000, 7, "uint8")) as before:
        address = before.address
    a = keel.zeros(1000, "uint8")
    assert a.address == address
    assert not a.numpy().any()


def test_empty_arrays_have_no_memory() -> None:
    a = keel.zeros((3, 0))
    assert (a.size, a.nbytes, a.address) == (0, 0, 0)
    assert a.numpy().shape == (3, 0)
    assert a.tobytes() == b""


def test_an_array_without_dimensions() -> None:
    a = keel.from_numpy(np.array(2.5))
    assert a.shape == ()
    assert a.numpy() == 2.5
    with pytest.raises(TypeError, match="no len"):
        len(a)


def test_numpy_takes_it_by_copy() -> None:
    a = keel.from_numpy(np.arange(4, dtype="int32"))
    assert np.asarray(a).tolist() == [0, 1, 2, 3]
    assert np.asarray(a, dtype="float32").dtype == np.float32
    with pytest.raises(ValueError, match="without a copy"):
        np.array(a, copy=False)


def test_any_buffer_can_be_copied_from_and_to() -> None:
    numbers = array.array("i", [1, 2, 3])
    a = keel.from_numpy(numbers)
    assert (a.dtype, a.shape) == ("int32", (3,))
    destination = array.array("i", [0, 0, 0])
    a.copy_to(destination)
    assert destination == numbers
    raw = bytearray(12)
    a.copy_to(raw)
    assert raw == numbers.tobytes()
    a.copy_from(bytes(12))
    assert not a.numpy().any()
    assert keel.from_numpy(b"abc").tobytes() == b"abc"


def test_gaps_in_host_memory_are_closed_and_kept() -> None:
    source = np.arange(12, dtype="float32").reshape(3, 4)
    a = keel.from_numpy(source.T)
    assert np.array_equal(a.numpy(), source.T)
    wide = np.zeros((4, 6), "float32")
    a.copy_to(wide[:, ::2])
    assert np.array_equal(wide[:, ::2], source.T)
    assert not wide[:, 1::2].any()
    b = keel.from_numpy(memoryview(bytes(range(8)))[::2])
    assert b.tobytes() == bytes([0, 2, 4, 6])


def test_copies_from_device_to_device() -> None:
    a = keel.from_numpy(np.arange(1000, dtype="float64"), device="sim:0")
    for device in ("sim:0", "sim:1"):
        b = keel.empty(1000, "float64", device=device, stream=keel.device.Stream(device))
        b.copy_from(a)
        a.copy_to(b)
        assert np.array_equal(b.numpy(), a.numpy())


def test_a_source_on_another_stream_may_be_closed_at_once() -> None:
    first, second = keel.device.Stream(), keel.device.Stream()
    a = keel.from_numpy(np.full(4096, 5, "uint8"), stream=first)
    b = keel.empty(4096, "uint8", stream=second)
    with keel.testing.hold(second):
        b.copy_from(a)
        address = a.address
        a.close()
        # The same memory on the same stream, whose zeros must come after the copy.
        c = keel.zeros(4096, "uint8", stream=first)
        assert c.address == address
        with pytest.raises(keel.WaitTimeoutError):
            first.synchronize(0.2)
    assert b.numpy().tolist() == [5] * 4096
    assert not c.numpy().any()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"shape": (2, -1)}, ValueError, "negative"),
        ({"shape": "ab"}, TypeError, "shape"),
        ({"shape": 1.5}, TypeError, "shape"),
        ({"shape": 1 << 62}, ValueError, "count"),
        ({"shape": 1, "dtype": "float33"}, TypeError, "float33.*float32"),
        ({"shape": 1, "dtype": object}, TypeError, "object"),
        ({"shape": 1, "dtype": np.dtype(">f4")}, TypeError, "byte order"),
        ({"shape": 1, "device": "nix:0"}, keel.NotFoundError, "nix"),
        ({"shape": 1, "device": "sim:9"}, keel.NotFoundError, "sim:9.*sim:0, sim:1"),
        ({"shape": 1, "device": "sim:x"}, ValueError, "sim:x"),
        ({"shape": 1, "device": -1}, ValueError, "-1"),
        ({"shape": 1, "device": 1.0}, TypeError, "float"),
        ({"shape": 1, "device": True}, TypeError, "bool"),
        ({"shape": 1, "stream": 7}, TypeError, "borrow"),
    ],
)
def test_wrong_arguments_are_named(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        keel.empty(**arguments)


def test_a_stream_of_another_device_is_refused() -> None:
    with pytest.raises(ValueError, match=r"sim:1, not of sim:0"):
        keel.empty(1, device=0, stream=keel.device.Stream(1))


def test_wrong_copies_are_named() -> None:
    a = keel.zeros((2, 3))
    with pytest.raises(TypeError, match=r"float64.*float32"):
        a.copy_from(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"\(3, 2\).*\(2, 3\)"):
        a.copy_to(np.zeros((3, 2), "float32"))
    with pytest.raises(ValueError, match=r"23 bytes.*24"):
        a.copy_to(bytearray(23))
    with pytest.raises(TypeError, match="no buffer"):
        a.copy_from([1.0] * 6)
    with pytest.raises(ValueError, match="written"):
        a.copy_to(memoryview(bytes(24)).cast("f", (2, 3)))
    fixed = np.zeros((2, 3), "float32")
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="written"):
        a.copy_to(fixed)
    with pytest.raises(TypeError, match="M8"):
        keel.from_numpy(np.zeros(1, "M8[s]"))
    with pytest.raises(TypeError, match="make arrays"):
        keel.Array()


def test_a_closed_array_says_so() -> None:
    with keel.zeros(8) as a:
        assert not a.closed
    assert a.closed
    a.close()
    assert repr(a) == "<keel.Array float32 (8,) closed>"
    assert a.nbytes == 32
    for use in (a.numpy, a.tobytes, lambda: a.address, lambda: a.device, lambda: a.copy_from(a)):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_tags_say_what_memory_is_for() -> None:
    with keel.memory.tag("weights"):
        a = keel.empty(1000)
        b = keel.empty(1000, tag="state")
    c = keel.empty(1000)
    stats = keel.memory.memory_stats()
    assert stats["keel.tag_bytes.weights"] == 4096
    assert stats["keel.tag_bytes.state"] == 4096
    assert keel.memory.current_tag() == ""
    del a, b, c
