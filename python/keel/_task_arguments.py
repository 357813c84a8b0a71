"""Arguments of keel.task: tagged arrays, scalars, and memory on a worker."""

from __future__ import annotations

import contextlib
import math
import operator
import struct
import sys
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from keel import _dlpack, _keel
from keel._array import _bytes_of, _is_numpy, _numpy_dtype, _shape_of_view
from keel._dtypes import DTYPES, DType, dtype_of, dtype_of_format
from keel.errors import Error

if TYPE_CHECKING:
    import numpy.typing as npt

    from keel.task import Orchestrator

# (tag, address, shape, type, block), as the extension takes it; the block is 0 on the host.
RawTensor: TypeAlias = "tuple[int, int, list[int], str, int]"
RawArguments: TypeAlias = "tuple[list[RawTensor], list[int]]"


class In:
    """A tensor that the task reads."""

    __slots__ = ("value",)

    tag = 1
    value: Any

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"


class Out(In):
    """A tensor that the task writes; what was in it before does not matter."""

    __slots__ = ()

    tag = 2


class InOut(In):
    """A tensor that the task reads and writes."""

    __slots__ = ()

    tag = 3


class Host(NamedTuple):
    """An array on the host, and what keeps its memory in place."""

    address: int
    nbytes: int
    shape: tuple[int, ...]
    dtype: DType
    keeps: object


def host_of(value: Any, writes: bool) -> Host:
    """A NumPy array, a tensor of DLPack on the host, or anything with a buffer. What is read may
    have gaps, and is copied then."""
    if _is_numpy(value):
        return _host_of_numpy(value, writes)
    if not isinstance(value, (bytes, bytearray)) and hasattr(value, "__dlpack_device__"):
        return _host_of_dlpack(value, writes)
    try:
        view = memoryview(value)
    except TypeError:
        raise TypeError(
            f"a tensor is a NumPy array, another library's tensor on the host, anything with a "
            f"buffer, or memory on a worker, not {type(value).__name__}"
        ) from None
    dtype = dtype_of_format(view.format, view.itemsize)
    shape = _shape_of_view(view)
    if not view.c_contiguous:
        if writes:
            raise ValueError("what a task writes has no gaps, and is in C's order")
        held = _keel.hold_buffer(view.tobytes(), False)
    elif writes and view.readonly:
        raise ValueError(f"this {type(value).__name__} cannot be written to")
    else:
        held = _keel.hold_buffer(value, writes)
    return Host(held.address, held.size, shape, dtype, held)


def _host_of_numpy(array: Any, writes: bool) -> Host:
    import numpy as np

    dtype = dtype_of(array.dtype)
    if writes and not array.flags.writeable:
        raise ValueError("this NumPy array cannot be written to")
    if not array.flags.c_contiguous:
        if writes:
            raise ValueError("what a task writes has no gaps, and is in C's order")
        array = np.ascontiguousarray(array)
    held = _keel.hold_buffer(_bytes_of(array), writes)
    return Host(held.address, held.size, tuple(array.shape), dtype, held)


def _host_of_dlpack(value: Any, writes: bool) -> Host:
    if value.__dlpack_device__()[0] not in _dlpack._HOST_TYPES:
        raise TypeError(
            f"this {type(value).__name__} is on a device: name it with "
            "Orchestrator.register_memory(worker, array), and pass what that returns"
        )
    tensor = _dlpack.take_host(value)
    if writes and tensor.read_only:
        raise ValueError(f"this {type(value).__name__} cannot be written to")
    dtype, shape = _dlpack.describe(tensor)
    return Host(tensor.address, math.prod(shape) * dtype.itemsize, shape, dtype, tensor)


def foreign_of(value: Any) -> tuple[DType, tuple[int, ...], bool]:
    """Type and shape of another library's tensor on a device, and whether it must not be
    written."""
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is None:
        tensor = _keel.take_dlpack(_dlpack.capsule(value, stream=-1))
        return (*_dlpack.describe(tensor), tensor.read_only)
    for dtype in DTYPES.values():
        if dtype.typestr == interface["typestr"]:
            return dtype, tuple(interface["shape"]), bool(interface["data"][1])
    raise TypeError(f"elements of {interface['typestr']!r} cannot be in a tensor")


# --- Memory on a worker ---------------------------------------------------------------------------

# After these the block is not there any more; after other errors it can be freed again.
_GONE = ("CANCELLED", "DEADLINE_EXCEEDED", "INVALID_ARGUMENT", "UNAVAILABLE")


class Resident:
    """An array on a worker: which one, where, of what shape and type. Contiguous, in C's order.

    From :meth:`Orchestrator.malloc`, :meth:`Orchestrator.upload` or
    :meth:`Orchestrator.register_memory`. A slice of it, ``a[2:5]``, is a view of the same memory.
    Memory that was allocated is given back by :meth:`free`, at the end of a ``with``, or when
    nothing refers to it; tasks that were submitted with it have it until they are done.
    """

    __slots__ = (
        "__weakref__",
        "_address",
        "_base",
        "_block",
        "_dtype",
        "_orchestrator",
        "_owned",
        "_read_only",
        "_registered",
        "_shape",
        "_worker",
    )

    _orchestrator: Orchestrator
    _worker: int
    _address: int
    _block: int
    """Which one; after a loss another one may have the address."""
    _shape: tuple[int, ...]
    _dtype: DType
    _base: Resident | None
    _registered: bool
    _read_only: bool
    _owned: list[int]
    """The block, until one thread takes it out to free it."""

    def __init__(self) -> None:
        raise TypeError("Orchestrator.malloc, upload and register_memory make these")

    @classmethod
    def _of(
        cls,
        orchestrator: Orchestrator,
        worker: int,
        address: int,
        block: int,
        shape: tuple[int, ...],
        dtype: DType,
        *,
        base: Resident | None = None,
        registered: bool = False,
        read_only: bool = False,
    ) -> Resident:
        self = cls.__new__(cls)
        self._orchestrator = orchestrator
        self._worker = worker
        self._address = address
        self._block = block
        self._shape = shape
        self._dtype = dtype
        self._base = base
        self._registered = registered
        self._read_only = read_only
        self._owned = [block] if base is None else []
        return self

    @property
    def worker(self) -> int:
        return self._worker

    @property
    def address(self) -> int:
        """Where it is on the worker's device. Another worker may have the same address."""
        return self._address

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> str:
        return self._dtype.name

    @property
    def nbytes(self) -> int:
        return math.prod(self._shape) * self._dtype.itemsize

    @property
    def read_only(self) -> bool:
        """Whether it is memory of another library's that must not be written."""
        return self._read_only

    @property
    def freed(self) -> bool:
        return not self._owned if self._base is None else self._base.freed

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("an array without dimensions has no len()")
        return self._shape[0]

    def __getitem__(self, key: slice) -> Resident:
        if not isinstance(key, slice) or not self._shape:
            raise TypeError("memory on a worker is sliced along its first dimension: a[2:5]")
        start, stop, step = key.indices(self._shape[0])
        if step != 1:
            raise ValueError("a view has no gaps: the step of a slice is 1")
        stop = max(start, stop)
        row = math.prod(self._shape[1:]) * self._dtype.itemsize
        return Resident._of(
            self._orchestrator,
            self._worker,
            self._address + start * row,
            self._block,
            (stop - start, *self._shape[1:]),
            self._dtype,
            base=self if self._base is None else self._base,
            read_only=self._read_only,
        )

    def __repr__(self) -> str:
        where = "freed" if self.freed else f"on worker {self._worker} at {self._address:#x}"
        return f"<keel.task.Resident {self.dtype} {self._shape} {where}>"

    def copy_from(self, source: Any) -> None:
        """Fill it from an array on the host of the same type and shape, or from as many bytes; see
        :meth:`Orchestrator.copy_to`."""
        self._orchestrator.copy_to(self, source)

    def numpy(self) -> npt.NDArray[Any]:
        """A copy as a NumPy array."""
        import numpy as np

        result = np.empty(self._shape, _numpy_dtype(self._dtype))
        self._orchestrator.copy_from(self, result)
        return result

    def free(self) -> None:
        """Give the memory back, when the tasks that were submitted with it are done; of registered
        memory: Orchestrator.unregister_memory. Again: nothing. UnavailableError if it was lost
        with its worker; then it counts as freed."""
        if self._base is not None:
            raise ValueError("this is a view: free the array that it was made of")
        try:
            block = self._owned.pop()
        except IndexError:
            return
        raw = self._orchestrator._raw
        try:
            if self._registered:
                raw.unregister_memory(self._worker, self._address, block)
            else:
                raw.free(self._worker, self._address, block)
        except BaseException as error:
            if not isinstance(error, Error) or error.code not in _GONE:
                self._owned.append(block)
            raise
        finally:
            if not self._owned:
                self._orchestrator._foreign.pop(block, None)

    def __enter__(self) -> Resident:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.free()

    def __del__(self) -> None:
        # Of one that was never made there is nothing. What is registered stays so.
        if not getattr(self, "_owned", None) or self._registered:
            return
        # The worker is lost, or the orchestrator closed: it is gone.
        with contextlib.suppress(Exception):
            self.free()


# --- What a task is called with -------------------------------------------------------------------


def scalar_of(value: Any) -> int:
    """64 bits. An int or a float has all of them; of bytes (keel.task.f32, ...) and of NumPy's
    scalars the rest is 0."""
    if _is_numpy_scalar(value):
        value = value.tobytes()
    if isinstance(value, bytes):
        if not 1 <= len(value) <= 8:
            raise ValueError(f"a scalar has 1 to 8 bytes, not {len(value)}")
        return int.from_bytes(value.ljust(8, b"\0"), "little")
    if isinstance(value, float):
        return int.from_bytes(struct.pack("<d", value), "little")
    number = operator.index(value)
    if not -(2**63) <= number < 2**64:
        raise ValueError(f"{number} has more than 64 bits")
    return number % 2**64


def _is_numpy_scalar(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (int, float, bytes)) or _is_numpy_scalar(value)


class Arguments(NamedTuple):
    raw: RawArguments
    keeps: tuple[object, ...]
    """What the task has until it is done."""
    written: tuple[Any, ...]
    """As they were given."""


def arguments_of(orchestrator: Orchestrator, arguments: Iterable[Any]) -> Arguments:
    """Tensors and scalars, each in its order."""
    tensors: list[RawTensor] = []
    scalars: list[int] = []
    keeps: list[object] = []
    written: list[Any] = []
    for argument in arguments:
        if not isinstance(argument, In):
            if _is_scalar(argument):
                scalars.append(scalar_of(argument))
                continue
            argument = In(argument)
        value, writes = argument.value, argument.tag != In.tag
        if writes:
            written.append(value)
        if isinstance(value, Resident):
            if value._orchestrator is not orchestrator:
                raise ValueError(f"argument {len(tensors)} is of another orchestrator")
            if value.freed:
                raise ValueError(f"argument {len(tensors)} was freed")
            if writes and value.read_only:
                raise ValueError(f"argument {len(tensors)} cannot be written to")
            shape = list(value.shape)
            tensors.append((argument.tag, value.address, shape, value.dtype, value._block))
            keeps.append(value)
            continue
        host = host_of(value, writes)
        address = host.address if host.nbytes else 0
        tensors.append((argument.tag, address, list(host.shape), host.dtype.name, 0))
        keeps.append(host.keeps)
    return Arguments((tensors, scalars), tuple(keeps), tuple(written))
