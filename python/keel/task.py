"""Tasks: devices as workers.

    from keel import task

    with task.Orchestrator(["sim:0", "sim:1"]) as orchestrator:

        @orchestrator.callable(kernels=["keel_axpy"])
        def axpy(call):
            x, y = call.tensors
            call.launch("keel_axpy", x, y, task.f32(call.scalar(0, "float32")), task.u64(y.size))

        weights = orchestrator.upload(1, host_weights)  # stays on worker 1
        done = orchestrator.submit(axpy, task.In(weights), task.InOut(y), task.f32(2.0))
        done.wait()

The order of tasks follows from what they read and write. docs/tasks.md explains workers, resident
tensors, callables and failure.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import operator
import os
import time
import weakref
from collections import deque
from collections.abc import Callable as Function
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, overload

from keel import _keel
from keel._array import Array, ShapeLike, _shape_of
from keel._dtypes import DTypeLike, dtype_of
from keel._program import f32, f64, i32, i64, u32, u64
from keel._selection import DeviceLike, name_of
from keel._spans import span_of
from keel._task_arguments import (
    Arguments,
    In,
    InOut,
    Out,
    Resident,
    arguments_of,
    foreign_of,
    host_of,
)
from keel._task_call import Call, Tensor, called
from keel._task_image import Image
from keel.errors import Error, UnsupportedError

__all__ = [
    "Call",
    "Callable",
    "Image",
    "In",
    "InOut",
    "Orchestrator",
    "Out",
    "Resident",
    "Scope",
    "Task",
    "Tensor",
    "WorkerReport",
    "f32",
    "f64",
    "i32",
    "i64",
    "u32",
    "u64",
]

# --- Callables ------------------------------------------------------------------------------------


class Callable:
    """What was registered with an orchestrator, until it is unregistered or nothing refers to it.
    Called with arguments, it submits a task: ``axpy(In(x), InOut(y), f32(2.0), worker=1)``."""

    __slots__ = ("__weakref__", "_callback", "_id", "_orchestrator", "name")

    name: str

    def __init__(
        self, orchestrator: Orchestrator, number: int, name: str, callback: _keel.Callback | None
    ) -> None:
        self._orchestrator = orchestrator
        self._id = number
        # The function belongs to this object, and to the tasks: see python/ext/callback.h.
        self._callback = callback
        self.name = name

    def __call__(
        self, *arguments: Any, worker: int | None = None, timeout: float | None = None
    ) -> Task:
        return self._orchestrator.submit(self, *arguments, worker=worker, timeout=timeout)

    def unregister(self) -> None:
        """Tasks that were submitted with it still run. Again: NotFoundError."""
        self._orchestrator.unregister(self)

    def __del__(self) -> None:
        # Unregistered before, or gone with its orchestrator.
        with contextlib.suppress(Exception):
            self._orchestrator._raw.unregister(self._id)

    def __repr__(self) -> str:
        return f"<keel.task.Callable {self.name!r}>"


# --- Tasks ----------------------------------------------------------------------------------------


class Task:
    """What one submitted task, or group, is doing. It stays valid after its orchestrator."""

    __slots__ = ("__weakref__", "_kept", "_raw", "_written")

    def __init__(self, raw: _keel.Task, written: tuple[Any, ...], kept: list[object]) -> None:
        self._raw = raw
        self._written = written
        # What it was given, until it is done; shared with the orchestrator.
        self._kept = kept

    @property
    def id(self) -> int:
        """As messages call it."""
        return self._raw.id

    @property
    def done(self) -> bool:
        return self._raw.done

    @property
    def worker(self) -> int | None:
        """Where it runs or ran; of a group, its first member. None before it started."""
        return self._raw.worker

    @property
    def error(self) -> Error | None:
        """Why it failed; None if it did not, or is not done."""
        return self._raw.error

    def wait(self, timeout: float | None = None) -> None:
        """Until it is done; raises its error. WaitTimeoutError after ``timeout`` seconds, and the
        task goes on; a task whose own time was up has that error too, and is ``done``."""
        try:
            self._raw.wait(timeout)
        finally:
            if self._raw.done:
                self._kept.clear()

    def result(self, timeout: float | None = None) -> Any:
        """As :meth:`wait`, and then what it wrote: the array that was given as ``Out`` or
        ``InOut``, or a tuple of them, or None."""
        self.wait(timeout)
        return self._written[0] if len(self._written) == 1 else self._written or None

    def __repr__(self) -> str:
        state = "done" if self.done and self.error is None else "failed" if self.done else "pending"
        return f"<keel.task.Task {self.id}, {state}>"


@dataclass(frozen=True)
class WorkerReport:
    worker: int
    device: str
    up: bool
    lost: str
    """Why it is not up, or was not last."""
    restarts: int
    tasks: int
    """That ended there."""
    bytes_to_device: int
    """Tensors and copies."""
    bytes_from_device: int
    uploads: int
    """Of callables."""
    callables: int
    """Contents that are stored there now."""


class Scope:
    """Memory that is freed together, at the end of a ``with``; see :meth:`Orchestrator.scope`."""

    __slots__ = ("_blocks", "_orchestrator")

    def __init__(self, orchestrator: Orchestrator) -> None:
        self._orchestrator = orchestrator
        self._blocks: list[Resident] = []

    def malloc(self, worker: int, shape: ShapeLike, dtype: DTypeLike = "float32") -> Resident:
        """See :meth:`Orchestrator.malloc`."""
        block = self._orchestrator.malloc(worker, shape, dtype)
        self._blocks.append(block)
        return block

    def upload(self, worker: int, source: Any) -> Resident:
        """See :meth:`Orchestrator.upload`."""
        block = self._orchestrator.upload(worker, source)
        self._blocks.append(block)
        return block

    def close(self) -> None:
        """Free all of it, when the tasks that use it are done. The first error is raised."""
        first: Exception | None = None
        blocks, self._blocks = self._blocks, []
        for block in blocks:
            try:
                block.free()
            except Exception as error:
                first = first or error
        if first is not None:
            raise first

    def __enter__(self) -> Scope:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


# --- The orchestrator -----------------------------------------------------------------------------


class Orchestrator:
    """Workers, one for each device, the memory on them, callables, and tasks.

    ``devices`` are names or numbers; a device may be named several times. ``transport``: workers
    are ``"thread"``s of this process, which share its allocators, each a ``"process"`` of its own,
    or ranks of the ``"mpi"`` run that this process is rank 0 of. ``orchestration``: who runs the
    code of images, ``"auto"``, ``"device"`` or ``"host"``. Times are in seconds; ``task_timeout``
    None: a task may run for ever.

    ``python_workers``: processes run Python, each with an interpreter of its own, so that functions
    of Python's can be registered, and run at the same time. It takes them longer to start than
    ``worker_program``, by default ``keel-worker``, which only runs images. As with multiprocessing,
    a script that uses this does so behind ``if __name__ == "__main__":``.

    Any thread may use it at any time. It ends by :meth:`close`, at the end of a ``with``, when
    nothing refers to it, or when the interpreter ends: what has not started is cancelled, what runs
    has ``stop_timeout`` to end.
    """

    def __init__(
        self,
        devices: Iterable[DeviceLike] = (None,),
        *,
        transport: str = "thread",
        orchestration: str = "auto",
        task_timeout: float | None = None,
        control_timeout: float = 60.0,
        start_timeout: float = 30.0,
        stop_timeout: float = 5.0,
        shared_memory: int = 16 << 30,
        worker_program: str | os.PathLike[str] = "",
        python_workers: bool = False,
    ) -> None:
        if isinstance(devices, (str, int)):
            devices = (devices,)
        self._devices = [name_of(device) for device in devices]
        self._transport = transport
        program, words = os.fspath(worker_program), list[str]()
        # How workers with Python find what is registered; None: they have none.
        self._preparation: dict[str, Any] | None = None
        if python_workers:
            if transport != "process":
                raise ValueError(
                    'python_workers are processes: say transport="process"; threads run functions '
                    "as they are"
                )
            if program:
                raise ValueError("python_workers have their own program: leave worker_program out")
            from keel import _task_worker  # imports multiprocessing: for those who use it

            self._preparation = _task_worker.preparation()
            program, words = _task_worker.command()
        # What tasks have until they are done; only the extension changes it.
        self._pending: deque[tuple[_keel.Task, list[object]]] = deque()
        self._swept = 0
        # Registered memory, by its block, until it is unregistered.
        self._foreign: dict[int, object] = {}
        self._raw = _keel.create_orchestrator(
            self._devices,
            transport,
            orchestration,
            task_timeout,
            control_timeout,
            start_timeout,
            stop_timeout,
            shared_memory,
            program,
            words,
        )
        _live.add(self)

    @property
    def devices(self) -> list[str]:
        """Of each worker."""
        return list(self._devices)

    @property
    def worker_count(self) -> int:
        return self._raw.worker_count

    @property
    def live_tasks(self) -> int:
        """Tasks that are under way."""
        return self._raw.live_tasks

    # --- Memory ---

    def malloc(self, worker: int, shape: ShapeLike, dtype: DTypeLike = "float32") -> Resident:
        """Memory on a worker, with whatever was there before."""
        lengths, kind = _shape_of(shape), dtype_of(dtype)
        address, number = self._raw.malloc(worker, math.prod(lengths) * kind.itemsize)
        return Resident._of(self, worker, address, number, lengths, kind)

    def upload(self, worker: int, source: Any) -> Resident:
        """Memory on a worker with a copy of an array on the host."""
        host = host_of(source, False)
        block = self.malloc(worker, host.shape, host.dtype.name)
        self._raw.copy_to(worker, block.address, host.address, host.nbytes, block._block)
        return block

    def free(self, block: Resident) -> None:
        """See :meth:`Resident.free`."""
        self._own(block).free()

    def copy_to(self, destination: Resident, source: Any) -> None:
        """From the host: an array of the same type and shape, or as many bytes. Waits for the
        tasks, submitted before, that use the memory; done when it returns."""
        if destination.read_only:
            raise ValueError("this is another library's memory, which it lets nobody write")
        host = host_of(source, False)
        self._check(
            destination, host.dtype.name, host.shape, isinstance(source, (bytes, bytearray))
        )
        self._raw.copy_to(
            destination.worker, destination.address, host.address, host.nbytes, destination._block
        )

    def copy_from(self, source: Resident, destination: Any = None) -> Any:
        """To the host, into ``destination`` or a new NumPy array, which is returned. Waits for the
        tasks, submitted before, that write the memory."""
        if destination is None:
            return self._own(source).numpy()
        host = host_of(destination, True)
        self._check(source, host.dtype.name, host.shape, isinstance(destination, bytearray))
        self._raw.copy_from(source.worker, source.address, host.address, host.nbytes, source._block)
        return destination

    def register_memory(self, worker: int, array: Any) -> Resident:
        """Memory of the worker's device that somebody else allocated: a keel.Array, or a tensor
        with ``__cuda_array_interface__`` or ``__dlpack__``. Tasks use it where it is.

        It is kept alive until :meth:`unregister_memory` or :meth:`close`, whether the result of
        this is or not. What is queued for a keel.Array is waited for; of other
        libraries' tensors, and of work that comes later, the order is the caller's.
        """
        if self._transport != "thread":
            raise UnsupportedError(
                "memory of this process is no memory of a worker's process: use threads, or "
                "allocate it with malloc",
                "UNIMPLEMENTED",
            )
        worker = operator.index(worker)
        if not 0 <= worker < len(self._devices):
            raise ValueError(f"there is no worker {worker}: there are {len(self._devices)}")
        device = self._devices[worker]
        keeps: object = array
        if isinstance(array, Array):
            if array.device != device:
                raise ValueError(f"the array is on {array.device}, worker {worker} on {device}")
            array.stream.synchronize()
            address, nbytes, shape, kind = array.address, array.nbytes, array.shape, array._dtype
            read_only = array.read_only
            keeps = (array, array._storage.share())  # also if it is closed
        else:
            address, nbytes = span_of(array, device)
            kind, shape, read_only = foreign_of(array)
        block = self._raw.register_memory(worker, address, nbytes)
        self._foreign[block] = keeps
        return Resident._of(
            self, worker, address, block, shape, kind, registered=True, read_only=read_only
        )

    def unregister_memory(self, block: Resident) -> None:
        """StateError while tasks use it."""
        self._own(block).free()

    def scope(self) -> Scope:
        """``with orchestrator.scope() as scope: a = scope.malloc(...)``"""
        return Scope(self)

    # --- Callables ---

    def register(
        self,
        callable: Image | Function[[Call], object],
        kernels: Image | Iterable[str] = (),
        name: str | None = None,
    ) -> Callable:
        """An image, or a function of Python's, which is called with a :class:`Call` for each task.

        A function runs in the worker's thread, with the interpreter; what it raises is the task's
        error. ``kernels`` are what it launches: names of those that Keel brings, or an image.

        With ``python_workers`` each worker imports the function by its name: one that is local, a
        lambda, or hidden by its decorator is a ValueError. UnsupportedError for other processes and
        for ranks: they need an image.
        """
        if isinstance(callable, Image):
            return Callable(self, self._raw.register_image(callable._raw), name or "image", None)
        image = kernels if isinstance(kernels, Image) else Image.build(kernels=kernels)
        label = str(name or getattr(callable, "__qualname__", None) or type(callable).__name__)
        if self._preparation is not None:
            from keel import _task_worker

            reference = _task_worker.reference_of(callable, image.kernels, self._preparation)
            return Callable(self, self._raw.register_reference(reference, image._raw), label, None)
        if self._transport == "process":
            raise UnsupportedError(
                "processes run functions of Python's if the orchestrator has python_workers=True; "
                "otherwise register an image",
                "UNIMPLEMENTED",
            )
        callback = called(callable, image.kernels)
        number = self._raw.register_function(callback, image._raw)
        return Callable(self, number, label, callback)

    @overload
    def callable(self, function: Function[[Call], object]) -> Callable: ...
    @overload
    def callable(
        self, function: None = None, *, kernels: Image | Iterable[str] = (), name: str | None = None
    ) -> Function[[Function[[Call], object]], Callable]: ...
    def callable(
        self,
        function: Function[[Call], object] | None = None,
        *,
        kernels: Image | Iterable[str] = (),
        name: str | None = None,
    ) -> Any:
        """:meth:`register` as a decorator, with or without arguments."""
        if function is not None:
            return self.register(function, kernels, name)
        return lambda decorated: self.register(decorated, kernels, name)

    def unregister(self, callable: Callable) -> None:
        """Tasks that were submitted with it still run. Again: NotFoundError."""
        self._registered(callable)
        self._raw.unregister(callable._id)

    # --- Tasks ---

    def submit(
        self,
        callable: Callable,
        *arguments: Any,
        worker: int | None = None,
        timeout: float | None = None,
    ) -> Task:
        """A task, with its tensors and scalars in their order.

        A tensor is ``In(x)``, ``Out(x)`` or ``InOut(x)``, or an array alone, which is read. On the
        host it is a NumPy array, a tensor of DLPack, or anything with a buffer; it is kept, and
        must not be changed, until the task is done. On a worker it is a :class:`Resident`. A scalar
        is an int or a float of 64 bits, a value such as ``f32(2.0)``, or a scalar of NumPy's.

        It runs on ``worker``, where its resident tensors are, or anywhere. ``timeout``: how long it
        may run, in seconds; 0: for ever; None: as the orchestrator says.
        """
        self._registered(callable)
        given = arguments_of(self, arguments)
        kept = [callable._callback, *given.keeps]
        raw = self._raw.submit(callable._id, given.raw, worker, timeout, self._pending, kept)
        self._sweep(len(self._pending) > 2 * self._swept + 64)
        return Task(raw, given.written, kept)

    def submit_group(
        self,
        callable: Callable,
        members: Iterable[Sequence[Any]],
        workers: Sequence[int | None] = (),
        timeout: float | None = None,
    ) -> Task:
        """One task for each member, which is a list of arguments, all started together or none,
        each on a worker of its own; ``workers`` names one for each, or None, or is empty."""
        self._registered(callable)
        given: list[Arguments] = [arguments_of(self, member) for member in members]
        kept = [callable._callback, *(each for member in given for each in member.keeps)]
        raw = self._raw.submit_group(
            callable._id,
            [member.raw for member in given],
            list(workers),
            timeout,
            self._pending,
            kept,
        )
        self._sweep(len(self._pending) > 2 * self._swept + 64)
        return Task(raw, tuple(each for member in given for each in member.written), kept)

    def wait_all(self, timeout: float | None = None) -> None:
        """Until everything that was submitted before is done, whatever came of it."""
        self._raw.wait_all(timeout)
        self._sweep(True)

    def report(self) -> list[WorkerReport]:
        return [WorkerReport(*report) for report in self._raw.report()]

    # --- The end ---

    def close(self) -> None:
        """Cancel what has not started, wait for what runs, end the workers. Again: nothing."""
        self._raw.close()
        self._sweep(True)
        self._foreign.clear()
        _live.discard(self)

    def __enter__(self) -> Orchestrator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # Before what tasks have goes. Of one that could not be made there is nothing.
        raw = getattr(self, "_raw", None)
        if raw is not None:
            raw.close()
            self._sweep(True)

    def __repr__(self) -> str:
        return f"<keel.task.Orchestrator of {', '.join(self._devices)}>"

    # --- For this module ---

    def _sweep(self, everywhere: bool) -> None:
        """Lets go of what tasks that are done had: from the front, or wherever they are."""
        _keel.sweep_tasks(self._pending, everywhere)
        if everywhere:
            self._swept = len(self._pending)

    def _own(self, block: Resident) -> Resident:
        if block._orchestrator is not self:
            raise ValueError("this memory is of another orchestrator")
        return block

    def _registered(self, callable: Callable) -> None:
        if callable._orchestrator is not self:
            raise ValueError("this callable is of another orchestrator")

    def _check(self, block: Resident, dtype: str, shape: tuple[int, ...], raw: bool) -> None:
        if self._own(block).freed:
            raise ValueError("this memory was freed")
        if raw:
            if shape[0] != block.nbytes:
                raise ValueError(f"{shape[0]} bytes are given, and {block.nbytes} on the worker")
        elif dtype != block.dtype:
            raise TypeError(f"elements of {dtype} are given, and {block.dtype} on the worker")
        elif tuple(shape) != block.shape:
            raise ValueError(f"the shape {shape} is given, and {block.shape} is on the worker")


# --- The end of the interpreter -------------------------------------------------------------------

_live: weakref.WeakSet[Orchestrator] = weakref.WeakSet()


def _end() -> None:
    """Before the interpreter ends nobody is in a function any more, but those that wait outside of
    it."""
    for orchestrator in list(_live):
        orchestrator.close()
    until = time.monotonic() + 1
    while _keel.interrupt_task_functions() and time.monotonic() < until:
        time.sleep(0.01)


atexit.register(_end)
# A child leaves alone what its parent has, with locks that other threads may hold for ever.
os.register_at_fork(after_in_child=_live.clear)
