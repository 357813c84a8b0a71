"""Runs a program in this process, as Python itself would have run it."""

from __future__ import annotations

import importlib.machinery
import io
import os
import runpy
import sys
from collections.abc import Callable
from types import CodeType, ModuleType, TracebackType
from typing import Any

from keel.run._options import Program, UsageError


def check(program: Program) -> None:
    """UsageError: there is no such script."""
    if program.kind != "script" or _is_container(program.target):
        return
    try:
        with io.open_code(os.path.abspath(program.target)):
            pass
    except OSError as error:
        raise UsageError(f"cannot open '{program.target}': {error.strerror}") from error


def run(program: Program, failed: Callable[[BaseException], None]) -> None:
    """Returns when the program has ended, or raises what it raised: SystemExit as it is; for
    anything else ``failed`` is called first, and the interpreter will report the program's frames
    alone.
    """
    main = _new_main()
    sys.argv[:] = [program.target, *program.arguments]
    if program.kind == "module":
        sys.argv[0] = "-m"  # until it is found
    elif program.kind == "code":
        sys.argv[0] = "-c"
        _set_first_path("")
    else:
        _set_first_path(_folder_of(program.target))
    # The frames of the program begin right after this one.
    try:
        if program.kind == "module":
            _run_as_main(program.target, True)
        elif program.kind == "code":
            exec(compile(program.target, "<string>", "exec", dont_inherit=True), main.__dict__)
        elif _is_container(program.target):
            _run_as_main("__main__", False)
        else:
            code = _load(program.target, main)
            if isinstance(code, bytes):
                code = compile(code, os.path.abspath(program.target), "exec", dont_inherit=True)
            exec(code, main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        traceback = error.__traceback__
        _report_as(error, traceback.tb_next if traceback is not None else None)
        failed(error)
        raise


# What Python itself calls for -m and for folders: it runs the module in the __main__ that is there.
_run_as_main: Callable[[str, bool], Any] = runpy._run_module_as_main  # type: ignore[attr-defined]


def _new_main() -> ModuleType:
    """In the place of the module that runs this."""
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = sys.modules["builtins"]
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    main.__loader__ = importlib.machinery.BuiltinImporter
    sys.modules["__main__"] = main
    return main


def _set_first_path(entry: str) -> None:
    # With -P and -I Python puts nothing there.
    if not sys.flags.isolated and not getattr(sys.flags, "safe_path", False):
        sys.path[0] = entry


def _is_container(path: str) -> bool:
    """A folder or an archive that has a __main__ in it."""
    import pkgutil

    return pkgutil.get_importer(os.path.abspath(path)) is not None


def _folder_of(path: str) -> str:
    if _is_container(path):
        return os.path.abspath(path)
    return os.path.dirname(os.path.realpath(path))


def _load(target: str, main: ModuleType) -> bytes | CodeType:
    """Its source, or what it was compiled to. ``main`` says where it is from."""
    path = os.path.abspath(target)
    main.__file__ = path
    main.__dict__["__cached__"] = None
    if path.endswith(".pyc"):
        compiled = importlib.machinery.SourcelessFileLoader("__main__", path)
        main.__loader__ = compiled
        code = compiled.get_code("__main__")
        assert code is not None
        return code
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    with io.open_code(path) as file:
        return file.read()


def _report_as(error: BaseException, traceback: TracebackType | None) -> None:
    """When the interpreter reports ``error``, it does so with this traceback."""
    report = sys.excepthook

    def without_our_frames(
        kind: type[BaseException], value: BaseException, whole: TracebackType | None
    ) -> None:
        if value is error:
            value.__traceback__ = whole = traceback
        report(kind, value, whole)

    sys.excepthook = without_our_frames
