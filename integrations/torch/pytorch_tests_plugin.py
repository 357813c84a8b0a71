"""What a process of pytorch_tests.py does inside pytest: chooses tests, and logs each as it ends.

The log has a JSON object in each line. It is written test by test, because a process that crashes
writes no report at its end.
"""

from __future__ import annotations

import fcntl
import gc
import json
import re
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

# Of a failure: what comes from here on says nothing of the reason.
_NOISE = ("Exception raised from", "To execute this test", "This message can be suppressed")
_MOST_CHARACTERS = 300


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--plan", required=True, help="which tests, as JSON; pytorch_tests.py's")
    parser.addoption("--log", required=True, help="where to write what happens")


def pytest_configure(config: pytest.Config) -> None:
    plan = json.loads(Path(config.getoption("--plan")).read_text(encoding="utf-8"))
    config.pluginmanager.register(Log(plan, Path(config.getoption("--log"))))


def name_of(item: pytest.Item) -> str:
    parent = getattr(item, "cls", None)
    return f"{parent.__name__}.{item.name}" if parent is not None else item.name


def matches(name: str, patterns: list[str]) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def text_of(error: BaseException) -> str:
    """In one line, without what does not say why."""
    lines = []
    for line in str(error).splitlines():
        if line.startswith(_NOISE):
            break
        if line.strip():
            lines.append(line.strip())
    text = " ".join(lines)
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 4] + " ..."


class Log:
    def __init__(self, plan: dict[str, Any], path: Path) -> None:
        self._plan = plan
        self._path = path
        # Tests of all processes hold it together; one that needs the device for itself, alone.
        self._lock = open(plan["lock"], "a")  # noqa: SIM115  as long as the process
        self._found: dict[str, str] = {}

    def _write(self, event: str, **fields: Any) -> None:
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, **fields}) + "\n")

    # --- Which ---

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            lines = [line for line in report.longreprtext.splitlines() if line.strip()]
            self._write("broken", reason=lines[-1].strip() if lines else "cannot be collected")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        chosen: list[pytest.Item] = []
        others: list[pytest.Item] = []
        left_out = {}
        for item in items:
            name = name_of(item)
            reasons = self._plan["not_applicable"]
            reason = next((why for pattern, why in reasons if re.fullmatch(pattern, name)), None)
            if reason is not None:
                left_out[name] = reason
            selected = reason is None and matches(name, self._plan["select"])
            (chosen if selected else others).append(item)
        chosen.sort(key=lambda item: self._place(name_of(item)))
        torch = sys.modules.get("torch")
        self._write(
            "collected",
            tests=[name_of(item) for item in chosen],
            not_applicable=left_out,
            torch=torch.__version__ if torch is not None else None,
            backend=torch.cuda.get_allocator_backend() if torch is not None else None,
        )
        done = set(self._plan["done"])
        items[:] = [item for item in chosen if name_of(item) not in done]
        config.hook.pytest_deselected(items=others)

    def _place(self, name: str) -> int:
        first, alone = self._plan["first"], self._plan["alone"]
        if matches(name, first):
            return -1
        # In the order of their patterns, when the other processes are also there.
        return next((i + 1 for i, pattern in enumerate(alone) if re.fullmatch(pattern, name)), 0)

    # --- What became of them ---

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        name = name_of(item)
        alone = matches(name, self._plan["alone"])
        fcntl.flock(self._lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        self._found = {"outcome": "passed"}
        self._write("began", test=name)
        began = time.monotonic()
        try:
            return (yield)
        finally:
            seconds = round(time.monotonic() - began, 3)
            self._write("ended", test=name, seconds=seconds, **self._found)
            if self._found["outcome"] == "failed":
                gc.collect()  # tensors of the frames that it left
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        # The first failure counts; of a test's parts (subTest) there can be several.
        if call.excinfo is not None and self._found["outcome"] != "failed":
            if report.skipped:
                self._found = {"outcome": "skipped", "reason": text_of(call.excinfo.value)}
            elif report.failed:
                self._found = {
                    "outcome": "failed",
                    "reason": f"{call.excinfo.typename}: {text_of(call.excinfo.value)}",
                    "where": self._where(call.excinfo),
                }
        elif report.failed and self._found["outcome"] != "failed":
            self._found = {"outcome": "failed", "reason": report.longreprtext.strip()}
        return report

    def _where(self, error: pytest.ExceptionInfo[BaseException]) -> str:
        """The innermost line of the tests' file."""
        for entry in reversed(error.traceback):
            if Path(str(entry.path)).name == self._plan["file"]:
                return f"{self._plan['file']}:{entry.lineno + 1}"
        return ""
