"""What keel.torch.graph does beside the device, on a stand-in for PyTorch: the recordings that it
keeps, what it waits for, and when it may not. integrations/torch/graph_test.py is for a GPU."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import keel.torch
import pytest
from keel.torch import _capture, _graph


class Device:
    index = 0


class Tensor:
    """A tensor of one length."""

    requires_grad = False
    is_cuda = True
    dtype = "float32"
    device = Device()

    def __init__(self, shape: int, address: int = 4096) -> None:
        self.shape = shape
        self._address = address
        self.detached = False

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
        return self._address

    def detach(self) -> Tensor:
        self.detached = True
        return self


class Torch(SimpleNamespace):
    """As much of PyTorch as is asked; nothing of it waits for a device."""

    def __init__(self) -> None:
        tree = SimpleNamespace(
            tree_map_only=lambda kind, function, x: function(x) if isinstance(x, kind) else x
        )
        super().__init__(
            Tensor=Tensor,
            utils=SimpleNamespace(_pytree=tree),
            autograd=SimpleNamespace(graph=SimpleNamespace(increment_version=lambda tensors: None)),
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
        self.error: Exception | None = None
        self.closes: list[float | None] = []

    def close(self, timeout: float | None = None) -> None:
        assert not self._torch.capturing, "the capture is broken"
        self.closes.append(timeout)
        if self.error is not None:
            raise self.error


NOT_DONE = keel.WaitTimeoutError("for a test")


def in_time(function: Callable[[], Any]) -> Any:
    """What it returns. A test that would hang fails."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(function()), daemon=True)
    thread.start()
    thread.join(20)
    assert results, "it waits, or has failed"
    return results[0]


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Torch:
    made = Torch()
    monkeypatch.setattr(keel.torch, "_torch", lambda: made)
    monkeypatch.setattr(keel.torch, "installed", lambda: "full")
    monkeypatch.setattr(_graph, "_late", set())
    return made


def test_the_recording_that_was_used_longest_ago_goes(
    torch: Torch, monkeypatch: pytest.MonkeyPatch
) -> None:
    executables: dict[int, Executable] = {}

    def watch(self: _graph._Recording, tensors: Any) -> str:
        executables[tensors[0].shape] = Executable(torch)
        self._executable = executables[tensors[0].shape]  # type: ignore[assignment]
        return "watched"

    def launch(self: _graph._Recording, executable: Any, tensors: Any) -> Any:
        assert executable is executables[tensors[0].shape]
        self.left()
        return SimpleNamespace(results=lambda kept: "launched")

    monkeypatch.setattr(_graph._Recording, "_watch", watch)
    monkeypatch.setattr(_graph._Recording, "_launch", launch)
    graphed = keel.torch.graph(lambda x: x, signatures=2)
    found = in_time(lambda: [graphed(Tensor(shape)) for shape in (1, 2, 1, 3, 1)])
    assert found == ["watched", "watched", "launched", "watched", "launched"]
    assert [each.closes for each in executables.values()] == [[], [0], []]
    executables[3].error = NOT_DONE
    assert graphed(Tensor(2)) == "watched"  # and does not wait
    assert executables[3].closes == [0]
    executables[3].error = None
    graphed.close()
    assert executables[3].closes == [0, None], "what went is its owner's, too"
    graphed.close()
    assert executables[3].closes == [0, None]


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


def _recording(
    torch: Torch, timeout: float | None = None, users: int = 1
) -> tuple[_graph._Recording, Executable]:
    """One that has recorded."""
    call = _graph._Call(torch, lambda x: x, None, None)
    recording = _graph._Recording(torch, call, [Tensor(1)], 1, 0, timeout)
    executable = Executable(torch)
    recording._executable = executable  # type: ignore[assignment]
    recording._replays = {0: object()}  # type: ignore[dict-item]
    recording._users = users
    return recording, executable


def _graphed(
    torch: Torch, recordings: int, timeout: float | None = None, users: int = 0
) -> tuple[_graph.Graphed, list[_graph._Recording], list[Executable]]:
    graphed = keel.torch.graph(lambda x: x, timeout=timeout)
    made = [_recording(torch, timeout, users) for _ in range(recordings)]
    graphed._recordings.update(enumerate(recording for recording, _ in made))
    return graphed, [recording for recording, _ in made], [executable for _, executable in made]


def _somebody_elses_call(torch: Torch) -> None:
    keel.torch.graph(lambda x: x)._begin("key", [Tensor(1)], None, None)


# --- The end ---


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
    assert other.closes == [0, 0], "a result that goes does not wait"
    assert one.closes == [0, 0], "what is late is not waited for by others"
    assert not first._replays
    assert not second._replays


@pytest.mark.parametrize("users", [0, 1])
def test_close_in_a_capture_does_not_break_it(torch: Torch, users: int) -> None:
    graphed, (recording,), (executable,) = _graphed(torch, 1, users=users)
    torch.capturing = True
    graphed.close()
    torch.capturing = False
    assert executable.closes == []
    if users == 1:
        recording.left()
    else:
        graphed.close()
    assert not recording._replays
    assert recording.over


def test_a_recording_that_the_device_still_runs_is_given_back_later(torch: Torch) -> None:
    graphed, (recording,), (executable,) = _graphed(torch, 1, timeout=0.5)
    other, _ = _recording(torch)
    executable.error = NOT_DONE
    with pytest.raises(keel.WaitTimeoutError):
        graphed.close()
    assert executable.closes == [0.5]
    assert recording._replays, "the device may read it"
    other.close(0)
    other.left()
    assert not other._replays
    assert recording._replays
    assert executable.closes == [0.5, 0]
    executable.error = None
    _somebody_elses_call(torch)
    assert executable.closes == [0.5, 0, 0]
    assert not recording._replays
    graphed.close()
    assert executable.closes == [0.5, 0, 0], "there is nothing left"


def test_close_takes_what_is_late_again(torch: Torch) -> None:
    graphed, (recording,), (executable,) = _graphed(torch, 1, timeout=0.5)
    executable.error = NOT_DONE
    for _ in range(2):
        with pytest.raises(keel.WaitTimeoutError):
            graphed.close()
    executable.error = None
    graphed.close()
    assert executable.closes == [0.5, 0.5, 0.5]
    assert not recording._replays
    assert not _graph._late


def test_close_takes_what_was_in_use(torch: Torch) -> None:
    graphed, (recording,), (executable,) = _graphed(torch, 1, timeout=0.5, users=1)
    executable.error = keel.StateError("a held output was not let go")
    graphed.close()
    with pytest.raises(_graph._ClosedError):
        recording.run([Tensor(1)])
    executable.error = NOT_DONE
    recording.left()
    with pytest.raises(keel.WaitTimeoutError):
        graphed.close()
    assert executable.closes == [0, 0, 0.5]
    executable.error = None
    graphed.close()
    assert recording.over


def test_close_ends_all_and_tells_the_first_error(torch: Torch) -> None:
    graphed, recordings, executables = _graphed(torch, 3, timeout=0.5)
    executables[0].error = keel.StateError("for a test")
    executables[1].error = NOT_DONE
    with pytest.raises(keel.StateError, match="for a test"):
        graphed.close()
    assert [each.closes for each in executables] == [[0.5], [0.5], [0.5]]
    assert [each.over for each in recordings] == [False, False, True]
    executables[0].error = executables[1].error = None
    graphed.close()
    assert [each.over for each in recordings] == [True, True, True]


def test_what_fails_is_its_owners(torch: Torch) -> None:
    """Others are warned, once."""
    graphed, (recording,), (executable,) = _graphed(torch, 1, users=1)
    graphed.close()
    executable.error = keel.StateError("for a test")
    with pytest.warns(RuntimeWarning, match="'<lambda>' is not given back: for a test"):
        recording.left()
    _somebody_elses_call(torch)  # warnings are errors here
    assert executable.closes == [0, 0, 0]
    with pytest.raises(keel.StateError, match="for a test"):
        graphed.close()
    executable.error = None
    _somebody_elses_call(torch)
    assert recording.over


def test_a_call_that_fails_tells_why_and_not_what_its_end_did(
    torch: Torch, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, executable = _recording(torch, users=0)

    def launch(*arguments: Any) -> Any:
        recording.close(0)
        executable.error = keel.StateError("for a test")
        raise keel.OutOfMemoryError("the first")

    monkeypatch.setattr(recording, "_launch", launch)
    with (
        pytest.warns(RuntimeWarning, match="not given back"),
        pytest.raises(keel.OutOfMemoryError, match="the first"),
    ):
        recording.run([Tensor(1)])


def test_what_is_dropped_does_not_wait(torch: Torch) -> None:
    """Neither the callable, nor the last result of one that was closed."""
    graphed, (recording,), (executable,) = _graphed(torch, 1)
    (other, used) = _recording(torch)
    other.close(0)
    executable.error = used.error = NOT_DONE
    other.left()
    del graphed
    assert (executable.closes, used.closes) == ([0], [0, 0])
    executable.error = used.error = None
    _somebody_elses_call(torch)
    assert recording.over
    assert other.over


def test_a_lost_device_has_nothing_to_wait_for(torch: Torch) -> None:
    graphed, (recording,), (executable,) = _graphed(torch, 1)
    spare = Executable(torch)
    recording._spare = spare  # type: ignore[assignment]
    executable.error = spare.error = keel.DeviceLostError("for a test")

    def fails() -> bool:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    torch.cuda.is_current_stream_capturing = fails
    graphed.close()
    assert (executable.closes, spare.closes) == ([None], [None])
    assert recording.over
    assert not recording._replays
    assert not _graph._late


# --- Threads ---


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


class FirstCall:
    """A call in another thread, which runs the function until it is let go."""

    def __init__(self, graphed: _graph.Graphed, began: threading.Event) -> None:
        self.results: list[Any] = []
        self._thread = threading.Thread(
            target=lambda: self.results.append(graphed(Tensor(1))), daemon=True
        )
        self._thread.start()
        assert began.wait(20)

    def join(self) -> None:
        self._thread.join(20)
        assert self.results == ["ran"]


@pytest.fixture
def ends(torch: Torch, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """First calls with a tensor of one element end when this is set."""
    both = SimpleNamespace(began=threading.Event(), ends=threading.Event())

    def watch(self: _graph._Recording, tensors: Any) -> str:
        if tensors[0].shape == 1:
            both.began.set()
            assert both.ends.wait(20)
        return "ran"

    monkeypatch.setattr(_graph._Recording, "_watch", watch)
    yield both
    both.ends.set()


def test_another_threads_first_call_is_waited_for_as_long_as_was_said(
    ends: SimpleNamespace,
) -> None:
    graphed = keel.torch.graph(lambda x: x, timeout=0.01)
    first = FirstCall(graphed, ends.began)
    with pytest.raises(keel.WaitTimeoutError, match="runs the function for the first time"):
        graphed(Tensor(1))
    ends.ends.set()
    first.join()
    assert graphed(Tensor(1)) == "ran"


def test_a_call_does_not_wait_for_the_one_whose_place_it_takes(ends: SimpleNamespace) -> None:
    graphed = keel.torch.graph(lambda x: x, signatures=1)
    first = FirstCall(graphed, ends.began)
    assert in_time(lambda: graphed(Tensor(2))) == "ran"
    assert [recording._like[0][0] for recording in graphed._recordings.values()] == [2]
    ends.ends.set()
    first.join()


def test_close_does_not_wait_for_a_call_in_flight(ends: SimpleNamespace) -> None:
    graphed = keel.torch.graph(lambda x: x)
    first = FirstCall(graphed, ends.began)
    (recording,) = graphed._recordings.values()

    def close() -> str:
        graphed.close()
        return "closed"

    assert in_time(close) == "closed"
    ends.ends.set()
    first.join()
    assert recording.over
    assert graphed(Tensor(1)) == "ran", "the next call begins anew"
    assert list(graphed._recordings.values()) != [recording]


def test_a_call_in_flight_ends_what_was_closed_meanwhile(
    torch: Torch, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphed, (recording,), (executable,) = _graphed(torch, 1)

    def launch(*arguments: Any) -> Any:
        executable.error = keel.StateError("a lease was not let go")
        graphed.close()
        assert recording._replays, "the call needs it"
        executable.error = None
        raise keel.WaitTimeoutError("for a test")

    monkeypatch.setattr(recording, "_launch", launch)
    with pytest.raises(keel.WaitTimeoutError):
        recording.run([Tensor(1)])
    assert executable.closes == [0, 0]
    assert recording.over
    with pytest.raises(_graph._ClosedError):
        recording.run([Tensor(1)])


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


# --- In somebody's capture ---


@pytest.mark.parametrize("recorded", [False, True])
def test_in_a_capture_the_function_itself_is_called(
    torch: Torch, monkeypatch: pytest.MonkeyPatch, recorded: bool
) -> None:
    given: list[Tensor] = []

    @keel.torch.graph
    def function(x: Tensor) -> Tensor:
        given.append(x)
        return x

    x = Tensor(1)
    if recorded:
        monkeypatch.setattr(_graph._Recording, "_watch", lambda self, tensors: None)
        function(x)
        for recording in function._recordings.values():
            recording._executable = Executable(torch)  # type: ignore[assignment]
    before = list(function._recordings)
    torch.capturing = True
    assert function(x) is x
    with pytest.raises(ValueError, match="tensor 0 of the arguments has no elements"):
        function(Tensor(0))
    torch.capturing = False
    assert given == [x]
    assert x.detached, "no result has a gradient"
    assert list(function._recordings) == before


# --- What the function writes ---


def _writer(
    torch: Torch, monkeypatch: pytest.MonkeyPatch, written: list[bool]
) -> tuple[_graph._Recording, list[Any]]:
    """One that has seen which of its arguments the function writes; and what it launches."""
    call = _graph._Call(torch, lambda *tensors: None, None, None)
    recording = _graph._Recording(torch, call, [Tensor(1) for _ in written], 9, 0, None)
    launched: list[Any] = []

    def launch(executable: Any, tensors: Any) -> Any:
        launched.append(tensors)
        return SimpleNamespace(results=lambda kept: None)

    monkeypatch.setattr(recording, "_make", lambda slots: Executable(torch))
    monkeypatch.setattr(recording, "_launch", launch)
    recording.written = written
    return recording, launched


@pytest.mark.parametrize("written", [[True, False], [False, True], [True, True]])
def test_arguments_that_are_written_share_no_memory_in_any_call(
    torch: Torch, monkeypatch: pytest.MonkeyPatch, written: list[bool]
) -> None:
    recording, launched = _writer(torch, monkeypatch, written)
    x, y = Tensor(8), Tensor(8, 8192)
    recording.run([x, y])
    for other in (x, Tensor(8, 4096 + 4 * 7), Tensor(8, 4096 - 4 * 7)):
        with pytest.raises(ValueError, match="of the arguments share memory"):
            recording.run([x, other])
    for other in (Tensor(8, 4096 + 4 * 8), Tensor(8, 4096 - 4 * 8)):
        recording.run([x, other])
    assert len(launched) == 3


def test_arguments_that_are_only_read_may_share_memory(
    torch: Torch, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, launched = _writer(torch, monkeypatch, [False, False, True])
    x = Tensor(8)
    for _ in range(2):
        recording.run([x, x, Tensor(8, 8192)])
    assert len(launched) == 2
    # Between the beginnings of two that share memory there may be another one's.
    with pytest.raises(ValueError, match="tensors 0 and 2 of the arguments share memory"):
        recording.run([x, Tensor(1, 4100), Tensor(1, 4104)])


def test_what_a_replay_writes_counts_as_written(
    torch: Torch, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[Any] = []
    monkeypatch.setattr(torch.autograd.graph, "increment_version", counted.append)
    x, y = Tensor(8), Tensor(8, 8192)
    _writer(torch, monkeypatch, [False, False])[0].run([x, y])
    assert counted == []
    _writer(torch, monkeypatch, [False, True])[0].run([x, y])
    assert counted == [[y]]


def test_a_slot_that_was_made_again_elsewhere_is_recorded_again(
    torch: Torch, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, _ = _recording(torch)
    recording._replays = {}
    replayed: list[list[int]] = []

    def record(call: Any) -> None:
        addresses = call.addresses
        graph = SimpleNamespace(replay=lambda: replayed.append(addresses))
        recording._replays[addresses[1]] = _graph._Replay(graph, addresses, [], None)

    monkeypatch.setattr(recording, "_record", record)
    for argument, token in ((1, 100), (1, 100), (2, 100), (2, 200)):
        recording._replay(SimpleNamespace(addresses=[argument, token]))  # type: ignore[arg-type]
        assert replayed[-1] == [argument, token]
    assert replayed[0] is replayed[1]


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
