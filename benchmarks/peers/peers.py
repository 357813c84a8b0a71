#!/usr/bin/env python3
"""Measures Keel's allocator beside PyTorch's, cudaMallocAsync and CuPy's pool, on a machine that has them.

Usage: peers.py [--bin DIR] [--pairs N] [--out FILE]
       peers.py --show FILE [--markdown]

Builds allocator_peers.cc against the installed PyTorch and the libkeel of DIR (default
build-release), runs it, adds CuPy's pool (through Python, the only way that it has), and stores all
figures with machine, driver and commit in benchmarks/results/<machine>-<date>-allocators.json.
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

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# The least ratio that we hold ourselves to, against PyTorch.
GOALS = {"pair 512 B": 10, "pair 64 KiB": 10, "pair 1 MiB": 10, "random, 10,000 live": 8,
         "freed by another thread, 64 KiB": 4, "used on a second stream, 64 KiB": 4,
         "used on a second stream, 4 KiB": 4}


def build(bin_dir, program):
    import torch
    from torch.utils import cpp_extension
    lib = Path(torch.__file__).parent / "lib"
    cuda = Path(cpp_extension.CUDA_HOME or "/usr/local/cuda")
    command = ["g++", "-O3", "-std=c++20", "-w", str(HERE / "allocator_peers.cc"), "-o", str(program),
               f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
               f"-I{ROOT / 'include'}", f"-I{cuda / 'include'}"]
    command += [f"-I{path}" for path in cpp_extension.include_paths()]
    command += [f"-L{bin_dir / 'lib'}", "-lkeel", f"-Wl,-rpath,{bin_dir / 'lib'}", f"-L{lib}",
                "-Wl,--no-as-needed", "-lc10", "-lc10_cuda", "-ltorch_cpu", "-ltorch_cuda",
                f"-Wl,-rpath,{lib}"]
    runtime = [*lib.parent.parent.glob("nvidia/*/lib/libcudart.so*"), *cuda.glob("lib64/libcudart.so*")]
    if not runtime:
        raise record.RecordError("libcudart is not there")
    command += [str(runtime[0]), f"-Wl,-rpath,{runtime[0].parent}", "-lpthread"]
    subprocess.run(command, check=True)


def cupy_figures(pairs):
    try:
        import cupy
    except ImportError:
        return []
    pool = cupy.get_default_memory_pool()
    figures = []
    for name, size in (("512 B", 512), ("64 KiB", 64 << 10), ("1 MiB", 1 << 20)):
        rounds = []
        for _ in range(5):
            begin = time.perf_counter_ns()
            for _ in range(pairs):
                memory = pool.malloc(size)
                del memory
            rounds.append((time.perf_counter_ns() - begin) / pairs)
        figures.append({"scenario": f"pair {name}", "peer": "cupy", "ns": round(statistics.median(rounds), 1)})
    return figures


def table(figures):
    peers = list(dict.fromkeys(figure["peer"] for figure in figures))
    by_scenario = {}
    for figure in figures:
        by_scenario.setdefault(figure["scenario"], {})[figure["peer"]] = figure["ns"]
    head = ["nanoseconds for a pair", *peers, "pytorch / keel", "goal"]
    rows = []
    for scenario, ns in by_scenario.items():
        ratio = ns["pytorch"] / ns["keel"] if "pytorch" in ns and "keel" in ns else None
        rows.append([scenario, *(f"{ns[peer]:,.0f}" if peer in ns else "-" for peer in peers),
                     f"{ratio:.1f}" if ratio else "-", str(GOALS.get(scenario, "-"))])
    return head, rows


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=ROOT / "build-release", metavar="DIR")
    parser.add_argument("--pairs", type=int, default=100_000, metavar="N")
    parser.add_argument("--out", type=Path, metavar="FILE")
    parser.add_argument("--show", type=Path, metavar="FILE")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args(argv)
    if options.show:
        record.print_table(table(json.loads(options.show.read_text(encoding="utf-8"))["figures"]), options.markdown)
        return 0
    program = options.bin / "allocator_peers"
    build(options.bin, program)
    environment = dict(os.environ, KEEL_DRIVER=os.environ.get("KEEL_DRIVER", "cuda"))
    run = subprocess.run([program, str(options.pairs)], check=True, stdout=subprocess.PIPE, env=environment)
    figures = json.loads(run.stdout) + cupy_figures(options.pairs // 10)
    import torch
    now = datetime.datetime.now(datetime.timezone.utc)
    machine = record.describe_machine()
    version, device = record.describe_device(options.bin / "bin")
    stored = {
        "format": 1,
        "date": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "version": version,
        **record.describe_source(),
        "machine": machine,
        "device": device,
        "peers": {"pytorch": torch.__version__},
        "figures": figures,
    }
    name = f"{record.machine_slug(machine, device)}-{now:%Y-%m-%d}-allocators.json"
    out = options.out or ROOT / "benchmarks" / "results" / name
    out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    record.print_table(table(figures))
    print(f"\nstored in {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
