"""keel.torch.graph on a real GPU. Run by `./dev gpu`; skipped elsewhere."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

import keel.torch  # noqa: E402

# PyTorch's own warnings are none of ours.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    assert keel.torch.install("full") == "full"


@pytest.fixture
def without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def _model(dropout: float = 0.0) -> Any:
    torch.manual_seed(7)
    layers = [torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Dropout(dropout)]
    return torch.nn.Sequential(*layers, torch.nn.Linear(64, 64)).cuda()


def _batches(count: int) -> list[Any]:
    """All alive, so that each is somewhere else."""
    generator = torch.Generator("cuda").manual_seed(3)
    return [torch.randn(32, 64, device="cuda", generator=generator) for _ in range(count)]


@pytest.mark.usefixtures("without_gradients")
def test_inference_is_as_without_a_graph_and_results_stay() -> None:
    model = _model().eval()
    graphed = keel.torch.graph(model)
    batches = _batches(12)
    results = [graphed(batch) for batch in batches]  # all are kept: more than there are slots
    for batch, result in zip(batches, results, strict=True):
        assert torch.equal(result, model(batch))
    (stats,) = graphed.stats()
    # Both slots, which have a result each, and the one whose results are copied.
    assert stats["graphs_recorded"] == 3
    assert stats["steps"] == 11  # the first call ran as it is
    assert stats["copied_in"] == 11 * 32 * 64 * 4


@pytest.mark.usefixtures("without_gradients")
def test_a_result_that_is_dropped_frees_its_slot() -> None:
    graphed = keel.torch.graph(_model().eval())
    addresses = set()
    for batch in _batches(20):
        result = graphed(batch)
        addresses.add(result.data_ptr())
    # The one of the first call, and one in each slot: nothing is copied.
    assert len(addresses) <= 3


def _training(model: Any) -> Callable[[Any, Any], Any]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, capturable=True)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_training_has_the_same_losses(slots: int) -> None:
    batches = _batches(40)
    losses = {}
    for way in ("eager", "graph"):
        step = _training(_model())
        if way == "graph":
            step = keel.torch.graph(step, slots=slots)
        losses[way] = [step(batch, batch.flip(1)).item() for batch in batches]
    assert losses["graph"] == losses["eager"]
    assert losses["eager"][-1] < losses["eager"][0]


def test_random_numbers_are_drawn_anew() -> None:
    model = _model(dropout=0.5).train()
    batch = torch.ones(32, 64, device="cuda")
    with torch.no_grad():
        graphed = keel.torch.graph(model)
        graphed(batch)
        torch.manual_seed(5)
        first = [graphed(batch).clone() for _ in range(3)]
        torch.manual_seed(5)
        again = [graphed(batch).clone() for _ in range(3)]
        torch.manual_seed(5)
        eager = [model(batch) for _ in range(3)]
    assert not torch.equal(first[0], first[1])
    for a, b, c in zip(first, again, eager, strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a, c)


@pytest.mark.usefixtures("without_gradients")
def test_what_the_function_writes_is_written() -> None:
    @keel.torch.graph
    def add(total: Any, x: Any) -> Any:
        total += x
        return total * 2

    totals = [torch.zeros(1000, device="cuda") for _ in range(3)]
    for i in range(12):
        doubled = add(totals[i % 3], torch.full((1000,), float(i), device="cuda"))
        assert torch.equal(doubled, 2 * totals[i % 3])
    assert [total[0].item() for total in totals] == [0 + 3 + 6 + 9, 1 + 4 + 7 + 10, 2 + 5 + 8 + 11]


@pytest.mark.usefixtures("without_gradients")
def test_other_arguments_are_other_recordings() -> None:
    calls = []

    @keel.torch.graph(slots=1)
    def scaled(x: Any, *, by: float, more: tuple[Any, ...] = ()) -> dict[str, Any]:
        calls.append(by)
        return {"scaled": x * by, "sums": [x.sum(), *(m.sum() for m in more)]}

    for by in (2.0, 3.0):
        for size in (10, 20):
            for _ in range(4):
                x = torch.ones(size, device="cuda")
                found = scaled(x, by=by, more=(x, 2 * x))
                assert found["scaled"].tolist() == [by] * size
                assert [s.item() for s in found["sums"]] == [size, size, 2 * size]
    # Each once as it is, once to record, and once for what is copied while the last result is kept.
    assert len(calls) == 3 * 4
    assert len(scaled.stats()) == 4


@pytest.mark.usefixtures("without_gradients")
def test_tensors_with_gaps_are_taken() -> None:
    graphed = keel.torch.graph(lambda x: x.t() + 1)
    for i in range(4):
        x = torch.arange(12.0, device="cuda").reshape(3, 4)[:, 1:3] * (i + 1)
        y = torch.arange(24.0, device="cuda").reshape(3, 8)[:, ::4]
        assert torch.equal(graphed(x), x.t() + 1)
        assert torch.equal(graphed(y), y.t() + 1)


@pytest.mark.usefixtures("without_gradients")
def test_what_is_written_through_a_view_with_gaps_arrives() -> None:
    @keel.torch.graph
    def clear(x: Any) -> None:
        x.zero_()

    for _ in range(4):
        x = torch.ones(4, 4, device="cuda")
        assert clear(x[:, ::2]) is None
        assert x.tolist() == [[0, 1, 0, 1]] * 4


def test_in_inference_mode() -> None:
    with torch.inference_mode():
        model = _model().eval()
        graphed = keel.torch.graph(model)
        for batch in _batches(6):
            assert torch.equal(graphed(batch), model(batch))


@pytest.mark.usefixtures("without_gradients")
def test_autocast_is_part_of_the_recording() -> None:
    model = _model().eval()
    graphed = keel.torch.graph(model)
    (batch,) = _batches(1)
    for _ in range(4):
        for dtype in (torch.bfloat16, torch.float16):
            with torch.autocast("cuda", dtype=dtype):
                result = graphed(batch)
                assert result.dtype == dtype
                assert torch.equal(result, model(batch))
        assert torch.equal(graphed(batch), model(batch))


@pytest.mark.usefixtures("without_gradients")
def test_threads_on_their_own_streams() -> None:
    model = _model().eval()
    graphed = keel.torch.graph(model, slots=3)
    batches = _batches(64)
    expected = [model(batch) for batch in batches]
    graphed(batches[0])
    torch.cuda.synchronize()
    right = []

    def work(first: int) -> None:
        with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
            for i in range(first, 64, 4):
                result = graphed(batches[i])
                if torch.equal(result, expected[i]):
                    right.append(i)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(right) == list(range(64))


@pytest.mark.usefixtures("without_gradients")
def test_everything_is_given_back() -> None:
    model = _model().eval()
    batch = _batches(1)[0]
    before = _allocated()
    graphed = keel.torch.graph(model)
    for _ in range(4):
        result = graphed(batch)
    graphed.close()
    assert torch.equal(result, model(batch))  # what was returned lives on
    assert torch.equal(graphed(batch), model(batch))  # and it begins anew
    del graphed, result
    assert _allocated() == before


@pytest.mark.usefixtures("without_gradients")
def test_what_ends_does_not_break_another_threads_capture() -> None:
    """That of somebody else, who forbids what waits for the device to every thread."""
    model = _model().eval()
    batch = _batches(1)[0]
    graphed = keel.torch.graph(model)
    kept = [graphed(batch) for _ in range(4)]
    expected = model(batch)
    torch.cuda.synchronize()
    began, ends = threading.Event(), threading.Event()
    made = []

    def captures() -> None:
        x = torch.ones(100, device="cuda")
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured, capture_error_mode="global"):
            y = x + 1
            began.set()
            assert ends.wait(60)
        captured.replay()
        made.append(y.sum().item())

    thread = threading.Thread(target=captures, daemon=True)
    thread.start()
    try:
        assert began.wait(60)
        graphed.close()
        kept.clear()
    finally:
        ends.set()
        thread.join(60)
    assert made == [200]
    assert torch.equal(graphed(batch), expected)


@pytest.mark.usefixtures("without_gradients")
def test_of_signatures_the_one_used_longest_ago_goes() -> None:
    graphed = keel.torch.graph(lambda x: x + 1, signatures=1)
    for i in range(4):
        for size in (10, 20):
            for _ in range(3):
                assert (
                    graphed(torch.full((size,), float(i), device="cuda")).tolist() == [i + 1] * size
                )
    assert len(graphed.stats()) == 1


@pytest.mark.usefixtures("without_gradients")
def test_close_can_be_tried_again() -> None:
    x = torch.ones(1000, device="cuda")
    before = _allocated()

    @keel.torch.graph(timeout=0.1)
    def slow(x: Any) -> Any:
        torch.cuda._sleep(1 << 31)  # cycles: about a second
        return x + 1

    slow(x)
    torch.cuda.synchronize()
    slow(x)
    for _ in range(2):
        with pytest.raises(keel.WaitTimeoutError):
            slow.close()
    assert keel.memory.memory_allocated("cuda:0") > before[1]  # the device still reads it
    torch.cuda.synchronize()
    slow.close()
    assert _allocated() == before


def _allocated() -> tuple[int, int]:
    gc.collect()
    torch.cuda.synchronize()
    keel.torch.graph(lambda x: x).close()  # and with it what ended while the device still read it
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.synchronize()
    return torch.cuda.memory_allocated(), keel.memory.memory_allocated("cuda:0")


@pytest.mark.parametrize("recorded", [False, True])
def test_a_graph_in_a_graph_is_a_part_of_it(recorded: bool) -> None:
    """As a teacher is of a step of training, recorded by itself before or not."""
    batches = _batches(8)

    def losses_with(teacher: Any) -> list[float]:
        train = _training(_model())

        def step(x: Any) -> Any:
            with torch.no_grad():
                target = teacher(x).flip(1)
            return train(x, target)

        if isinstance(teacher, keel.torch.Graphed):
            step = keel.torch.graph(step)
        return [step(batch).item() for batch in batches]

    expected = losses_with(_model().eval())
    teacher = keel.torch.graph(_model().eval())
    if recorded:
        with torch.no_grad():
            for _ in range(3):
                teacher(batches[0])
    assert losses_with(teacher) == expected
    assert len(set(expected)) == len(batches)


@pytest.mark.usefixtures("without_gradients")
def test_in_somebodys_capture_it_is_a_part_of_that() -> None:
    model = _model().eval()
    graphed = keel.torch.graph(model)
    batch, other = _batches(2)
    for _ in range(3):
        graphed(batch)
    (stats,) = graphed.stats()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        result = graphed(batch)
    batch.copy_(other)
    captured.replay()
    assert torch.equal(result, model(other))
    assert torch.equal(graphed(other), result)
    assert graphed.stats()[0]["steps"] == stats["steps"] + 1


@pytest.mark.usefixtures("without_gradients")
def test_what_a_graph_writes_is_seen_by_one_around_it() -> None:
    @keel.torch.graph
    def add(total: Any, x: Any) -> None:
        total += x

    total, x = torch.zeros(100, device="cuda"), torch.ones(100, device="cuda")
    for i in range(3):
        before = total._version
        add(total, x)
        assert total._version > before
        assert total.tolist() == [i + 1] * 100

    @keel.torch.graph
    def twice(total: Any, x: Any) -> None:
        add(total, x)
        add(total, x)

    for i in range(5):
        twice(total, x)
        assert total.tolist() == [3 + 2 * (i + 1)] * 100


@pytest.mark.usefixtures("without_gradients")
def test_a_function_that_hides_what_broke_its_capture() -> None:
    @keel.torch.graph
    def hides(x: Any) -> Any:
        y = x * 2
        with contextlib.suppress(RuntimeError):
            y.sum().item()
        return y

    x = torch.ones(3, device="cuda")
    assert hides(x).tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="captur"):
        hides(x)
    assert torch.rand(3, device="cuda").shape == (3,)  # the generator is as before
    double = keel.torch.graph(lambda x: x * 2)
    for _ in range(3):
        assert double(x).tolist() == [2, 2, 2]


@pytest.mark.usefixtures("without_gradients")
def test_mistakes_are_named() -> None:
    double = keel.torch.graph(lambda x: x * 2)
    with pytest.raises(ValueError, match="tensor 0 of the arguments is on cpu"):
        double(torch.ones(3))
    with pytest.raises(ValueError, match="requires a gradient"):
        double(torch.ones(3, device="cuda", requires_grad=True))
    with pytest.raises(ValueError, match="without an argument"):
        double()
    with pytest.raises(ValueError, match="no elements"):
        double(torch.ones(0, device="cuda"))
    with pytest.raises(TypeError, match="hashable"):
        keel.torch.graph(lambda x, y: x)(torch.ones(3, device="cuda"), {1, 2})

    looks = keel.torch.graph(lambda x: x * x.sum().item())
    x = torch.ones(3, device="cuda")
    add = keel.torch.graph(lambda x, y: x.add_(y))
    add(x, x)
    with pytest.raises(ValueError, match="share memory"):
        add(x, x)
    for _ in range(2):  # it is recorded
        add(x, torch.ones(3, device="cuda"))
    with pytest.raises(ValueError, match="share memory"):
        add(x, x)
    x = torch.ones(3, device="cuda")
    looks(x)
    with pytest.raises(RuntimeError, match="captur"):
        looks(x)
    assert torch.rand(3, device="cuda").shape == (3,)  # the generator is as before
    number = keel.torch.graph(lambda x: 3.0)
    number(x)
    with pytest.raises(TypeError, match="returns tensors on the GPU, not float"):
        number(x)
    assert (double(x) + double(x)).tolist() == [4, 4, 4]  # nothing is broken
