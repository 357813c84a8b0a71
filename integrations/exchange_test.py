"""Arrays that PyTorch, CuPy, JAX and Keel hand each other on a GPU: the same bytes, never a copy.

Run by `./dev gpu`; skipped elsewhere.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import Any

import keel
import numpy as np
import pytest

if not keel.device.is_available("cuda"):
    pytest.skip("there is no GPU", allow_module_level=True)

DEVICE = "cuda:0"
DTYPES = ("float32", "float16", "int64", "uint8", "bool", "complex64")

# PyTorch's and JAX's own warnings are none of ours.
pytestmark = pytest.mark.filterwarnings("default")


def _values(dtype: str) -> Any:
    return (
        (np.arange(6 * 1000) % 2 if dtype == "bool" else np.arange(6 * 1000) % 251)
        .astype(dtype)
        .reshape(6, 1000)
    )


class Library:
    """What the tests need of a library: its import, its pointers, its values."""

    def __init__(
        self,
        take: Callable[[Any], Any],
        make: Callable[[Any], Any],
        pointer: Callable[[Any], int],
        values: Callable[[Any], Any],
        finish: Callable[[], None],
    ) -> None:
        self.take = take
        self.make = make
        self.pointer = pointer
        self.values = values
        self.finish = finish


def _torch() -> Library:
    torch: Any = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch finds no GPU")
    return Library(
        take=torch.from_dlpack,
        make=lambda values: torch.from_numpy(values).cuda(),
        pointer=lambda tensor: int(tensor.data_ptr()),
        values=lambda tensor: tensor.cpu().numpy(),
        finish=torch.cuda.synchronize,
    )


def _cupy() -> Library:
    cupy: Any = pytest.importorskip("cupy")
    if not cupy.is_available():
        pytest.skip("CuPy finds no GPU")
    return Library(
        take=cupy.from_dlpack,
        make=cupy.asarray,
        pointer=lambda array: int(array.data.ptr),
        values=cupy.asnumpy,
        finish=lambda: cupy.cuda.Device().synchronize(),
    )


def _jax() -> Library:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ.setdefault("JAX_ENABLE_X64", "1")
    jax: Any = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX finds no GPU")
    return Library(
        take=jax.dlpack.from_dlpack,
        make=lambda values: jax.numpy.asarray(values).block_until_ready(),
        pointer=lambda array: int(array.unsafe_buffer_pointer()),
        values=np.asarray,
        finish=lambda: None,
    )


LIBRARIES = {"torch": _torch, "cupy": _cupy, "jax": _jax}


@pytest.fixture(params=sorted(LIBRARIES))
def library(request: pytest.FixtureRequest) -> Library:
    return LIBRARIES[request.param]()


@pytest.mark.parametrize("dtype", DTYPES)
def test_keels_array_becomes_theirs(library: Library, dtype: str) -> None:
    values = _values(dtype)
    before = keel.memory.memory_allocated(DEVICE)
    mine = keel.from_numpy(values, device=DEVICE)
    theirs = library.take(mine)
    assert library.pointer(theirs) == mine.address
    assert np.array_equal(library.values(theirs), values)
    mine.close()
    assert keel.memory.memory_allocated(DEVICE) > before  # theirs keeps it
    assert np.array_equal(library.values(theirs), values)
    del theirs
    gc.collect()
    library.finish()
    assert keel.memory.memory_allocated(DEVICE) == before


@pytest.mark.parametrize("dtype", DTYPES)
def test_their_array_becomes_keels(library: Library, dtype: str) -> None:
    values = _values(dtype)
    theirs = library.make(values)
    mine = keel.from_dlpack(theirs, copy=False)
    assert mine.address == library.pointer(theirs)
    assert (mine.device, mine.dtype, mine.shape) == (DEVICE, dtype, values.shape)
    del theirs
    gc.collect()
    assert np.array_equal(mine.numpy(), values)  # mine keeps it


def test_what_is_written_there_is_seen_here() -> None:
    torch: Any = pytest.importorskip("torch")
    mine = keel.zeros(1 << 20, "float32", device=DEVICE)
    theirs = torch.from_dlpack(mine)
    theirs += 3
    again = keel.from_dlpack(theirs)
    assert again.address == mine.address
    assert (again.numpy() == 3).all()
    mine.copy_from(np.full(1 << 20, 5, "float32"))
    assert float(theirs.sum()) == 5.0 * (1 << 20)


def test_work_of_one_stream_is_seen_on_the_other() -> None:
    """The consumer's stream waits for what the array's has queued, in both directions."""
    torch: Any = pytest.importorskip("torch")
    side = torch.cuda.Stream()
    mine = keel.device.Stream(DEVICE)
    for i in range(1, 20):
        with torch.cuda.stream(side):
            theirs = torch.zeros(1 << 22, device="cuda")
            for _ in range(20):
                theirs += i
            with mine:
                here = keel.from_dlpack(theirs)
        copy = keel.empty(1 << 22, "float32", stream=mine)
        copy.copy_from(here)
        with torch.cuda.stream(side):
            back = torch.from_dlpack(copy)
            assert float(back.min()) == float(back.max()) == 20.0 * i


def test_the_cuda_array_interface() -> None:
    cupy: Any = pytest.importorskip("cupy")
    torch: Any = pytest.importorskip("torch")
    mine = keel.from_numpy(np.arange(12, dtype="float32").reshape(3, 4), device=DEVICE)
    array = cupy.asarray(mine)
    assert array.data.ptr == mine.address
    tensor = torch.as_tensor(mine, device="cuda")
    assert tensor.data_ptr() == mine.address
    array *= 2
    cupy.cuda.Device().synchronize()
    tensor += 1
    torch.cuda.synchronize()
    assert np.array_equal(mine.numpy(), np.arange(12, dtype="float32").reshape(3, 4) * 2 + 1)


def test_round_the_houses() -> None:
    """Keel to PyTorch to CuPy to JAX to Keel: one address all the way."""
    libraries = [make() for make in LIBRARIES.values()]
    values = _values("float32")
    mine = keel.from_numpy(values, device=DEVICE)
    address = mine.address
    passed: Any = mine
    for library in libraries:
        passed = library.take(passed)
        assert library.pointer(passed) == address
    last = keel.from_dlpack(passed, copy=False)
    assert last.address == address
    mine.close()
    del passed, mine
    gc.collect()
    assert np.array_equal(last.numpy(), values)


def test_memory_that_jax_lets_nobody_write() -> None:
    library = _jax()
    theirs = library.make(_values("float32"))
    mine = keel.from_dlpack(theirs)
    if not mine.read_only:
        pytest.skip("this JAX does not say that its arrays must not be written")
    with pytest.raises(ValueError, match="another library's"):
        mine.copy_from(np.zeros_like(_values("float32")))
