#!/usr/bin/env python3
"""Runs every benchmark for a moment through record.py and looks at what was stored.

KEEL_BIN is the folder of the programs.
"""

import contextlib
import io
import json
import os
import re
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
        # Those that found their device.
        programs = [p["program"] for p in stored["programs"]]
        self.assertIn("hal_bench", programs)
        self.assertLessEqual(set(programs), {p.name for p in Path(BIN).glob("*_bench")})
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

    def test_turns_become_a_comparison(self):
        def figure(name, ns, calls=1):
            return {"name": name, "real_time": ns, "cpu_time": ns, "calls": float(calls)}

        rows = record.compare([
            *(figure(f"QueryEvent/direct/{i}", ns) for i, ns in enumerate((200, 190, 9000))),
            *(figure(f"QueryEvent/device/{i}", ns) for i, ns in enumerate((290, 291, 9101))),
            *(figure(f"Pair/{way}/0", ns, 2) for way, ns in (("direct", 100), ("device", 299))),
            *(figure(f"Long/{way}/0", ns) for way, ns in (("direct", 1e6), ("device", 1.04e6))),
            *({**figure(f"Unlike/{way}/0", ns), "label": "other work"}
              for way, ns in (("direct", 100), ("device", 9000))),
            figure("Half/direct/0", 1),
            {**figure("Broken/device/0", 1), "error_occurred": True},
            figure("graph/launch/nodes:100", 1),
        ])
        self.assertEqual([row["operation"] for row in rows], ["QueryEvent", "Pair", "Long", "Unlike"])
        self.assertEqual(rows[0]["direct_ns"], 200)
        self.assertEqual(rows[0]["device_ns"], 291)
        self.assertEqual(rows[0]["more_ns"], 101)  # within a turn, whatever the turns were like
        self.assertFalse(rows[0]["within_budget"])  # one nanosecond too many
        self.assertTrue(rows[1]["within_budget"])  # two calls
        self.assertTrue(rows[2]["within_budget"])
        self.assertEqual(rows[0]["reference_ns"], 190)
        self.assertIsNone(rows[0]["unlike"])
        # Shown with its reason, and not counted.
        self.assertIsNone(rows[3]["within_budget"])
        self.assertEqual(rows[3]["unlike"], "other work")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            record.print_record({"programs": [], "comparison": rows})
        self.assertIn("2 of 3 operations", out.getvalue())
        self.assertIn("not compared: Unlike: other work", out.getvalue())

    def test_every_reference_is_of_an_operation(self):
        sources = "".join(p.read_text(encoding="utf-8")
                          for p in (record.ROOT / "src" / "drivers").rglob("*_bench*.cc"))
        for name in json.loads(record.REFERENCE.read_text(encoding="utf-8"))["ns"]:
            plain = re.sub(r" \d+ [KMG]iB(, wait)?$", "", name)
            self.assertTrue(plain in sources or name in sources, name)

    def test_machine_slug(self):
        machine = {"cpu": "Example(R) Fast(TM) CPU X-1234 v2 @ 2.10GHz", "cores": 8}
        self.assertEqual(record.machine_slug(machine, {"simulated": True}),
                         "example-fast-x-1234-v2-8")
        self.assertEqual(record.machine_slug(machine, {"simulated": False, "name": "Example G-7"}),
                         "example-g-7")


if __name__ == "__main__":
    if not BIN:
        sys.exit("record_test.py: set KEEL_BIN to the folder of the programs")
    unittest.main()
