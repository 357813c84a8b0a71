#!/usr/bin/env python3
"""Makes src/drivers/cuda/standard_kernels_ptx.h from the kernels' one source.

Needs clang 19 and nothing of any toolkit: no headers, no libraries, no assembler. The result is
checked in, with the hash of what it was made from.

  make_ptx.py          writes the file
  make_ptx.py --check  fails if the file is stale: by the hash, and, where clang 19 is installed, by
                       making it again
"""

import argparse
import hashlib
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DRIVERS = ROOT / "src" / "drivers"
SOURCES = [
    DRIVERS / "cuda" / "standard_kernels.cu",
    DRIVERS / "shared" / "standard_kernels_body.h",
    DRIVERS / "shared" / "standard_kernels_entries.h",
]
RESULT = DRIVERS / "cuda" / "standard_kernels_ptx.h"
COMPILER = "clang++-19"
FLAGS = [
    "-x", "cuda", "--cuda-device-only", "-S", "-O2", "-std=c++20",
    # The oldest that is still of use; a driver compiles it for the device that it finds.
    "--cuda-gpu-arch=sm_70",
    # No fused multiply-add: the same bits as on the simulated device.
    "-ffp-contract=off",
    # Nothing of a toolkit, also where one is installed.
    "-nocudainc", "-nocudalib", "--cuda-path=/nonexistent",
]


def source_hash() -> str:
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for source in SOURCES:
        digest.update(source.read_bytes())
    return digest.hexdigest()


def make() -> str:
    command = [COMPILER, *FLAGS, str(SOURCES[0]), "-o", "-"]
    ptx = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Comments are the compiler's own, and half of the size.
    lines = [line.split("//")[0].rstrip() for line in ptx.splitlines()]
    body = "\n".join(line for line in lines if line)
    if ".local" in body:
        # An array that is not in registers, or a copy of a large argument: either makes a launch slow.
        raise SystemExit("a kernel uses local memory")
    return f"""// Made by tools/kernels/make_ptx.py; change its sources instead.
// From {source_hash()}
#pragma once

#include <string_view>

namespace keel::cuda {{

inline constexpr std::string_view kStandardKernelsPtx = R"ptx(
{body}
)ptx";

}}  // namespace keel::cuda
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if the result is stale")
    options = parser.parse_args()
    if not options.check:
        RESULT.write_text(make())
        print(f"wrote {RESULT.relative_to(ROOT)}")
        return 0
    advice = f"{RESULT.relative_to(ROOT)} is stale: run tools/kernels/make_ptx.py"
    have = RESULT.read_text()
    if f"// From {source_hash()}\n" not in have:
        print(f"{advice} (its sources changed)")
        return 1
    if shutil.which(COMPILER) and make() != have:
        print(f"{advice} (it was edited, or made by another compiler)")
        return 1
    print("the PTX is up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main())
