"""Workers that are processes with Python: how they are started, how they find functions, and their
program.

A function travels as those of multiprocessing do: by the names of its module and of itself, which
the worker imports. So it must be found by these names, and a script must not run when it is
imported: what it does stands behind ``if __name__ == "__main__":``.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import process, spawn
from typing import Any

from keel import _keel
from keel._task_call import Call, called, describe

# --- In the orchestrator's process ----------------------------------------------------------------


def command() -> tuple[str, list[str]]:
    """The program of a worker, and its arguments: the interpreter that multiprocessing would start,
    with the flags that this one has."""
    line = [os.fsdecode(word) for word in spawn.get_command_line()]
    if "-c" not in line or not line[0]:
        raise RuntimeError(
            "which program runs Python here is not known: the executable is frozen, or its name "
            "(sys.executable) is empty"
        )
    program, *flags = line[: line.index("-c")]
    path = [str(folder) for folder in sys.path]
    code = f"import sys; sys.path[:] = {path!a}; from keel import _task_worker; _task_worker.main()"
    return program, [*flags, "-c", code]


def preparation() -> dict[str, Any]:
    """What a worker needs to know to import what this process can. RuntimeError in a worker that is
    looking for a function: it would start workers of its own, and so on for ever."""
    if getattr(process.current_process(), "_inheriting", False):
        raise RuntimeError(
            "a worker that imports this module would start workers that import it: what starts "
            'them stands in a function, or in a script behind `if __name__ == "__main__":`'
        )
    main = sys.modules["__main__"]
    origin: Any = process.ORIGINAL_DIR  # type: ignore[attr-defined]
    data: dict[str, Any] = {
        "sys_path": [folder or origin for folder in sys.path],
        "sys_argv": list(sys.argv),
        "orig_dir": origin,
        "dir": os.getcwd(),
    }
    name = getattr(main.__spec__, "name", None)
    path = getattr(main, "__file__", None)
    if name is not None:
        data["init_main_from_name"] = name
    elif path is not None:
        data["init_main_from_path"] = os.path.normpath(os.path.join(origin, path))
    return data


def reference_of(
    function: Callable[[Call], object], kernels: Sequence[str], prepare: Mapping[str, Any]
) -> bytes:
    """What a worker finds the function by."""
    try:
        body = pickle.dumps((function, list(kernels)))
    except Exception as error:
        raise ValueError(
            "a function for workers that are processes must be found by its name in its module, "
            f"and this one is not: {error}"
        ) from error
    return pickle.dumps((dict(prepare), body))


# --- In the worker --------------------------------------------------------------------------------

_prepared = False


def _find(reference: bytes) -> _keel.Callback | tuple[str, str]:
    global _prepared
    this: Any = process.current_process()
    this._inheriting = True  # see preparation(); multiprocessing heeds it too
    try:
        data, body = pickle.loads(reference)
        # Once: all functions are of one orchestrator.
        if not _prepared:
            spawn.prepare(data)
            _prepared = True
        function, kernels = pickle.loads(body)
        return called(function, kernels)
    except BaseException as error:
        return describe(error)
    finally:
        del this._inheriting


def main() -> None:
    """Until the orchestrator ends."""
    sys.exit(_keel.run_worker(sys.argv, _find))
