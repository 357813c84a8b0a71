#!/usr/bin/env python3
"""Runs every benchmark for a moment through record.py and looks at what was stored.

KEEL_BIN is the folder of the programs.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import record  # noqa: E402

BIN = os.environ.get("KEEL_BIN")
SCRIPT = Path(record.__file__)


def run(*arguments):
    return subprocess.run(
        (sys.executable, "-B", str(SCRIPT), *arguments),
        env={**os.environ, "KEEL_DRIVER": "sim"},
        capture_output=True,
        text=True,
        timeout=280,
    )


class RecordTest(unittest.TestCase):
    def test_everything_runs_and_is_stored(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "deep" / "figures.json"
            result = run("--bin", BIN, "--quick", "--out", str(out))
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            text = out.read_text(encoding="utf-8")
        stored = json.loads(text)
        for key in ("format", "date", "version", "commit", "modified", "machine", "device", "quick",
                    "programs"):
            self.assertIn(key, stored)
        self.assertEqual(stored["device"]["driver"], "sim")
        self.assertTrue(stored["machine"]["cpu"])
        self.assertGreater(stored["machine"]["cores"], 0)
        # Nothing of where it ran.
        self.assertNotIn(str(Path(BIN).resolve()), text)
        self.assertNotIn("executable", text)
        self.assertEqual(
            [p["program"] for p in stored["programs"]],
            sorted(p.name for p in Path(BIN).glob("*_bench")),
        )
        for program in stored["programs"]:
            self.assertTrue(program["figures"], program["program"])
            for figure in program["figures"]:
                self.assertFalse(figure.get("error_occurred"), figure)
                self.assertGreater(figure["real_time"], 0, figure)

    def test_a_part_is_not_stored(self):
        result = run("--bin", BIN, "--quick", "--benchmark_filter=QueryEvent/")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("not stored", result.stdout)

    def test_mistakes(self):
        self.assertEqual(run("--frob").returncode, 2)
        result = run("--bin", "/nonexistent")
        self.assertEqual(result.returncode, 1)
        self.assertIn("build them first", result.stderr)

    def test_machine_slug(self):
        machine = {"cpu": "Example(R) Fast(TM) CPU X-1234 v2 @ 2.10GHz", "cores": 8}
        self.assertEqual(record.machine_slug(machine), "example-fast-x-1234-v2-8")


if __name__ == "__main__":
    if not BIN:
        sys.exit("record_test.py: set KEEL_BIN to the folder of the programs")
    unittest.main()
