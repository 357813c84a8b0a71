#!/usr/bin/env python3
"""Runs `keel bench` and stores what it measured.

Usage: cli.py [--bin DIR] [--out FILE] [--device NAME:N] NAME...

NAME is a benchmark of `keel bench`: alloc, churn, host, h2d, graph, task, train. Stored, with machine, driver
and commit, in benchmarks/results/<machine>-<date>-cli.json.
"""

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path

import record


def measure(program, name, device):
    command = [str(program), "bench", name, "--json"]
    command += ["--device", device] if device else []
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise record.RecordError(f"keel bench {name}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=record.ROOT / "build-release" / "bin", metavar="DIR")
    parser.add_argument("--out", type=Path, metavar="FILE")
    parser.add_argument("--device", metavar="NAME:N", help="default: the default device")
    parser.add_argument("names", nargs="+", metavar="NAME")
    options = parser.parse_args(argv)
    now = datetime.datetime.now(datetime.timezone.utc)
    machine = record.describe_machine()
    version, device = record.describe_device(options.bin)
    stored = {"format": 1, "date": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "version": version,
              **record.describe_source(), "machine": machine, "device": device, "benchmarks": {}}
    for name in options.names:
        print(f"keel bench {name} ...", flush=True)
        stored["benchmarks"][name] = measure(options.bin / "keel", name, options.device)
    slug = record.machine_slug(machine, device)
    out = options.out or record.ROOT / "benchmarks" / "results" / f"{slug}-{now:%Y-%m-%d}-cli.json"
    out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    print(f"stored in {out}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except record.RecordError as error:
        print(f"cli.py: {error}", file=sys.stderr)
        sys.exit(1)
