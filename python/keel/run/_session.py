"""What a run does around the program: in its first process, and in the Python processes under it.

A session belongs to the process that started it. In a process that was forked from that one it
does nothing but install: no summary, no snapshots, no warnings.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

import keel
from keel.run import _summary
from keel.run._imports import watch
from keel.run._options import Options, from_fields

FRAMEWORKS = ("torch", "cupy")
_VARIABLE = "KEEL_RUN"
_CHILD_FOLDER = str(Path(__file__).parent / "child")

_current: Session | None = None


class Session:
    def __init__(self, options: Options, first: bool, said: list[str]) -> None:
        self.options = options
        self._first = first  # the process that `keel run` started
        self._said = said  # warnings that this process or one above it has printed
        self._pid = os.getpid()
        self._began = time.monotonic()
        self._frameworks: dict[str, str] = {}  # why it does not use Keel; empty: it does
        self._written: list[str] = []
        self._lock = threading.Lock()
        # How often memory had run out when the newest snapshot about it was written; 0: there is
        # none. The error itself is not kept: its frames hold memory.
        self._saved = 0
        self._undo: list[Callable[[], None]] = []

    # --- Its life ---

    def begin(self) -> None:
        if self.options.history:
            keel.memory.record_memory_history(
                context="all" if self.options.stacks else None, max_entries=self.options.history
            )
        self._undo.append(keel.memory.on_out_of_memory(self._raised))
        # Registered before anything of the program, so it runs after all of that.
        atexit.register(self.end)
        self._undo.append(lambda: atexit.unregister(self.end))
        self._watch_threads()
        if not self._first:
            self._watch_uncaught()

    def cancel(self) -> None:
        """It does nothing any more."""
        while self._undo:
            self._undo.pop()()

    def end(self) -> None:
        """The summary and the snapshot, when the process ends."""
        self.cancel()
        if self._forked():
            return
        devices = _summary.usage()
        if devices:
            self._write_snapshot(self.options.snapshot)
        if (devices or self._first) and self._mine(self.options.json):
            self._write_json(devices)
        if self.options.summary and (devices or self._first):
            _print(_summary.text(self._title(), devices))

    def _forked(self) -> bool:
        return os.getpid() != self._pid

    def _title(self) -> str:
        served = [name for name, problem in self._frameworks.items() if not problem]
        name = os.path.basename(sys.argv[0]) if sys.argv else "python"
        process = "" if self._first else f", process {self._pid}"
        users = f", {' and '.join(served)} on Keel" if served else ""
        return f"keel run: {name}{process}, {time.monotonic() - self._began:.1f} s{users}"

    # --- Frameworks ---

    def imported(self, name: str) -> None:
        """Called when the framework has been imported, before it is used."""
        if not getattr(self.options, name):
            return
        try:
            importlib.import_module(f"keel.{name}").install()
        except Exception as error:
            self._frameworks[name] = problem = _one_line(error)
            text = f"{name} keeps its own allocator: {problem}"
            if self.options.strict:
                _print(f"keel run: {text}\n")
                raise SystemExit(1) from None
            self._warn(text)
        else:
            self._frameworks[name] = ""
            if name == "torch":
                self._watch_torch()

    def _warn(self, text: str) -> None:
        """Once, not again by every process under this one."""
        if self._forked() or text in self._said:
            return
        self._said.append(text)
        if self.options.children:
            _hand_on(self.options, self._said)
        _print(f"keel run: {text}\n")

    # --- Out of memory ---

    def failed(self, error: BaseException) -> None:
        """Nobody caught this."""
        seen: set[int] = set()
        cause: BaseException | None = error
        while cause is not None and id(cause) not in seen:
            if _is_out_of_memory(cause):
                self._save(again=True)
                return
            seen.add(id(cause))
            cause = cause.__cause__ or cause.__context__

    def _raised(self, *_: object) -> None:
        # A program that goes on may run out of memory again and again on purpose.
        self._save(again=False)

    def _save(self, again: bool) -> None:
        if self._forked() or not self._mine(self.options.oom_snapshot):
            return
        # Somebody who writes one already, perhaps this thread, will do.
        if not self._lock.acquire(blocking=False):
            return
        try:
            count = sum(one.ooms for one in _summary.usage())
            if not count or count == self._saved or (self._saved and not again):
                return
            self._saved = count
            path = self._write_snapshot(self.options.oom_snapshot)
            if path:
                _print(f"keel run: out of memory; 'keel report {path}' shows what was held\n")
        finally:
            self._lock.release()

    def _watch_torch(self) -> None:
        """Errors of its allocator are made in C++, and it tells observers before."""
        torch: Any = sys.modules["torch"]

        def observe(*_: object) -> None:
            with contextlib.suppress(Exception):  # which would replace the error
                self._raised()

        def attach() -> None:
            with contextlib.suppress(Exception):  # without it, errors that nobody catches remain
                torch._C._cuda_attach_out_of_memory_observer(observe)

        with contextlib.suppress(AttributeError):
            # Attaching begins to use the device, which is the program's to do.
            torch.cuda._lazy_call(attach)

    def _watch_threads(self) -> None:
        before = threading.excepthook

        def hook(arguments: threading.ExceptHookArgs) -> None:
            if arguments.exc_value is not None:
                self.failed(arguments.exc_value)
            before(arguments)

        threading.excepthook = hook

        def restore() -> None:
            if threading.excepthook is hook:
                threading.excepthook = before

        self._undo.append(restore)

    def _watch_uncaught(self) -> None:
        """Where the program is run by Python itself."""
        before = sys.excepthook

        def hook(
            kind: type[BaseException], error: BaseException, traceback: TracebackType | None
        ) -> None:
            self.failed(error)
            before(kind, error, traceback)

        sys.excepthook = hook

        def restore() -> None:
            if sys.excepthook is hook:
                sys.excepthook = before

        self._undo.append(restore)

    # --- Files ---

    def _mine(self, pattern: str) -> bool:
        return bool(pattern) and (self._first or "{pid}" in pattern)

    def _path(self, pattern: str) -> str:
        return pattern.replace("{pid}", str(self._pid))

    def _write_snapshot(self, pattern: str) -> str:
        """Where it is; empty: it is not."""
        if not self._mine(pattern):
            return ""
        path = self._path(pattern)
        try:
            keel.memory.dump_snapshot(path)
        except (keel.Error, OSError) as error:
            _print(f"keel run: no snapshot: {_one_line(error)}\n")
            return ""
        self._written.append(path)
        return path

    def _write_json(self, devices: list[_summary.Usage]) -> None:
        path = self._path(self.options.json)
        contents = {
            "version": keel.__version__,
            "pid": self._pid,
            "program": list(sys.argv),
            "seconds": round(time.monotonic() - self._began, 3),
            "frameworks": {
                name: {"installed": not problem, "problem": problem or None}
                for name, problem in self._frameworks.items()
            },
            "devices": [one.as_json() for one in devices],
            "snapshots": self._written,
        }
        partial = f"{path}.{self._pid}"
        try:
            with open(partial, "w", encoding="utf-8") as file:
                json.dump(contents, file, indent=2)
                file.write("\n")
            os.replace(partial, path)
        except OSError as error:
            _print(f"keel run: no {path}: {error.strerror}\n")


def _print(text: str) -> None:
    # A program may have closed it.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text or type(error).__name__


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, keel.OutOfMemoryError):
        return True
    # PyTorch's functions route has no class of its own for it.
    if isinstance(error, RuntimeError) and "out of memory" in str(error):
        return True
    # Of what is imported, by name: nothing is imported here.
    return any(
        kind.__name__ == "OutOfMemoryError" and kind.__module__.partition(".")[0] in FRAMEWORKS
        for kind in type(error).__mro__
    )


def _hand_on(options: Options, said: list[str]) -> None:
    """To Python processes that are started from here on."""
    os.environ[_VARIABLE] = json.dumps({"options": asdict(options), "said": said})
    path = os.environ.get("PYTHONPATH", "")
    others = [entry for entry in path.split(os.pathsep) if entry != _CHILD_FOLDER] if path else []
    os.environ["PYTHONPATH"] = os.pathsep.join([_CHILD_FOLDER, *others])


def _begin(session: Session) -> Session:
    global _current
    if _current is not None:
        _current.cancel()
    _current = session
    session.begin()
    return session


def start(options: Options) -> Session:
    """In the first process, before the program. InvalidArgumentError: the configuration is bad."""
    if options.conf is not None:
        os.environ["KEEL_ALLOC_CONF"] = options.conf
        keel.memory.get_allocator_backend()
    if options.children:
        _hand_on(options, [])
    else:
        os.environ.pop(_VARIABLE, None)
    session = _begin(Session(options, first=True, said=[]))
    watch(FRAMEWORKS, session.imported)
    return session


def imported_in_child(name: str, handed_on: str) -> None:
    """Called by sitecustomize: Keel or a framework has been imported in a process under a run."""
    if name == "keel":
        handed = json.loads(handed_on)
        _begin(Session(from_fields(handed["options"]), first=False, said=handed["said"]))
    elif _current is not None:
        _current.imported(name)
