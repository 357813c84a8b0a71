#!/usr/bin/env python3
"""Replays histories through the allocator's configurations and stores what each would have reserved.

Usage: replay.py [--keel PROGRAM] [--out FILE] [--device NAME:N] HISTORY...
       replay.py --show FILE [--markdown]

Runs `keel replay` on each history: the defaults with work that is done at once and 5 ms later, and
plain segments. On the simulated device the result is the same on every machine. On a device that is
named, the defaults only, and once more with real work on its streams (--work). FILE defaults to
benchmarks/results/replay-<date>.json.
"""

import argparse
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

import record

RUNS = (("--conf", "", "--lag", "0"), ("--conf", "", "--lag", "5ms"),
        ("--conf", "expandable_segments:false", "--lag", "0"))
DEVICE_RUNS = (*RUNS[:2], ("--work",))


def replay(program, history, device):
    rows = []
    for options in DEVICE_RUNS if device else RUNS:
        command = [program, "replay", str(history), *options, "--json"]
        command += ["--device", device] if device else []
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            raise record.RecordError(f"keel replay {history}: {run.stderr.strip()}")
        rows += [{**row, "work": "--work" in options} for row in json.loads(run.stdout)]
    for row in rows:
        del row["ns_per_operation"]  # of this machine, which the rest is not
    return rows


def table(stored):
    head = ["history", "configuration", "lag, ms", "reserved / requested", "driver calls, % of the time"]
    rows = []
    for name, results in stored["histories"].items():
        for row in results:
            rows.append([name, row["conf"] or "defaults", "real work" if row.get("work") else f"{row['lag_us'] / 1000:g}",
                         f"{row['ratio']:.4f}",
                         f"{100 * row['driver_us'] / row['recorded_us']:.2f}"])
    return head, rows


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keel", default=str(record.ROOT / "build-release" / "bin" / "keel"), metavar="PROGRAM")
    parser.add_argument("--out", type=Path, metavar="FILE")
    parser.add_argument("--device", metavar="NAME:N")
    parser.add_argument("--show", type=Path, metavar="FILE")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("histories", nargs="*", type=Path, metavar="HISTORY")
    options = parser.parse_args(argv)
    if options.show:
        record.print_table(table(json.loads(options.show.read_text(encoding="utf-8"))), options.markdown)
        return
    now = datetime.datetime.now(datetime.timezone.utc)
    stored = {"format": 1, "date": now.strftime("%Y-%m-%dT%H:%M:%SZ"), **record.describe_source(),
              **({"machine": record.describe_machine(), "device": options.device} if options.device else {}),
              "histories": {}}
    for history in options.histories:
        stored["histories"][re.sub(r"\..*", "", history.name)] = replay(options.keel, history, options.device)
    out = options.out or record.ROOT / "benchmarks" / "results" / f"replay-{now:%Y-%m-%d}.json"
    out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    record.print_table(table(stored))
    print(f"\nstored in {out}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except record.RecordError as error:
        print(f"replay.py: {error}", file=sys.stderr)
        sys.exit(1)
