"""Functions of Python's that the workers of keel.task call."""

from __future__ import annotations

import contextlib
import math
import struct
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from keel import _keel
from keel._array import Array
from keel._dtypes import DTYPES, DType
from keel._program import _three
from keel._stream import Stream
from keel._task_arguments import In, InOut, Out
from keel.errors import Error

_TAGS: dict[int, type[In]] = {kind.tag: kind for kind in (In, Out, InOut)}
_FORMATS = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}


class Tensor:
    """A tensor of a call, on the worker's device by now. Valid during the call; so are its
    arrays."""

    __slots__ = ("_call", "_dtype", "address", "shape", "tag")

    _call: Call
    _dtype: DType
    address: int
    """Where it is on the device."""
    shape: tuple[int, ...]
    tag: type[In]
    """In, Out or InOut."""

    def __init__(
        self, call: Call, tag: int, address: int, shape: tuple[int, ...], dtype: str
    ) -> None:
        self._call = call
        self._dtype = DTYPES[dtype]
        self.address = address
        self.shape = shape
        self.tag = _TAGS[tag]

    @property
    def dtype(self) -> str:
        return self._dtype.name

    @property
    def size(self) -> int:
        """How many elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self._dtype.itemsize

    def array(self) -> Array:
        """A keel.Array over it, on the call's stream: for copies, and for other libraries."""
        return self._call._array(self.address, self.shape, self._dtype)

    def numpy(self) -> Any:
        """A copy as a NumPy array."""
        return self.array().numpy()

    def copy_from(self, source: object) -> None:
        """Fill it from an array on the host, or on the device."""
        self.array().copy_from(source)


class Call:
    """What a function is called with, for each task, in the worker's thread."""

    __slots__ = ("_kernels", "_raw", "_taken", "scalars", "stream", "tensors")

    tensors: tuple[Tensor, ...]
    scalars: tuple[int, ...]
    """By their 64 bits; see :meth:`scalar`."""
    stream: Stream
    """Where the work goes, and the current stream of the device during the call. The task ends
    when it is done."""

    def __init__(self, raw: _keel.TaskCall, kernels: dict[str, int]) -> None:
        self._raw = raw
        self._kernels = kernels
        self._taken: list[Array] = []
        self.tensors = tuple(Tensor(self, *tensor) for tensor in raw.tensors)
        self.scalars = tuple(raw.scalars)
        self.stream = Stream._of(raw.stream)

    @property
    def device(self) -> str:
        return self.stream.device

    @property
    def handle(self) -> int:
        """The stream, for the device's own library."""
        return self.stream.handle

    def __len__(self) -> int:
        return len(self.tensors)

    def __getitem__(self, index: int) -> Tensor:
        return self.tensors[index]

    def scalar(self, index: int, dtype: str = "int64") -> Any:
        """A scalar as a value of this type."""
        letter = _FORMATS.get(dtype)
        if letter is None:
            raise TypeError(f"a scalar is no {dtype}; it is one of {', '.join(_FORMATS)}")
        return struct.unpack_from("<" + letter, self.scalars[index].to_bytes(8, "little"))[0]

    def launch(
        self,
        kernel: int | str,
        *arguments: Tensor | In | bytes,
        grid: int | Sequence[int] = 1,
        block: int | Sequence[int] = 1,
        shared_memory: int = 0,
    ) -> None:
        """Launch a kernel that the function was registered with, by its number or its name.

        An argument is a tensor, with the access of its tag unless ``In``, ``Out`` or ``InOut``
        says otherwise, or a value (:func:`keel.task.f32`, ...). A launch that was refused makes
        the task fail even if the function goes on.
        """
        try:
            self._raw.launch(
                self._number(kernel),
                _three(grid, "grid"),
                _three(block, "block"),
                shared_memory,
                [self._launched(argument) for argument in arguments],
            )
        except Exception as error:
            # The task fails, also if the function goes on; unless the call is over.
            with contextlib.suppress(Error):
                self._raw.refuse(*describe(error))
            raise

    # --- For this module ---

    def _number(self, kernel: int | str) -> int:
        if not isinstance(kernel, str):
            return kernel
        number = self._kernels.get(kernel)
        if number is None:
            names = ", ".join(self._kernels) or "none"
            raise KeyError(f"the function has no kernel {kernel!r}; it has {names}")
        return number

    def _launched(self, argument: Any) -> tuple[int, int, int] | bytes:
        tag = None
        if isinstance(argument, In):
            tag, argument = argument.tag, argument.value
            if not isinstance(argument, Tensor):
                raise TypeError("a kernel works with tensors of the call")
        if isinstance(argument, Tensor):
            if argument._call is not self:
                raise ValueError("this tensor is of another call")
            return argument.tag.tag if tag is None else tag, argument.address, argument.nbytes
        if isinstance(argument, (int, float)) and not hasattr(argument, "dtype"):
            raise TypeError(
                f"how wide is {argument!r}? Say keel.task.u32, u64, i32, i64, f32 or f64 of it"
            )
        return bytes(memoryview(argument).cast("B"))

    def _array(self, address: int, shape: tuple[int, ...], dtype: DType) -> Array:
        nbytes = math.prod(shape) * dtype.itemsize
        array = Array._of(self._raw.view(address, nbytes), shape, dtype)
        self._taken.append(array)
        return array

    def _end(self) -> None:
        for array in self._taken:
            array.close()


def describe(error: BaseException) -> tuple[str, str]:
    """The name of a status code, and what to say: the type, the text, and where it was raised."""
    code = error.code if isinstance(error, Error) else "UNKNOWN"
    text = f"it raised {type(error).__name__}"
    try:
        said = str(error)
    except Exception:
        said = ""
    if said:
        text += f": {said}"
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        text += f" ({frames[-1].filename}, line {frames[-1].lineno})"
    # Half of a pair of surrogates has no encoding.
    return code, text.encode("utf-8", "replace").decode()


def called(function: Callable[[Call], object], kernels: Sequence[str]) -> _keel.Callback:
    """What a worker calls; see python/ext/task.h."""
    numbers = {name: number for number, name in enumerate(kernels)}

    def call(raw: _keel.TaskCall) -> tuple[str, str] | None:
        try:
            context = Call(raw, numbers)
            try:
                with context.stream:
                    function(context)
            finally:
                context._end()
        except BaseException as error:
            return describe(error)
        return None

    return _keel.create_callback(call)
