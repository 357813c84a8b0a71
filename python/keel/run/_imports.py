"""Calls back when a module has been imported, and before whoever asked for it goes on.

The real import happens as it would without this. Uses nothing but the standard library, and little
of it: every Python child of a `keel run` loads this file at its start, also where the rest of the
package cannot be imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Callback = Callable[[str], None]


class _Loader:
    """The module's own loader, and a call when it is done."""

    def __init__(self, loader: Any, callback: Callback) -> None:
        self._loader = loader
        self._callback = callback

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The module finds what it would find without us.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._callback(module.__name__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _Finder:
    """Finds what the finders after it find."""

    def __init__(self, callback: Callback) -> None:
        self._callback = callback
        self.waiting: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self.waiting:
            return None
        for finder in sys.meta_path:
            find: Any = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = (
                None if finder is self or not find else find(name, path, target)
            )
            if spec is None:
                continue
            if hasattr(spec.loader, "exec_module"):
                # Not a package's subclass of our own: typing knows no wrapping.
                spec.loader = _Loader(spec.loader, self._imported)  # type: ignore[assignment]
            return spec
        return None

    def _imported(self, name: str) -> None:
        if name in self.waiting:
            self.waiting.discard(name)
            self._callback(name)


_finder: _Finder | None = None


def watch(names: Iterable[str], callback: Callback) -> None:
    """Call ``callback(name)`` once for each: at once for those that are imported already.

    What the callback raises comes out of the import. A later call replaces an earlier one.
    """
    global _finder
    if _finder is not None:
        sys.meta_path.remove(_finder)
    _finder = _Finder(callback)
    sys.meta_path.insert(0, _finder)
    for name in names:
        if name in sys.modules:
            callback(name)
        else:
            _finder.waiting.add(name)
