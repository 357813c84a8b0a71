"""Graphs: record once, replay for ever, wherever the buffers are.

    from keel import graph

    program = graph.Program("scaled")
    program.binding("x", shape=1024, dtype="float32")
    program.binding("y", shape=1024, dtype="float32", access="out", policy="in-place")

    @program.traced(reads=["x"], writes=["y"])
    def forward(call):
        library.run(call["x"], call["y"], stream=call.handle)

    executable = graph.Executable(program, slots=2)
    for batch in batches:
        step = executable.step(x=batch, hold="y")
        use(step["y"])

The first steps record; after that nothing is recorded, whatever moves. docs/graphs.md explains
bindings, policies and slots.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeAlias

from keel import _keel
from keel._array import Array, ShapeLike, _shape_of
from keel._dtypes import DTypeLike, dtype_of
from keel._program import (
    Binding,
    Call,
    Kernel,
    Module,
    Operand,
    Program,
    f32,
    f64,
    i32,
    i64,
    read,
    read_write,
    standard_kernels,
    u32,
    u64,
    write,
)
from keel._selection import DeviceLike, open_device
from keel._spans import span_of
from keel._stream import Stream, _current, stream_of

__all__ = [
    "Action",
    "Call",
    "Executable",
    "Held",
    "Kernel",
    "Lease",
    "MemoryBudget",
    "Module",
    "Operand",
    "PhysicalMemory",
    "Program",
    "Report",
    "Rerecorder",
    "ScratchArena",
    "Step",
    "f32",
    "f64",
    "i32",
    "i64",
    "read",
    "read_write",
    "standard_kernels",
    "u32",
    "u64",
    "write",
]

# What can be bound: a keel.Array, a PhysicalMemory, an address, (address, bytes[, generation]), or
# another library's tensor, by __cuda_array_interface__ or __dlpack__.
BufferLike: TypeAlias = Any

# --- Memory that executables share ----------------------------------------------------------------


class ScratchArena:
    """Scratch of several executables whose steps follow each other."""

    __slots__ = ("_raw",)

    def __init__(self, nbytes: int, *, device: DeviceLike = None) -> None:
        self._raw = _keel.create_scratch_arena(open_device(device), nbytes)

    @property
    def nbytes(self) -> int:
        return self._raw.size


class MemoryBudget:
    """What the slots of several executables may hold together: the one that was used longest ago
    gives its slots up, and records again when it is next used."""

    __slots__ = ("_raw",)

    def __init__(self, nbytes: int) -> None:
        self._raw = _keel.create_memory_budget(nbytes)

    @property
    def limit(self) -> int:
        return self._raw.limit

    @property
    def used(self) -> int:
        return self._raw.used


# --- Physical memory ------------------------------------------------------------------------------


class PhysicalMemory:
    """Physical memory in one whole handle, for bindings with the policy ``"remap"``: a step maps
    the memory itself where the graph looks, and nothing is copied.

    ``nbytes`` is a multiple of the device's granularity
    (``keel.device.capabilities()["granularity"]``): the binding's own size, rounded up. It is
    filled and read through :meth:`array`, and belongs to ``stream`` as arrays do: steps that it is
    given to are ordered with that.

        with graph.PhysicalMemory(2 << 20) as memory:
            memory.array(1024, "float32").copy_from(batch)
            executable.step(x=memory)

    As a context it is closed at the end.
    """

    __slots__ = ("_raw",)

    def __init__(
        self, nbytes: int, *, device: DeviceLike = None, stream: Stream | None = None
    ) -> None:
        self._raw = _keel.create_physical_memory(stream_of(stream, device)._raw, nbytes)

    @property
    def address(self) -> int:
        """Where it is for its owner, wherever else it is mapped."""
        return self._raw.address

    @property
    def nbytes(self) -> int:
        return self._raw.size

    @property
    def device(self) -> str:
        return self._raw.stream.device_name

    @property
    def closed(self) -> bool:
        return self._raw.closed

    def array(self, shape: ShapeLike | None = None, dtype: DTypeLike = "uint8") -> Array:
        """An array over its first bytes; without a shape, over all of them. It keeps the memory."""
        kind = dtype_of(dtype)
        lengths = (self.nbytes // kind.itemsize,) if shape is None else _shape_of(shape)
        return Array._of(self._raw.view(math.prod(lengths) * kind.itemsize), lengths, kind)

    def close(self) -> None:
        """Let go. The address goes with the last array over it, when the device's own streams are
        past what they have queued; an executable keeps the memory until other memory is mapped in
        its place. Work on other libraries' streams must be done. Again: nothing."""
        self._raw.close()

    def __enter__(self) -> PhysicalMemory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"{self.nbytes} bytes on {self.device}"
        return f"<keel.graph.PhysicalMemory {where}>"


# --- Reports --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Action:
    """One thing that a step did."""

    kind: str
    """``"recorded"``, ``"traced"``, ``"patched"``, ``"rebound"``, ``"chose"``, ..."""
    reason: str
    binding: str | None
    count: int
    host_ns: int


class Report:
    """What a step did to be able to replay, and why. In the steady state there are no actions.

    ``report["recorded"]`` and the like are numbers; ``counts`` has all of them; as text it is for
    people.
    """

    __slots__ = ("_raw", "counts")

    counts: dict[str, int]
    """step, slot, graphs, copied_in, copied_out, rebound, patched, remapped, recorded, traced,
    traces_reused, chosen, eager, waited_ns, actions_left_out"""

    def __init__(self, raw: _keel.StepReport) -> None:
        self._raw = raw
        self.counts = raw.counts()

    def __getitem__(self, key: str) -> int:
        return self.counts[key]

    @property
    def actions(self) -> list[Action]:
        return [Action(*action) for action in self._raw.actions()]

    def __str__(self) -> str:
        return self._raw.text()

    def __repr__(self) -> str:
        return f"<keel.graph.Report of step {self.counts['step']}, {len(self.actions)} actions>"


# --- Steps ----------------------------------------------------------------------------------------


class Held:
    """An output that stays where it was made, and keeps its slot from taking a step, until
    :meth:`close`, or until it and its arrays are gone. To be read, not written."""

    __slots__ = ("_binding", "_raw")

    def __init__(self, raw: _keel.Held, binding: Binding) -> None:
        self._raw = raw
        self._binding = binding

    @property
    def address(self) -> int:
        return self._raw.address

    @property
    def nbytes(self) -> int:
        return self._raw.size

    def array(self) -> Array:
        """An array over it, of the shape and type that the binding was declared with, on the step's
        stream. It keeps the output too."""
        return Array._of(self._raw.storage(), self._binding.shape, self._binding.dtype)

    def record_stream(self, stream: Stream) -> None:
        """Another stream than the step's reads it, with work that is queued before it is let go."""
        self._raw.record_use(stream._raw)

    def close(self) -> None:
        """Let go, unless arrays over it are left. Again: nothing."""
        self._raw.close()


class Step:
    """A step that was launched, by :meth:`Executable.step`."""

    __slots__ = ("_executable", "_holds", "_raw")

    def __init__(self, executable: Executable, raw: _keel.Step, holds: tuple[int, ...]) -> None:
        self._executable = executable
        self._raw = raw
        self._holds = holds

    @property
    def number(self) -> int:
        """Of the executable's steps, from 1."""
        return self._raw.number

    @property
    def slot(self) -> int:
        return self._raw.slot

    @property
    def report(self) -> Report:
        return Report(self._raw.report)

    def __getitem__(self, name: str) -> Array:
        """An output that the step was told to hold: see :meth:`Held.array`. The output is let go
        when this step and its arrays are gone."""
        return self.held(name).array()

    def held(self, name: str) -> Held:
        binding = self._executable._program._find(name)
        if binding.index not in self._holds:
            raise KeyError(f"{name!r} is not held: say step(..., hold={name!r})")
        return Held(self._raw.held(self._holds.index(binding.index)), binding)


class Lease:
    """One step, from choosing a slot to having launched it. As a context it is given back at the
    end; it is one thread's at a time::

        with executable.acquire() as lease:
            lease.bind(x=batch)
            lease.launch()
            y = lease.hold("y")

    Bindings are named, or numbered in the order in which they were declared.
    """

    __slots__ = ("_executable", "_raw", "bind_addresses")

    bind_addresses: Callable[[Sequence[int | None]], None]
    """``bind_addresses([...])``: where the bindings are, in their order, each of as many bytes
    as its binding; None leaves it as it is. The quick way for those that have numbers."""

    def __init__(self, executable: Executable, raw: _keel.Lease) -> None:
        self._executable = executable
        self._raw = raw
        self.bind_addresses = raw.bind_addresses

    @property
    def slot(self) -> int:
        return self._raw.slot

    def bind(self, **buffers: BufferLike) -> None:
        """For this step, instead of what :meth:`Executable.bind` said."""
        self._executable._raw.bind_step(self._raw, buffers)

    def address(self, binding: int | str) -> int:
        """The slot's own memory of a binding that is worked on in place, or of scratch."""
        return self._raw.address(self._executable._index(binding))

    def launch(self, timeout: float | None = None) -> None:
        """Queue the step on the stream, once; when it fails it may be tried again. ``timeout`` is
        for the slot's last step, and for another step that records, calls functions of commands or
        has the same scratch arena, where that must be waited for."""
        self._raw.launch(timeout)

    def hold(self, binding: int | str) -> Array:
        """After the launch: an output that is worked on in place, as an array without a copy. The
        slot takes no step until the array is gone."""
        return self.held(binding).array()

    def held(self, binding: int | str) -> Held:
        """The same as an address, for other libraries."""
        return Held(
            self._raw.hold(self._executable._index(binding)), self._executable._named(binding)
        )

    @property
    def report(self) -> Report:
        """Of what launch did, also when it failed."""
        return Report(self._raw.report())

    @property
    def done(self) -> bool:
        """Whether the step that was launched is done. DeviceLostError: it never will be."""
        return self._raw.done()

    def wait(self, timeout: float | None = None) -> None:
        """Until the step that was launched is done."""
        self._raw.wait(timeout)

    def close(self) -> None:
        """Give the slot back. Again: nothing."""
        self._raw.close()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


# --- Executables ----------------------------------------------------------------------------------


class Executable:
    """A program on its device, recorded into ``slots`` slots and replayed for ever.

    ``eager``: every command on the stream, every time, with the same results. ``warm_up``: eager
    steps before the first recording; None: one if there are traced functions. ``kept_traces``: of a
    traced function, for as many sets of addresses. ``patience``: seconds that its end waits for
    steps that run. ``alias_outputs``: outputs that are held are read at a second address of their
    memory, which cannot be written; each slot takes whole handles for them (2 MiB on most devices).
    It takes memory with the first step.

    Any thread may use it. A function that it calls must not launch a step of it.
    """

    __slots__ = ("__weakref__", "_default", "_device", "_kept", "_program", "_raw")

    def __init__(
        self,
        program: Program,
        *,
        slots: int = 2,
        eager: bool = False,
        warm_up: int | None = None,
        kept_traces: int = 8,
        patience: float = 10.0,
        scratch: ScratchArena | None = None,
        budget: MemoryBudget | None = None,
        alias_outputs: bool = False,
    ) -> None:
        if warm_up is not None and warm_up < 0:
            raise ValueError(f"warm_up is a number of steps, or None, not {warm_up}")
        self._program = program
        self._raw = _keel.create_executable(
            program._program(),
            slots,
            eager,
            patience,
            kept_traces,
            -1 if warm_up is None else warm_up,
            None if scratch is None else scratch._raw,
            None if budget is None else budget._raw,
            alias_outputs,
            Array,
            PhysicalMemory,
            span_of,
        )
        self._device = program.device
        self._default = _keel.default_stream(program._device)
        self._kept: dict[str, BufferLike] = {}

    @property
    def program(self) -> Program:
        return self._program

    def bind(self, **buffers: BufferLike) -> None:
        """For every step from now on that does not say otherwise: weights, for example. What is
        bound is kept until something else is."""
        for name, buffer in buffers.items():  # those before a bad one are bound, and kept
            self._raw.bind({name: buffer})
            self._kept[name] = buffer

    def step(
        self,
        *,
        stream: Stream | int | None = None,
        timeout: float | None = None,
        hold: str | Iterable[str] = (),
        **buffers: BufferLike,
    ) -> Step:
        """A whole step: choose a slot, bind these buffers, launch, give the slot back.

        ``stream`` is the current one of the device, or given, also by the number that another
        library knows it by. ``hold`` names outputs that are worked on in place and shall stay:
        ``step["y"]``. ``timeout`` bounds waiting for a slot: WaitTimeoutError.

        Arrays of other streams are ordered with the step, before and after it; of those that
        :meth:`bind` bound, what is written to them after the first step on this stream is the
        caller's to order. Raw addresses and tensors of other libraries are the caller's to keep
        alive, and to order.
        """
        holds: tuple[int, ...] = ()
        if hold:
            names = (hold,) if isinstance(hold, str) else hold
            holds = tuple([self._program._find(name).index for name in names])
        # The commonest case without another call: this is the path of every step.
        if stream is None and _current.get() is None:
            on: _keel.Stream | int = self._default
        else:
            on = self._stream_of(stream)
        return Step(self, self._raw.step(on, timeout, holds, buffers), holds)

    def acquire(self, stream: Stream | int | None = None, timeout: float | None = None) -> Lease:
        """A slot, for a step on this stream; see :meth:`step`. WaitTimeoutError says what the slots
        are doing."""
        return Lease(self, self._raw.acquire(self._stream_of(stream), timeout))

    def policy(self, binding: int | str) -> str:
        """What a binding is reached by now; never ``"auto"``."""
        return self._raw.policy(self._index(binding))

    def stats(self) -> dict[str, int]:
        """Totals since it was made: steps, graphs_launched, eager_steps, rows_rebound,
        commands_patched, bindings_remapped, graphs_recorded, commands_traced, traces_reused, waits,
        waited_ns, policy_changes, evictions, failed_steps, copied_in, copied_out; slot_bytes, which
        it holds now; and what the calling threads spent on each kind of action: host_ns_recorded,
        host_ns_patched and so on."""
        return self._raw.stats()

    def synchronize(self, timeout: float | None = None) -> None:
        """Until every step that was launched is done."""
        self._raw.synchronize(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Give its slots back when their steps are done. StateError: leases or outputs are held. A
        step after it takes memory and records again."""
        self._raw.close(timeout)

    # --- For this module ---

    def _stream_of(self, stream: Stream | int | None) -> _keel.Stream | int:
        return _stream_of(stream, self._device, self._default)

    def _index(self, binding: int | str) -> int:
        return binding if isinstance(binding, int) else self._program._find(binding).index

    def _named(self, binding: int | str) -> Binding:
        if isinstance(binding, str):
            return self._program._find(binding)
        return list(self._program._bindings.values())[binding]


def _stream_of(
    stream: Stream | int | None, device: str, default: _keel.Stream
) -> _keel.Stream | int:
    if stream is None:
        scope = _current.get()
        if scope is None:
            return default
        current = scope.streams.get(device)
        return default if current is None else current._raw
    return stream._raw if isinstance(stream, Stream) else stream


# --- The program recorded again in every step -----------------------------------------------------


class Rerecorder:
    """The program recorded again in every step, as one does whose addresses move and who has only
    what a device's library offers: to be compared with, and for programs that run a few times only.

    ``update``: the graph of the last step is rewritten, if the device can; otherwise each step
    makes a new one. The results are those of an :class:`Executable`. It is one thread's at a time,
    and as a context it is closed at the end.
    """

    __slots__ = ("_default", "_device", "_program", "_raw")

    def __init__(self, program: Program, *, update: bool = False) -> None:
        self._program = program  # has what is called
        self._raw = _keel.create_rerecorder(
            program._program(), update, Array, PhysicalMemory, span_of
        )
        self._device = program.device
        self._default = _keel.default_stream(program._device)

    @property
    def program(self) -> Program:
        return self._program

    def run(self, *, stream: Stream | int | None = None, **buffers: BufferLike) -> None:
        """Queue a step. Every binding but scratch is given, in every step; see
        :meth:`Executable.step` for streams and buffers. The first step of a program with traced
        functions runs without a graph."""
        self._raw.run(_stream_of(stream, self._device, self._default), buffers)

    def stats(self) -> dict[str, int]:
        """Totals since it was made: steps, captured (graphs), instantiated and updated (of
        these)."""
        return self._raw.stats()

    def close(self) -> None:
        """Give back what it has. Waits for nothing; steps that were queued run. Again: nothing."""
        self._raw.close()

    def __enter__(self) -> Rerecorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
