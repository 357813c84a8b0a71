#!/usr/bin/env python3
"""Compares keel.torch.graph with the ways in which PyTorch replays a graph.

Usage: graphs.py [--models A,B] [--ways A,B] [--turns N] [--steps N] [--budget SECONDS] [--out FILE]

Inference and training of the same models, from the same seed, on batches that are somewhere else in
every step, by each way:

  eager            no graph
  make_graphed     torch.cuda.make_graphed_callables
  by-hand          one CUDAGraph, arguments copied into its own before each replay, results copied out
  reduce-overhead  torch.compile(mode="reduce-overhead")
  keel             keel.torch.graph; of a whole step where it trains
  keel-compiled    the same, of what torch.compile made

Each runs in a process of its own, and the ways take turns. What is told is the time of a step, from
the median of its turns, and whether the results are those of `eager`, bit for bit. Stored, with
machine, driver and commit, in benchmarks/results/<machine>-<date>-torch-graphs.json, after each run:
who is interrupted, or has spent his budget, keeps what there is.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import record  # noqa: E402

MODELS = ("mlp", "transformer")
MODES = ("inference", "training")
WAYS = ("eager", "make_graphed", "by-hand", "reduce-overhead", "keel", "keel-compiled")
BATCHES = 8  # that are alive at the same time, at different addresses
CHECKED = 12  # steps whose results are compared
WARM_UP = 16


# -------------------------------------------------------------------------------------- one run


def model_of(name):
    from torch import nn

    if name == "mlp":
        layers = [layer for _ in range(12) for layer in (nn.Linear(256, 256), nn.GELU())]
        return nn.Sequential(*layers, nn.Linear(256, 256)), (64, 256)
    layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), (8, 128, 512)


class ByHand:
    """What one writes today: a graph, its own arguments, copies before and after."""

    def __init__(self, function, examples):
        import torch

        self.arguments = [example.clone() for example in examples]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                function(*self.arguments)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.result = function(*self.arguments)

    def __call__(self, *arguments):
        for own, given in zip(self.arguments, arguments):
            own.copy_(given)
        self.graph.replay()
        return self.result.clone()


def inference_of(way, model, example):
    import torch

    if way == "make_graphed":
        return torch.cuda.make_graphed_callables(model, (example,))
    if way == "by-hand":
        return ByHand(model, (example,))
    if way == "reduce-overhead":
        compiled = torch.compile(model, mode="reduce-overhead")

        def call(x):
            torch.compiler.cudagraph_mark_step_begin()
            return compiled(x)

        return call
    if way.startswith("keel"):
        import keel.torch

        return keel.torch.graph(torch.compile(model) if way == "keel-compiled" else model)
    return model


def training_of(way, model, example, target):
    """A function from a batch and its target to the loss."""
    import torch
    from torch.nn import functional

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True, foreach=True)
    called = model
    if way == "make_graphed":
        called = torch.cuda.make_graphed_callables(model, (example,))
    elif way == "reduce-overhead":
        called = torch.compile(model, mode="reduce-overhead")
    elif way == "keel-compiled":
        called = torch.compile(model)

    def step(x, y):
        if way == "reduce-overhead":
            torch.compiler.cudagraph_mark_step_begin()
        optimizer.zero_grad(set_to_none=True)
        loss = functional.mse_loss(called(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    if way.startswith("keel"):
        import keel.torch

        return keel.torch.graph(step)
    if way != "by-hand":
        return step
    # Capturing it takes steps, which must not count: the model and the optimizer go back.
    before = [parameter.detach().clone() for parameter in model.parameters()]
    by_hand = ByHand(step, (example, target))
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), before):
            parameter.copy_(value)
        for state in optimizer.state.values():
            for value in state.values():
                value.zero_()
    return by_hand


def one(name, mode, way, steps):
    """{"us": of a step, "host_us": of it that the caller waits, "results": [...]}"""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    import torch

    if way.startswith("keel"):
        import keel.torch

        keel.torch.install("full")
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    model, shape = model_of(name)
    model = model.cuda()
    batches = [torch.randn(shape, device="cuda") for _ in range(BATCHES)]
    targets = [batch.flip(-1) * 0.5 for batch in batches]
    training = mode == "training"
    if training:
        model.train()
        call = training_of(way, model, batches[0], targets[0])
    else:
        model.eval()
        with torch.no_grad():
            call = inference_of(way, model, batches[0])
    results = []

    def run(index):
        batch, target = batches[index % BATCHES], targets[index % BATCHES]
        return call(batch, target) if training else call(batch)

    with torch.set_grad_enabled(training):
        for index in range(max(WARM_UP, CHECKED)):
            result = run(index)
            if index < CHECKED:
                results.append(float(result.double().sum()))
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for index in range(steps):
            result = run(index)
        queued = time.perf_counter()
        torch.cuda.synchronize()
        end = time.perf_counter()
    return {"us": 1e6 * (end - begin) / steps, "host_us": 1e6 * (queued - begin) / steps,
            "results": results, "reserved": torch.cuda.max_memory_reserved()}


# ------------------------------------------------------------------------------------ the comparison


def in_turns(turns, models, ways):
    """What to run, in order: everything once before anything again, and what is compared together."""
    for turn in range(turns):
        for model in models:
            for mode in MODES:
                for way in ways if turn % 2 == 0 else ways[::-1]:
                    yield turn, model, mode, way


def run_one(model, mode, way, options):
    command = [sys.executable, "-B", __file__, "--one", model, mode, way, "--steps", str(options.steps)]
    begin = time.monotonic()
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout)
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {options.timeout} s"}
    if run.returncode != 0:
        return {"error": "\n".join(run.stderr.strip().splitlines()[-8:])}
    return {**json.loads(run.stdout.splitlines()[-1]), "seconds": time.monotonic() - begin}


def table(runs):
    """A row for each model, mode and way: medians over the turns, beside eager's results."""
    rows = []
    for model, mode in dict.fromkeys((run["model"], run["mode"]) for run in runs):
        here = [run for run in runs if (run["model"], run["mode"]) == (model, mode)]
        eager = next((run for run in here if run["way"] == "eager" and "error" not in run), None)
        for way in dict.fromkeys(run["way"] for run in here):
            good = [run for run in here if run["way"] == way and "error" not in run]
            row = {"model": model, "mode": mode, "way": way, "turns": len(good)}
            if good:
                row["us"] = statistics.median(run["us"] for run in good)
                row["host_us"] = statistics.median(run["host_us"] for run in good)
                row["reserved"] = max(run["reserved"] for run in good)
                row["same"] = eager is not None and all(
                    run["results"] == eager["results"] for run in good)
            rows.append(row)
    return rows


def print_rows(rows):
    lines = []
    for row in rows:
        told = (["failed", "", ""] if "us" not in row else
                [f"{row['us']:.1f}", f"{row['host_us']:.1f}",
                 "as eager" if row["same"] else "others"])
        lines.append([f"{row['model']}, {row['mode']}", row["way"], *told])
    record.print_table((["", "way", "us a step", "us of the host", "results"], lines))


def names(known):
    def parse(text):
        chosen = text.split(",")
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
        return chosen
    return parse


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=names(MODELS), default=list(MODELS), metavar="A,B")
    parser.add_argument("--ways", type=names(WAYS), default=list(WAYS), metavar="A,B")
    parser.add_argument("--turns", type=int, default=3, metavar="N")
    parser.add_argument("--steps", type=int, default=500, metavar="N")
    parser.add_argument("--timeout", type=int, default=180, metavar="SECONDS", help="of one run")
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="SECONDS",
                        help="begin no further run after so long")
    parser.add_argument("--bin", type=Path, default=record.ROOT / "build-release" / "bin", metavar="DIR")
    parser.add_argument("--out", type=Path, metavar="FILE")
    parser.add_argument("--one", nargs=3, metavar=("MODEL", "MODE", "WAY"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.one:
        print(json.dumps(one(*options.one, options.steps)))
        return 0
    now = datetime.datetime.now(datetime.timezone.utc)
    machine = record.describe_machine()
    version, device = record.describe_device(options.bin)
    slug = record.machine_slug(machine, device)
    out = options.out or (record.ROOT / "benchmarks" / "results" /
                          f"{slug}-{now:%Y-%m-%d}-torch-graphs.json")
    stored = {"format": 1, "date": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "version": version,
              **record.describe_source(), "machine": machine, "device": device}
    begin = time.monotonic()
    runs = []
    rows = []
    for turn, model, mode, way in in_turns(options.turns, options.models, options.ways):
        if time.monotonic() - begin >= options.budget:
            print(f"{options.budget:g} s are spent", file=sys.stderr)
            break
        print(f"turn {turn + 1} of {options.turns}: {model}, {mode}, {way}", file=sys.stderr,
              flush=True)
        runs.append({"turn": turn, "model": model, "mode": mode, "way": way,
                     **run_one(model, mode, way, options)})
        rows = table(runs)
        out.write_text(json.dumps({**stored, "rows": rows, "runs": runs}, indent=1) + "\n",
                       encoding="utf-8")
    print_rows(rows)
    for run in runs:
        if "error" in run:
            print(f"\n{run['model']}, {run['mode']}, {run['way']}:\n{run['error']}")
    print(f"stored in {out}")
    return 1 if any("error" in run for run in runs) else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except record.RecordError as error:
        print(f"graphs.py: {error}", file=sys.stderr)
        sys.exit(1)
