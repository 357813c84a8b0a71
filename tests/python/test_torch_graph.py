"""What keel.torch.graph does beside the device, on a stand-in for PyTorch: the recordings that it
keeps, what it waits for, and when it may not. integrations/torch/graph_test.py is for a GPU."""

from __future__ import annotations

import contextlib
import threading
from types import SimpleNamespace
from typing import Any

import keel.torch
import pytest
from keel.torch import _capture, _graph


class Device:
    index = 0


class Tensor:
    """A tensor of one shape."""

    requires_grad = False
    is_cuda = True
    dtype = "float32"
    device = Device()

    def __init__(self, shape: int) -> None:
        self.shape = shape

    def is_contiguous(self) -> bool:
        return True

    def is_conj(self) -> bool:
        return False

    def is_neg(self) -> bool:
        return False

    def numel(self) -> int:
        return self.shape

    def stride(self) -> int:
        return 1

    @property
    def nbytes(self) -> int:
        return 4 * self.shape

    def data_ptr(self) -> int:
        return 4096


class Torch(SimpleNamespace):
    """As much of PyTorch as is asked; nothing of it waits for a device."""

    def __init__(self) -> None:
        super().__init__(
            Tensor=Tensor,
            is_grad_enabled=lambda: False,
            is_inference_mode_enabled=lambda: True,
            is_autocast_enabled=lambda: False,
            nn=SimpleNamespace(Module=type("Module", (), {})),
        )
        self.capturing = False
        self.cuda = SimpleNamespace(is_current_stream_capturing=lambda: self.capturing)


class Executable:
    """One whose last step is done, or not."""

    def __init__(self, torch: Torch) -> None:
        self._torch = torch
        self.done = True
        self.closes: list[float | None] = []

    def close(self, timeout: float | None = None) -> None:
        assert not self._torch.capturing, "the capture is broken"
        self.closes.append(timeout)
        if not self.done:
            raise keel.WaitTimeoutError("for a test")


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Torch:
    made = Torch()
    monkeypatch.setattr(keel.torch, "_torch", lambda: made)
    monkeypatch.setattr(keel.torch, "installed", lambda: "full")
    monkeypatch.setattr(_graph, "_late", [])
    return made


def test_the_recording_that_was_used_longest_ago_goes(
    torch: Torch, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    closed: list[int] = []

    class Recording:
        written = (False,)

        def __init__(self, torch: Any, call: Any, tensors: Any, *options: Any) -> None:
            self.shape = tensors[0].shape
            made.append(self.shape)

        def run(self, tensors: Any) -> int:
            return int(tensors[0].shape)

        def close(self, timeout: float | None) -> None:
            if timeout == 0:  # and not at the end, where that of all is waited for
                closed.append(self.shape)

    monkeypatch.setattr(_graph, "_Recording", Recording)
    graphed = keel.torch.graph(lambda x: x, signatures=2)
    for shape in (1, 2, 1, 3, 1):
        assert graphed(Tensor(shape)) == shape
    assert (made, closed) == ([1, 2, 3], [2])


def test_the_timeout_is_of_each_wait(torch: Torch) -> None:
    waits: list[tuple[str, Any]] = []

    class Lease:
        def __enter__(self) -> Lease:
            return self

        def __exit__(self, *args: object) -> None:
            pass

        def bind_addresses(self, addresses: list[int]) -> None:
            assert addresses == [4096]

        def launch(self, timeout: float | None) -> None:
            waits.append(("launch", timeout))
            raise keel.WaitTimeoutError("for a test")

    def acquire(stream: int, timeout: float | None) -> Lease:
        waits.append(("acquire", timeout))
        return Lease()

    torch._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda index: 0)
    torch.cuda.device = lambda device: Lease()
    torch.cuda.current_blas_handle = lambda: None
    call = _graph._Call(torch, lambda x: x, None, None)
    recording = _graph._Recording(torch, call, [Tensor(1)], 2, 0, 1.5)
    recording._executable = SimpleNamespace(acquire=acquire)  # type: ignore[assignment]
    with pytest.raises(keel.WaitTimeoutError):
        recording.run([Tensor(1)])
    assert waits == [("acquire", 1.5), ("launch", 1.5)]
    assert recording._users == 0


def _recording(torch: Torch, timeout: float | None = None) -> tuple[_graph._Recording, Executable]:
    """One that has recorded, and has a user."""
    call = _graph._Call(torch, lambda x: x, None, None)
    recording = _graph._Recording(torch, call, [Tensor(1)], 1, 0, timeout)
    executable = Executable(torch)
    recording._executable = executable  # type: ignore[assignment]
    recording._replays = {0: object()}  # type: ignore[dict-item]
    recording._users = 1
    return recording, executable


def test_a_recording_that_ends_in_a_capture_waits_for_its_end(torch: Torch) -> None:
    (first, one), (second, other) = _recording(torch), _recording(torch, 1.5)
    for recording in (first, second):
        recording.close(0)
    assert (one.closes, other.closes) == ([0], [0])
    torch.capturing = True
    first.left()
    assert one.closes == [0]
    assert first._replays, "the device may read it"
    torch.capturing = False
    second.left()
    assert other.closes == [0, 1.5]
    assert one.closes == [0, 0], "what is late is not waited for by others"
    assert not first._replays
    assert not second._replays


def test_a_recording_that_the_device_still_runs_is_given_back_later(torch: Torch) -> None:
    graphed = keel.torch.graph(lambda x: x, timeout=0.5)
    (recording, executable), (other, _) = _recording(torch), _recording(torch)
    recording._users = 0
    graphed._recordings["key"] = recording
    executable.done = False
    with pytest.raises(keel.WaitTimeoutError):
        graphed.close()
    assert executable.closes == [0.5]
    assert recording._replays, "the device may read it"
    other.close(0)
    other.left()
    assert not other._replays
    assert recording._replays
    executable.done = True
    graphed._begin("other", [Tensor(1)], None, None)
    assert executable.closes == [0.5, 0, 0]
    assert not recording._replays


def test_a_call_whose_recording_goes_meanwhile_begins_anew(
    torch: Torch, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    run = _graph._Recording.run

    def goes_meanwhile(self: _graph._Recording, tensors: Any) -> Any:
        made.append(self)
        if len(made) == 1:
            graphed.close()
        return run(self, tensors)

    monkeypatch.setattr(_graph._Recording, "run", goes_meanwhile)
    monkeypatch.setattr(_graph._Recording, "_watch", lambda self, tensors: "ran")
    graphed = keel.torch.graph(lambda x: x)
    assert graphed(Tensor(1)) == "ran"
    assert len(made) == 2
    assert made[0] is not made[1]
    assert list(graphed._recordings.values()) == [made[1]]


def test_another_threads_first_call_is_waited_for_as_long_as_was_said(
    torch: Torch, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, ends = threading.Event(), threading.Event()

    def watch(self: _graph._Recording, tensors: Any) -> str:
        began.set()
        ends.wait()
        return "ran"

    monkeypatch.setattr(_graph._Recording, "_watch", watch)
    graphed = keel.torch.graph(lambda x: x, timeout=0.01)
    results: list[Any] = []
    other = threading.Thread(target=lambda: results.append(graphed(Tensor(1))))
    other.start()
    began.wait()
    with pytest.raises(keel.WaitTimeoutError, match="runs the function for the first time"):
        graphed(Tensor(1))
    ends.set()
    other.join()
    assert results == ["ran"]
    assert graphed(Tensor(1)) == "ran"


def test_another_threads_recording_is_waited_for_as_long_as_was_said() -> None:
    began, ends = threading.Event(), threading.Event()

    def records() -> None:
        with _capture._capturing:
            began.set()
            assert ends.wait(20)

    other = threading.Thread(target=records, daemon=True)
    other.start()
    try:
        assert began.wait(20)
        with pytest.raises(keel.WaitTimeoutError, match="still records"), _capture.alone(0.01):
            pass
    finally:
        ends.set()
        other.join(20)
    with _capture.alone(0.01):
        pass


# --- Captures that fail ---


class Captures:
    """What PyTorch has of captures: pools that are in use, and a generator that is captured."""

    def __init__(self) -> None:
        self.pools: set[int] = set()
        self.open: set[int] = set()
        self.generator = False
        self.active: Any = None  # the graph that is captured
        self.graphs: list[Captured] = []
        self.breaks_at = ""
        handles = iter(range(100))
        self.torch = SimpleNamespace(
            cuda=SimpleNamespace(
                CUDAGraph=lambda keep_graph: Captured(self),
                Stream=lambda device: SimpleNamespace(wait_stream=lambda stream: None),
                current_stream=lambda device: None,
                graph_pool_handle=lambda: next(handles),
                stream=lambda stream: contextlib.nullcontext(),
            ),
            _C=SimpleNamespace(
                _cuda_clearCublasWorkspaces=lambda: None,
                _cuda_endAllocateToPool=self._end_pool,
                _cuda_releasePool=lambda index, pool: self.pools.remove(pool),
            ),
        )

    def _end_pool(self, index: int, pool: int) -> None:
        if pool not in self.open:
            raise RuntimeError("this pool is not open")
        self.open.remove(pool)


class Captured:
    """A graph, which has its pool once it was captured."""

    def __init__(self, captures: Captures) -> None:
        self._captures = captures
        self._pool = -1
        self._has_pool = False
        captures.graphs.append(self)

    def capture_begin(self, pool: int, capture_error_mode: str) -> None:
        captures = self._captures
        breaks, captures.breaks_at = captures.breaks_at, ""
        if breaks == "before":
            raise RuntimeError("before anything was begun")
        captures.generator = True
        captures.pools.add(pool)
        captures.open.add(pool)
        if breaks == "begin":
            raise RuntimeError("the device cannot begin")
        captures.active = self
        captures.breaks_at = breaks
        self._pool = pool

    def capture_end(self) -> None:
        captures = self._captures
        if captures.active is not self:
            raise RuntimeError("it is not captured")
        captures.active = None
        breaks, captures.breaks_at = captures.breaks_at, ""
        if breaks == "function":
            raise RuntimeError("the capture was broken")
        captures.open.remove(self._pool)
        captures.generator = False
        self._has_pool = True
        if breaks == "instantiate":
            raise RuntimeError("the graph cannot be made")

    def drop(self) -> None:
        if self._has_pool:
            self._captures.pools.remove(self._pool)


@pytest.mark.parametrize(
    ("breaks_at", "told"),
    [
        ("before", "before anything was begun"),
        ("begin", "the device cannot begin"),
        ("function", "the capture was broken"),
        ("instantiate", "the graph cannot be made"),
        ("", ""),
    ],
)
@pytest.mark.parametrize("hidden", [True, False])
def test_a_capture_that_fails_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, breaks_at: str, told: str, hidden: bool
) -> None:
    """Where the function hides its error, too."""
    monkeypatch.setattr(_capture, "_sides", {})
    captures = Captures()
    captured = Captured(captures)
    captures.breaks_at = breaks_at
    expected: Any = contextlib.nullcontext()
    if not hidden and breaks_at in ("function", "instantiate", ""):
        expected = pytest.raises(ValueError, match="the function's own")
    elif breaks_at:
        expected = pytest.raises(RuntimeError, match=told)
    with expected, _capture.capture(captures.torch, Device(), captured):
        assert captures.active is captured
        if not hidden:
            raise ValueError("the function's own")
    for graph in captures.graphs:
        graph.drop()
    assert captures.active is None
    assert not captures.generator
    assert captures.open == set()
    assert captures.pools == set()
