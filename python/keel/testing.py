"""What a test can do to a simulated device, so that how a program fails can be tested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from keel._selection import DeviceLike, open_device
from keel._stream import Stream

__all__ = ["hold", "lose_device"]


def lose_device(device: DeviceLike = None, reason: str = "lost by a test") -> None:
    """Lose the device as a fault would: what needs it raises DeviceLostError with this reason."""
    open_device(device).lose(reason)


@contextmanager
def hold(stream: Stream) -> Iterator[None]:
    """Nothing that is put on the stream starts inside the ``with``."""
    stream._raw.hold()
    try:
        yield
    finally:
        stream._raw.release()
