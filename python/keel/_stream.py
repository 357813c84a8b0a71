"""Streams and events: the order of work on a device."""

from __future__ import annotations

from contextvars import ContextVar
from types import TracebackType
from typing import NamedTuple

from keel import _keel
from keel._selection import DeviceLike, name_of, open_device


class _Scope(NamedTuple):
    """The current streams by device, and what was before the innermost ``with``."""

    streams: dict[str, Stream]
    outer: _Scope | None


_current: ContextVar[_Scope | None] = ContextVar("keel streams", default=None)


class Stream:
    """A stream of a device: what is put on it runs in order.

    ``Stream(device)`` makes one; :meth:`borrow` uses one that another library made. As a context,
    it is the current stream of its device, which new arrays belong to::

        with keel.device.Stream() as stream:
            a = keel.zeros(1024)
        stream.synchronize()

    A stream lives until it and every array that belongs to it are gone.
    """

    __slots__ = ("__weakref__", "_raw")

    def __init__(self, device: DeviceLike = None, *, priority: int = 0) -> None:
        self._raw = _keel.create_stream(open_device(device), priority)

    @classmethod
    def _of(cls, raw: _keel.Stream) -> Stream:
        self = cls.__new__(cls)
        self._raw = raw
        return self

    @classmethod
    def borrow(cls, handle: int, device: DeviceLike = None) -> Stream:
        """A stream that somebody else made, by the handle of the device's own library.

        It must outlive everything that is done on it. Call :meth:`close` before its owner destroys
        it.
        """
        return cls._of(_keel.borrow_stream(open_device(device), handle))

    @property
    def handle(self) -> int:
        """What the device's own library calls it."""
        return self._raw.handle

    @property
    def device(self) -> str:
        return self._raw.device_name

    @property
    def closed(self) -> bool:
        return self._raw.closed

    def synchronize(self, timeout: float | None = None) -> None:
        """Wait until everything that is on the stream now is done.

        WaitTimeoutError after ``timeout`` seconds; the work goes on.
        """
        self._raw.synchronize(timeout)

    def query(self) -> bool:
        """Whether everything that was put on the stream is done."""
        return self._raw.query()

    def record_event(self, event: Event | None = None) -> Event:
        """An event that stands for what is on the stream now."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Later work of this stream runs after what the event stands for."""
        self._raw.wait_event(event._raw)

    def wait_stream(self, other: Stream) -> None:
        """Later work of this stream runs after what is on the other one now."""
        self.wait_event(other.record_event())

    def close(self) -> None:
        """Give it back; a borrowed one is waited for and left to its owner. Again: nothing."""
        self._raw.close()

    def __enter__(self) -> Stream:
        outer = _current.get()
        _current.set(_Scope({**(outer.streams if outer else {}), self.device: self}, outer))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        scope = _current.get()
        _current.set(scope.outer if scope else None)

    def __repr__(self) -> str:
        if self.closed:
            return "<keel.device.Stream, closed>"
        return f"<keel.device.Stream {self.handle:#x} on {self.device}>"


class Event:
    """A point in the work of a stream. Before it is recorded it stands for nothing, and is done."""

    __slots__ = ("__weakref__", "_raw")

    def __init__(self, device: DeviceLike = None, *, timing: bool = False) -> None:
        self._raw = _keel.create_event(open_device(device), timing)

    @property
    def device(self) -> str:
        return self._raw.device_name

    def record(self, stream: Stream | None = None) -> None:
        """Stand for what is on the stream now; None: the current stream of the event's device."""
        self._raw.record((current_stream(self.device) if stream is None else stream)._raw)

    def query(self) -> bool:
        return self._raw.query()

    def synchronize(self, timeout: float | None = None) -> None:
        """Wait for what it stands for; see :meth:`Stream.synchronize`."""
        self._raw.synchronize(timeout)

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to ``end``; both made with ``timing=True``, and done."""
        return self._raw.elapsed_ms(end._raw)

    def __repr__(self) -> str:
        return f"<keel.device.Event on {self.device}>"


def current_stream(device: DeviceLike = None) -> Stream:
    """The stream that new arrays of the device belong to: that of the innermost ``with`` of this
    thread, or the device's default stream."""
    name = name_of(device)
    scope = _current.get()
    if scope is not None and name in scope.streams:
        return scope.streams[name]
    return Stream._of(_keel.default_stream(_keel.open_device(name)))


def stream_of(stream: Stream | None, device: DeviceLike) -> Stream:
    """For arguments ``stream`` and ``device``, which must agree."""
    if stream is None:
        return current_stream(device)
    if not isinstance(stream, Stream):
        raise TypeError(
            f"stream must be a keel.device.Stream, not {type(stream).__name__}; "
            "Stream.borrow(handle) makes one of another library's"
        )
    if device is not None and name_of(device) != stream.device:
        raise ValueError(f"the stream is of {stream.device}, not of {name_of(device)}")
    return stream
