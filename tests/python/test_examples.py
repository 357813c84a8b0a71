"""The examples run, and the pages say what there is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import keel
from conftest import ROOT


def test_resident_weights(tmp_path: Path) -> None:
    snapshot = tmp_path / "memory.json"
    result = subprocess.run(
        [sys.executable, ROOT / "examples" / "python" / "resident_weights.py", snapshot],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "verified" in result.stdout
    assert snapshot.stat().st_size > 0


def test_graph_steps() -> None:
    result = subprocess.run(
        [sys.executable, ROOT / "examples" / "python" / "graph_steps.py"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "10 steps, verified; 4 graphs recorded, 2 traces" in result.stdout


def test_task_pipeline() -> None:
    result = subprocess.run(
        [sys.executable, ROOT / "examples" / "python" / "task_pipeline.py"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "20 tasks, verified; 10 on worker 0, 10 on worker 1" in result.stdout


def test_the_guide_names_every_exception() -> None:
    guide = (ROOT / "docs" / "python.md").read_text()
    for name in keel.errors.__all__:
        assert f"| `keel.{name}` |" in guide


def test_the_readme_runs() -> None:
    text = (ROOT / "README.md").read_text()
    program = text.split("```python\n")[1].split("```")[0]
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("sim:0 4194304 memory of sim:0")
