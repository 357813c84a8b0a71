"""Images of keel.task: callables as bytes."""

from __future__ import annotations

import os
from collections.abc import Iterable

from keel import _keel

STANDARD = "keel"
"""The name of the set of kernels that Keel brings."""


class Image:
    """A callable as bytes: orchestration code, and the kernels that it launches by number. Without
    orchestration code it is the kernels of a function: ``register(function, kernels=image)``."""

    __slots__ = ("_raw",)

    def __init__(self, data: bytes) -> None:
        """InvalidArgumentError says what is wrong with the bytes, and where."""
        self._raw = _keel.parse_image(data)

    @classmethod
    def _of(cls, raw: _keel.Image) -> Image:
        self = cls.__new__(cls)
        self._raw = raw
        return self

    @classmethod
    def build(
        cls,
        orchestration: bytes | str | os.PathLike[str] | None = None,
        *,
        parts: Iterable[bytes | str] = (STANDARD,),
        kernels: Iterable[str | tuple[int, str]] = (),
    ) -> Image:
        """``orchestration`` is a shared object, as bytes or the path of a file. A part is code in
        the device's own format, or the name of a registered set. A kernel is a name in part 0, or
        the number of a part and a name; its number is its place."""
        if isinstance(orchestration, (str, os.PathLike)):
            with open(orchestration, "rb") as file:
                orchestration = file.read()
        named = [(0, kernel) if isinstance(kernel, str) else kernel for kernel in kernels]
        return cls._of(_keel.build_image(orchestration, list(parts) if named else [], named))

    @property
    def kernels(self) -> list[str]:
        """Their names, by number."""
        return self._raw.kernels

    @property
    def orchestrated(self) -> bool:
        """Whether it has orchestration code."""
        return self._raw.orchestrated

    def __bytes__(self) -> bytes:
        return self._raw.data

    def __repr__(self) -> str:
        kind = "image" if self.orchestrated else "kernels"
        return f"<keel.task.Image, {kind}: {', '.join(self.kernels) or 'none'}>"
