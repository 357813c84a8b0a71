"""Captures of PyTorch: one at a time, and none that leaves anything behind when it fails."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from keel.errors import WaitTimeoutError

# PyTorch records one graph at a time, and its generators know of one only. The streams that are
# captured are kept by device: it has few, and hands them out again and again.
_capturing = threading.RLock()
_sides: dict[int, Any] = {}


class _Threads(threading.local):
    """The devices that this thread has prepared."""

    def __init__(self) -> None:
        self.ready: set[int] = set()


_threads = _Threads()


def prepare_thread(torch: Any, device: Any) -> None:
    """A thread that has not used the device yet cannot begin with a recording: a library would want
    its handle there."""
    if device.index not in _threads.ready:
        with torch.cuda.device(device):
            torch.cuda.current_blas_handle()
        _threads.ready.add(device.index)


def take(lock: Any, timeout: float | None, doing: str) -> None:
    if not lock.acquire(timeout=-1 if timeout is None else min(timeout, threading.TIMEOUT_MAX)):
        raise WaitTimeoutError(f"another thread still {doing} after {timeout} s: nothing was done")


def captures(torch: Any) -> bool:
    """Whether what this thread queues becomes part of a graph. Not on a lost device, which fails
    in whatever comes next."""
    try:
        return bool(torch.cuda.is_current_stream_capturing())
    except RuntimeError:
        return False


@contextlib.contextmanager
def alone(timeout: float | None) -> Iterator[None]:
    take(_capturing, timeout, "records")
    try:
        yield
    finally:
        _capturing.release()


@contextlib.contextmanager
def capture(torch: Any, device: Any, captured: Any) -> Iterator[None]:
    """What is queued meanwhile becomes the graph. If it fails, PyTorch is as before."""
    side = _sides.get(device.index)
    if side is None:
        side = _sides[device.index] = torch.cuda.Stream(device)
    side.wait_stream(torch.cuda.current_stream(device))
    pool = torch.cuda.graph_pool_handle()
    with torch.cuda.stream(side):
        # So that workspaces of libraries are taken from the graph's pool, and stay there.
        torch._C._cuda_clearCublasWorkspaces()
        try:
            captured.capture_begin(pool=pool, capture_error_mode="thread_local")
            yield
            torch._C._cuda_clearCublasWorkspaces()
            captured.capture_end()  # fails, too, where the function hid that it broke the capture
        except BaseException:
            _abandon(torch, device.index, captured, pool)
            torch._C._cuda_clearCublasWorkspaces()
            raise


def _abandon(torch: Any, index: int, captured: Any, pool: Any) -> None:
    """Whatever fails here as well, what failed first is told."""
    with contextlib.suppress(RuntimeError):
        captured.capture_end()
        return
    # It stops where the capture was broken: the pool is still in use, and the generator thinks that
    # it is captured, until another capture has ended.
    _leave(torch, index, pool)
    again = torch.cuda.CUDAGraph(keep_graph=True)
    pool = torch.cuda.graph_pool_handle()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is empty
            again.capture_begin(pool=pool, capture_error_mode="thread_local")
            again.capture_end()
    except RuntimeError:
        _leave(torch, index, pool)


def _leave(torch: Any, index: int, pool: Any) -> None:
    with contextlib.suppress(RuntimeError):  # it was never used, or has been left
        torch._C._cuda_endAllocateToPool(index, pool)
        torch._C._cuda_releasePool(index, pool)
