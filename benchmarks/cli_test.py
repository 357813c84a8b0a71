#!/usr/bin/env python3
"""Tests of cli.py: the tables that it makes of what `keel bench` measured, and those in docs/."""

import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import cli  # noqa: E402
import record  # noqa: E402


def figure(policy, moving, host, device, **more):
    return {"commands": 100, "moving": moving, "bytes": 4096, "kind": "explicit", "policy": policy,
            "host_us": host, "device_us": device, "driver_calls": {"LaunchGraph": 1.0},
            "bytes_copied": 0.0, **more}


STORED = {
    "date": "2026-01-02T03:04:05Z",
    "device": {"name": "A Device", "driver_version": "1.2"},
    "benchmarks": {"graph": [
        figure("bare", "none", 1.56, 105.64), figure("bare", "all", 2.3, 106.1),
        figure("copy", "all", 6.82, 110.2, bytes_copied=393216.0,
               driver_calls={"LaunchGraph": 1.0, "SetNodeParams": 1.0}),
        figure("bare", "none", 9, 9, commands=10),
        figure("remap", "one", 55.96, 104.6, bytes=1048576),
        figure("bare", "none", 1.4, 102.7, kind="traced")]},
}
GRAPH = """\
| commands | buffers | policy | none moving | one moving | half moving | all moving |
| --- | --- | --- | ---: | ---: | ---: | ---: |
| explicit | 4 KiB | bare | 1.6 / 105.6 | - | - | 2.3 / 106.1 |
| explicit | 4 KiB | copy | - | - | - | 6.8 / 110.2 |
| explicit | 1 MiB | remap | - | 56.0 / 104.6 | - | - |
| traced | 4 KiB | bare | 1.4 / 102.7 | - | - | - |
"""
CALLS = """\
| moving | way | host, us | device, us | driver calls | KiB copied |
| --- | --- | ---: | ---: | ---: | ---: |
| none | bare | 1.56 | 105.6 | 1 | 0 |
| all | bare | 2.30 | 106.1 | 1 | 0 |
| all | copy | 6.82 | 110.2 | 2 | 384 |
"""


class ShowTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.file = self.folder / "figures.json"
        self.file.write_text(json.dumps(STORED), encoding="utf-8")

    def show(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            cli.main(["--show", str(self.file), *arguments])
        return out.getvalue()

    def test_a_table_of_100_commands(self):
        self.assertEqual(self.show("--markdown", "graph"), GRAPH)
        self.assertEqual(self.show("--markdown", "graph-calls"), CALLS)
        self.assertRegex(self.show("graph"), r"explicit +1 MiB +remap +- +56.0 / 104.6 +- +-")

    def test_a_page_gets_its_tables_and_stays_otherwise(self):
        page = self.folder / "page.md"
        page.write_text("Before.\n<!-- cli.py: graph -->\nold\n<!-- end -->\nBetween.\n"
                        "<!-- cli.py: graph-calls -->\n<!-- end -->\nAfter.\n", encoding="utf-8")
        source = "From `benchmarks/results/figures.json` (A Device, driver 1.2, 2026-01-02):\n\n"
        wanted = (f"Before.\n<!-- cli.py: graph -->\n{source}{GRAPH}<!-- end -->\nBetween.\n"
                  f"<!-- cli.py: graph-calls -->\n{source}{CALLS}<!-- end -->\nAfter.\n")
        for _ in range(2):
            self.show("--into", str(page))
            self.assertEqual(page.read_text(encoding="utf-8"), wanted)

    def test_mistakes(self):
        page = self.folder / "page.md"
        with self.assertRaisesRegex(record.RecordError, "no table 'graf'"):
            self.show("graf")
        for text, wrong in (("Nothing.\n", "the page has no"),
                            ("<!-- cli.py: graph -->\nText.\n<!-- cli.py: graph -->\n<!-- end -->\n",
                             "no <!-- end -->"),
                            ("<!-- cli.py: graph -->\n<!-- end -->\n<!-- cli.py: graph -->\n", "no <!-- end -->"),
                            ("<!-- cli.py: x -->\n<!-- end -->\n", "no table 'x'")):
            page.write_text(text, encoding="utf-8")
            with self.assertRaisesRegex(record.RecordError, wrong):
                self.show("--into", str(page))
        with self.assertRaisesRegex(record.RecordError, "no benchmark 'graph'"):
            cli.table({"benchmarks": {}}, "graph")
        for arguments in (["--markdown", "graph"], ["--into", "page.md"], []):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                cli.main(arguments)


class PagesTest(unittest.TestCase):
    def test_the_tables_in_the_pages_are_those_of_their_files(self):
        shown = set()
        for page in sorted((record.ROOT / "docs").glob("*.md")):
            for found in cli.BLOCK.finditer(page.read_text(encoding="utf-8")):
                file = record.ROOT / found[3].split("`")[1]
                stored = json.loads(file.read_text(encoding="utf-8"))
                self.assertEqual(found[3], cli.block(stored, file.name, found[1]),
                                 f"{page.name}: cli.py --show {file.name} --into {page.name}")
                shown.add((page.name, found[1]))
        self.assertLessEqual({("graphs.md", "graph"), ("benchmarks.md", "graph-calls")}, shown)


if __name__ == "__main__":
    unittest.main()
