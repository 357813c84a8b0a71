"""integrations/torch/pytorch_tests.py, with tests that know nothing of PyTorch."""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "integrations" / "torch"))
import pytorch_tests
from pytorch_tests import Configuration, Runs, category
from pytorch_tests_plugin import text_of

PASSED = {"outcome": "passed", "seconds": 0.1}
FAILED = {"outcome": "failed", "seconds": 0.1, "reason": "AssertionError: 2 != 3"}
SKIPPED = {"outcome": "skipped", "seconds": 0.0, "reason": "only one GPU detected"}
CRASHED = {"outcome": "crashed", "reason": "ended by SIGSEGV"}
REFUSED = {
    "outcome": "failed",
    "reason": "RuntimeError: KeelAllocator does not yet support setNoSplit. If you need it, ...",
}

TESTS = """
    import fcntl, gc, os, signal, sys, threading, unittest

    gc.disable()  # none but on purpose

    class TestCuda(unittest.TestCase):
        def test_ignored(self):
            raise AssertionError("nobody chose it")

        def test_pinned(self):
            raise AssertionError("it is not applicable")

        def others_can(self, kind):
            with open("../lock") as file:
                try:
                    fcntl.flock(file, kind | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
            return True

        def test_alone(self):
            with open(os.environ["ORDER"], "a") as file:
                file.write("alone\\n")
            self.assertFalse(self.others_can(fcntl.LOCK_SH))

        def test_passes(self):
            with open(os.environ["ORDER"], "a") as file:
                file.write("passes\\n")
            self.assertTrue(self.others_can(fcntl.LOCK_SH))
            self.assertFalse(self.others_can(fcntl.LOCK_EX))

        def test_passes_alone(self):
            with open(os.environ["ORDER"], "a") as file:
                file.write("passes alone\\n")

        def test_first(self):
            with open(os.environ["ORDER"], "a") as file:
                file.write("first\\n")

        def test_fails(self):
            held = Held()
            self.assertEqual(1 + 1, 3, "a sum")

        def test_holds_nothing_of_the_one_that_failed(self):
            self.assertEqual(Held.living, 0)

        def test_in_parts(self):
            for i in range(3):
                with self.subTest(i=i):
                    self.assertEqual(i, 0)

        def test_kills_its_process(self):
            os.kill(os.getpid(), signal.SIGSEGV)

        def test_exits(self):
            os._exit(0)

        def test_hangs(self):
            threading.Event().wait()

        @unittest.skipIf(True, "only one GPU detected")
        def test_skipped(self):
            pass

        def test_zlast(self):
            self.assertNotIn("KEEL_ALLOC_CONF", os.environ)

    class Held:
        living = 0

        def __init__(self):
            Held.living += 1
            self.cycle = self

        def __del__(self):
            Held.living -= 1
"""


class Folder:
    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.order = path / "order"
        monkeypatch.setenv("ORDER", str(self.order))
        monkeypatch.setenv("KEEL_ALLOC_CONF", "of the caller")

    def run(
        self,
        tests: str,
        *select: str,
        timeout: float = 60,
        budget: float = 60,
        **configuration: Any,
    ) -> Runs:
        (self.path / pytorch_tests.FILE).write_text(textwrap.dedent(tests))
        plan = {
            "folder": str(self.path),
            "file": pytorch_tests.FILE,
            "select": [rf"(?:TestCuda\.)?test_(?:{'|'.join(select)})"],
            "not_applicable": [[r"TestCuda\.test_pinned", "pinned memory"]],
            "first": [r".*\.test_first"],
            "alone": [r".*\.test_passes_alone", r".*\.test_alone"],
        }
        configurations = {"one": Configuration(**configuration)}
        return pytorch_tests.run_all(configurations, plan, timeout, budget)["one"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    return Folder(tmp_path, monkeypatch)


def outcomes(runs: Runs) -> dict[str, str]:
    return {name.partition("_")[2]: one["outcome"] for name, one in runs.results.items()}


# --- The runs ---


def test_a_process_that_crashes_loses_one_test(folder: Folder) -> None:
    runs = folder.run(
        TESTS, "alone", "pinned", "passes", "fails", "skipped", "exits", "kills_.*", "zlast"
    )
    assert outcomes(runs) == {
        "alone": "passed",
        "passes": "passed",
        "fails": "failed",
        "skipped": "skipped",
        "exits": "crashed",
        "kills_its_process": "crashed",
        "zlast": "passed",
    }
    assert runs.problem is None
    assert runs.processes == 3
    assert runs.results["TestCuda.test_kills_its_process"]["reason"] == "ended by SIGSEGV"
    assert runs.results["TestCuda.test_exits"]["reason"] == "exit code 0"
    assert runs.results["TestCuda.test_skipped"]["reason"] == "only one GPU detected"
    failed = runs.results["TestCuda.test_fails"]
    assert failed["reason"] == "AssertionError: 2 != 3 : a sum"
    line = textwrap.dedent(TESTS).splitlines().index('        self.assertEqual(1 + 1, 3, "a sum")')
    assert failed["where"] == f"test_cuda.py:{line + 1}"
    assert runs.not_applicable == {"TestCuda.test_pinned": "pinned memory"}
    assert folder.order.read_text().splitlines() == ["passes", "alone"]  # nothing ran twice


def test_the_order(folder: Folder) -> None:
    folder.run(TESTS, "alone", "passes", "passes_alone", "first")
    assert folder.order.read_text().splitlines() == ["first", "passes", "passes alone", "alone"]


def test_a_test_that_hangs_is_ended(folder: Folder) -> None:
    runs = folder.run(TESTS, "hangs", "zlast", timeout=1)
    assert outcomes(runs) == {"hangs": "hung", "zlast": "passed"}
    assert runs.results["TestCuda.test_hangs"]["reason"] == "still running after 1 s"


def test_the_budget_ends_everything(folder: Folder) -> None:
    runs = folder.run(TESTS, "hangs", "zlast", budget=0)
    assert runs.results == {}
    assert runs.problem == "the time was up"


def test_the_callers_path_is_kept(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = folder.path / "modules"
    modules.mkdir()
    (modules / "of_the_caller.py").write_text("")
    monkeypatch.chdir(folder.path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["modules", os.environ.get("PYTHONPATH", "")]))
    runs = folder.run("import of_the_caller\ndef test_passes():\n    pass\n", "passes")
    assert outcomes(runs) == {"passes": "passed"}


def test_parts_that_fail_are_one_failure(folder: Folder) -> None:
    runs = folder.run(TESTS, "in_parts", "zlast")
    assert outcomes(runs) == {"in_parts": "failed", "zlast": "passed"}
    assert runs.results["TestCuda.test_in_parts"]["reason"] == "AssertionError: 1 != 0"


def test_a_failure_holds_nothing(folder: Folder) -> None:
    runs = folder.run(TESTS, "fails", "holds_.*")
    assert outcomes(runs) == {
        "fails": "failed",
        "holds_nothing_of_the_one_that_failed": "passed",
    }


def test_what_cannot_be_run_says_why(folder: Folder) -> None:
    runs = folder.run("import nothing_like_this\n", ".*")
    assert runs.problem is not None
    assert "nothing_like_this" in runs.problem
    assert folder.run(TESTS, "no_such_test").problem == "exit code 5"
    runs = folder.run(TESTS, ".*", prefix=("-c", "raise SystemExit('no such allocator')"))
    assert runs.problem == "it ended before its tests did"
    assert runs.errors == ["no such allocator"]


def test_the_allocator_has_to_be_the_one(folder: Folder) -> None:
    torch = """
        import sys, types
        sys.modules["torch"] = types.SimpleNamespace(
            __version__="2.11.0",
            cuda=types.SimpleNamespace(get_allocator_backend=lambda: "native"))
        def test_passes():
            pass
    """
    assert folder.run(torch, "passes", backend="native").torch == "2.11.0"
    runs = folder.run(torch, "passes", backend="keel")
    assert runs.problem == "it ran on the allocator 'native'"


def test_reasons_are_a_line_without_noise() -> None:
    error = RuntimeError(
        "Scalars are not equal!\n\nExpected 2 but got 4.\nTo execute this test, run the following"
    )
    assert text_of(error) == "Scalars are not equal! Expected 2 but got 4."
    assert len(text_of(RuntimeError("x" * 1000))) == 300


# --- What it comes to ---


@pytest.mark.parametrize(
    ("own", "keels", "what"),
    [
        (PASSED, PASSED, "passed"),
        (FAILED, FAILED, "failed"),
        (CRASHED, REFUSED, "failed"),
        (SKIPPED, SKIPPED, "skipped"),
        (FAILED, PASSED, "only keel"),
        (PASSED, FAILED, "only pytorch"),
        (PASSED, CRASHED, "only pytorch"),
        (PASSED, REFUSED, "refused"),
        (PASSED, None, "not run"),
        (None, FAILED, "not run"),
        # One that only one of them skips is not passed by both.
        (PASSED, SKIPPED, "skipped"),
    ],
)
def test_categories(own: Any, keels: Any, what: str) -> None:
    assert category(own, keels) == what


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in pytorch_tests.REFUSALS])
def test_refusals_are_in_the_allocators_words(pattern: str) -> None:
    folder = ROOT / "integrations" / "torch"
    # String literals that are continued on the next line are one.
    source = re.sub(r'"\s*\n\s*"', "", (folder / "keel_allocator.cc").read_text())
    if pattern == "setNoSplit":  # in PyTorch's, of an allocator that leaves it out
        assert pattern not in (folder / "keel_allocator.h").read_text()
    else:
        assert re.search(pattern, source)


def test_what_is_stored_can_be_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["T.both", "T.refused", "T.ours", "T.theirs", "T.late"]
    results: dict[str, list[dict[str, Any]]] = {
        "pytorch": [PASSED, PASSED, PASSED, FAILED],
        "keel-segments": [PASSED, REFUSED, CRASHED, FAILED],
        "pytorch-expandable": [PASSED, PASSED, PASSED, FAILED, PASSED],
        "keel": [PASSED, REFUSED, {**FAILED, "where": "test_cuda.py:7"}, FAILED, PASSED],
    }
    runs = {
        name: Runs(tests=names, results=dict(zip(names, found, strict=False)))
        for name, found in results.items()
    }
    runs["pytorch"].problem = pytorch_tests.TIME_IS_UP
    modes = list(pytorch_tests.MODES)
    stored = {
        "modes": modes,
        "configurations": {name: one.as_json() for name, one in runs.items()},
        "not_applicable": {"T.pinned": "pinned memory"},
        "tests": pytorch_tests.compare_modes(modes, runs),
    }
    path = tmp_path / "stored.json"
    path.write_text(pytorch_tests.text_of(stored))
    assert json.loads(path.read_text()) == stored
    assert pytorch_tests.main(["--show", str(path)]) == 0
    shown = capsys.readouterr().out
    rows = dict(re.findall(r"^(\S.*?)  +(\d+ +\d+)$", shown, re.MULTILINE))
    assert {name: figures.split() for name, figures in rows.items()} == {
        "passed with both": ["2", "1"],
        "skipped by PyTorch's tests": ["0", "0"],
        "failed with both": ["1", "1"],
        "passed with Keel's only": ["0", "0"],
        "passed with PyTorch's own only: Keel refuses it": ["1", "1"],
        "passed with PyTorch's own only": ["1", "1"],
        "not run": ["0", "1"],
        "all": ["5", "5"],
    }
    assert "  T.refused\n      no_split: RuntimeError: KeelAllocator does not yet" in shown
    assert "  T.ours, expandable\n      AssertionError: 2 != 3 (test_cuda.py:7)" in shown
    assert "  T.ours, segments\n      crashed: ended by SIGSEGV" in shown
    assert "  T.late, segments\n" in shown
    assert "pinned memory: 1\n      T.pinned" in shown
    assert "pytorch: the time was up" in shown


# --- The options ---


def test_selections(tmp_path: Path) -> None:
    assert pytorch_tests.selection("TestMemPool") == [".*(?:TestMemPool).*"]
    file = tmp_path / "names"
    file.write_text("# those of pools\nTestMemPool\n\ntest_graph|test_pool\n")
    assert pytorch_tests.selection(str(file)) == [
        ".*(?:TestMemPool).*",
        ".*(?:test_graph|test_pool).*",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--tests FOLDER is needed"),
        (["--tests", "/nowhere"], "there is no test_cuda.py in it"),
        (["--tests", "/nowhere", "--select", "("], "'('"),
        (["--tests", "/nowhere", "--modes", "all"], "unknown: 'all'"),
    ],
)
def test_mistakes(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        pytorch_tests.parse(arguments)
    assert said in capsys.readouterr().err


def test_patterns_are_patterns() -> None:
    not_applicable = [pattern for pattern, _ in pytorch_tests.NOT_APPLICABLE]
    for pattern in [*pytorch_tests.SELECT, *pytorch_tests.ALONE, *not_applicable]:
        re.compile(pattern)
