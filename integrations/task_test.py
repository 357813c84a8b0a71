"""Tensors of PyTorch and CuPy as arguments of keel.task, on the host and where they are on a GPU.

Run by `./dev gpu`. Without a GPU the tensors on the host go to a simulated device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keel
import numpy as np
import pytest
from keel import task

DEVICE = "cuda:0" if keel.device.is_available("cuda") else "sim:0"
COUNT = 1000

# PyTorch's own warnings are none of ours.
pytestmark = pytest.mark.filterwarnings("default")

needs_gpu = pytest.mark.skipif(not DEVICE.startswith("cuda"), reason="there is no GPU")


@pytest.fixture
def orchestrator() -> Iterator[task.Orchestrator]:
    with task.Orchestrator([DEVICE]) as made:
        yield made


def add(call: task.Call) -> None:
    a, b, c = call.tensors
    call.launch("keel_add", a, b, c, task.u64(c.size))


def library(name: str) -> Any:
    """The library, or the test is skipped. The folders beside this file have the libraries' names,
    and are no libraries."""
    found: Any = pytest.importorskip(name)
    if getattr(found, "__file__", None) is None:
        pytest.skip(f"{name} is not installed")
    return found


def values(first: float) -> Any:
    return np.arange(COUNT, dtype="float32") + np.float32(first)


def test_tensors_of_pytorch_on_the_host(orchestrator: task.Orchestrator) -> None:
    torch = library("torch")
    summed = orchestrator.register(add, kernels=["keel_add"])
    a, b = torch.from_numpy(values(1)), torch.from_numpy(values(2))
    c = torch.zeros(COUNT)
    assert orchestrator.submit(summed, a, task.In(b), task.Out(c)).result(60) is c
    assert torch.equal(c, a + b)
    # Beside NumPy's, and in memory that stays on the worker.
    with orchestrator.upload(0, a) as known:
        orchestrator.submit(summed, known, values(3), task.InOut(c)).wait(60)
    assert np.array_equal(c.numpy(), values(1) + values(3))
    # As PyTorch says: what has gradients, or gaps, is not handed out so.
    with pytest.raises((BufferError, RuntimeError), match="grad"):
        orchestrator.submit(summed, a.clone().requires_grad_(), b, task.Out(c))
    with pytest.raises(BufferError, match="gaps"):
        orchestrator.submit(summed, torch.zeros(COUNT, 2)[:, 0], b, task.Out(c))


@needs_gpu
def test_tensors_of_pytorch_on_the_device(orchestrator: task.Orchestrator) -> None:
    torch = library("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch finds no GPU")
    summed = orchestrator.register(add, kernels=["keel_add"])
    a, b = torch.from_numpy(values(1)).cuda(), torch.from_numpy(values(2)).cuda()
    c = torch.zeros(COUNT, device="cuda")
    torch.cuda.synchronize()
    with pytest.raises(TypeError, match="register_memory"):
        orchestrator.submit(summed, a, b, task.Out(c))
    known = [orchestrator.register_memory(0, tensor) for tensor in (a, b, c)]
    assert [resident.address for resident in known] == [x.data_ptr() for x in (a, b, c)]
    orchestrator.submit(summed, known[0], known[1], task.Out(known[2])).wait(60)
    assert torch.equal(c, a + b)
    for resident in known:
        orchestrator.unregister_memory(resident)


@needs_gpu
def test_arrays_of_cupy(orchestrator: task.Orchestrator) -> None:
    cupy = library("cupy")
    if not cupy.is_available():
        pytest.skip("CuPy finds no GPU")
    summed = orchestrator.register(add, kernels=["keel_add"])
    a, c = cupy.asarray(values(1)), cupy.zeros(COUNT, "float32")
    cupy.cuda.Device().synchronize()
    known = [orchestrator.register_memory(0, array) for array in (a, c)]
    assert [resident.address for resident in known] == [x.data.ptr for x in (a, c)]
    # One on the device, one on the host.
    orchestrator.submit(summed, known[0], cupy.asnumpy(a), task.Out(known[1])).wait(60)
    assert np.array_equal(cupy.asnumpy(c), 2 * values(1))
    for resident in known:
        orchestrator.unregister_memory(resident)
