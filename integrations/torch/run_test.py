"""`keel run` with PyTorch on a real GPU: children of a program, and running out of memory.

Run by `./dev gpu`; skipped elsewhere.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)


def _run(folder: Path, program: str, *before: str) -> subprocess.CompletedProcess[str]:
    script = folder / "program.py"
    script.write_text(textwrap.dedent(program))
    return subprocess.run(
        [sys.executable, "-m", "keel.run", *before, str(script)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_workers_of_a_loader_do_not_disturb(tmp_path: Path) -> None:
    program = """
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Numbers(Dataset):
            def __len__(self): return 64
            def __getitem__(self, i): return torch.full((1000,), float(i))

        if __name__ == "__main__":
            total = torch.zeros((), device="cuda")
            for method in ("fork", "spawn"):
                loader = DataLoader(Numbers(), batch_size=8, num_workers=2, pin_memory=True,
                                    multiprocessing_context=method)
                for batch in loader:
                    total += batch.cuda(non_blocking=True).sum()
            print(torch.cuda.get_allocator_backend(), total.item())
    """
    result = _run(tmp_path, program)
    assert (result.returncode, result.stdout) == (0, "keel 4032000.0\n"), result.stderr
    assert "torch on Keel" in result.stderr


def test_children_by_spawn_are_on_keel_too(tmp_path: Path) -> None:
    program = """
        import torch, torch.multiprocessing as mp

        def work(rank, results):
            x = torch.full((1 << 20,), float(rank), device="cuda")
            results.put((rank, torch.cuda.get_allocator_backend(), x.sum().item()))

        if __name__ == "__main__":
            results = mp.get_context("spawn").SimpleQueue()
            mp.spawn(work, (results,), nprocs=2)
            print(sorted(results.get() for _ in range(2)))
    """
    result = _run(tmp_path, program)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[(0, 'keel', 0.0), (1, 'keel', 1048576.0)]\n"


def test_torchrun(tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(
        textwrap.dedent("""
        import sys, torch, torch.distributed as dist

        dist.init_process_group("gloo")
        x = torch.full((4,), dist.get_rank() + 1.0, device="cuda")
        y = x.cpu()
        dist.all_reduce(y)
        # In one piece: both write into the same pipe.
        sys.stdout.write(f"{torch.cuda.get_allocator_backend()} {y.tolist()}\\n")
        dist.destroy_process_group()
    """)
    )
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node=2", "worker.py"]
    result = subprocess.run(
        [sys.executable, "-m", "keel.run", "--no-summary", "-m", *launcher],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == 2 * ["keel [3.0, 3.0, 3.0, 3.0]"]


def test_running_out_of_memory_leaves_a_snapshot(tmp_path: Path) -> None:
    program = """
        import torch

        kept = [torch.empty(64 << 20, dtype=torch.uint8, device="cuda") for _ in range(3)]
        torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
    """
    result = _run(tmp_path, program, "--history", "--json", "summary.json")
    assert result.returncode == 1
    assert "OutOfMemoryError" in result.stderr
    (written,) = tmp_path.glob("keel-oom-*.pickle")
    snapshot = pickle.loads(written.read_bytes())
    live = [
        block["requested_size"]
        for segment in snapshot["segments"]
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    ]
    assert live.count(64 << 20) == 3
    (events,) = (trace for trace in snapshot["device_traces"] if trace)
    # The snapshot that was written notes itself.
    assert [event["action"] for event in events[-2:]] == ["oom", "snapshot"]
    assert events[-2]["size"] == 1 << 45
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [device["ooms"] for device in summary["devices"]] == [1]
