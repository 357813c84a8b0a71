"""DLPack: who can share which memory, and in what order of work."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from keel import _keel
from keel._dtypes import DType, dtype_of_dlpack

if TYPE_CHECKING:
    from keel._array import Array

HOST = (1, 0)
_CUDA, _CUDA_HOST, _ROCM, _ROCM_HOST, _OTHER = 2, 3, 10, 11, 12
_HOST_TYPES = (HOST[0], _CUDA_HOST, _ROCM_HOST)
_TYPES = {"cuda": _CUDA, "hip": _ROCM}
_DRIVERS = {number: driver for driver, number in _TYPES.items()}


def device_of(device: str) -> tuple[int, int]:
    """DLPack's pair for a device; of those that it does not know, "extension"."""
    driver, _, ordinal = device.rpartition(":")
    return _TYPES.get(driver, _OTHER), int(ordinal)


# --- Ours for others ---


def export_target(
    device: str, wanted: tuple[int, int] | None, copy: bool | None
) -> tuple[int, int]:
    """Where the exported tensor shall be: its own device, or the host. BufferError: neither."""
    own = device_of(device)
    if wanted is not None and tuple(wanted) == HOST:
        if copy is False:
            raise BufferError(f"an array on {device} reaches the host by a copy only")
        return HOST
    if wanted is not None and tuple(wanted) != own:
        raise BufferError(
            f"an array on {device}, {own} to DLPack, cannot be exported to {tuple(wanted)}"
        )
    if own[0] == _OTHER:
        raise BufferError(
            f"DLPack has no number for {device}, whose memory no other library can use; copy it "
            'with numpy(), or with from_dlpack(array, device="cpu")'
        )
    return own


def order_for_consumer(storage: _keel.Storage, device: str, stream: int | None) -> None:
    """What the consumer puts on its stream comes after what is on the array's, and the memory is
    kept until it is done. None: the legacy default stream; -1: the consumer sees to it."""
    if stream == -1:
        return
    if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int)):
        raise TypeError(f"stream must be a number or None, not {type(stream).__name__}")
    if device_of(device)[0] == _CUDA and stream == 0:
        raise ValueError("stream 0 is ambiguous: 1 is the legacy default one, 2 the per-thread one")
    if stream is not None and stream < 0:
        raise ValueError(f"{stream} is no stream; -1 stands for no synchronisation")
    storage.share_with(0 if stream is None else stream)


# --- Others' for us ---


def describe(tensor: _keel.DlpackTensor) -> tuple[DType, tuple[int, ...]]:
    """BufferError for gaps, another order than C's, and unknown types."""
    dtype = dtype_of_dlpack(*tensor.dtype)
    shape = tensor.shape
    if tensor.strides is not None and math.prod(shape) > 1:
        expected = 1
        for length, stride in zip(reversed(shape), reversed(tensor.strides), strict=True):
            if length != 1 and stride != expected:
                raise BufferError(
                    f"the strides {tensor.strides} of the shape {shape} have gaps or another order "
                    "than C's; make the tensor contiguous first"
                )
            expected *= length
    return dtype, shape


def capsule(source: Any, **arguments: object) -> object:
    try:
        return source.__dlpack__(max_version=(1, 0), **arguments)
    except TypeError:
        # From before versions.
        return source.__dlpack__(**arguments)


def take_host(source: Any) -> _keel.DlpackTensor:
    return _keel.take_dlpack(capsule(source))


def adopt(
    source: Any,
    make: Callable[[_keel.Storage, tuple[int, ...], DType, bool], Array],
) -> Array | None:
    """An array over the source's memory; None if that is host memory."""
    kind, number = source.__dlpack_device__()
    if kind in _HOST_TYPES:
        return None
    driver = _DRIVERS.get(kind)
    if driver is None:
        raise BufferError(f"device ({kind}, {number}) of DLPack is none that Keel knows")
    from keel._stream import current_stream

    stream = current_stream(f"{driver}:{number}")
    # To ROCm the default stream is 0, to CUDA 1.
    handle = 0 if kind == _ROCM and stream.handle == 1 else stream.handle
    tensor = _keel.take_dlpack(capsule(source, stream=handle))
    dtype, shape = describe(tensor)
    storage = tensor.adopt(stream._raw, math.prod(shape) * dtype.itemsize)
    return make(storage, shape, dtype, tensor.read_only)
