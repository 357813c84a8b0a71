#!/usr/bin/env python3
"""Runs PyTorch programs on PyTorch's own allocator and on Keel's, and compares what they did.

Usage: compare.py [--programs A,B] [--turns N] [--budget SECONDS] [--out FILE] [--json]
       compare.py --show FILE [--markdown]

The programs are those of programs/, which know nothing of Keel. Each runs in a process of its own:
`pytorch` as it is, `pytorch-expandable` with expandable segments, `keel` by `python -m keel.run`.
The Python that runs this needs PyTorch and the keel package. They run one at a time. The configurations take turns, in one
order and then in the other, because no machine is the same for minutes; what is compared are the
runs of one turn. Stored, with machine, driver and commit, in
benchmarks/results/<machine>-<date>-torch.json. Exits with 1 if a program failed.
"""

import argparse
import datetime
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import record  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAMS = ("train_transformer", "generate", "train_vision", "two_streams", "cuda_graph",
            "data_loader", "compiled", "near_limit")
BASE, EXPANDABLE, KEEL = "pytorch", "pytorch-expandable", "keel"
# What runs the script, and what its environment has.
CONFIGURATIONS = {
    BASE: ((), {}),
    EXPANDABLE: ((), {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    # Without the snapshot that it writes when memory runs out: the others write none.
    KEEL: (("-m", "keel.run", "--no-summary", "--strict", "--oom-snapshot", "none"), {}),
}
# Of the caller's: what a configuration is, is said here.
CONFIGURING = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING")
ERROR_LINES = 12  # of what a program that failed said last


# --------------------------------------------------------------------------------------- the runs


def in_turns(programs, configurations, turns):
    """What to run, in order: all programs before any runs again, so that what a budget leaves out
    are turns and not programs."""
    for turn in range(turns):
        order = configurations if turn % 2 == 0 else configurations[::-1]
        for program in programs:
            for configuration in order:
                yield program, configuration, turn


class Process:
    """A program that has begun, and waits, with PyTorch imported, for its turn."""

    def __init__(self, program, configuration, folder, arguments):
        prefix, settings = CONFIGURATIONS[configuration]
        self.configuration = configuration
        self.folder = Path(tempfile.mkdtemp(dir=folder))
        self.out, self.errors = self.folder / "figures.json", self.folder / "errors"
        environment = {k: v for k, v in os.environ.items() if k not in CONFIGURING}
        # What is compiled is the same for all; only the first has to wait for it.
        environment.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder / "compiled"))
        command = [sys.executable, *prefix, str(HERE / "programs" / f"{program}.py"), *arguments,
                   "--json", str(self.out), "--wait", str(self.folder / "ready")]
        with open(self.errors, "wb") as stderr:
            self.process = subprocess.Popen(
                command, env={**environment, **settings}, cwd=self.folder, stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True)

    def is_ready(self):
        return self.process.poll() is not None or (self.folder / "ready").exists()

    def finish(self, timeout):
        """What the program found out, or `failed`: why there is nothing."""
        try:
            try:
                self.process.communicate(b"\n", timeout)
                code = self.process.returncode
                problem = None if code == 0 else ending(code)
            except subprocess.TimeoutExpired:
                problem = f"still running after {timeout:g} s"
        finally:
            self.end()
        if problem is None:
            try:
                figures = json.loads(self.out.read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                problem = f"no figures: {error}"
            else:
                if self.configuration != KEEL or figures["backend"] != "native":
                    return figures
                problem = "it ran on PyTorch's own allocator"
        return {"failed": problem, "errors": last_lines(self.errors.read_text("utf-8", "replace"))}

    def end(self):
        """With the processes that it started, also when this one is interrupted."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process.stdin.close()


class Starter:
    """Runs what is planned one after another, but lets all of a batch import PyTorch before the first
    of it runs: together, and not beside one that is measured."""

    def __init__(self, plan, batch):
        self.plan, self.batch = list(plan), batch
        self.waiting = {}

    def run(self, program, configuration, turn, folder, arguments, timeout):
        key = (program, configuration, turn)
        if key not in self.waiting:
            at = self.plan.index(key)
            for one in self.plan[at:at + self.batch]:
                self.waiting[one] = Process(one[0], one[1], folder, arguments)
            end = time.monotonic() + timeout
            while time.monotonic() < end and not all(p.is_ready() for p in self.waiting.values()):
                time.sleep(0.05)
        return self.waiting.pop(key).finish(timeout)

    def end(self):
        for process in self.waiting.values():
            process.end()
        self.waiting.clear()


def ending(code):
    return f"exit code {code}" if code > 0 else f"ended by {signal.Signals(-code).name}"


def last_lines(text):
    """Without where it ran."""
    for path, name in ((str(ROOT), "."), (sys.prefix, "<python>")):
        text = text.replace(path, name)
    return [line for line in text.splitlines() if line.strip()][-ERROR_LINES:]


def run_all(options, folder, run, clock=time.monotonic):
    """All runs, each with its program, configuration and turn, and those that were left out: by the
    budget, or by whoever interrupted this. The runs until then are worth keeping."""
    runs, left_out, failed, interrupted = [], [], set(), False
    arguments = ["--device", options.device]
    if options.steps is not None:
        arguments += ["--steps", str(options.steps)]
    begin = clock()
    for program, configuration, turn in in_turns(
            options.programs, options.configurations, options.turns):
        name = {"program": program, "configuration": configuration, "turn": turn}
        if (program, configuration) in failed:
            continue  # it would take the time again, and fail again
        spent = options.budget is not None and clock() - begin >= options.budget
        if spent or interrupted:
            left_out.append(name)
            continue
        say(f"turn {turn + 1} of {options.turns}: {program}, {configuration} ... ", end="")
        began = clock()
        try:
            result = run(program, configuration, turn, folder, arguments, options.timeout)
        except KeyboardInterrupt:
            say("interrupted")
            interrupted = True
            left_out.append(name)
            continue
        seconds = clock() - began
        if "failed" in result:
            failed.add((program, configuration))
            say(f"failed after {seconds:.1f} s: {result['failed']}")
        else:
            say(f"{seconds:.1f} s")
        runs.append({**name, "seconds": round(seconds, 2), **result})
    return runs, left_out


def say(text, end="\n"):
    print(text, end=end, file=sys.stderr, flush=True)


# --------------------------------------------------------------------------------- the comparison


def first_difference(losses, reference):
    """The step at which they differ, or None. A step that only one of them has is a difference."""
    for step, (one, other) in enumerate(zip(losses, reference)):
        if one != other:
            return step
    return None if len(losses) == len(reference) else min(len(losses), len(reference))


def paired_ratio(figures, others):
    """The median over the turns that both have of the ratio within the turn; None: no turn."""
    ratios = [figures[turn] / others[turn] for turn in figures.keys() & others.keys()
              if others[turn]]
    return round(statistics.median(ratios), 4) if ratios else None


def median_of(runs, name):
    figures = [run["memory"][name] for run in runs if run["memory"].get(name) is not None]
    return round(statistics.median(figures)) if figures else None


def most_of(runs, name):
    return max((run["memory"][name] for run in runs if run["memory"].get(name) is not None),
               default=None)


def by_turn(runs, figure):
    return {run["turn"]: figure(run["step_ms"]) for run in runs if run["step_ms"]}


def compare(runs):
    """A row for every program and configuration that ran, in the order in which they first did.

    `losses` is "same", "differs", or None where there is nothing to compare with. Those of
    `pytorch` are compared with its own first run: where they differ, nothing can be said of the
    others. Memory is the median over the turns, retries and OOMs are the most of any.
    """
    groups = {}
    for run in runs:
        groups.setdefault((run["program"], run["configuration"]), []).append(run)
    good = {key: [run for run in group if "failed" not in run] for key, group in groups.items()}
    rows = []
    for program in dict.fromkeys(program for program, _ in groups):
        base = good.get((program, BASE), [])
        expandable = median_of(good.get((program, EXPANDABLE), []), "peak_reserved")
        for configuration in CONFIGURATIONS:
            if (program, configuration) not in groups:
                continue
            mine = good[program, configuration]
            failure = next((run for run in groups[program, configuration] if "failed" in run), {})
            reference = base[0]["losses"] if base else []
            differences = [first_difference(run["losses"], reference) for run in mine
                           if run["losses"] and reference and run is not base[0]]
            steps = [step for step in differences if step is not None]
            medians, base_medians = (by_turn(g, statistics.median) for g in (mine, base))
            totals, base_totals = (by_turn(g, sum) for g in (mine, base))
            reserved = median_of(mine, "peak_reserved")
            is_base = configuration == BASE
            rows.append({
                "program": program,
                "configuration": configuration,
                "turns": len(mine),
                "backend": next((run["backend"] for run in mine), None),
                "step_ms": round(statistics.median(medians.values()), 4) if medians else None,
                "step_ratio": None if is_base else paired_ratio(medians, base_medians),
                "total_ratio": None if is_base else paired_ratio(totals, base_totals),
                "losses": ("differs" if steps else "same") if differences else None,
                "first_difference": min(steps, default=None),
                "peak_allocated": median_of(mine, "peak_allocated"),
                "peak_requested": median_of(mine, "peak_requested"),
                "peak_reserved": reserved,
                "reserved_ratio": round(reserved / expandable, 4)
                                  if reserved is not None and expandable else None,
                "retries": most_of(mine, "retries"),
                "ooms": most_of(mine, "ooms"),
                "notes": merged_notes(mine),
                "failed": failure.get("failed"),
                "errors": failure.get("errors", []),
            })
    return rows


def merged_notes(runs):
    """By name; what the turns do not agree on is listed."""
    notes = {}
    for run in runs:
        for name, value in run["notes"].items():
            notes.setdefault(name, {})[str(value)] = None
    return {name: ", ".join(values) for name, values in notes.items()}


# ------------------------------------------------------------------------------------- the tables


def text_of_losses(row):
    if row["failed"]:
        return "failed"
    if "refused" in row["notes"]:
        return "refused"
    if row["losses"] == "differs":
        return f"differ at step {row['first_difference']}"
    if row["losses"] == "same":
        return "same"
    return "-"


def table(rows):
    def number(value, form):
        return "-" if value is None else format(value, form)

    head = ("program", "allocator", "step, ms", "/ pytorch", "all, / pytorch", "reserved, MiB",
            "/ expandable", "retries", "OOMs", "losses")
    return head, [
        (row["program"], row["configuration"], number(row["step_ms"], ",.2f"),
         number(row["step_ratio"], ".3f"), number(row["total_ratio"], ".3f"),
         "-" if row["peak_reserved"] is None else f"{row['peak_reserved'] / (1 << 20):,.0f}",
         number(row["reserved_ratio"], ".3f"), number(row["retries"], "d"),
         number(row["ooms"], "d"), text_of_losses(row))
        for row in rows
    ]


def print_comparison(stored, markdown=False):
    rows = stored["comparison"]
    record.print_table(table(rows), markdown)
    compared = [row["losses"] for row in rows
                if row["losses"] is not None and row["configuration"] != BASE]
    print(f"\nlosses: {compared.count('same')} of {len(compared)} equal to pytorch's, bit by bit")
    for row in rows:
        name = f"{row['program']}, {row['configuration']}"
        if row["configuration"] == BASE and row["losses"] == "differs":
            print(f"{name}: differs from its own first run, so its losses say nothing of others")
        if row["notes"]:
            print(f"{name}: " + "; ".join(f"{note}: {first_line(value)}"
                                          for note, value in row["notes"].items()))
        if row["failed"]:
            print(f"{name}: failed: {row['failed']}")
            for line in row["errors"]:
                print(f"    {line}")
    for program, configurations in left_out_of(stored["left_out"]).items():
        print(f"{program}: left out: " + "; ".join(
            f"{configuration} turn {', '.join(map(str, turns))}"
            for configuration, turns in configurations.items()))


def first_line(text):
    first, *more = text.strip().splitlines() or [""]
    return first + (" ..." if more else "")


def left_out_of(runs):
    """By program and configuration: the turns, as people count."""
    found = {}
    for run in runs:
        configurations = found.setdefault(run["program"], {})
        configurations.setdefault(run["configuration"], []).append(run["turn"] + 1)
    return found


# ------------------------------------------------------------------------------------ the options


def names(known):
    def parse_names(text):
        chosen = [name for name in text.split(",") if name]
        unknown = [name for name in chosen if name not in known]
        if unknown or not chosen:
            raise argparse.ArgumentTypeError(
                f"unknown: '{', '.join(unknown)}'; there are {', '.join(known)}")
        return [name for name in known if name in chosen]
    return parse_names


def positive(text):
    if int(text) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return int(text)


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=names(PROGRAMS), default=list(PROGRAMS), metavar="A,B",
                        help=f"of {', '.join(PROGRAMS)} (default: all)")
    parser.add_argument("--configurations", type=names(tuple(CONFIGURATIONS)),
                        default=list(CONFIGURATIONS), metavar="A,B",
                        help=f"of {', '.join(CONFIGURATIONS)} (default: all)")
    parser.add_argument("--turns", type=positive, default=3, metavar="N",
                        help="how often each is run (default: 3)")
    parser.add_argument("--steps", type=positive, metavar="N",
                        help="of each program (default: as many as it has)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda",
                        help="cpu: tiny, to see that the programs run (default: cuda)")
    parser.add_argument("--budget", type=float, metavar="SECONDS",
                        help="start nothing any more when so much time has passed")
    parser.add_argument("--together", type=positive, default=12, metavar="N",
                        help="how many import PyTorch at once, before one of them runs"
                             " (default: 12)")
    parser.add_argument("--timeout", type=float, default=90, metavar="SECONDS",
                        help="a program that takes longer has failed (default: 90)")
    parser.add_argument("--bin", type=Path, default=ROOT / "build-release" / "bin", metavar="DIR",
                        help="where the keel command is (default: build-release/bin)")
    parser.add_argument("--out", type=Path, metavar="FILE",
                        help="default: benchmarks/results/<machine>-<date>-torch.json")
    parser.add_argument("--json", action="store_true",
                        help="print what is stored, instead of the table")
    parser.add_argument("--show", type=Path, metavar="FILE", help="print a stored file's table")
    parser.add_argument("--markdown", action="store_true", help="with --show: as Markdown")
    return parser.parse_args(argv)


def text_of(stored):
    """As JSON, with a line for each run."""
    head = json.dumps({key: value for key, value in stored.items() if key != "runs"}, indent=1)
    runs = ",\n".join("  " + json.dumps(run) for run in stored["runs"])
    return f'{head[:-2]},\n "runs": [\n{runs}\n ]\n}}\n'


def store(text, out):
    """Into that file; None: nowhere, and why."""
    if out is None:
        say("\nnot stored, because it is not everything; --out FILE stores it")
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    say(f"\nstored in {os.path.relpath(out)}")


def is_whole(options):
    """Whether it may take the place of what was stored before."""
    return (options.programs == list(PROGRAMS) and options.device == "cuda"
            and options.configurations == list(CONFIGURATIONS) and options.steps is None)


def main(argv):
    options = parse(argv)
    if options.show is not None:
        print_comparison(json.loads(options.show.read_text(encoding="utf-8")), options.markdown)
        return 0
    now = datetime.datetime.now(datetime.timezone.utc)
    stored = {"format": 1, "date": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
    machine = record.describe_machine()
    storing = options.out is not None or is_whole(options)
    out = options.out
    # Before the runs: what cannot be described should not have taken minutes.
    if storing:
        version, device = record.describe_device(options.bin)
        stored.update({"version": version, **record.describe_source(), "machine": machine,
                       "device": device})
        slug = record.machine_slug(machine, device)
        out = out or ROOT / "benchmarks" / "results" / f"{slug}-{now:%Y-%m-%d}-torch.json"
    # What `timeout` sends ends this as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        starter = Starter(in_turns(options.programs, options.configurations, options.turns),
                          options.together)
        try:
            runs, left_out = run_all(options, Path(folder), starter.run)
        finally:
            starter.end()
    stored.update({
        "pytorch": next((run["torch"] for run in runs if "torch" in run), None),
        "turns": options.turns,
        "keel_alloc_conf": os.environ.get("KEEL_ALLOC_CONF"),
        "comparison": compare(runs),
        "left_out": left_out,
        "runs": runs,
    })
    if options.json:
        print(text_of(stored), end="")
    else:
        print_comparison(stored)
    store(text_of(stored), out if storing else None)
    return 1 if any("failed" in run for run in runs) else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except record.RecordError as error:
        print(f"compare.py: {error}", file=sys.stderr)
        sys.exit(1)
