"""The examples run, and say what they say they do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
