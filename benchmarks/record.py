#!/usr/bin/env python3
"""Runs the benchmark programs and stores every figure with what it was measured on.

Usage: record.py [--bin DIR] [--out FILE] [--quick] [--benchmark_...]

Runs every *_bench in DIR (default build-release/bin), showing its own output, and writes one JSON
object: the machine, the driver and device, the commit, the date, and all figures. FILE defaults to
benchmarks/results/<machine>-<date>.json. Options that start with --benchmark_ go to the programs;
with --benchmark_filter and without --out nothing is stored, so that a part never replaces a whole.
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What a run says about itself and its figures; everything else (paths, the host's name) is left out.
CONTEXT_KEYS = ("num_cpus", "mhz_per_cpu", "cpu_scaling_enabled", "library_build_type", "caches")
FIGURE_DROPS = ("family_index", "per_family_instance_index", "run_name", "threads", "repetitions",
                "repetition_index")
WAYS = ("direct", "device", "instrumented", "owner")


class RecordError(Exception):
    pass


def first_line(path, pattern, default):
    try:
        match = re.search(pattern, Path(path).read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return default
    return match[1].strip() if match else default


def describe_machine():
    memory_kib = int(first_line("/proc/meminfo", r"^MemTotal:\s*(\d+) kB", "0"))
    return {
        "cpu": first_line("/proc/cpuinfo", r"^model name\s*:\s*(.*)$", os.uname().machine),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory_kib * 1024,
        "system": f"{os.uname().sysname} {os.uname().release}",
    }


def describe_source():
    def git(*arguments):
        run = subprocess.run(("git", "-C", str(ROOT), *arguments), capture_output=True, text=True)
        return run.stdout.strip() if run.returncode == 0 else None

    # A copy of the tree without its history can be told which commit it is.
    commit = git("rev-parse", "--verify", "HEAD") or os.environ.get("KEEL_COMMIT")
    return {"commit": commit, "modified": bool(git("status", "--porcelain")) if commit else None}


def describe_device(bin_dir):
    """The default driver and device, which the benchmarks use, as the command line reports them."""
    program = bin_dir / "keel"
    if not program.exists():
        raise RecordError(f"{program} is missing; build it first")
    run = subprocess.run((str(program), "info", "--json"), capture_output=True, text=True)
    if run.returncode != 0:
        raise RecordError(f"keel info failed: {run.stderr.strip()}")
    info = json.loads(run.stdout)
    chosen = info["default"]
    driver = next(d for d in info["drivers"] if d["name"] == chosen["driver"])
    device = next(d for d in driver["devices"] if d["ordinal"] == chosen["device"])
    kept = ("name", "architecture", "simulated", "granularity")
    return info["version"], {
        "driver": driver["name"],
        **{key: device[key] for key in kept},
        "memory_bytes": device["memory"]["total"],
    }


def machine_slug(machine):
    """A short name for files: 'Example(R) CPU X-1 @ 2GHz' on 8 cores: example-x-1-8."""
    name = re.sub(r"\(.*?\)|@.*$|\b(CPU|Processor)\b", " ", machine["cpu"])
    words = re.findall(r"[a-z0-9.]+", name.lower())
    return "-".join(words + [str(machine["cores"])])


def run_program(program, options):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = (str(program), f"--benchmark_out={out}", "--benchmark_out_format=json", *options)
        print(f"\n== {program.name}", flush=True)
        code = subprocess.run(command).returncode
        if code != 0:
            raise RecordError(f"{program.name} ended with {code}")
        text = out.read_text(encoding="utf-8") if out.exists() else ""
    # A filter that matches nothing leaves no figures.
    result = json.loads(text) if text.strip() else {"context": {}, "benchmarks": []}
    figures = [
        {key: value for key, value in figure.items() if key not in FIGURE_DROPS}
        for figure in result["benchmarks"]
    ]
    return {
        "program": program.name,
        "context": {k: result["context"][k] for k in CONTEXT_KEYS if k in result["context"]},
        "figures": figures,
    }


def print_ways(figures):
    """The operations that were measured in several ways, side by side. CPU time of the caller:
    unlike the clock, it does not count what else ran on the machine."""
    rows = {}
    for figure in figures:
        operation, _, way = figure["name"].rpartition("/")
        if way in WAYS and not figure.get("error_occurred"):
            rows.setdefault(operation, {})[way] = figure["cpu_time"]
    if not rows:
        return
    width = max(len(operation) for operation in rows)
    print(f"\n{'CPU nanoseconds':<{width}}" + "".join(f"{way:>14}" for way in WAYS))
    for operation, times in rows.items():
        cells = (f"{times[way]:>14.1f}" if way in times else f"{'-':>14}" for way in WAYS)
        print(f"{operation:<{width}}" + "".join(cells))


def parse(argv):
    parser = argparse.ArgumentParser(
        description="Runs the benchmark programs and stores every figure.",
        epilog="Options that start with --benchmark_ go to the programs.",
    )
    parser.add_argument("--bin", type=Path, default=ROOT / "build-release" / "bin", metavar="DIR",
                        help="where the programs are (default: build-release/bin)")
    parser.add_argument("--out", type=Path, metavar="FILE",
                        help="default: benchmarks/results/<machine>-<date>.json")
    parser.add_argument("--quick", action="store_true",
                        help="run each for a moment only: to see that it works, not to compare")
    options, rest = parser.parse_known_args(argv)
    for option in rest:
        if not option.startswith("--benchmark_"):
            parser.error(f"unknown option '{option}'")
    return options, rest


def main(argv):
    options, passed_on = parse(argv)
    # Before the caller's own, which win.
    if options.quick:
        passed_on.insert(0, "--benchmark_min_time=0.001")
    programs = sorted(options.bin.glob("*_bench"))
    if not programs:
        raise RecordError(f"no *_bench in {options.bin}; build them first")

    now = datetime.datetime.now(datetime.timezone.utc)
    machine = describe_machine()
    version, device = describe_device(options.bin)
    record = {
        "format": 1,
        "date": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "version": version,
        **describe_source(),
        "machine": machine,
        "device": device,
        "quick": options.quick,
        "programs": [run_program(program, passed_on) for program in programs],
    }
    print_ways([figure for program in record["programs"] for figure in program["figures"]])

    out = options.out
    partial = options.quick or any(o.startswith("--benchmark_filter") for o in passed_on)
    if out is None and partial:
        print("\nnot stored, because it is not a full run; --out FILE stores it")
        return
    if out is None:
        out = ROOT / "benchmarks" / "results" / f"{machine_slug(machine)}-{now:%Y-%m-%d}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"\nstored in {os.path.relpath(out)}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except RecordError as error:
        print(f"record.py: {error}", file=sys.stderr)
        sys.exit(1)
