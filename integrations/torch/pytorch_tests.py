#!/usr/bin/env python3
"""Runs the part of PyTorch's own tests that is about memory on PyTorch's allocator and on Keel's.

Usage: pytorch_tests.py --tests FOLDER [--select FILE_OR_REGEX] [--modes A,B] [--budget SECONDS]
                        [--out FILE] [--json]
       pytorch_tests.py --show FILE

FOLDER has the test_cuda.py of the PyTorch that is installed: the release's test/test_cuda.py. It is
not part of this project. The Python that runs this needs that PyTorch, what its tests need
(expecttest, psutil), pytest and the keel package.

PyTorch's tests know two kinds of segments and expect different numbers of them, so like is compared
with like, in two modes:

  expandable   PyTorch with expandable segments, and Keel as it is
  segments     PyTorch as it is, and Keel without expandable segments

Each allocator runs its tests in a process of its own, all at the same time; the tests that need the
device for themselves (ALONE) wait for each other. The test during which a process crashes or hangs
has crashed or hung, and the rest goes on in a new process. Stored, with machine, driver and commit,
in benchmarks/results/<machine>-<date>-pytorch-tests.json. Exits with 1 if tests could not be run.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "benchmarks" / "torch"))
import compare  # type: ignore[import-not-found]  # noqa: E402

record = compare.record

FILE = "test_cuda.py"

# ---------------------------------------------------------------------------------- which tests

# Regular expressions of whole names, class.test.
SELECT = [
    # Allocations, statistics, limits, running out.
    r"TestCuda\.test_memory_(allocation|stats)",
    r"TestCuda\.test_out_of_memory(_retry)?",
    r"TestCuda\.test_[gs]et_per_process_memory_fraction",
    r"TestCuda\.test_(matmul_memory_use|cublas_workspace_explicit_allocation)",
    r"TestCuda\.test_reduction_gpu_memory_accessing",
    r"TestCuda\.test_cuda_memory_leak_detection_propagates_errors",
    r"TestCudaAutocast\.test_autocast_cache_leak",
    r"TestCudaMallocAsync\.test_(cachingAllocator_raw_alloc|allocator_fuzz|notifies_oom)",
    r"TestCudaMallocAsync\.test_raises_oom_.*",
    r"TestCudaMallocAsync\.test_device_memory_used",
    # Memory that streams share.
    r"TestCuda\.test_record_stream(_on_shifted_view)?",
    r"TestCuda\.test_caching_allocator_record_stream_oom",
    r"TestCuda\.test_streaming_backwards_.*",
    # Snapshots and histories.
    r"TestCudaMallocAsync\.test_memory_(snapshot|plots|profiler).*",
    r"TestCudaMallocAsync\.test_cycles",
    r"TestFXMemoryProfiler\..*",
    # The memory of graphs.
    r"TestCuda\.test_memory_stats_of_multiple_generators_and_graphs",
    r"TestCuda\.test_graph_capture_(simple|reset_recapture|oom)",
    r"TestCuda\.test_graph_(two_successive|three_successive|concurrent_replay|record_stream)",
    r"TestCuda\.test_graph_memory_stats_and_use_result_after_destroy_graph",
    r"TestCuda\.test_graph_(debugdump|cudnn_dropout|make_graphed_callables_same_pool)",
    r"TestCuda\.test_repeat_graph_capture_cublas_workspace_memory",
    r"TestCuda\.test_cuda_graph_(error_options|allocator_propagates_stream)",
    r"TestCuda\.test_cuda_graph_raw_graph_reset_and_recapture",
    # Pools.
    r"TestMemPool\..*",
    r"TestBlockStateAbsorption\.test_(check_pool_live_allocations|allocate_in_thread_to_pool)",
    # The states of pools, which the graphs of torch.compile share.
    r"TestBlockStateAbsorption\.test_(simple|resnet|allocated_in_middle_of_segment)",
    r"TestBlockStateAbsorption\.test_(multiple_middle_allocations|middle_allocations_contiguous)",
    r"TestBlockStateAbsorption\.test_(additional_free_following|tensor_dies_after)_checkpoint",
    r"TestBlockStateAbsorption\.test_assigning_back_deleter_fns_to_tensor",
    r"TestBlockStateAbsorption\.test_expandable_segment_checkpoint_growth",
]

# About memory, and not run: why.
NOT_APPLICABLE = [
    (
        r"TestMemPool\.test_(mempool_(empty_cache_inactive|with_allocator|expandable"
        r"|limited_memory_with_allocator)|tensor_delete_after_allocator_delete"
        r"|deleted_mempool_not_used_on_oom)",
        "a pool over another allocator, which the test first has to compile: Keel refuses it",
    ),
    (
        r"TestMemPool\.test_graph_capture_reclaim_[24]_streams"
        r"|TestCudaMallocAsync\.test_(max_split|garbage_collect)_expandable"
        r"|TestCudaMallocAsync\.test_allocator_(settings|memory_fraction_setting)"
        r"|TestCudaMallocAsync\.test_raises_oom_max_split_size_mb_setting_True",
        "sets options of PyTorch's own allocator, which Keel does not read",
    ),
    (r"TestCudaMallocAsync\.test_allocator_backend", "about the cudaMallocAsync backend"),
    (
        r"TestCuda\.test_(.*pinned.*|host_memory_stats|cudart_register)"
        r"|TestCachingHostAllocatorCudaGraph\..*",
        "pinned host memory, which PyTorch's own host allocator serves with either",
    ),
    (
        r"TestCudaMallocAsync\.test_(cpp_memory_snapshot_pickle|memory_compile_regions)",
        "slow: it compiles for more than 10 s",
    ),
]

# Those that expect a process in which nothing was allocated.
FIRST = [r"TestMemPool\.test_mempool_ctx_multithread"]

# Those that take half of the device's memory, that ask the device how much of it is free, or whose
# streams have to run at the same time. Run after all others, in this order: what one that fails may
# leave behind is a limit.
ALONE = [
    r"TestCuda\.test_graph_(concurrent_replay|record_stream)",
    r"TestCuda\.test_record_stream(_on_shifted_view)?",
    r"TestCuda\.test_caching_allocator_record_stream_oom",
    r"TestCuda\.test_repeat_graph_capture_cublas_workspace_memory",
    r"TestCudaMallocAsync\.test_device_memory_used",
    r"TestCuda\.test_out_of_memory_retry",
    r"TestCuda\.test_set_per_process_memory_fraction",
    r"TestCuda\.test_get_per_process_memory_fraction",
]

# What Keel says that it does not do, in the words of its errors.
REFUSALS = [
    (r"take the memory of a torch\.cuda\.MemPool from another", "a pool over another allocator"),
    (r"lend the memory of a torch\.cuda\.MemPool|setUseOnOOM", "use_on_oom"),
    (r"setNoSplit", "no_split"),
    (r"tell trackers of each event", "trace trackers"),
    (r"other processes (while|cannot be opened while) Keel", "tensors of other processes"),
]

# ------------------------------------------------------------------------------------- the runs


@dataclass(frozen=True)
class Configuration:
    """What runs pytest, and what its environment has."""

    prefix: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    backend: str | None = None  # what PyTorch says that its allocator is; None: anything


_KEEL = compare.CONFIGURATIONS[compare.KEEL][0]
# The tests read here which kind of segments there are; Keel does not.
_EXPANDABLE = compare.CONFIGURATIONS[compare.EXPANDABLE][1]
CONFIGURATIONS = {
    "pytorch-expandable": Configuration((), _EXPANDABLE, "native"),
    "keel": Configuration(_KEEL, _EXPANDABLE, "keel"),
    "pytorch": Configuration((), {}, "native"),
    "keel-segments": Configuration(_KEEL, {"KEEL_ALLOC_CONF": "expandable_segments:False"}, "keel"),
}
MODES = {
    "expandable": ("pytorch-expandable", "keel"),
    "segments": ("pytorch", "keel-segments"),
}
_PYTEST = (
    "-m pytest -q --no-header --tb=no --assert=plain -W ignore "
    "-p no:cacheprovider -p pytorch_tests_plugin"
)
_CONFIGURING = (*compare.CONFIGURING, "KEEL_ALLOC_CONF", "PYTEST_ADDOPTS")
# Outside of tests. The longest is the start: compiling Keel's class takes half a minute, once.
_IDLE_SECONDS = 150.0
_POLL_SECONDS = 0.1
TIME_IS_UP = "the time was up"


@dataclass
class Runs:
    """What became of the tests of one configuration."""

    tests: list[str] = field(default_factory=list)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    not_applicable: dict[str, str] = field(default_factory=dict)
    torch: str | None = None
    processes: int = 0
    seconds: float = 0
    problem: str | None = None  # why there is not a result for every test
    errors: list[str] = field(default_factory=list)
    ending: str | None = None  # what happened after the last test, if it was not an exit

    def as_json(self) -> dict[str, Any]:
        return {
            "tests": len(self.tests),
            "processes": self.processes,
            "seconds": round(self.seconds, 1),
            "problem": self.problem,
            "errors": self.errors,
            "ending": self.ending,
        }


class Process:
    """One pytest, from its start to its end, and what its log says."""

    def __init__(self, configuration: Configuration, folder: Path, plan: dict[str, Any]) -> None:
        self.log, self.output = folder / "log", folder / "output"
        self.running: str | None = None
        self.since = time.monotonic()  # of the test that is running, or of the start
        self._read = 0
        (folder / "plan").write_text(json.dumps(plan), encoding="utf-8")
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")  # not the one above it
        self.log.write_text("", encoding="utf-8")
        environment = {k: v for k, v in os.environ.items() if k not in _CONFIGURING}
        # It runs in another folder.
        entries = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
        path = [str(HERE), *(os.path.abspath(entry) for entry in entries)]
        command = [sys.executable, *configuration.prefix, *_PYTEST.split()]
        command += ["-c", str(folder / "pytest.ini"), "--rootdir", str(folder)]
        command += ["--plan", str(folder / "plan"), "--log", str(self.log)]
        command += [str(Path(plan["folder"]) / plan["file"])]
        with open(self.output, "wb") as output:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={
                    **environment,
                    "PYTHONPATH": os.pathsep.join(path),
                    "PYTHONDONTWRITEBYTECODE": "1",
                    **configuration.environment,
                },
            )

    @property
    def code(self) -> int | None:
        """None: it is still running."""
        return self._process.returncode

    def wait(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def end(self) -> None:
        """With what it started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def read(self) -> list[dict[str, Any]]:
        """What is new in the log."""
        with open(self.log, "rb") as file:
            file.seek(self._read)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        events = [json.loads(line) for line in whole.splitlines()]
        for event in events:
            if event["event"] == "broken":
                continue
            self.running = event["test"] if event["event"] == "began" else None
            self.since = time.monotonic()
        return events


def take(runs: Runs, events: list[dict[str, Any]], configuration: Configuration) -> None:
    for event in events:
        if event["event"] == "collected":
            runs.tests, runs.torch = event["tests"], event["torch"]
            runs.not_applicable = event["not_applicable"]
            if configuration.backend not in (None, event["backend"]):
                runs.problem = f"it ran on the allocator '{event['backend']}'"
        elif event["event"] == "broken":
            runs.problem = event["reason"]
        elif event["event"] == "ended":
            runs.results[event["test"]] = {
                k: v for k, v in event.items() if k not in ("event", "test")
            }


def watch(
    process: Process,
    runs: Runs,
    configuration: Configuration,
    timeout: float,
    until: Callable[[], bool],
) -> str | None:
    """How it ended, or why it has to; None: as it should. A problem is in ``runs``."""
    while True:
        process.wait(_POLL_SECONDS)
        take(runs, process.read(), configuration)
        if process.code is not None:
            return None if process.code in (0, 1) else compare.ending(process.code)
        idle = time.monotonic() - process.since
        if until():
            runs.problem = TIME_IS_UP
        elif process.running is not None and idle >= timeout:
            return f"still running after {timeout:g} s"
        elif process.running is None and idle >= _IDLE_SECONDS:
            runs.problem = f"nothing happened for {_IDLE_SECONDS:g} s"
        if runs.problem is not None:
            return runs.problem


def run_process(
    process: Process,
    runs: Runs,
    configuration: Configuration,
    timeout: float,
    until: Callable[[], bool],
) -> bool:
    """Whether a new process has to go on with the rest."""
    try:
        ending = watch(process, runs, configuration, timeout, until)
        hung = process.code is None
    finally:
        process.end()
    if runs.problem is None:
        if process.running is not None:
            runs.results[process.running] = {
                "outcome": "hung" if hung else "crashed",
                "reason": ending or f"exit code {process.code}",
            }
            return len(runs.results) < len(runs.tests)
        if runs.tests and len(runs.results) == len(runs.tests):
            runs.ending = ending
        else:  # not in a test: it would happen again
            runs.problem = ending or "it ended before its tests did"
    if runs.problem not in (None, TIME_IS_UP):
        runs.errors = compare.last_lines(process.output.read_text("utf-8", "replace"))
    return False


def run_configuration(
    name: str,
    configuration: Configuration,
    plan: dict[str, Any],
    folder: Path,
    timeout: float,
    until: Callable[[], bool],
) -> Runs:
    runs = Runs()
    begin = time.monotonic()
    folder.mkdir()
    again = True
    while again:
        runs.processes += 1
        done = {**plan, "done": list(runs.results)}
        process = Process(configuration, folder, done)
        again = run_process(process, runs, configuration, timeout, until)
    runs.seconds = time.monotonic() - begin
    compare.say(
        f"{name}: {len(runs.results)} of {len(runs.tests)} tests, "
        f"{runs.seconds:.1f} s, {runs.processes} processes"
        + (f": {runs.problem}" if runs.problem else "")
    )
    return runs


def run_all(
    configurations: dict[str, Configuration],
    plan: dict[str, Any],
    timeout: float,
    budget: float | None = None,
) -> dict[str, Runs]:
    """By configuration. What an interrupt or the budget leaves out has no result."""
    end = time.monotonic() + budget if budget is not None else None
    interrupted = threading.Event()

    def until() -> bool:
        return interrupted.is_set() or (end is not None and time.monotonic() >= end)

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        plan = {**plan, "lock": str(folder / "lock")}
        with concurrent.futures.ThreadPoolExecutor(len(configurations)) as pool:
            found = {
                name: pool.submit(run_configuration, name, one, plan, folder / name, timeout, until)
                for name, one in configurations.items()
            }
            try:
                concurrent.futures.wait(found.values())
            except KeyboardInterrupt:
                interrupted.set()
        return {name: future.result() for name, future in found.items()}


# ------------------------------------------------------------------------------ what it comes to

# In the order in which they are printed.
CATEGORIES = {
    "passed": "passed with both",
    "skipped": "skipped by PyTorch's tests",
    "failed": "failed with both",
    "only keel": "passed with Keel's only",
    "refused": "passed with PyTorch's own only: Keel refuses it",
    "only pytorch": "passed with PyTorch's own only",
    "not run": "not run",
}


def refusal(result: dict[str, Any]) -> str | None:
    text = result.get("reason", "")
    return next((what for pattern, what in REFUSALS if re.search(pattern, text)), None)


def category(own: dict[str, Any] | None, keels: dict[str, Any] | None) -> str:
    if own is None or keels is None:
        return "not run"
    if "skipped" in (own["outcome"], keels["outcome"]):
        return "skipped"
    if own["outcome"] != "passed":
        return "only keel" if keels["outcome"] == "passed" else "failed"
    if keels["outcome"] == "passed":
        return "passed"
    return "refused" if refusal(keels) else "only pytorch"


def compare_modes(modes: list[str], runs: dict[str, Runs]) -> dict[str, Any]:
    """By test: what became of it with each configuration, and what that comes to in each mode."""
    names = dict.fromkeys(name for one in runs.values() for name in one.tests)
    tests = {}
    for name in names:
        results = {c: one.results[name] for c, one in runs.items() if name in one.results}
        categories = {mode: category(*(results.get(one) for one in MODES[mode])) for mode in modes}
        tests[name] = {"category": categories, "results": results}
    return tests


def count(tests: dict[str, Any], mode: str, what: str) -> int:
    return sum(test["category"][mode] == what for test in tests.values())


def reason_of(test: dict[str, Any], mode: str) -> str:
    """Why it is not simply passed."""
    what = test["category"][mode]
    own, keels = (test["results"].get(one) for one in MODES[mode])
    result = own if what in ("only keel", "failed", "skipped") else keels
    if what == "skipped" and result is not None and result["outcome"] != "skipped":
        result = keels
    if result is None:
        return ""
    where = f" ({result['where']})" if result.get("where") else ""
    word = {"crashed": "crashed: ", "hung": "hung: "}.get(result["outcome"], "")
    refused = f"{refusal(result)}: " if what == "refused" else ""
    return f"{refused}{word}{result.get('reason', '')}{where}"


def print_comparison(stored: dict[str, Any]) -> None:
    tests, modes = stored["tests"], stored["modes"]
    rows = [
        (text, *(str(count(tests, mode, what)) for mode in modes))
        for what, text in CATEGORIES.items()
    ]
    rows.append(("all", *(str(len(tests)) for _ in modes)))
    record.print_table((("tests", *modes), rows))
    for what, text in reversed(CATEGORIES.items()):
        listed = [name for name, test in tests.items() if what in test["category"].values()]
        if what == "passed" or not listed:
            continue
        print(f"\n{text}:")
        for name in listed:
            said: dict[str, list[str]] = {}
            for mode in modes:
                if tests[name]["category"][mode] == what:
                    said.setdefault(reason_of(tests[name], mode), []).append(mode)
            for reason, where in said.items():
                everywhere = len(where) == len(modes)
                print(f"  {name}" + ("" if everywhere else f", {', '.join(where)}"))
                if reason:
                    print(f"      {reason}")
    if stored["not_applicable"]:
        print("\nnot applicable:")
        for reason in dict.fromkeys(stored["not_applicable"].values()):
            names = [name for name, why in stored["not_applicable"].items() if why == reason]
            print(f"  {reason}: {len(names)}")
            for name in names:
                print(f"      {name}")
    for name, one in stored["configurations"].items():
        if one["ending"]:
            print(f"\n{name}: after its last test: {one['ending']}")
        if one["problem"]:
            print(f"\n{name}: {one['problem']}")
            for line in one["errors"]:
                print(f"    {line}")


# ---------------------------------------------------------------------------------- the options


def selection(text: str) -> list[str]:
    """The patterns of a file, or the one that this is: of a part of a name."""
    path = Path(text)
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else [text]
    patterns = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise argparse.ArgumentTypeError(f"'{pattern}': {error}") from error
    if not patterns:
        raise argparse.ArgumentTypeError(f"{text} has no patterns")
    return [f".*(?:{pattern}).*" for pattern in patterns]


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tests", type=Path, metavar="FOLDER", help=f"where {FILE} is")
    parser.add_argument(
        "--select",
        type=selection,
        metavar="FILE_OR_REGEX",
        help="tests whose names, class.test, have this in them, or a pattern of "
        "this file's lines (default: those about memory)",
    )
    parser.add_argument(
        "--modes",
        type=compare.names(tuple(MODES)),
        default=list(MODES),
        metavar="A,B",
        help=f"of {', '.join(MODES)} (default: all)",
    )
    parser.add_argument(
        "--budget",
        type=float,
        metavar="SECONDS",
        help="end when so much time has passed, with what there is",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=20,
        metavar="SECONDS",
        help="a test that takes longer hangs (default: 20)",
    )
    parser.add_argument(
        "--bin",
        type=Path,
        default=ROOT / "build-release" / "bin",
        metavar="DIR",
        help="where the keel command is (default: build-release/bin)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="default: benchmarks/results/<machine>-<date>-pytorch-tests.json",
    )
    parser.add_argument(
        "--json", action="store_true", help="print what is stored, instead of the table"
    )
    parser.add_argument("--show", type=Path, metavar="FILE", help="print a stored file's table")
    options = parser.parse_args(argv)
    if options.show is None:
        if options.tests is None:
            parser.error("--tests FOLDER is needed")
        if not (options.tests / FILE).is_file():
            parser.error(f"--tests {options.tests}: there is no {FILE} in it")
    return options


def text_of(stored: dict[str, Any]) -> str:
    """As JSON, with a line for each test."""
    head = json.dumps({k: v for k, v in stored.items() if k != "tests"}, indent=1)
    tests = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(test)}" for name, test in stored["tests"].items()
    )
    return f'{head[:-2]},\n "tests": {{\n{tests}\n }}\n}}\n'


def main(argv: list[str]) -> int:
    options = parse(argv)
    if options.show is not None:
        print_comparison(json.loads(options.show.read_text(encoding="utf-8")))
        return 0
    now = datetime.datetime.now(datetime.timezone.utc)
    stored: dict[str, Any] = {"format": 1, "date": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
    out = options.out
    storing = out is not None or (options.select is None and options.modes == list(MODES))
    # Before the tests: what cannot be described should not have taken a minute.
    if storing:
        machine = record.describe_machine()
        version, device = record.describe_device(options.bin)
        stored.update(
            {"version": version, **record.describe_source(), "machine": machine, "device": device}
        )
        slug = record.machine_slug(machine, device)
        out = out or ROOT / "benchmarks" / "results" / f"{slug}-{now:%Y-%m-%d}-pytorch-tests.json"
    plan = {
        "folder": str(options.tests.resolve()),
        "file": FILE,
        "first": FIRST,
        "alone": ALONE,
        "select": options.select or SELECT,
        # Who asks for a test gets it.
        "not_applicable": [] if options.select else NOT_APPLICABLE,
    }
    # What `timeout` sends ends this as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    chosen = {name: CONFIGURATIONS[name] for mode in options.modes for name in MODES[mode]}
    runs = run_all(chosen, plan, options.timeout, options.budget)
    stored.update(
        {
            "pytorch": next((one.torch for one in runs.values() if one.torch), None),
            "modes": options.modes,
            "configurations": {name: one.as_json() for name, one in runs.items()},
            "not_applicable": {
                k: v for one in runs.values() for k, v in one.not_applicable.items()
            },
            "tests": compare_modes(options.modes, runs),
        }
    )
    if options.json:
        print(text_of(stored), end="")
    else:
        print_comparison(stored)
    compare.store(text_of(stored), out if storing else None)
    return 1 if any(one.problem for one in runs.values()) else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except record.RecordError as error:
        print(f"pytorch_tests.py: {error}", file=sys.stderr)
        sys.exit(1)
