#!/usr/bin/env python3
"""Checks slots.pml with spin: every interleaving, and that each rule of the protocol is needed.

Usage: check_model.py SPIN CC
"""

import pathlib
import re
import subprocess
import sys
import tempfile

MODEL = pathlib.Path(__file__).resolve().with_name("slots.pml")
RULES = re.findall(r"^ \*   ([A-Z_]+) ", MODEL.read_text(), re.MULTILINE)
OF_GIVEN_BACK = ("WITHOUT_END_RULE", "WITHOUT_KEPT_RULE")


def check(spin: str, compiler: str, defines: list[str]) -> tuple[int, str]:
    """How many errors there are, and what the verifier said."""
    with tempfile.TemporaryDirectory() as folder:
        flags = [f"-D{define}" for define in defines]
        subprocess.run([spin, *flags, "-a", str(MODEL)], cwd=folder, check=True,
                       capture_output=True, text=True)
        subprocess.run([compiler, "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"],
                       cwd=folder, check=True)
        ran = subprocess.run(["./pan", "-m200000"], cwd=folder, check=False, capture_output=True,
                             text=True)
    found = re.search(r"errors: (\d+)", ran.stdout)
    if found is None or "max search depth too small" in ran.stdout:
        raise SystemExit(f"the verifier did not finish:\n{ran.stdout}{ran.stderr}")
    return int(found.group(1)), ran.stdout


def main(spin: str, compiler: str) -> int:
    failed = len(RULES) < 8
    if failed:
        print(f"the model names {len(RULES)} rules, not 8")
    for mode in ([], ["BY_VALUE"], ["GIVEN_BACK"]):
        name = "".join(f" {define}" for define in mode)
        errors, said = check(spin, compiler, mode)
        states = re.search(r"([0-9.e+]+) states, stored", said)
        print(f"the protocol{name}: {errors} errors in {states.group(1) if states else '?'} states")
        if errors:
            print(said)
            failed = True
        for rule in RULES:
            if rule == "WITHOUT_TABLE_RULE" and "BY_VALUE" in mode:
                continue
            # The others were taken out without it.
            if (rule in OF_GIVEN_BACK) != ("GIVEN_BACK" in mode):
                continue
            errors, _ = check(spin, compiler, [*mode, rule])
            print(f"{rule}{name}: {'found' if errors else 'NOT FOUND'}")
            failed |= errors == 0
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
