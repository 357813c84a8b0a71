"""The table of memory_summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


def size_text(value: int, decimals: int = 0) -> str:
    """Without decimals the unit is small enough that the first four digits are seen."""
    limit = 1024 if decimals else 10240
    amount, unit = float(value), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(amount) < limit:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.{decimals if unit != 'B' else 0}f} {unit}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def summarize(device: str, stats: Mapping[str, int], abbreviated: bool) -> str:
    rows: list[tuple[str, ...]] = [("memory of " + device, *_HEADINGS)]
    for metrics, show in ((_BYTES, size_text), (_COUNTS, str)):
        for title, key in metrics:
            for suffix, pool in _POOLS[:1] if abbreviated else _POOLS:
                values = (show(stats[f"{key}.{pool}.{column}"]) for column in _COLUMNS)
                rows.append((suffix or title, *values))
    lines = aligned(rows)
    lines.insert(1, "-" * len(lines[0]))
    lines.append("-" * len(lines[0]))
    lines.append(
        f"out of memory {stats['num_ooms']} times; {stats['num_alloc_retries']} requests succeeded "
        "after memory was given back"
    )
    return "\n".join(line.rstrip() for line in lines)
