"""Which device is meant: names, numbers, and the current one."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TypeAlias

from keel import _keel

# None: the current device. A number: a device of the default driver. A name: "sim:0".
DeviceLike: TypeAlias = "int | str | None"

# Of the thread, or of the task of asyncio; the empty name is device 0 of the default driver.
current: ContextVar[str] = ContextVar("keel device", default="")


def name_of(device: DeviceLike) -> str:
    """The full name of a device that is there. Opens nothing."""
    return _keel.full_name(current.get() if device is None else words_of(device))


def words_of(device: int | str) -> str:
    """As it was said: for a process that may have other devices than this one."""
    if isinstance(device, str):
        if not device:
            raise ValueError('an empty name is no device; "sim:0" or 0 is one')
        return device
    if isinstance(device, int) and not isinstance(device, bool):
        if device < 0:
            raise ValueError(f"devices are numbered from 0, not {device}")
        return str(device)
    raise TypeError(
        f'a device is None (the current one), a number or a name such as "sim:0", not '
        f"{type(device).__name__}"
    )


def open_device(device: DeviceLike) -> _keel.Device:
    """The device, with the allocators of the process; opened now if nobody did before."""
    return _keel.open_device(name_of(device))


def find_in_use(device: DeviceLike) -> _keel.Device | None:
    """The device, if the process uses it already."""
    name = name_of(device)
    return next((used for used in _keel.devices_in_use() if used.name == name), None)
