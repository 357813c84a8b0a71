#!/usr/bin/env python3
"""Tests what compare.py makes of figures. The programs themselves need PyTorch and are not run."""

import ast
import contextlib
import io
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
import compare  # noqa: E402

MIB = 1 << 20
LOSSES = ["0x1.8p+1", "0x1.7p+1", "0x1.6p+1"]


def a_run(configuration, turn=0, step_ms=(10.0, 11.0, 12.0), reserved=1000 * MIB, losses=None,
          program="train", notes=None, **memory):
    return {
        "program": program, "configuration": configuration, "turn": turn, "seconds": 5.0,
        "torch": "2.11.0", "backend": "native", "losses": LOSSES if losses is None else losses,
        "step_ms": list(step_ms), "notes": notes or {},
        "memory": {"peak_reserved": reserved, "retries": 0, "ooms": 0, **memory},
    }


def a_failure(configuration, program="train"):
    return {"program": program, "configuration": configuration, "turn": 0, "seconds": 1.0,
            "failed": "exit code 1", "errors": ["Traceback", "ValueError: no such thing"]}


def row_of(rows, configuration):
    return next(row for row in rows if row["configuration"] == configuration)


def printed(stored, **how):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        compare.print_comparison(stored, **how)
    return out.getvalue()


class Comparison(unittest.TestCase):
    def test_times_are_compared_within_a_turn(self):
        # The machine is ten times as slow in the second turn; in each, Keel takes 0.9 of the time.
        runs = [run for turn, speed in enumerate((1, 10, 1)) for run in (
            a_run("pytorch", turn, [speed * ms for ms in (10, 20, 90)]),
            a_run("keel", turn, [speed * ms for ms in (9, 18, 333)]))]
        row = row_of(compare.compare(runs), "keel")
        self.assertEqual(row["step_ratio"], 0.9)
        self.assertEqual(row["total_ratio"], 3.0)
        self.assertEqual(row["step_ms"], 18)
        self.assertEqual(row["turns"], 3)
        self.assertIsNone(row_of(compare.compare(runs), "pytorch")["step_ratio"])

    def test_only_turns_that_both_have_are_paired(self):
        row = row_of(compare.compare([
            a_run("pytorch", 0, [10]), a_run("pytorch", 1, [10]),
            a_run("keel", 1, [20]), a_run("keel", 2, [500])]), "keel")
        self.assertEqual(row["step_ratio"], 2.0)
        row = row_of(compare.compare([a_run("pytorch", 0, [10]), a_run("keel", 1, [20])]), "keel")
        self.assertIsNone(row["step_ratio"])

    def test_the_first_step_that_differs_is_named(self):
        other = [LOSSES[0], "0x1.7000000000001p+1", "0x1.0p+1"]
        rows = compare.compare([a_run("pytorch"), a_run("pytorch-expandable"),
                                a_run("keel", 0), a_run("keel", 1, losses=other),
                                a_run("keel", 2, losses=[*LOSSES[:2], "0x1.0p+1"])])
        self.assertEqual(row_of(rows, "pytorch-expandable")["losses"], "same")
        self.assertEqual(row_of(rows, "keel")["losses"], "differs")
        self.assertEqual(row_of(rows, "keel")["first_difference"], 1)
        text = printed({"comparison": rows, "left_out": []})
        self.assertIn("differ at step 1", text)
        self.assertIn("losses: 1 of 2 equal", text)

    def test_a_missing_step_is_a_difference(self):
        self.assertEqual(compare.first_difference(LOSSES[:2], LOSSES), 2)
        self.assertEqual(compare.first_difference(LOSSES, LOSSES[:1]), 1)
        self.assertIsNone(compare.first_difference(LOSSES, list(LOSSES)))

    def test_pytorch_that_differs_from_itself_is_said(self):
        rows = compare.compare([a_run("pytorch", 0), a_run("pytorch", 1, losses=["0x0p+0"])])
        text = printed({"comparison": rows, "left_out": []})
        self.assertIn("differs from its own first run", text)
        alone = compare.compare([a_run("pytorch", 0)])
        self.assertIsNone(alone[0]["losses"])

    def test_memory(self):
        rows = compare.compare([
            a_run("pytorch", reserved=1500 * MIB, retries=2),
            a_run("pytorch-expandable", 0, reserved=900 * MIB),
            a_run("pytorch-expandable", 1, reserved=1000 * MIB),
            a_run("pytorch-expandable", 2, reserved=5000 * MIB),
            a_run("keel", 0, reserved=950 * MIB, ooms=0, retries=1),
            a_run("keel", 1, reserved=950 * MIB, ooms=3)])
        self.assertEqual(row_of(rows, "pytorch")["reserved_ratio"], 1.5)
        keel = row_of(rows, "keel")
        self.assertEqual(keel["reserved_ratio"], 0.95)
        self.assertEqual((keel["retries"], keel["ooms"]), (1, 3))
        # An allocator that counts something not, or a run without a device.
        rows = compare.compare([a_run("pytorch"), a_run("keel", reserved=None, retries=None)])
        self.assertIsNone(row_of(rows, "keel")["reserved_ratio"])
        self.assertIsNone(row_of(rows, "keel")["retries"])
        head, lines = compare.table(rows)
        self.assertTrue(all(len(line) == len(head) for line in lines))

    def test_a_failure_is_a_row_and_the_rest_goes_on(self):
        rows = compare.compare([
            a_run("pytorch"), a_failure("keel"),
            a_failure("pytorch", "other"), a_run("keel", program="other")])
        self.assertEqual([(row["program"], row["configuration"]) for row in rows],
                         [("train", "pytorch"), ("train", "keel"),
                          ("other", "pytorch"), ("other", "keel")])
        self.assertEqual(rows[1]["failed"], "exit code 1")
        self.assertIsNone(rows[1]["step_ms"])
        # Nothing to compare with.
        self.assertIsNone(rows[3]["step_ratio"])
        self.assertIsNone(rows[3]["losses"])
        text = printed({"comparison": rows, "left_out": []})
        self.assertIn("train, keel: failed: exit code 1", text)
        self.assertIn("    ValueError: no such thing", text)

    def test_what_failed_in_a_later_turn_keeps_its_figures(self):
        late = {**a_failure("keel"), "turn": 1}
        row = row_of(compare.compare([a_run("pytorch"), a_run("keel"), late]), "keel")
        self.assertEqual(row["step_ratio"], 1.0)
        self.assertEqual(row["failed"], "exit code 1")

    def test_refused_is_not_different(self):
        why = {"refused": "NotImplementedError: no\nC++ frames"}
        rows = compare.compare([
            a_run("pytorch"), a_run("keel", losses=[], step_ms=[], notes=why)])
        self.assertIsNone(row_of(rows, "keel")["losses"])
        text = printed({"comparison": rows, "left_out": []})
        self.assertIn("losses: 0 of 0", text)
        self.assertIn("train, keel: refused: NotImplementedError: no ...", text)
        self.assertNotIn("C++ frames", text)

    def test_notes_of_turns(self):
        rows = compare.compare([a_run("pytorch", turn, notes={"steps done": done})
                                for turn, done in enumerate((40, 38, 40))])
        self.assertEqual(rows[0]["notes"], {"steps done": "40, 38"})

    def test_markdown(self):
        stored = {"comparison": compare.compare([a_run("pytorch"), a_run("keel")]),
                  "left_out": [{"program": "train", "configuration": "keel", "turn": 1},
                               {"program": "train", "configuration": "keel", "turn": 2}]}
        lines = printed(stored, markdown=True).splitlines()
        self.assertTrue(lines[1].startswith("| program | allocator |"))
        self.assertEqual(lines[3].count("|"), lines[1].count("|"))
        self.assertIn("train: left out: keel turn 2, 3", lines)


class Runs(unittest.TestCase):
    def setUp(self):
        self.now = 0.0
        self.started = []

    def run_all(self, *argv, failing=(), interrupted_at=None):
        def run(program, configuration, turn, folder, arguments, timeout):
            self.now += 10
            self.started.append((program, configuration))
            if len(self.started) == interrupted_at:
                raise KeyboardInterrupt
            if (program, configuration) in failing:
                return {"failed": "exit code 1", "errors": []}
            return {"losses": [], "step_ms": [], "memory": {}, "notes": {}, "backend": None}

        with contextlib.redirect_stderr(io.StringIO()) as progress:
            runs, left_out = compare.run_all(
                compare.parse(argv), Path("/nonexistent"), run, clock=lambda: self.now)
        self.progress = progress.getvalue()
        return runs, left_out

    def test_turns_go_there_and_back(self):
        runs, left_out = self.run_all("--programs", "generate,compiled", "--turns", "2")
        there = ["pytorch", "pytorch-expandable", "keel"]
        self.assertEqual(self.started,
                         [("generate", c) for c in there] + [("compiled", c) for c in there]
                         + [("generate", c) for c in there[::-1]]
                         + [("compiled", c) for c in there[::-1]])
        self.assertEqual([run["turn"] for run in runs], [0] * 6 + [1] * 6)
        self.assertEqual(left_out, [])
        self.assertIn("turn 2 of 2: compiled, keel ... 10.0 s", self.progress)

    def test_a_budget_starts_nothing_past_it(self):
        runs, left_out = self.run_all("--programs", "generate", "--turns", "2", "--budget", "35")
        self.assertEqual(len(runs), 4)
        self.assertEqual(left_out, [
            {"program": "generate", "configuration": "pytorch-expandable", "turn": 1},
            {"program": "generate", "configuration": "pytorch", "turn": 1}])

    def test_an_interrupt_keeps_what_was_run(self):
        runs, left_out = self.run_all("--programs", "generate", "--turns", "2", interrupted_at=3)
        self.assertEqual(len(self.started), 3)
        self.assertEqual(len(runs), 2)
        self.assertEqual([run["configuration"] for run in left_out],
                         ["keel", "keel", "pytorch-expandable", "pytorch"])

    def test_what_failed_is_not_run_again(self):
        runs, _ = self.run_all("--programs", "generate", "--turns", "3",
                               failing={("generate", "keel")})
        self.assertEqual(sum(configuration == "keel" for _, configuration in self.started), 1)
        self.assertEqual(len(runs), 7)
        self.assertIn("failed after 10.0 s: exit code 1", self.progress)


class Processes(unittest.TestCase):
    """A program here is a few lines that need no PyTorch."""

    def run_one(self, text, configuration="pytorch", timeout=60):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "programs").mkdir()
            (folder / "programs" / "probe.py").write_text(text, encoding="utf-8")
            _, settings = compare.CONFIGURATIONS[configuration]
            with mock.patch.object(compare, "HERE", folder), \
                    mock.patch.dict(compare.CONFIGURATIONS, {configuration: ((), settings)}):
                process = compare.Process("probe", configuration, folder, ["--device", "cpu"])
                return process.finish(timeout)

    WRITE = ("import json, os, sys\n"
             "value = os.environ.get('PYTORCH_CUDA_ALLOC_CONF')\n"
             "file = open(sys.argv[sys.argv.index('--json') + 1], 'w')\n"
             "json.dump({'backend': 'native', 'conf': value, 'arguments': sys.argv[1:3]}, file)\n")

    def test_a_configuration_is_what_it_says(self):
        with mock.patch.dict("os.environ", {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}):
            found = self.run_one(self.WRITE)
            self.assertIsNone(found["conf"])
            self.assertEqual(found["arguments"], ["--device", "cpu"])
            self.assertEqual(self.run_one(self.WRITE, "pytorch-expandable")["conf"],
                             "expandable_segments:True")

    def test_a_batch_is_ready_before_its_first_runs_and_they_run_one_by_one(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "programs").mkdir()
            log = folder / "log"
            # Writes when it is ready, when it is let go, and when it ends.
            (folder / "programs" / "probe.py").write_text(
                "import json, sys\n"
                f"log = open({str(log)!r}, 'a', buffering=1)\n"
                "log.write('ready\\n')\n"
                "open(sys.argv[sys.argv.index('--wait') + 1], 'w').close()\n"
                "sys.stdin.readline()\n"
                "log.write('go\\n')\n"
                "with open(sys.argv[sys.argv.index('--json') + 1], 'w') as file:\n"
                "  json.dump({'backend': None}, file)\n"
                "log.write('end\\n')\n", encoding="utf-8")
            plan = [("probe", "pytorch", turn) for turn in range(4)]
            starter = compare.Starter(plan, 3)
            with mock.patch.object(compare, "HERE", folder):
                for key in plan[:2]:
                    self.assertEqual(starter.run(*key, folder, [], 60), {"backend": None})
            left = [process.process for process in starter.waiting.values()]
            starter.end()
            self.assertEqual([process.poll() for process in left], [-signal.SIGKILL])
            self.assertEqual(log.read_text().split(), ["ready"] * 3 + ["go", "end"] * 2)

    def test_keel_has_to_be_keel(self):
        self.assertIn("own allocator", self.run_one(self.WRITE, "keel")["failed"])

    def test_failures_say_why(self):
        found = self.run_one("import sys\n"
                             "for i in range(99): print(i, file=sys.stderr)\n"
                             "sys.exit(3)")
        self.assertEqual(found["failed"], "exit code 3")
        self.assertEqual(found["errors"][-1], "98")
        self.assertEqual(len(found["errors"]), compare.ERROR_LINES)
        found = self.run_one("import os, signal\nos.kill(os.getpid(), signal.SIGABRT)")
        self.assertEqual(found["failed"], "ended by SIGABRT")
        self.assertIn("no figures", self.run_one("pass")["failed"])

    def test_what_hangs_ends_with_all_that_it_started(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)
            reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            found = self.run_one("import os, signal\n"
                                 f"writer = os.open({pipe!r}, os.O_WRONLY)\n"
                                 "os.write(writer, b'x')\n"
                                 "os.fork()\n"
                                 "signal.pause()\n", timeout=2)
            self.assertEqual(found["failed"], "still running after 2 s")
            # It ends when nobody has it open for writing.
            text = b"x"
            while text:
                self.assertTrue(select.select((reader,), (), (), 10)[0], "a process lives on")
                text = os.read(reader, 16)
            os.close(reader)


class Command(unittest.TestCase):
    def command(self, *arguments):
        return subprocess.run((sys.executable, "-B", compare.__file__, *arguments),
                              capture_output=True, text=True, timeout=60)

    def test_help_and_mistakes(self):
        result = self.command("--help")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("--budget", result.stdout)
        for mistake in (("--frob",), ("--programs", "generate,frob"), ("--turns", "0"),
                        ("--programs", "")):
            self.assertEqual(self.command(*mistake).returncode, 2, mistake)
        self.assertIn("near_limit", self.command("--programs", "frob").stderr)
        # Said before anything runs.
        result = self.command("--bin", "/nonexistent")
        self.assertEqual(result.returncode, 1)
        self.assertIn("build it first", result.stderr)

    def test_what_is_stored_can_be_shown(self):
        runs = [a_run("pytorch"), a_run("keel", step_ms=[22.0])]
        stored = {"format": 1, "comparison": compare.compare(runs), "left_out": [], "runs": runs}
        self.assertEqual(json.loads(compare.text_of(stored)), stored)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "stored.json"
            file.write_text(compare.text_of(stored), encoding="utf-8")
            result = self.command("--show", str(file))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"train +keel +22\.00 +2\.000")

    def test_every_program_is_listed_and_knows_nothing_of_keel(self):
        files = {path.stem: path for path in (compare.HERE / "programs").glob("*.py")}
        self.assertEqual(set(files) - {"program"}, set(compare.PROGRAMS))
        for path in files.values():
            tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
            modules = [node.module if isinstance(node, ast.ImportFrom) else alias.name
                       for node in ast.walk(tree)
                       if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names]
            self.assertNotIn("keel", {module.partition(".")[0] for module in modules}, path.name)


if __name__ == "__main__":
    unittest.main()
