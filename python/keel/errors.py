"""The exceptions of Keel.

Every failure that Keel's library reports is an :class:`Error`; those that have a counterpart among
Python's own exceptions are of that kind too, so that ``except MemoryError`` and ``except
ValueError`` do what they say. Mistakes that are seen before the library is asked (an argument of
the wrong type, a closed array) are plain :class:`TypeError` and :class:`ValueError`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

__all__ = [
    "DeviceLostError",
    "Error",
    "ForkedProcessError",
    "InvalidArgumentError",
    "NotFoundError",
    "OutOfMemoryError",
    "StateError",
    "UnavailableError",
    "UnsupportedError",
    "WaitTimeoutError",
]


class Error(RuntimeError):
    """Something that Keel was asked for did not happen."""

    code: str
    """The status code: ``"NOT_FOUND"``, ``"RESOURCE_EXHAUSTED"``, ..."""
    vendor_code: int
    """What the device's own library answered; 0 if it was not the one that failed."""
    vendor_name: str
    """The name of that code; empty if there is none."""

    def __init__(
        self, message: str, code: str = "UNKNOWN", vendor_code: int = 0, vendor_name: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.vendor_code = vendor_code
        self.vendor_name = vendor_name

    def __str__(self) -> str:
        message = str(self.args[0])
        return f"{message} [{self.vendor_name} {self.vendor_code}]" if self.vendor_name else message

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions travel between processes.
        return type(self), (self.args[0], self.code, self.vendor_code, self.vendor_name)


class InvalidArgumentError(Error, ValueError):
    """The call is wrong, whatever the state: an address that is not allocated, a bad fraction."""


class NotFoundError(Error, LookupError):
    """There is no device, driver or file of that name; the message lists those that there are."""


class OutOfMemoryError(Error, MemoryError):
    """The device, or the limit that was set, has no room, after everything was tried."""

    report: str
    """What the allocator holds: by whom, what is free and in what pieces."""

    def __init__(
        self,
        message: str,
        code: str = "RESOURCE_EXHAUSTED",
        vendor_code: int = 0,
        vendor_name: str = "",
        report: str = "",
    ) -> None:
        super().__init__(message, code, vendor_code, vendor_name)
        self.report = report

    def __reduce__(self) -> tuple[Any, ...]:
        kind, arguments = super().__reduce__()
        return kind, (*arguments, self.report)


class DeviceLostError(Error):
    """The device faulted, and what it held is gone; see :func:`keel.device.forget`."""


class WaitTimeoutError(Error, TimeoutError):
    """The time that was given for waiting is over. The work goes on."""


class StateError(Error):
    """A right call at the wrong moment, such as waiting for a stream that is being captured."""


class ForkedProcessError(StateError):
    """This process was forked from one that uses devices, and cannot use any itself."""


class UnavailableError(Error):
    """Not here or not now: no driver, no permission."""


class UnsupportedError(Error, NotImplementedError):
    """This device, or this build, cannot do it."""


_KINDS: dict[str, type[Error]] = {
    "INVALID_ARGUMENT": InvalidArgumentError,
    "OUT_OF_RANGE": InvalidArgumentError,
    "NOT_FOUND": NotFoundError,
    "RESOURCE_EXHAUSTED": OutOfMemoryError,
    "DEVICE_LOST": DeviceLostError,
    "DEADLINE_EXCEEDED": WaitTimeoutError,
    "FAILED_PRECONDITION": StateError,
    "UNAVAILABLE": UnavailableError,
    "UNIMPLEMENTED": UnsupportedError,
}


_observers: list[Callable[[OutOfMemoryError], None]] = []
# An observer that runs out of memory itself is not told of that.
_observed: ContextVar[bool] = ContextVar("keel observed", default=False)


def _tell(error: OutOfMemoryError) -> None:
    """The observers of keel.memory.on_out_of_memory. What they raise is printed."""
    if _observed.get():
        return
    token = _observed.set(True)
    try:
        for observer in tuple(_observers):
            try:
                observer(error)
            except Exception:
                import traceback

                traceback.print_exc()
    finally:
        _observed.reset(token)


def _exception_of(
    code: str, message: str, vendor_code: int, vendor_name: str, report: str, forked: bool
) -> Error:
    """For the extension: the exception for a status."""
    if forked:
        return ForkedProcessError(message, code, vendor_code, vendor_name)
    if code == "RESOURCE_EXHAUSTED":
        error = OutOfMemoryError(message, code, vendor_code, vendor_name, report)
        # A full disk or too many files are the system's (ENOSPC, EMFILE), not memory's.
        if not vendor_name.startswith("E"):
            _tell(error)
        return error
    return _KINDS.get(code, Error)(message, code, vendor_code, vendor_name)
