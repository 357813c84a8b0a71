"""Programs of keel.graph: kernels, bindings, commands, and the functions that they call."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

from keel import _keel
from keel._array import Array, ShapeLike, _shape_of
from keel._dtypes import DType, DTypeLike, dtype_of
from keel._selection import DeviceLike, open_device
from keel._stream import Stream

Function = TypeVar("Function", bound="Callable[[Call], object]")

_READ, _WRITE, _BOTH = 1, 2, 3
_ACCESS = {"in": _READ, "out": _WRITE, "in-out": _BOTH, "scratch": _BOTH, "resident": _BOTH}
# Arguments of Executable.step.
_TAKEN = ("hold", "stream", "timeout")


# --- Kernels --------------------------------------------------------------------------------------


class Kernel:
    """A kernel of a device, from :class:`Module` or :meth:`borrow`."""

    __slots__ = ("_raw",)

    _raw: _keel.Kernel

    def __init__(self) -> None:
        raise TypeError("Module.kernel and Kernel.borrow make kernels")

    @classmethod
    def _of(cls, raw: _keel.Kernel) -> Kernel:
        self = cls.__new__(cls)
        self._raw = raw
        return self

    @classmethod
    def borrow(cls, handle: int, device: DeviceLike = None) -> Kernel:
        """One that somebody else loaded, by the handle of the device's own library. It must outlive
        the programs that use it."""
        return cls._of(_keel.borrow_kernel(open_device(device), handle))

    @property
    def handle(self) -> int:
        """What the device's own library calls it."""
        return self._raw.handle


class Module:
    """Kernels that were loaded: ``module["name"]``. Programs keep what their kernels need.

    ``source`` is an image in the device's own format, as bytes, or the path of a file with one.
    """

    __slots__ = ("_raw",)

    def __init__(self, source: bytes | str | os.PathLike[str], device: DeviceLike = None) -> None:
        opened = open_device(device)
        if isinstance(source, bytes):
            self._raw = _keel.load_module_image(opened, source)
        else:
            self._raw = _keel.load_module_file(opened, os.fspath(source))

    @classmethod
    def _of(cls, raw: _keel.Module) -> Module:
        self = cls.__new__(cls)
        self._raw = raw
        return self

    def kernel(self, name: str) -> Kernel:
        """NotFoundError if it has none of that name."""
        return Kernel._of(self._raw.find(name))

    __getitem__ = kernel


def standard_kernels(device: DeviceLike = None) -> Module:
    """The kernels that Keel brings for every device: ``keel_fill``, ``keel_add``, ``keel_axpy``,
    ``keel_matmul`` and others; ``keel/hal/standard_kernels.h`` has their arguments."""
    return Module._of(_keel.load_standard_module(open_device(device)))


def u32(value: int) -> bytes:
    """A value for a kernel, 32 bits without a sign; anything else with a buffer of up to 16 bytes
    (a NumPy scalar, an object of ctypes) is one as well."""
    return struct.pack("=I", value)


def u64(value: int) -> bytes:
    return struct.pack("=Q", value)


def i32(value: int) -> bytes:
    return struct.pack("=i", value)


def i64(value: int) -> bytes:
    return struct.pack("=q", value)


def f32(value: float) -> bytes:
    return struct.pack("=f", value)


def f64(value: float) -> bytes:
    return struct.pack("=d", value)


# --- Programs -------------------------------------------------------------------------------------


class Operand(NamedTuple):
    """A part of a binding, and what a command does with it; see :func:`read`, :func:`write` and
    :func:`read_write`. Where one is asked for, the name of a binding stands for all of it, with the
    access that it was declared with."""

    binding: str
    access: int
    offset: int = 0
    nbytes: int = 0
    """0: the rest of the binding."""


def read(binding: str, offset: int = 0, nbytes: int = 0) -> Operand:
    return Operand(binding, _READ, offset, nbytes)


def write(binding: str, offset: int = 0, nbytes: int = 0) -> Operand:
    return Operand(binding, _WRITE, offset, nbytes)


def read_write(binding: str, offset: int = 0, nbytes: int = 0) -> Operand:
    return Operand(binding, _BOTH, offset, nbytes)


OperandLike: TypeAlias = "str | Operand"


@dataclass(frozen=True)
class Binding:
    index: int
    nbytes: int
    shape: tuple[int, ...]
    dtype: DType
    access: str


class _View(NamedTuple):
    """What a function sees of a binding that it uses."""

    use: int
    nbytes: int
    shape: tuple[int, ...]
    dtype: DType


class Call:
    """What a traced or eager function is given. Valid during the call; so are its arrays."""

    __slots__ = ("_raw", "_stream", "_taken", "_views")

    def __init__(self, raw: _keel.TraceCall, views: dict[str, _View]) -> None:
        self._raw = raw
        self._views = views
        self._stream: Stream | None = None
        self._taken: list[Array] = []

    @property
    def stream(self) -> Stream:
        """Where the work goes; it is the current stream of the device during the call."""
        if self._stream is None:
            self._stream = Stream._of(self._raw.stream)
        return self._stream

    @property
    def handle(self) -> int:
        """The same stream, for the device's own library."""
        return self._raw.handle

    @property
    def capturing(self) -> bool:
        """False in an eager step, a warm-up for example. While it is captured nothing may wait for
        the stream, and what is replayed must not use memory that was allocated for the call: take a
        scratch binding."""
        return self._raw.capturing

    @property
    def addresses(self) -> list[int]:
        """Where the bindings are: those it reads, in order, then those it only writes."""
        return self._raw.addresses

    def address(self, name: str) -> int:
        return self._raw.addresses[self._view(name).use]

    def __getitem__(self, name: str) -> Array:
        """An array over the binding, of the shape and type that it was declared with."""
        view = self._view(name)
        array = Array._of(self._raw.view(view.use, view.nbytes), view.shape, view.dtype)
        self._taken.append(array)
        return array

    def _view(self, name: str) -> _View:
        view = self._views.get(name)
        if view is None:
            raise KeyError(
                f"this function does not use {name!r}; it uses {', '.join(self._views) or 'none'}"
            )
        return view

    def _end(self) -> None:
        for array in self._taken:
            array.close()


def _called(function: Callable[[Call], object], views: dict[str, _View]) -> _keel.Callback:
    def call(raw: _keel.TraceCall) -> object:
        context = Call(raw, views)
        try:
            with context.stream:
                return function(context)
        finally:
            context._end()

    return _keel.create_callback(call)


def _three(lengths: int | Sequence[int], what: str) -> list[int]:
    result = [lengths] if isinstance(lengths, int) else list(lengths)
    if not 1 <= len(result) <= 3:
        raise ValueError(f"a {what} has 1 to 3 lengths, not {len(result)}")
    return result + [1] * (3 - len(result))


class Program:
    """A list of commands over named bindings, for one device.

    Bindings and commands are added until the first :class:`Executable` is made of it; mistakes in
    commands are named then, or by :meth:`build`. Commands run in the order in which they were
    added, each after the one before.
    """

    __slots__ = ("__weakref__", "_bindings", "_builder", "_built", "_callbacks", "_device")

    def __init__(self, name: str, *, device: DeviceLike = None) -> None:
        self._device = open_device(device)
        self._builder = _keel.create_program_builder(self._device, name)
        self._built: _keel.Program | None = None
        self._bindings: dict[str, Binding] = {}
        # What is called belongs to this object: see python/ext/callback.h.
        self._callbacks: list[_keel.Callback] = []

    @property
    def device(self) -> str:
        return self._device.name

    def binding(
        self,
        name: str,
        nbytes: int | None = None,
        *,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        access: str = "in",
        policy: str = "auto",
    ) -> int:
        """Declare a binding: so many bytes, or an array of this shape and type. Its index.

        ``access``: ``"in"``, ``"out"``, ``"in-out"``, ``"scratch"``, ``"resident"``. ``policy``:
        ``"auto"``, ``"resident"``, ``"in-place"``, ``"copy"``, ``"patch"``, ``"remap"`` (of
        :class:`PhysicalMemory`), ``"retrace"``.
        """
        if name in _TAKEN:
            raise ValueError(f"{name!r} is an argument of Executable.step: choose another name")
        if name in self._bindings:
            raise ValueError(f"there is a binding {name!r} already")
        if (nbytes is None) == (shape is None):
            raise TypeError("a binding has either nbytes or a shape")
        kind = dtype_of("uint8" if dtype is None else dtype)
        if shape is None:
            assert nbytes is not None
            if nbytes % kind.itemsize:
                raise ValueError(f"{nbytes} bytes are no whole number of {kind.name}")
            lengths: tuple[int, ...] = (nbytes // kind.itemsize,)
        elif dtype is None:
            raise TypeError("a binding with a shape has a dtype as well")
        else:
            lengths = _shape_of(shape)
        size = math.prod(lengths) * kind.itemsize
        index = self._builder.bind(name, size, access, policy)
        self._bindings[name] = Binding(index, size, lengths, kind, access)
        return index

    def kernel(
        self,
        kernel: Kernel,
        *arguments: OperandLike | bytes | Any,
        grid: int | Sequence[int] = 1,
        block: int | Sequence[int] = 1,
        shared_memory: int = 0,
    ) -> None:
        """Launch a kernel. An argument is an operand, the name of a binding, or a value
        (:func:`u32`, ...)."""
        made = [self._argument(argument) for argument in arguments]
        self._builder.kernel(
            kernel._raw, _three(grid, "grid"), _three(block, "block"), shared_memory, made
        )

    def copy(self, destination: OperandLike, source: OperandLike) -> None:
        """Copy bytes; both are of the same size."""
        self._builder.copy(self._operand(destination), self._operand(source))

    def fill(self, destination: OperandLike, value: int, width: int = 1) -> None:
        """Write ``value``, ``width`` bytes wide (1, 2 or 4), all over it."""
        self._builder.fill(self._operand(destination), value, width)

    def call(self, function: Callable[[], object]) -> Callable[[], object]:
        """Call it on a thread of the driver's when the stream reaches it, as a decorator too.

        It must not call anything of a device, and does not run if the device is lost before. What
        it raises goes to ``sys.unraisablehook``.
        """
        callback = _keel.create_callback(function)
        self._builder.call(callback)
        self._callbacks.append(callback)
        return function

    def traced(
        self, *, reads: Iterable[str] = (), writes: Iterable[str] = (), name: str | None = None
    ) -> Callable[[Function], Function]:
        """A decorator for a function that puts a library's work on a stream, which is captured and
        becomes a part of the graph. It is given a :class:`Call`.

        What it raises comes out of the step that called it. It may be called again, for other
        addresses and other slots.
        """
        return self._function(self._builder.traced, reads, writes, name)

    def recorded(
        self, *, reads: Iterable[str] = (), writes: Iterable[str] = (), name: str | None = None
    ) -> Callable[[Function], Function]:
        """As :meth:`traced`, for a library that makes graphs by itself.

        While ``call.capturing`` the function puts nothing on the stream and returns, as a number,
        the library's graph for these addresses. It is copied at once, and stays the function's;
        what it works with must live as long as the executable. In an eager step it puts the work on
        the stream.
        """
        return self._function(self._builder.recorded, reads, writes, name)

    def eager(
        self, *, reads: Iterable[str] = (), writes: Iterable[str] = (), name: str | None = None
    ) -> Callable[[Function], Function]:
        """As :meth:`traced`, for work that cannot be captured: called in every step, between two
        graphs."""
        return self._function(self._builder.eager, reads, writes, name)

    def build(self) -> None:
        """Nothing is added any more, and what is wrong with it is said: InvalidArgumentError with
        the number of the command. Executable does so too; again: nothing."""
        self._program()

    @property
    def scratch_bytes(self) -> int:
        """What its scratch bindings take of a :class:`ScratchArena`. Builds it."""
        return self._program().scratch_bytes

    # --- For this module ---

    def _program(self) -> _keel.Program:
        if self._built is None:
            self._built = self._builder.build()
        return self._built

    def _find(self, name: str) -> Binding:
        found = self._bindings.get(name)
        if found is None:
            raise ValueError(
                f"there is no binding {name!r}; there are: {', '.join(self._bindings) or 'none'}"
            )
        return found

    def _operand(self, operand: OperandLike) -> tuple[int, int, int, int]:
        if isinstance(operand, str):
            found = self._find(operand)
            return found.index, _ACCESS[found.access], 0, 0
        if not isinstance(operand, Operand):
            raise TypeError(
                f"an operand is the name of a binding, or keel.graph.read, write or read_write of "
                f"one, not {type(operand).__name__}"
            )
        found = self._find(operand.binding)
        return found.index, operand.access, operand.offset, operand.nbytes

    def _argument(self, argument: Any) -> tuple[int, int, int, int] | bytes:
        if isinstance(argument, (str, Operand)):
            return self._operand(argument)
        if isinstance(argument, (int, float)) and not hasattr(argument, "dtype"):
            raise TypeError(
                f"how wide is {argument!r}? Say keel.graph.u32, u64, i32, i64, f32 or f64 of it"
            )
        return bytes(memoryview(argument).cast("B"))

    def _function(
        self,
        add: Callable[[str, list[tuple[int, int, int, int]], _keel.Callback], None],
        reads: Iterable[str],
        writes: Iterable[str],
        name: str | None,
    ) -> Callable[[Function], Function]:
        read_names = [reads] if isinstance(reads, str) else list(reads)
        write_names = [writes] if isinstance(writes, str) else list(writes)
        uses: list[tuple[int, int, int, int]] = []
        views: dict[str, _View] = {}
        for each in dict.fromkeys([*read_names, *write_names]):
            found = self._find(each)
            access = _READ * (each in read_names) | _WRITE * (each in write_names)
            views[each] = _View(len(uses), found.nbytes, found.shape, found.dtype)
            uses.append((found.index, access, 0, 0))

        def add_it(function: Function) -> Function:
            label = getattr(function, "__name__", "function") if name is None else name
            callback = _called(function, views)
            add(label, uses, callback)
            self._callbacks.append(callback)
            return function

        return add_it
