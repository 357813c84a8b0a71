"""Arrays in device memory."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from keel import _dlpack, _keel
from keel._dtypes import DType, DTypeLike, dtype_of, dtype_of_format
from keel._selection import DeviceLike
from keel._stream import Stream, stream_of
from keel.memory import current_tag

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import CapsuleType

ShapeLike: TypeAlias = "int | Iterable[int]"

_MOST_BYTES = 2**63 - 1


class Array:
    """An array in the memory of a device, without gaps, in C's order.

    It owns its memory, which comes from the allocator that the whole process shares, and gives it
    back when :meth:`close` is called, at the end of a ``with``, or when nothing refers to it.
    Memory that was handed on by DLPack lives until the receiver lets go as well.

    An array belongs to a stream: copies are queued there, and the memory is reused in its order.
    Name other streams that work with it by :meth:`record_stream`.

    Make one with :func:`keel.empty`, :func:`keel.zeros`, :func:`keel.from_numpy` or
    :func:`keel.from_dlpack`. Threads may share one, as far as the copies that they make agree.
    """

    __slots__ = ("__weakref__", "_dtype", "_read_only", "_shape", "_storage")

    _storage: _keel.Storage
    _shape: tuple[int, ...]
    _dtype: DType
    _read_only: bool

    def __init__(self) -> None:
        raise TypeError("keel.empty, zeros, from_numpy and from_dlpack make arrays")

    @classmethod
    def _of(
        cls,
        storage: _keel.Storage,
        shape: tuple[int, ...],
        dtype: DType,
        read_only: bool = False,
    ) -> Array:
        self = cls.__new__(cls)
        self._storage = storage
        self._shape = shape
        self._dtype = dtype
        self._read_only = read_only
        return self

    # --- What it is ---

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> str:
        """The name of the elements' type, which equals NumPy's type of that name."""
        return self._dtype.name

    @property
    def itemsize(self) -> int:
        return self._dtype.itemsize

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def size(self) -> int:
        """How many elements."""
        return math.prod(self._shape)

    @property
    def nbytes(self) -> int:
        return self.size * self._dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes."""
        strides = [self._dtype.itemsize] * self.ndim
        for axis in range(self.ndim - 1, 0, -1):
            strides[axis - 1] = strides[axis] * self._shape[axis]
        return tuple(strides)

    @property
    def device(self) -> str:
        return self._storage.stream.device_name

    @property
    def stream(self) -> Stream:
        return Stream._of(self._storage.stream)

    @property
    def address(self) -> int:
        """Where it is on the device, which the host cannot read; 0 if it has no elements."""
        return self._storage.address

    @property
    def read_only(self) -> bool:
        """Whether it is memory of another library's that must not be written, as JAX's is."""
        return self._read_only

    @property
    def closed(self) -> bool:
        return self._storage.closed

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("an array without dimensions has no len()")
        return self._shape[0]

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"on {self.device}"
        return f"<keel.Array {self.dtype} {self._shape} {where}>"

    # --- Copies ---

    def copy_from(self, source: object) -> None:
        """Fill it from an array of the same type and shape: a keel.Array, of any device of the
        driver, a NumPy array, or anything with a buffer. ``bytes`` and ``bytearray`` are taken as
        they are, if there are as many.

        From the host: when it returns the source may be changed. From a device: it is queued.
        """
        if self._read_only:
            raise ValueError("this array is another library's memory, which it lets nobody write")
        if isinstance(source, Array):
            self._check(source._dtype, source._shape, "copy from")
            self._storage.copy_from(source._storage)
            return
        buffer, dtype, shape = _host_buffer(source)
        if dtype is not None:
            self._check(dtype, shape, "copy from")
        self._storage.copy_from_host(buffer)

    def copy_to(self, destination: object) -> None:
        """Write it into a keel.Array, a NumPy array or a buffer that can be written; see
        :meth:`copy_from`. In host memory everything is there when it returns."""
        if isinstance(destination, Array):
            destination.copy_from(self)
            return
        if _is_numpy(destination):
            self._copy_to_numpy(destination)
            return
        if not isinstance(destination, bytearray):
            view = memoryview(destination)  # type: ignore[arg-type]
            if view.readonly:
                raise ValueError(f"this {type(destination).__name__} cannot be written to")
            self._check(
                dtype_of_format(view.format, view.itemsize), _shape_of_view(view), "copy to"
            )
        self._storage.copy_to_host(destination)

    def _copy_to_numpy(self, destination: Any) -> None:
        self._check(dtype_of(destination.dtype), destination.shape, "copy to")
        if not destination.flags.writeable:
            raise ValueError("this NumPy array cannot be written to")
        if destination.flags.c_contiguous:
            self._storage.copy_to_host(_bytes_of(destination))
        else:
            destination[...] = self.numpy()

    def _check(self, dtype: DType, shape: tuple[int, ...], what: str) -> None:
        if dtype != self._dtype:
            raise TypeError(f"cannot {what} elements of {dtype.name}: the array has {self.dtype}")
        if tuple(shape) != self._shape:
            raise ValueError(f"cannot {what} the shape {tuple(shape)}: the array has {self._shape}")

    def numpy(self) -> npt.NDArray[Any]:
        """A copy as a NumPy array, from any device."""
        import numpy as np

        result = np.empty(self._shape, _numpy_dtype(self._dtype))
        self._storage.copy_to_host(_bytes_of(result))
        return result

    def tobytes(self) -> bytes:
        """A copy as bytes."""
        result = bytearray(self.nbytes)
        self._storage.copy_to_host(result)
        return bytes(result)

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("an array of a device cannot become a NumPy array without a copy")
        result = self.numpy()
        return result if dtype is None else result.astype(dtype, copy=False)

    # --- For other libraries ---

    def record_stream(self, stream: Stream) -> None:
        """Another stream of the device works with the memory, now or before it is given back: it is
        then kept until that work is done."""
        self._storage.record_use(stream._raw)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _dlpack.device_of(self.device)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """A capsule for ``from_dlpack`` of other libraries.

        They share the memory where the device is one that they know. Where it is not, as with the
        simulated device, BufferError says so, unless a copy in host memory is asked for, as
        ``numpy.from_dlpack(array, device="cpu")`` does.
        """
        versioned = max_version is not None and max_version[0] >= 1
        storage = self._storage
        target = _dlpack.export_target(self.device, dl_device, copy)
        read_only = self._read_only and target != _dlpack.HOST and not copy
        if read_only and not versioned:
            raise BufferError(
                "the array is read-only, which only a consumer of DLPack 1.0 or later can be told;"
                " ask for a copy"
            )
        if target != _dlpack.HOST:
            if copy:
                fresh = _allocate(self._shape, self._dtype, self.stream, "")
                fresh.copy_from(self)
                storage = fresh._storage
            _dlpack.order_for_consumer(storage, self.device, stream)
        return _keel.dlpack_capsule(
            storage,
            list(self._shape),
            self._dtype.code,
            8 * self._dtype.itemsize,
            *target,
            versioned,
            read_only,
        )

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if not self.device.startswith("cuda:"):
            raise AttributeError(f"an array on {self.device} has no __cuda_array_interface__")
        if not self._dtype.typestr:
            raise AttributeError(f"__cuda_array_interface__ cannot describe {self.dtype}")
        return {
            "shape": self._shape,
            "typestr": self._dtype.typestr,
            "data": (self.address, self._read_only),
            "strides": None,
            "stream": self._storage.stream.handle,
            "version": 3,
        }

    # --- The end ---

    def close(self) -> None:
        """Give the memory back, in the order of the stream. Again: nothing."""
        self._storage.close()

    def __enter__(self) -> Array:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


# --- Making arrays --------------------------------------------------------------------------------


def _shape_of(shape: ShapeLike) -> tuple[int, ...]:
    try:
        lengths: Iterable[Any] = (shape,) if hasattr(shape, "__index__") else shape
        result = tuple(operator.index(length) for length in lengths)
    except TypeError:
        raise TypeError(f"a shape is a number or several, not {shape!r}") from None
    if any(length < 0 for length in result):
        raise ValueError(f"a shape has no negative lengths: {result}")
    return result


def _allocate(shape: tuple[int, ...], dtype: DType, stream: Stream, tag: str) -> Array:
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes > _MOST_BYTES:
        raise ValueError(f"{shape} elements of {dtype.name} are more than addresses can count")
    return Array._of(_keel.allocate(stream._raw, nbytes, tag), shape, dtype)


def empty(
    shape: ShapeLike,
    dtype: DTypeLike = "float32",
    *,
    device: DeviceLike = None,
    stream: Stream | None = None,
    tag: str | None = None,
) -> Array:
    """An array with whatever was there before.

    It belongs to ``stream``, else to the current stream of ``device``. ``tag`` says what it is for,
    in statistics and histories; None: what :func:`keel.memory.tag` says.
    """
    chosen = stream_of(stream, device)
    label = current_tag() if tag is None else tag
    return _allocate(_shape_of(shape), dtype_of(dtype), chosen, label)


def zeros(
    shape: ShapeLike,
    dtype: DTypeLike = "float32",
    *,
    device: DeviceLike = None,
    stream: Stream | None = None,
    tag: str | None = None,
) -> Array:
    """An array of zeros, written by the device; see :func:`empty`."""
    array = empty(shape, dtype, device=device, stream=stream, tag=tag)
    array._storage.clear()
    return array


def from_numpy(
    source: object,
    *,
    device: DeviceLike = None,
    stream: Stream | None = None,
    tag: str | None = None,
) -> Array:
    """A copy, on a device, of a NumPy array or of anything with a buffer; see :func:`empty`."""
    buffer, dtype, shape = _host_buffer(source)
    if dtype is None:
        dtype, shape = dtype_of("uint8"), (len(buffer),)
    array = empty(shape, dtype.name, device=device, stream=stream, tag=tag)
    array._storage.copy_from_host(buffer)
    return array


def from_dlpack(
    source: Any,
    *,
    device: DeviceLike = None,
    copy: bool | None = None,
    stream: Stream | None = None,
    tag: str | None = None,
) -> Array:
    """An array over the memory of another library's, or of another keel.Array's; no copy is made
    where the two are on the same device.

    What is in host memory is copied, to ``device`` or the current one. ``copy=True`` copies in any
    case; ``copy=False`` raises BufferError where a copy would be needed.
    """
    shared: Array | None
    if isinstance(source, Array):
        shared = Array._of(source._storage.share(), source._shape, source._dtype, source._read_only)
    else:
        if not (hasattr(source, "__dlpack__") and hasattr(source, "__dlpack_device__")):
            raise TypeError(f"{type(source).__name__} has no __dlpack__")
        shared = _dlpack.adopt(source, Array._of)
    if shared is None:
        if copy is False:
            raise BufferError("host memory must be copied to a device, and copy is False")
        tensor = _dlpack.take_host(source)
        dtype, shape = _dlpack.describe(tensor)
        result = empty(shape, dtype.name, device=device, stream=stream, tag=tag)
        tensor.copy_into(result._storage)
        return result
    target = stream_of(stream, shared.device if device is None else device)
    if copy is not True and target.device == shared.device:
        return shared
    if copy is False:
        raise BufferError(f"from {shared.device} to {target.device} is a copy, and copy is False")
    result = _allocate(shared._shape, shared._dtype, target, current_tag() if tag is None else tag)
    result.copy_from(shared)
    return result


# --- Host memory ----------------------------------------------------------------------------------


def _is_numpy(value: object) -> bool:
    return hasattr(value, "__array_interface__") and hasattr(value, "dtype")


def _host_buffer(source: object) -> tuple[Any, DType | None, tuple[int, ...]]:
    """Bytes in a row, their type and shape. No type: just bytes."""
    if _is_numpy(source):
        import numpy as np

        array: Any = source
        dtype = dtype_of(array.dtype)
        return _bytes_of(np.ascontiguousarray(array)), dtype, tuple(array.shape)
    if isinstance(source, (bytes, bytearray)):
        return source, None, (len(source),)
    try:
        view = memoryview(source)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"{type(source).__name__} has no buffer; a keel.Array, a NumPy array and bytes have"
        ) from None
    dtype = dtype_of_format(view.format, view.itemsize)
    return (view if view.c_contiguous else view.tobytes()), dtype, _shape_of_view(view)


def _shape_of_view(view: memoryview) -> tuple[int, ...]:
    return tuple(view.shape or ())


def _bytes_of(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """The same memory as bytes: not every type of NumPy's has a buffer, bfloat16 has none."""
    import numpy as np

    return array.reshape(-1).view(np.uint8)


def _numpy_dtype(dtype: DType) -> Any:
    if dtype.typestr:
        return dtype.typestr
    try:
        import ml_dtypes  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise TypeError(
            f"NumPy has no {dtype.name} without the package ml_dtypes; tobytes() gives the bytes"
        ) from None
    return getattr(ml_dtypes, dtype.name)
