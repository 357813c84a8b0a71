#!/usr/bin/env python3
"""Checks that libkeel.so exports names of Keel only: namespace keel, its type information, keel_*.

In particular nothing of fmt and spdlog, which are compiled in: another copy of them in the same
process must not meet ours. And that the C functions are exactly those of a list, which only grows,
and of the headers.

Usage: exports_test.py NM LIBRARY FUNCTIONS HEADER...
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


def wrong_functions(exported_names, functions, headers):
    """What is wrong with the C functions, as lines."""
    rows = [line.split() for line in open(functions, encoding="utf-8")
            if line.strip() and not line.startswith("#")]
    levels = [int(level) for level, _ in rows]
    listed = [name for _, name in rows]
    text = "".join(open(header, encoding="utf-8").read() for header in headers)
    declared = re.findall(r"^KEEL_C_EXPORT[\w\s*]*?\b(keel_\w+)\(", text, re.MULTILINE)
    newest = int(re.search(r"#define KEEL_C_LEVEL (\d+)", text).group(1))
    lines = []
    for name in listed:
        if name not in exported_names:
            lines.append(f"{name} is not exported any more, and programs call it")
        if name not in declared:
            lines.append(f"{name} is not in a header any more")
    for name in sorted({*exported_names, *declared} - {*listed}):
        lines.append(f"{name} is new: add it at the end of {functions}, with its level")
    if levels != sorted(levels) or levels[-1] != newest or len({*listed}) != len(listed):
        lines.append(f"{functions}: levels rise to KEEL_C_LEVEL, {newest}, and no name comes twice")
    return lines


def main():
    nm, library, functions, *headers = sys.argv[1:]
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
    wrong = wrong_functions([s for _, s in mangled if s.startswith("keel_")], functions, headers)
    for line in wrong:
        print(line)
    return 1 if foreign or wrong or not mangled else 0


if __name__ == "__main__":
    sys.exit(main())
