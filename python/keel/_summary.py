"""The table of memory_summary."""

from __future__ import annotations

from collections.abc import Mapping

_COLUMNS = ("current", "peak", "allocated", "freed")
_HEADINGS = ("now", "peak", "total in", "total out")
_POOLS = (("", "all"), ("  large pool", "large_pool"), ("  small pool", "small_pool"))
_BYTES = (
    ("allocated", "allocated_bytes"),
    ("active", "active_bytes"),
    ("requested", "requested_bytes"),
    ("reserved", "reserved_bytes"),
    ("free in split segments", "inactive_split_bytes"),
)
_COUNTS = (
    ("allocations", "allocation"),
    ("active allocations", "active"),
    ("segments", "segment"),
    ("free blocks in split segments", "inactive_split"),
)


def _size(value: int) -> str:
    amount, unit = float(value), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(amount) < 10240:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.0f} {unit}"


def summarize(device: str, stats: Mapping[str, int], abbreviated: bool) -> str:
    rows: list[tuple[str, ...]] = [("memory of " + device, *_HEADINGS)]
    for metrics, show in ((_BYTES, _size), (_COUNTS, str)):
        for title, key in metrics:
            for suffix, pool in _POOLS[:1] if abbreviated else _POOLS:
                values = (show(stats[f"{key}.{pool}.{column}"]) for column in _COLUMNS)
                rows.append((suffix or title, *values))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    lines.insert(1, "-" * len(lines[0]))
    lines.append("-" * len(lines[0]))
    lines.append(
        f"out of memory {stats['num_ooms']} times; {stats['num_alloc_retries']} requests succeeded "
        "after memory was given back"
    )
    return "\n".join(line.rstrip() for line in lines)
