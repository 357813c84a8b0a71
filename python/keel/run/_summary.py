"""What a run did with memory, in numbers and for people."""

from __future__ import annotations

from typing import Any, NamedTuple

import keel
from keel._summary import aligned, size_text


class Usage(NamedTuple):
    """Of one device, since the process began or the program reset its peaks and sums."""

    device: str
    peak_allocated: int
    peak_reserved: int
    peak_requested: int
    allocations: int
    driver_calls: int
    """That took memory, or gave it back."""
    retries: int
    ooms: int

    @property
    def ratio(self) -> float:
        """What was held over what was asked for, each at its most."""
        return self.peak_reserved / self.peak_requested if self.peak_requested else 1.0

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "ratio": round(self.ratio, 4)}


def usage() -> list[Usage]:
    """Of the devices that somebody took memory from, or tried to."""
    found = []
    for device in keel.device.in_use():
        stats = keel.memory.memory_stats(device)
        one = Usage(
            device=device,
            peak_allocated=stats["allocated_bytes.all.peak"],
            peak_reserved=stats["reserved_bytes.all.peak"],
            peak_requested=stats["requested_bytes.all.peak"],
            allocations=stats["allocation.all.allocated"],
            driver_calls=stats["num_device_alloc"] + stats["num_device_free"],
            retries=stats["num_alloc_retries"],
            ooms=stats["num_ooms"],
        )
        if one.allocations or one.ooms:
            found.append(one)
    return found


def text(title: str, devices: list[Usage]) -> str:
    """Ends in a new line."""
    if not devices:
        return f"{title}: no device memory was used\n"
    rows: list[tuple[str, ...]] = [
        (
            "device",
            "peak allocated",
            "peak reserved",
            "/ requested",
            "allocations",
            "driver calls",
            "retries",
            "OOMs",
        )
    ]
    rows += [
        (
            one.device,
            size_text(one.peak_allocated, 1),
            size_text(one.peak_reserved, 1),
            f"{one.ratio:.3f}" if one.ratio < 100 else f"{one.ratio:.0f}",
            str(one.allocations),
            str(one.driver_calls),
            str(one.retries),
            str(one.ooms),
        )
        for one in devices
    ]
    return "".join(f"{line}\n" for line in (title, *(f"  {line}" for line in aligned(rows))))
