"""Devices: which there are, which is the current one, and how they reach each other.

A device is named by ``"driver:number"`` (``"sim:0"``), by a number (of the default driver's
devices), or by None, which is the current one. Nothing here opens a device unless it says so; what
opens one shares it with everybody in the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from keel import _keel
from keel._selection import DeviceLike, name_of, open_device
from keel._selection import current as _current
from keel._stream import Event, Stream, current_stream
from keel.errors import UnavailableError

__all__ = [
    "DeviceLike",
    "DeviceProperties",
    "Event",
    "Stream",
    "can_access_peer",
    "capabilities",
    "count",
    "current",
    "current_stream",
    "default_driver",
    "drivers",
    "enable_peer_access",
    "forget",
    "in_use",
    "is_available",
    "name",
    "peer_snapshot",
    "properties",
    "set_device",
    "synchronize",
    "use",
]


class DeviceProperties(NamedTuple):
    """What is known of a device without opening it."""

    driver: str
    ordinal: int
    name: str
    """For people."""
    identity: str
    """The same in every process."""
    architecture: str
    total_memory: int
    numa_node: int
    """Of the host memory nearest to it; -1: not known."""
    simulated: bool


def drivers() -> list[str]:
    """The drivers that Keel has, whether they have devices here or not."""
    return _keel.drivers()


def default_driver() -> str:
    """The driver of devices that are named by a number; see KEEL_DRIVER."""
    return _keel.default_driver()


def count(driver: str | None = None) -> int:
    """How many devices the driver has here; None: the default driver."""
    try:
        return len(_keel.enumerate_devices(default_driver() if driver is None else driver))
    except UnavailableError:
        return 0


def is_available(driver: str | None = None) -> bool:
    """Whether there is a device. The simulated one always is: ask for a driver by name."""
    return count(driver) > 0


def current() -> str:
    """The full name of the current device of this thread."""
    return name_of(None)


def set_device(device: DeviceLike) -> None:
    """Make it the current device of this thread, and of tasks that start from here."""
    _current.set(name_of(device))


@contextmanager
def use(device: DeviceLike) -> Iterator[str]:
    """The current device, for the time of a ``with``."""
    token = _current.set(name_of(device))
    try:
        yield _current.get()
    finally:
        _current.reset(token)


def properties(device: DeviceLike = None) -> DeviceProperties:
    driver, _, ordinal = name_of(device).rpartition(":")
    infos = _keel.enumerate_devices(driver)
    return DeviceProperties(**next(info for info in infos if info["ordinal"] == int(ordinal)))


def name(device: DeviceLike = None) -> str:
    """The device's name for people."""
    return properties(device).name


def capabilities(device: DeviceLike = None) -> dict[str, bool | int]:
    """What the device can do. Opens it."""
    return open_device(device).capabilities()


def synchronize(device: DeviceLike = None, timeout: float | None = None) -> None:
    """Wait for all work that Keel's streams have on the device. Opens it.

    WaitTimeoutError after ``timeout`` seconds; the work goes on.
    """
    _keel.synchronize_device(open_device(device), timeout)


def in_use() -> list[str]:
    """The devices that the process has opened."""
    return [device.name for device in _keel.devices_in_use()]


def forget(device: DeviceLike = None) -> None:
    """Let go of a device, which closes it once no array and no stream of it is left.

    The next use opens it anew: the way back after a DeviceLostError. NotFoundError if it is not in
    use.
    """
    _keel.forget_device(name_of(device))


def can_access_peer(device: DeviceLike, peer: DeviceLike) -> bool:
    """Whether the device can reach memory of the peer. Opens both."""
    return open_device(device).can_access_peer(open_device(peer))


def enable_peer_access(device: DeviceLike, peer: DeviceLike) -> None:
    """Let the device reach memory of the peer, what there is and what will be. Again: nothing.

    Devices of one driver that the process uses are each other's peers by themselves, where they can
    be; here one that cannot is an error. Opens both.
    """
    open_device(device).enable_peer_access(open_device(peer))


def peer_snapshot(devices: Iterable[DeviceLike] | None = None) -> dict[str, dict[str, bool]]:
    """Who reaches whose memory, ``{device: {peer: reaches}}``: of these, or of all in use."""
    chosen = (
        _keel.devices_in_use() if devices is None else [open_device(device) for device in devices]
    )
    return {
        device.name: {
            peer.name: device.can_access_peer(peer) for peer in chosen if peer.name != device.name
        }
        for device in chosen
    }
