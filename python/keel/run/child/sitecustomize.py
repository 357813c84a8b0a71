"""What a Python child of a `keel run` does at its start; its PYTHONPATH begins with this folder.

A child that imports neither PyTorch nor CuPy nor Keel pays for this file and the one it loads, and
is otherwise as if it had not been there. The sitecustomize that would have been found, if there is
one, comes first.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_HANDED_ON = os.environ.get("KEEL_RUN", "")  # now: the program may change its environment


def _run_the_other_one() -> None:
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _FOLDER]
    ours = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except ModuleNotFoundError as error:
        if error.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, ours)


def _imported(name: str) -> None:
    if name != "keel" and "keel" not in sys.modules:
        try:
            import keel  # noqa: F401  which calls this again
        except ImportError as error:
            _give_up(name, error)
            return
    from keel.run import _session

    _session.imported_in_child(name, _HANDED_ON)


def _give_up(name: str, error: ImportError) -> None:
    """This is another Python than the one that `keel run` chose, or it cannot load the package."""
    import json

    options = json.loads(_HANDED_ON)["options"]
    if not options[name]:
        return
    print(f"keel run: {name} keeps its own allocator in {sys.executable}: {error}", file=sys.stderr)
    if options["strict"]:
        raise SystemExit(1)


def _watch() -> None:
    # By its path, because importing it by its name imports the whole package; under its name, so
    # that the package finds it when it is imported after all.
    name = "keel.run._imports"
    path = os.path.join(os.path.dirname(_FOLDER), "_imports.py")
    loader = SourceFileLoader(name, path)
    spec = ModuleSpec(name, loader, origin=path)
    spec.has_location = True
    module = type(sys)(name)
    module.__spec__ = spec
    module.__file__ = path
    sys.modules[name] = module
    loader.exec_module(module)
    module.watch(("keel", "torch", "cupy"), _imported)


try:
    _run_the_other_one()
finally:
    if _HANDED_ON:
        _watch()
