#!/usr/bin/env python3
"""Runs `keel bench` and stores what it measured.

Usage: cli.py [--bin DIR] [--out FILE] [--device NAME:N] NAME...
       cli.py --show FILE [--markdown] TABLE...
       cli.py --show FILE --into PAGE...

NAME is a benchmark of `keel bench`: alloc, churn, host, h2d, graph, primitives, task, train. Stored, with
machine, driver and commit, in benchmarks/results/<machine>-<date>-cli.json.

TABLE is one of what such a file shows: `graph`, what a step of 100 commands costs by policy, or
`graph-calls`, the same of small buffers with the driver's calls. `--into` writes them into pages of
docs/, between <!-- cli.py: TABLE --> and <!-- end -->.
"""

import argparse
import datetime
import json
import re
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


COMMANDS = 100  # of the programs that are shown
MOVING = ("none", "one", "half", "all")
KIB = 1024


def size(count):
    return f"{count // KIB**2} MiB" if count % KIB**2 == 0 else f"{count // KIB} KiB"


def graph_table(figures):
    """By policy, in the order of the file: host and device, over how much moves."""
    rows = {}
    for figure in figures:
        if figure["commands"] == COMMANDS:
            row = rows.setdefault((figure["kind"], size(figure["bytes"]), figure["policy"]), {})
            row[figure["moving"]] = f"{figure['host_us']:.1f} / {figure['device_us']:.1f}"
    return (("commands", "buffers", "policy", *(f"{moving} moving" for moving in MOVING)),
            [(*key, *(row.get(moving, "-") for moving in MOVING)) for key, row in rows.items()])


def graph_calls_table(figures):
    return (("moving", "way", "host, us", "device, us", "driver calls", "KiB copied"),
            [(f["moving"], f["policy"], f"{f['host_us']:.2f}", f"{f['device_us']:.1f}",
              f"{sum(f['driver_calls'].values()):.0f}", f"{f['bytes_copied'] / KIB:.0f}")
             for f in figures
             if (f["commands"], f["kind"], f["bytes"]) == (COMMANDS, "explicit", 4 * KIB)])


# The benchmark that a table shows, what makes it, and how many of its columns are words.
TABLES = {"graph": ("graph", graph_table, 3), "graph-calls": ("graph", graph_calls_table, 2)}


def table(stored, name):
    benchmark, make, _ = TABLES[name]
    if benchmark not in stored["benchmarks"]:
        raise record.RecordError(f"the file has no benchmark '{benchmark}'")
    return make(stored["benchmarks"][benchmark])


def markdown(stored, name):
    head, rows = table(stored, name)
    words = TABLES[name][2]
    lines = [head, ["---"] * words + ["---:"] * (len(head) - words), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def block(stored, file, name):
    """What stands between the marks of a page: where the figures are from, and the table."""
    device = stored["device"]
    return (f"From `benchmarks/results/{file}` ({device['name']}, driver {device['driver_version']}, "
            f"{stored['date'][:10]}):\n\n{markdown(stored, name)}")


MARK = "<!-- cli.py: "
BLOCK = re.compile(rf"(?<={re.escape(MARK)})([\w-]+)( -->\n)((?:(?!{re.escape(MARK)}).)*?)(?=<!-- end -->)",
                   re.DOTALL)


def put_into(page, stored, file):
    """The text of a page with its tables made anew."""
    if not BLOCK.search(page):
        raise record.RecordError("the page has no <!-- cli.py: TABLE --> with its <!-- end -->")
    if len(BLOCK.findall(page)) != page.count(MARK):
        raise record.RecordError("a <!-- cli.py: TABLE --> of the page has no <!-- end --> before the next")
    for found in BLOCK.finditer(page):
        if found[1] not in TABLES:
            raise record.RecordError(f"there is no table '{found[1]}': there are {', '.join(TABLES)}")
    return BLOCK.sub(lambda found: found[1] + found[2] + block(stored, file, found[1]), page)


def show(options):
    stored = json.loads(options.show.read_text(encoding="utf-8"))
    for page in options.into or ():
        text = put_into(page.read_text(encoding="utf-8"), stored, options.show.name)
        page.write_text(text, encoding="utf-8")
        print(f"written: {page}")
    for name in options.names:
        if name not in TABLES:
            raise record.RecordError(f"there is no table '{name}': there are {', '.join(TABLES)}")
        if options.markdown:
            print(markdown(stored, name), end="")
        else:
            record.print_table(table(stored, name))


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=record.ROOT / "build-release" / "bin", metavar="DIR")
    parser.add_argument("--out", type=Path, metavar="FILE")
    parser.add_argument("--device", metavar="NAME:N", help="default: the default device")
    parser.add_argument("--show", type=Path, metavar="FILE", help="measure nothing: show what a file has")
    parser.add_argument("--markdown", action="store_true", help="with --show: as Markdown")
    parser.add_argument("--into", type=Path, nargs="+", metavar="PAGE", help="with --show: write the tables there")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args(argv)
    if not options.names and not options.into:
        parser.error("say which benchmarks, or with --show which tables or pages")
    if (options.markdown or options.into) and not options.show:
        parser.error("--markdown and --into show a file: --show FILE")
    if options.show:
        show(options)
        return
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
