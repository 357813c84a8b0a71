#!/usr/bin/env python3
"""Checks that no vendor's name appears in src/ or include/ outside its own driver.

A vendor's driver is src/drivers/<vendor>/ and include/keel/drivers/<vendor>.h. Comments and file
names count. A line that must name a vendor says why at its end: // vendor-ok: <reason>

Usage: vendor_names.py [ROOT]   Prints file:line for every violation and exits 1 if there is one.
"""

import re
import sys
from pathlib import Path


def word(name):
    """A name as a word or as a part of an identifier (kHip, hip_x, HIP_X), but not inside another
    word (chip)."""
    capital = name.capitalize()
    return rf"(?:(?<![A-Za-z])(?i:{name})|(?<=[a-z]){capital})(?![a-z])"


# Per driver's folder: how its vendor shows. Names that occur in no English word match anywhere.
VENDORS = {
    "cuda": [r"(?i:cuda|nvidia|nvml|nvrtc)", r"\bcu[A-Z]\w+", r"\bCU_[A-Z]\w+", r"\bCU[a-z]\w+"],
    "hip": [word("hip"), r"(?i:rocm)", word("amd") + r"(?!64)"],
    "musa": [r"(?i:musa)", r"(?i:moore\s?threads)", r"\bmu[A-Z]\w+", r"\bMU_[A-Z]\w+"],
}
PATTERNS = {vendor: re.compile("|".join(p)) for vendor, p in VENDORS.items()}
CODE_SUFFIXES = {".h", ".cc", ".c", ".inc"}
ALLOWED = re.compile(r"//\s*vendor-ok:\s*\S")


def owner(parts):
    """The vendor whose driver a file belongs to, or None."""
    if parts[:2] == ("src", "drivers") and len(parts) > 3:
        return parts[2]
    if parts[:3] == ("include", "keel", "drivers") and len(parts) > 3:
        return Path(parts[3]).stem
    return None


def check(root):
    problems = []
    for top in ("src", "include"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in CODE_SUFFIXES or not path.is_file():
                continue
            where = path.relative_to(root)
            foreign = {v: p for v, p in PATTERNS.items() if v != owner(where.parts)}
            for vendor, pattern in foreign.items():
                if pattern.search(path.name):
                    problems.append(
                        f"{where}:1: the file's name names a vendor; move it to src/drivers/{vendor}/"
                    )
            text = path.read_text(encoding="utf-8", errors="replace")
            for number, line in enumerate(text.splitlines(), 1):
                if ALLOWED.search(line):
                    continue
                for vendor, pattern in foreign.items():
                    match = pattern.search(line)
                    if match:
                        problems.append(
                            f"{where}:{number}: '{match[0]}' names a vendor; say it neutrally, move "
                            f"it to src/drivers/{vendor}/, or end the line in // vendor-ok: <reason>"
                        )
    return problems


def main(argv):
    root = Path(argv[1]) if len(argv) > 1 else Path(__file__).resolve().parents[2]
    problems = check(root)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
