#!/usr/bin/env python3
"""Runs the benchmark programs and stores every figure with what it was measured on.

Usage: record.py [--bin DIR] [--out FILE] [--quick] [--benchmark_...]
       record.py --show FILE [--markdown]

Runs every *_bench in DIR (default build-release/bin), showing its own output, and writes one JSON
object: the machine, the driver and device, the commit, the date, and all figures. FILE defaults to
benchmarks/results/<machine>-<date>.json, where a machine with a real device is named after that.
Options that start with --benchmark_ go to the programs;
with --benchmark_filter and without --out nothing is stored, so that a part never replaces a whole.
--show prints the tables of a file that was stored.
"""

import argparse
import datetime
import json
import os
import re
import statistics
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


# What a primitive may cost through Keel: so many times the direct call, or so much more per call.
BUDGET_RATIO, BUDGET_NS = 1.05, 100
REFERENCE = ROOT / "benchmarks" / "reference.json"


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

    # A copy of the tree without its history, or with an older one, can be told which commit it is.
    told = os.environ.get("KEEL_COMMIT")
    if told:
        return {"commit": told, "modified": None}
    commit = git("rev-parse", "--verify", "HEAD")
    return {"commit": commit, "modified": bool(git("status", "--porcelain")) if commit else None}


def driver_version():
    """Of the kernel's module, where it says so."""
    return first_line("/proc/driver/nvidia/version", r"Kernel Module.*?\s(\d+\.[\d.]+)", None)


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
        "driver_version": None if device["simulated"] else driver_version(),
        **{key: device[key] for key in kept},
        "memory_bytes": device["memory"]["total"],
    }


def machine_slug(machine, device):
    """A short name for files: a real device's, or 'Example(R) CPU X-1 @ 2GHz' on 8 cores:
    example-x-1-8."""
    if not device["simulated"]:
        return "-".join(re.findall(r"[a-z0-9.]+", device["name"].lower()))
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


def compare(figures):
    """The operations that a driver's benchmark measured in turns, <operation>/<way>/<turn>: medians
    of the direct call and of the same through Keel, in nanoseconds, what Keel adds, and whether that
    is in budget. What it adds is the median over the turns of the difference within a turn: the two
    ways of a turn ran one after the other, on a machine in the same state.
    A label says why an operation's two ways are not the same work: it is held to no budget."""
    turns, calls, unlike = {}, {}, {}
    for figure in figures:
        match = re.fullmatch(r"(.+)/(direct|device)/(\d+)", figure["name"])
        if match is None or figure.get("error_occurred"):
            continue
        operation, way, turn = match.groups()
        turns.setdefault(operation, {}).setdefault(way, {})[turn] = figure["real_time"]
        calls[operation] = int(figure.get("calls", 1))
        unlike[operation] = figure.get("label")
    reference = json.loads(REFERENCE.read_text(encoding="utf-8"))["ns"]
    rows = []
    for operation, ways in turns.items():
        if len(ways) < 2:
            continue
        paired = ways["direct"].keys() & ways["device"].keys()
        if not paired:
            continue
        direct, device = (statistics.median(ways[way].values()) for way in ("direct", "device"))
        more = statistics.median(ways["device"][turn] - ways["direct"][turn] for turn in paired)
        budget = max(direct * (BUDGET_RATIO - 1), BUDGET_NS * calls[operation])
        rows.append({
            "operation": operation,
            "calls": calls[operation],
            "direct_ns": round(direct, 1),
            "device_ns": round(device, 1),
            "more_ns": round(more, 1),
            "within_budget": None if unlike[operation] else more <= budget,
            "unlike": unlike[operation],
            "reference_ns": reference.get(operation),
        })
    return rows


def ways_table(figures):
    """The operations that were measured in several ways. CPU time of the caller: unlike the clock,
    it does not count what else ran on the machine."""
    rows = {}
    for figure in figures:
        operation, _, way = figure["name"].rpartition("/")
        if way in WAYS and not figure.get("error_occurred"):
            rows.setdefault(operation, {})[way] = figure["cpu_time"]
    return ("CPU nanoseconds", *WAYS), [
        (operation, *(f"{times[way]:,.1f}" if way in times else "-" for way in WAYS))
        for operation, times in rows.items()
    ]


def comparison_table(rows):
    return ("nanoseconds", "direct", "through Keel", "ratio", "more per call", "reference", ""), [
        (row["operation"], f"{row['direct_ns']:,.0f}", f"{row['device_ns']:,.0f}",
         f"{1 + row['more_ns'] / row['direct_ns']:.2f}",
         f"{row['more_ns'] / row['calls']:+,.0f}",
         f"{row['reference_ns']:,.0f}" if row["reference_ns"] else "-",
         {True: "", False: "over", None: "not compared"}[row["within_budget"]])
        for row in rows
    ]


def print_table(table, markdown=False):
    head, rows = table
    if not rows:
        return
    print()
    if markdown:
        print("| " + " | ".join(head) + " |")
        print("| --- |" + " ---: |" * (len(head) - 1))
        for row in rows:
            print("| " + " | ".join(row) + " |")
        return
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  ".join(cells).rstrip())


def print_record(record, markdown=False):
    print_table(ways_table([f for p in record["programs"] for f in p["figures"]]), markdown)
    rows = record.get("comparison", [])  # older files have none
    print_table(comparison_table(rows), markdown)
    if rows:
        compared = [row["within_budget"] for row in rows if row["within_budget"] is not None]
        print(f"\n{sum(compared)} of {len(compared)} operations cost at most {BUDGET_RATIO} times "
              f"the direct call, or {BUDGET_NS} ns more for each call")
        for row in rows:
            if row.get("unlike"):
                print(f"not compared: {row['operation']}: {row['unlike']}")


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
    parser.add_argument("--stored", type=Path, metavar="FILE",
                        help="write the name of the file that was stored into FILE")
    parser.add_argument("--show", type=Path, metavar="FILE", help="print a stored file's tables")
    parser.add_argument("--markdown", action="store_true", help="with --show: as Markdown")
    options, rest = parser.parse_known_args(argv)
    for option in rest:
        if not option.startswith("--benchmark_"):
            parser.error(f"unknown option '{option}'")
    return options, rest


def main(argv):
    options, passed_on = parse(argv)
    if options.show is not None:
        print_record(json.loads(options.show.read_text(encoding="utf-8")), options.markdown)
        return
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
    # A driver's program has nothing to say where its device is not there.
    record["programs"] = [program for program in record["programs"] if program["figures"]]
    record["comparison"] = compare([f for p in record["programs"] for f in p["figures"]])
    print_record(record)

    out = options.out
    partial = options.quick or any(o.startswith("--benchmark_filter") for o in passed_on)
    if out is None and partial:
        print("\nnot stored, because it is not a full run; --out FILE stores it")
        return
    if out is None:
        out = ROOT / "benchmarks" / "results" / f"{machine_slug(machine, device)}-{now:%Y-%m-%d}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"\nstored in {os.path.relpath(out)}")
    if options.stored is not None:
        options.stored.write_text(os.path.relpath(out) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except RecordError as error:
        print(f"record.py: {error}", file=sys.stderr)
        sys.exit(1)
