"""Where other libraries' tensors are, without copying them or keeping them."""

from __future__ import annotations

import math
from typing import Any

from keel import _dlpack, _keel


def span_of(value: Any, device: str) -> tuple[int, int]:
    """Address and bytes of an object with ``__cuda_array_interface__`` or ``__dlpack__`` on the
    device. The caller keeps it alive and orders the work on it."""
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return _span_of_interface(interface)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _span_of_dlpack(value, device)
    raise TypeError(
        f"a buffer is a keel.Array, an address, (address, bytes), or a tensor with "
        f"__cuda_array_interface__ or __dlpack__, not {type(value).__name__}"
    )


def _span_of_interface(interface: dict[str, Any]) -> tuple[int, int]:
    shape = interface["shape"]
    itemsize = int(interface["typestr"][2:])
    strides = interface.get("strides")
    if strides is not None and math.prod(shape) > 1:
        expected = itemsize
        for length, stride in zip(reversed(shape), reversed(strides), strict=True):
            if length != 1 and stride != expected:
                raise BufferError(
                    f"the strides {strides} of the shape {shape} have gaps or another order than "
                    "C's; make the tensor contiguous first"
                )
            expected *= length
    return interface["data"][0], math.prod(shape) * itemsize


def _span_of_dlpack(value: Any, device: str) -> tuple[int, int]:
    found = tuple(value.__dlpack_device__())
    if found != _dlpack.device_of(device):
        raise BufferError(
            f"the tensor is on {found} of DLPack, the program on {device}, "
            f"{_dlpack.device_of(device)} of DLPack"
        )
    tensor = _keel.take_dlpack(_dlpack.capsule(value, stream=-1))
    dtype, shape = _dlpack.describe(tensor)
    return tensor.address, math.prod(shape) * dtype.itemsize
