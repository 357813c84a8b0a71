"""What keel.torch.graph does beside the device, on a stand-in for PyTorch: the recordings that it
keeps, what it waits for, and when it may not. integrations/torch/torch_test.py is for a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import keel.torch
import pytest
from keel.torch import _graph


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
    """As much of PyTorch as is asked; it notes what the device is waited for."""

    def __init__(self) -> None:
        super().__init__(
            Tensor=Tensor,
            is_grad_enabled=lambda: False,
            is_inference_mode_enabled=lambda: True,
            is_autocast_enabled=lambda: False,
            nn=SimpleNamespace(Module=type("Module", (), {})),
        )
        self.capturing = False
        self.waits = 0
        self.cuda = SimpleNamespace(
            is_current_stream_capturing=lambda: self.capturing, synchronize=self._synchronize
        )

    def _synchronize(self, device: Any) -> None:
        assert not self.capturing, "the capture is broken"
        self.waits += 1


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

        def close(self) -> None:
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


def test_a_recording_that_ends_in_a_capture_waits_for_its_end(torch: Torch) -> None:
    call = _graph._Call(torch, lambda x: x, None, None)
    recordings = [_graph._Recording(torch, call, [Tensor(1)], 1, 0, None) for _ in range(2)]
    for recording in recordings:
        recording._replays = {0: object()}  # type: ignore[dict-item]
        recording._users = 1
    torch.capturing = True
    recordings[0].left()
    assert torch.waits == 0
    assert recordings[0]._replays, "the device may read it"
    torch.capturing = False
    recordings[1].left()
    assert torch.waits == 2
    assert not recordings[0]._replays
    assert not recordings[1]._replays
