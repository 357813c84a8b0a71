#!/usr/bin/env python3
"""Runs a test's command where the tool that it needs is installed.

It is looked for when the test runs: a tree that was configured before it was installed has the test
all the same, and without it the test says so and is skipped.

Usage: if_installed.py TOOL COMMAND...   Ends as the command does, or with 77 without the tool.
"""

import shutil
import subprocess
import sys

SKIPPED = 77


def main(tool: str, command: list[str]) -> int:
    if shutil.which(tool) is None:
        print(f"skipped: {tool} is not installed")
        return SKIPPED
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
