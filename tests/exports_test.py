#!/usr/bin/env python3
"""Checks that libkeel.so exports names of Keel only: namespace keel, its type information, keel_*.

In particular nothing of fmt and spdlog, which are compiled in: another copy of them in the same
process must not meet ours.

Usage: exports_test.py NM LIBRARY
"""

import re
import subprocess
import sys

# Itanium mangling: an entity in namespace keel, or data the compiler makes for one.
OURS = re.compile(r"keel_\w+|_Z(?:T[ISVTCHW]|T[hv]\w*?_|GV)?N[KRO]*4keel\w*")
FOREIGN = re.compile(r"\b(fmt|spdlog)::")


def exported(nm, library, *options):
    command = [nm, "-D", "-p", "--defined-only", *options, library]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    # "address type name"; the name may contain spaces when demangled. Version nodes have type A.
    rows = (line.split(maxsplit=2) for line in lines)
    return [(row[1], row[2].split("@@")[0]) for row in rows if len(row) == 3]


def main():
    nm, library = sys.argv[1:]
    mangled = exported(nm, library)
    readable = exported(nm, library, "-C")
    assert len(mangled) == len(readable)
    foreign = [
        f"{kind} {name}"
        for (kind, symbol), (_, name) in zip(mangled, readable)
        if not OURS.fullmatch(symbol) or FOREIGN.search(name)
    ]
    for name in foreign:
        print(f"{library}: exports a name that is not Keel's: {name}")
    if not mangled:
        print(f"{library}: exports nothing; is KEEL_EXPORT missing?")
    print(f"{len(mangled)} exported names, {len(foreign)} of them foreign")
    return 1 if foreign or not mangled else 0


if __name__ == "__main__":
    sys.exit(main())
