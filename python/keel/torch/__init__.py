"""PyTorch on Keel's memory.

    import keel.torch

    keel.torch.install()        # before the first tensor on a GPU
    import torch                # before or after, as you like

From then on everything that PyTorch allocates on CUDA devices comes from Keel, and PyTorch's own
functions work as before: ``record_stream``, ``torch.cuda.graph`` and pools, ``empty_cache``,
``set_per_process_memory_fraction``, ``memory_stats``, ``memory_snapshot``, recorded histories,
``torch.cuda.OutOfMemoryError``. `KEEL_ALLOC_CONF` configures it (docs/configuration.md).

That is the *full* route: a C++ class of PyTorch's own interface, compiled against the PyTorch that
is installed, which takes a C++ compiler, the headers of the CUDA toolkit, and half a minute, once.
Without them there is the *functions* route; ``LIMITATIONS`` says what it cannot do.

``graph`` records a function of tensors once and replays it for ever: docs/pytorch.md.

``mem_pool`` leaves PyTorch's allocator in charge and gives it Keel's memory for what is allocated
inside ``torch.cuda.use_mem_pool``.
"""

from __future__ import annotations

import ctypes
import threading
import warnings
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

from keel.errors import StateError, UnavailableError
from keel.torch import _build
from keel.torch._graph import Graphed, graph

if TYPE_CHECKING:
    from torch.cuda import MemPool

__all__ = ["LIMITATIONS", "Graphed", "Route", "graph", "install", "installed", "mem_pool"]

Route = Literal["full", "functions"]

#: What PyTorch refuses, or leaves undone, on the functions route.
LIMITATIONS = (
    "torch.cuda.memory_stats, memory_snapshot and recorded histories: use keel.memory's",
    "torch.cuda.graph and torch.cuda.MemPool: memory of a graph is not kept for its replays",
    "torch.cuda.OutOfMemoryError: running out of memory is a RuntimeError",
)

_lock = threading.Lock()
_route: Route | None = None
_loaded: list[ctypes.CDLL] = []  # libraries stay as long as the process


def installed() -> Route | None:
    """The route by which PyTorch allocates from Keel; None: it does not."""
    return _route


def install(route: Literal["auto", "full", "functions"] = "auto") -> Route:
    """Makes Keel the allocator of PyTorch's CUDA devices, for the rest of the process.

    ``auto`` takes the full route where it can be had, and otherwise the functions route with a
    warning that says why and what is missing. Calling it again changes nothing.

    Raises `UnavailableError` where there is no PyTorch with CUDA or the route cannot be had, and
    `StateError` once PyTorch has used a device.
    """
    global _route
    if route not in ("auto", "full", "functions"):
        raise ValueError(f"the route is auto, full or functions, not {route!r}")
    with _lock:
        if _route is not None:
            if route not in ("auto", _route):
                raise StateError(f"Keel serves PyTorch by the {_route} route already")
            return _route
        torch = _torch()
        if torch.cuda.is_initialized():
            raise StateError(
                "PyTorch has used a CUDA device already: call keel.torch.install() before the first"
                " tensor there"
            )
        if route == "functions":
            _route = _install_functions(torch)
            return _route
        try:
            _route = _install_full()
        except _build.BuildError as error:
            if route == "full":
                raise UnavailableError(str(error)) from error
            lost = "\n".join(f"  - {limit}" for limit in LIMITATIONS)
            warnings.warn(
                f"{error}\nKeel takes the functions route, which cannot do:\n{lost}",
                RuntimeWarning,
                stacklevel=2,
            )
            _route = _install_functions(torch)
        return _route


def mem_pool(**options: Any) -> MemPool:
    """A ``torch.cuda.MemPool`` whose segments are Keel's. PyTorch's own allocator divides them.

        with torch.cuda.use_mem_pool(keel.torch.mem_pool()):
            ...

    It is for PyTorch's own allocator, not for use after `install`.
    """
    torch = _torch()
    if _route is not None:
        raise StateError(
            "after keel.torch.install() all memory is Keel's: make a torch.cuda.MemPool() without"
            " an allocator"
        )
    provider = _functions(torch, "keel_torch_try_alloc")
    pool: MemPool = torch.cuda.MemPool(provider.allocator(), **options)
    return pool


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise UnavailableError("PyTorch is not installed: pip install torch") from error
    if torch.version.cuda is None:
        raise UnavailableError(
            f"this PyTorch ({torch.__version__}) has no CUDA; install a build that has"
        )
    return torch


def _install_full() -> Route:
    path = _build.library()
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise _build.BuildError(
            f"the allocator for PyTorch cannot be loaded: {error}; remove {path.parent} to build it"
            " again"
        ) from error
    _loaded.append(library)
    library.keel_torch_install.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    library.keel_torch_install.restype = ctypes.c_int
    message = ctypes.create_string_buffer(4096)
    if library.keel_torch_install(message, len(message)) != 0:
        raise StateError(f"PyTorch does not take the allocator: {message.value.decode()}")
    return "full"


def _functions(torch: Any, allocate: str) -> Any:
    path = str(resources.files(__package__) / "libkeel_torch.so")
    return torch.cuda.memory.CUDAPluggableAllocator(path, allocate, "keel_torch_free")


def _install_functions(torch: Any) -> Route:
    allocator = _functions(torch, "keel_torch_alloc")
    library = ctypes.CDLL(str(resources.files(__package__) / "libkeel_torch.so"))
    _loaded.append(library)

    def address(name: str) -> int:
        value = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        assert value is not None
        return value

    hooks = allocator.allocator()
    hooks.set_record_stream_fn(address("keel_torch_record_stream"))
    hooks.set_reset_fn(address("keel_torch_empty_cache"))
    hooks.set_memory_fraction_fn(address("keel_torch_set_fraction"))
    torch.cuda.memory.change_current_allocator(allocator)
    return "functions"
