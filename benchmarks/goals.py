#!/usr/bin/env python3
"""Says which of the goals that Keel has set itself are met by what was measured.

Usage: goals.py FILE...

FILE is what cli.py stored of `keel bench graph` or `keel bench task`, or what torch/graphs.py stored. One line for
each goal: whether it is met, what is wanted, and the row that is nearest to missing it or misses it most. Exit
code 1 if one is missed; a goal that no row of the files is about is not. The goals are for an NVIDIA H200.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Callable, NamedTuple

import record

COMMANDS = 100  # of the programs of graphs that are judged
BINDINGS = 64  # that those have
STEADY = ("resident", "in-place")
COPIES = ("copy", "copy-table")
FIXED = (*STEADY, *COPIES, "patch", "remap", "retrace")
PYTORCH = ("make_graphed", "by-hand", "reduce-overhead")
GIB = 1 << 30


class Row(NamedTuple):
    name: str
    value: float


class Goal(NamedTuple):
    wanted: str
    most: float  # or, where `least` is set, the other bound
    unit: str
    rows: Callable  # of the figures that it judges, by the kind of file
    kind: str
    least: bool = False

    def excess(self, value):
        """How far it is beyond the bound; below zero: met with as much to spare."""
        return self.most - value if self.least else value - self.most


# --- Graphs ---------------------------------------------------------------------------------------


def size(count):
    return f"{count >> 20} MiB" if count % (1 << 20) == 0 else f"{count >> 10} KiB"


class Steps:
    """The steps of COMMANDS commands: by kind, size of the buffers and how many move."""

    def __init__(self, figures):
        self.groups = {}
        for figure in figures:
            if figure["commands"] == COMMANDS:
                key = figure["kind"], figure["bytes"], figure["moving"]
                self.groups.setdefault(key, {})[figure["policy"]] = figure

    def beside(self, moving, ways, other, value):
        """What `value` makes of each of these ways and of another one in the same group."""
        for (kind, count, found), group in self.groups.items():
            for way in ways:
                if found == moving and way in group and other in group:
                    yield Row(f"{way}, {kind}, {size(count)}", value(group[way], group[other]))


def host_over_bare(moving, ways):
    return lambda figures: Steps(figures).beside(
        moving, ways, "bare", lambda own, bare: own["host_us"] - bare["host_us"])


def times_less_than_update(figures):
    return Steps(figures).beside("none", STEADY, "update", lambda own, update: update["host_us"] / own["host_us"])


def calls_but_the_launch(figures):
    def count(own, _):
        return sum(own["driver_calls"].values()) - min(own["driver_calls"].get("LaunchGraph", 0), 1)
    return Steps(figures).beside("none", STEADY, "bare", count)


def auto_over_best(figures):
    # Both together: copies of any size cost the host little, and the device the rest.
    def both(figure):
        return figure["host_us"] + figure["device_us"]

    def shown(own, best, unit):
        return f"{own[unit]:.4g} against {best[unit]:.4g}"
    for (kind, count, moving), group in Steps(figures).groups.items():
        fixed = [way for way in FIXED if way in group]
        if moving == "half" and fixed and "auto" in group:
            name = min(fixed, key=lambda way: both(group[way]))
            own, best = group["auto"], group[name]
            yield Row(f"{kind}, {size(count)}, beside {name} (host {shown(own, best, 'host_us')}, "
                      f"device {shown(own, best, 'device_us')} us)", 100 * (both(own) / both(best) - 1))


def all_over_half(figures):
    steps = Steps(figures)
    half = {row.name: row.value for row in steps.beside("half", FIXED, "bare", host_beyond)}
    for row in steps.beside("all", FIXED, "bare", host_beyond):
        if half.get(row.name, 0) > 0:
            yield Row(row.name, row.value / half[row.name])


def host_beyond(own, bare):
    return own["host_us"] - bare["host_us"]


def device_beyond(figures, copies):
    """What the device takes beyond a bare launch and the copies: `copies` says how long those take a row of a group,
    or None."""
    steps = Steps(figures)
    for (kind, count, moving), group in steps.groups.items():
        for way in (*FIXED, "auto"):
            if way not in group or "bare" not in group:
                continue
            us = copies(steps, kind, count, moving, group[way])
            if us is not None:
                told = f" (the copies {us:.3g} us)" if us > 0 else ""
                yield Row(f"{way}, {kind}, {size(count)}, {moving} moving{told}",
                          group[way]["device_us"] - group["bare"]["device_us"] - us)


def device_over_bandwidth(figures):
    reference = json.loads((record.ROOT / "benchmarks" / "reference.json").read_text(encoding="utf-8"))
    us_per_byte = reference["ns"]["Copy D2D 1 GiB, wait"] / 1000 / GIB
    return device_beyond(figures, lambda steps, kind, count, moving, own: own["bytes_copied"] * us_per_byte)


def device_over_driver(figures):
    def copies(steps, kind, count, moving, own):
        # A policy that is `copy` throughout copies what stays, too.
        same = steps.groups.get((kind, count, "all" if own["policy"] in COPIES else moving), {})
        if own["bytes_copied"] == 0 or not {"bare", "bare-copies"} <= same.keys():
            return None
        return same["bare-copies"]["device_us"] - same["bare"]["device_us"]
    return device_beyond(figures, copies)


# --- PyTorch --------------------------------------------------------------------------------------


def models(rows):
    """Of each model and mode that has one: the rows by way, without those that failed."""
    found = {}
    for row in rows:
        if "us" in row:
            found.setdefault(f"{row['model']}, {row['mode']}", {})[row["way"]] = row
    return found


def over_pytorch(rows):
    for name, ways in models(rows).items():
        own = [way for way in ("keel", "keel-compiled") if way in ways]
        others = [way for way in PYTORCH if way in ways]
        if own and others:
            fastest = min(own, key=lambda way: ways[way]["us"])
            best = min(others, key=lambda way: ways[way]["us"])
            yield Row(f"{name}: {fastest} beside {best}", ways[fastest]["us"] / ways[best]["us"])


def other_results(rows):
    for name, ways in models(rows).items():
        if "keel" in ways and "eager" in ways:
            yield Row(name, 0 if ways["keel"]["same"] else 1)


# --- Tasks ----------------------------------------------------------------------------------------


def over_bare_round_trip(what):
    # Where the device runs the code, the task is a launch and a wait for it, whatever Keel does.
    return lambda figures: (Row(figure["transport"], figure["ratio"]) for figure in figures
                            if (figure["what"], figure["orchestration"]) == (what, "host"))


GOALS = (
    Goal("a step with resident or in-place bindings costs the host at most 0.7 us more than a bare launch",
         0.7, "us", host_over_bare("none", STEADY), "graph"),
    Goal("such a step calls the driver for the launch, and at most once more",
         1, "calls", calls_but_the_launch, "graph"),
    Goal("such a step costs the host at least 20 times less than recording with update",
         20, "times", times_less_than_update, "graph", least=True),
    Goal(f"with half of {BINDINGS} bindings moving, copying costs the host at most 3 us more than a bare launch",
         3, "us", host_over_bare("half", COPIES), "graph"),
    Goal("with half moving, auto takes host and device together at most 10% more than the best fixed policy",
         10, "%", auto_over_best, "graph"),
    Goal("if twice as many move, the host's time beyond a bare launch at most doubles",
         2, "times", all_over_half, "graph"),
    Goal("the device takes at most 4 us more than for a bare launch, and the copies at its memory's bandwidth",
         4, "us", device_over_bandwidth, "graph"),
    Goal("where it copies, it takes at most 4 us more than for a bare launch with the driver's own copies",
         4, "us", device_over_driver, "graph"),
    Goal("keel.torch.graph is at least as fast as the best of PyTorch's own ways",
         1, "times", over_pytorch, "torch"),
    Goal("keel.torch.graph gives the results of eager, bit for bit",
         0, "differ", other_results, "torch"),
    Goal("a task that is waited for, with its code on the host, costs at most 1.5 times a bare round trip",
         1.5, "times", over_bare_round_trip("submit and wait"), "task"),
    Goal("a task of 1,000 in flight costs at most half a bare round trip",
         0.5, "times", over_bare_round_trip("1000 in flight, each"), "task"),
)


def judge(goal, figures):
    """The verdict, and what is said of it."""
    rows = list(goal.rows(figures))
    if not rows:
        return "absent", "not measured"
    worst = max(rows, key=lambda row: goal.excess(row.value))
    missed = sum(goal.excess(row.value) > 0 for row in rows)
    excess = goal.excess(worst.value)
    how = ("too little" if goal.least else "too much") if excess > 0 else "to spare"
    by = f"{abs(excess):.3g} {goal.unit} {how}"
    many = f"; {missed} of {len(rows)} rows miss it" if missed else f"; {len(rows)} rows"
    return ("missed" if missed else "met"), f"{worst.name}: {worst.value:.4g} {goal.unit}, {by}{many}"


def read(files):
    """{kind: figures} of all of them."""
    figures = {"graph": [], "task": [], "torch": []}
    for file in files:
        stored = json.loads(file.read_text(encoding="utf-8"))
        benchmarks = stored.get("benchmarks", {})
        for kind in ("graph", "task"):
            figures[kind] += benchmarks.get(kind, [])
        figures["torch"] += stored.get("rows", [])
        if not stored.get("rows") and not {"graph", "task"} & benchmarks.keys():
            raise record.RecordError(f"{file} has nothing that goals are about")
        print(f"{file.name}: {stored['device']['name']}, {stored['date'][:10]}")
    return figures


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    figures = read(parser.parse_args(argv).files)
    verdicts = []
    for goal in GOALS:
        verdict, found = judge(goal, figures[goal.kind])
        verdicts.append(verdict)
        print(f"{verdict:<6}  {goal.wanted}: {found}")
    return 1 if "missed" in verdicts else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except record.RecordError as error:
        print(f"goals.py: {error}", file=sys.stderr)
        sys.exit(2)
