"""PyTorch on Keel's memory, on a real GPU. Run by `./dev gpu`; skipped elsewhere."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

import keel  # noqa: E402
import keel.torch  # noqa: E402

# PyTorch's own warnings are none of ours.
pytestmark = pytest.mark.filterwarnings("default")

MIB = 1 << 20


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    assert keel.torch.install("full") == "full"


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    torch.cuda.synchronize()
    gc.collect()
    torch.cuda.empty_cache()


def test_tensors_are_in_keels_memory() -> None:
    assert torch.cuda.get_allocator_backend() == "keel"
    before = keel.memory.memory_allocated("cuda:0")
    a = torch.arange(1000, device="cuda", dtype=torch.float32)
    assert keel.memory.memory_allocated("cuda:0") == before + 4096
    assert torch.cuda.memory_allocated() == before + 4096
    b = a * 2 + 1
    assert b.sum().item() == 2 * 499500 + 1000
    address = a.data_ptr()
    del a
    assert torch.empty(1000, device="cuda").data_ptr() == address  # reused at once


def test_nothing_is_an_address() -> None:
    empty = torch.empty(0, device="cuda")
    assert empty.numel() == 0
    assert torch.cat([empty, torch.ones(2, device="cuda")]).tolist() == [1.0, 1.0]


def test_statistics_have_pytorchs_keys_and_keels_numbers() -> None:
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()
    blocks = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in (1000, 3 * MIB)]
    stats = torch.cuda.memory_stats()
    ours = keel.memory.memory_stats("cuda:0")
    for key in (
        "allocated_bytes.all.current",
        "allocated_bytes.small_pool.peak",
        "reserved_bytes.large_pool.current",
        "requested_bytes.all.current",
        "active.all.current",
        "num_device_alloc",
    ):
        assert stats[key] == ours[key], key
    assert stats["allocation.all.allocated"] == 2
    assert "reserved" in torch.cuda.memory_summary().lower()
    del blocks
    assert torch.cuda.memory_stats()["allocation.all.freed"] == 2


def test_the_accelerator_interface_is_keels_too() -> None:
    block = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
    assert torch.accelerator.memory_allocated() == keel.memory.memory_allocated("cuda:0")
    del block
    torch.accelerator.empty_cache()
    assert keel.memory.memory_reserved("cuda:0") == torch.accelerator.memory_reserved()
    assert torch.accelerator.memory_stats()["reserved_bytes.large_pool.current"] == 0


def test_the_cache_can_be_switched_off_and_on() -> None:
    before = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
    allocated = torch.cuda.memory_allocated()
    torch.cuda.caching_allocator_enable(False)
    try:
        free, _ = torch.cuda.mem_get_info()
        beside = torch.full((512 * MIB,), 3, dtype=torch.uint8, device="cuda")
        assert torch.cuda.memory_allocated() == allocated  # the driver's, and counted there
        assert free - torch.cuda.mem_get_info()[0] >= 512 * MIB
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            doubled = beside[:1000] * 2
        beside.record_stream(side)  # nothing to record, and no error
        del before
        assert torch.cuda.memory_allocated() == allocated - 3 * MIB
    finally:
        torch.cuda.caching_allocator_enable(True)
    inside = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_allocated() == allocated
    del beside, inside
    assert torch.cuda.mem_get_info()[0] >= free - 100 * MIB
    assert doubled.unique().tolist() == [6]


def test_a_recorded_stream_keeps_the_block() -> None:
    side = torch.cuda.Stream()
    block = torch.zeros(4 * MIB, dtype=torch.uint8, device="cuda")
    address = block.data_ptr()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        copy = block + 1
    block.record_stream(side)
    del block
    other = torch.full((4 * MIB,), 7, dtype=torch.uint8, device="cuda")
    assert other.data_ptr() != address
    torch.cuda.synchronize()
    assert copy.min().item() == 1
    assert copy.max().item() == 1
    # Nobody uses it any more, and it is the one that fits.
    assert torch.empty(4 * MIB, dtype=torch.uint8, device="cuda").data_ptr() == address


def test_a_graph_replays_on_its_own_memory() -> None:
    source = torch.zeros(MIB, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            (source * 2 + 1).relu_()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        temporary = source * 2
        result = temporary + 1
        del temporary
    for step in range(5):
        source.fill_(step)
        # What others allocate between replays must not be the graph's.
        noise = [torch.full((MIB,), -1.0, device="cuda") for _ in range(8)]
        graph.replay()
        assert result.unique().tolist() == [2 * step + 1]
        del noise
    held = torch.cuda.memory_reserved()
    torch.cuda.empty_cache()
    graph.replay()
    assert result.unique().tolist() == [9.0]
    del graph, result
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() < held


def test_two_graphs_share_a_pool() -> None:
    source = torch.ones(MIB, device="cuda")
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        a = source + 1
    with torch.cuda.graph(second, pool=first.pool()):
        b = a * 3
    first.replay()
    second.replay()
    assert b.unique().tolist() == [6.0]


def test_graphed_callables() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    model = model.cuda()
    sample = torch.randn(16, 64, device="cuda")
    with torch.no_grad():  # a graph of autograd that lives on would keep its stream
        expected = model(sample)
    graphed = torch.cuda.make_graphed_callables(model, (sample.clone().requires_grad_(),))
    for _ in range(3):
        out = graphed(sample.clone().requires_grad_())
        out.sum().backward()
    assert torch.allclose(out, expected)


def test_a_pool_of_the_program() -> None:
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = torch.ones(3 * MIB, dtype=torch.uint8, device="cuda")
    outside = torch.ones(3 * MIB, dtype=torch.uint8, device="cuda")
    segments = pool.snapshot()
    addresses = [range(s["address"], s["address"] + s["total_size"]) for s in segments]
    assert any(inside.data_ptr() in r for r in addresses)
    assert not any(outside.data_ptr() in r for r in addresses)
    assert all(tuple(s["segment_pool_id"]) == tuple(pool.id) for s in segments)
    with pytest.raises(NotImplementedError, match="use_on_oom"):
        torch.cuda.MemPool(use_on_oom=True)


def live_in(pool: tuple[int, int]) -> dict[int, int]:
    """The live blocks of a pool: their sizes, by address."""
    return {
        block["address"]: block["size"]
        for segment in torch.cuda.memory_snapshot()
        if tuple(segment["segment_pool_id"]) == tuple(pool)
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    }


def test_a_pool_returns_to_a_state() -> None:
    stream = torch.cuda.Stream()
    source = torch.ones(1000, device="cuda")
    torch.cuda.synchronize()
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first, stream=stream):
        kept = source + 1
        large = torch.full((3 * MIB,), 5, dtype=torch.uint8, device="cuda")
    pool = first.pool()
    state = torch._C._cuda_getCheckpointState(0, pool)
    blocks = live_in(pool)
    assert set(blocks) == {kept.data_ptr(), large.data_ptr()}
    at = large.data_ptr()
    del large
    with torch.cuda.graph(second, stream=stream, pool=pool):
        stale = torch.full((2 * MIB,), 6, dtype=torch.uint8, device="cuda")
    assert stale.data_ptr() == at
    # What was freed is there again, and has the tensor that is told of it; `stale` owns nothing.
    again = torch._C._construct_storage_from_data_pointer(at, source.device, 3 * MIB)
    torch._C._cuda_setCheckpointPoolState(
        0, state, [stale.untyped_storage()._cdata], [again._cdata]
    )
    assert live_in(pool) == blocks
    assert torch._C._cuda_checkPoolLiveAllocations(0, pool, set(blocks))
    assert not torch._C._has_Standard_Deleter(stale.untyped_storage()._cdata)
    assert torch._C._has_Standard_Deleter(again._cdata)
    assert torch._C._has_Standard_Deleter(kept.untyped_storage()._cdata)
    del stale
    assert live_in(pool) == blocks
    first.replay()
    torch.cuda.synchronize()
    assert kept.unique().tolist() == [2.0]
    assert torch.empty(0, dtype=torch.uint8, device="cuda").set_(again).unique().tolist() == [5]
    del again
    assert set(live_in(pool)) == {kept.data_ptr()}
    del kept
    assert live_in(pool) == {}
    del first, second
    with pytest.raises(RuntimeError, match="released"):
        torch._C._cuda_setCheckpointPoolState(0, state, [], [])


def test_compiled_functions_share_a_tree_of_graphs() -> None:
    pytest.importorskip("triton")
    out = run_alone(
        """
        import keel.torch
        keel.torch.install("full")
        import torch
        import torch._inductor.config as config
        config.triton.slow_path_cudagraph_asserts = True
        from torch._dynamo.utils import counters
        from torch._inductor.cudagraph_trees import get_container

        def compiled(function):
            return torch.compile(function, mode="reduce-overhead", dynamic=False)

        trunk = compiled(lambda x: (x * 2, x + 1))
        left = compiled(lambda a, b: (a + b).relu())
        right = compiled(lambda a, b: torch.cat([a, b]) * 3)
        x = torch.zeros(1 << 20, device="cuda")
        for step in range(16):
            torch.compiler.cudagraph_mark_step_begin()
            x.fill_(step)
            a, b = trunk(x)
            if step < 6 or step % 2 == 0:
                assert left(a, b).unique().tolist() == [3.0 * step + 1]
            else:
                assert sorted(right(a, b).unique().tolist()) == sorted(
                    {6.0 * step, 3.0 * step + 3}
                )
        manager = get_container(0).tree_manager
        print(counters["inductor"]["cudagraph_skips"], manager.debug_checkpointing_counter > 0)

        # And with a backward pass, whose graphs follow those of the forward pass.
        torch.manual_seed(0)
        def train(wrap):
            torch.manual_seed(1)
            layers = [torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.Linear(256, 8)]
            model = torch.nn.Sequential(*layers).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            call = wrap(model)
            losses = []
            for step in range(8):
                torch.compiler.cudagraph_mark_step_begin()
                optimizer.zero_grad(set_to_none=True)
                inputs = torch.full((64, 256), step / 8, device="cuda")
                loss = call(inputs).square().mean()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            return losses
        pairs = zip(train(lambda model: model), train(compiled))
        print(all(abs(a - b) <= 1e-3 * max(1.0, abs(a)) for a, b in pairs))
        print(counters["inductor"]["cudagraph_skips"], torch.cuda.get_allocator_backend())
    """,
        timeout=300,
        TORCHINDUCTOR_COMPILE_THREADS="1",  # no pool of processes for so little
    )
    assert out == "0 True\nTrue\n0 keel\n"


def test_running_out_of_memory_is_pytorchs_error_and_goes_by() -> None:
    torch.cuda.set_per_process_memory_fraction(0.01)
    try:
        seen: list[tuple[int, int]] = []
        torch._C._cuda_attach_out_of_memory_observer(
            lambda device, size, total, free: seen.append((device, size))
        )
        with pytest.raises(
            torch.cuda.OutOfMemoryError, match=r"^CUDA out of memory\. Tried to"
        ) as e:
            torch.empty(16 << 30, dtype=torch.uint8, device="cuda")
        assert "16.00 GiB" in str(e.value)
        assert seen == [(0, 16 << 30)]
        assert torch.ones(10, device="cuda").sum().item() == 10
        assert torch.cuda.memory_stats()["num_ooms"] >= 1
        assert abs(torch.cuda.get_per_process_memory_fraction() - 0.01) < 1e-6
        with pytest.raises(torch.cuda.OutOfMemoryError, match="more than 1EB"):
            torch.empty(1 << 61, dtype=torch.uint8, device="cuda")
        torch.cuda.set_per_process_memory_fraction(0.0)  # what is held is all there is
        assert torch.cuda.get_per_process_memory_fraction() == 0
        with pytest.raises(torch.cuda.OutOfMemoryError):
            torch.empty(512 * MIB, dtype=torch.uint8, device="cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_snapshots_and_histories_have_python_frames() -> None:
    torch.cuda.memory._record_memory_history(max_entries=1000, stacks="python")
    try:
        kept = torch.ones(5 * MIB, dtype=torch.uint8, device="cuda")
        gone = torch.ones(6 * MIB, dtype=torch.uint8, device="cuda")
        gone_at = gone.data_ptr()
        del gone
        snapshot = torch.cuda.memory._snapshot()
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    for segment in snapshot["segments"]:
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
    block = next(
        b for s in snapshot["segments"] for b in s["blocks"] if b["address"] == kept.data_ptr()
    )
    assert block["state"] == "active_allocated"
    assert block["requested_size"] == 5 * MIB
    assert any(f["filename"].endswith("torch_test.py") for f in block["frames"])
    trace = [e for e in snapshot["device_traces"][0] if e["addr"] == gone_at]
    assert [e["action"] for e in trace if e["size"] == 6 * MIB] == [
        "alloc",
        "free_requested",
        "free_completed",
    ]
    assert any(f["filename"].endswith("torch_test.py") for f in trace[0]["frames"])
    times = [e["time_us"] for e in snapshot["device_traces"][0]]
    assert times == sorted(times)


def test_frames_are_kept_for_what_was_asked() -> None:
    def frames_of(context: str) -> tuple[bool, bool]:
        torch.cuda.memory._record_memory_history(context=context, stacks="python")
        try:
            block = torch.ones(5 * MIB, dtype=torch.uint8, device="cuda")
            at = block.data_ptr()
            del block
            torch.cuda.empty_cache()
            events = torch.cuda.memory._snapshot()["device_traces"][0]
        finally:
            torch.cuda.memory._record_memory_history(enabled=None)
        allocated = [e for e in events if e["action"] == "alloc" and e["addr"] == at]
        unmapped = [e for e in events if e["action"] == "segment_unmap"]
        assert allocated
        assert unmapped
        return bool(allocated[0].get("frames")), bool(unmapped[0].get("frames"))

    assert frames_of("state") == (False, False)
    assert frames_of("alloc") == (True, False)
    assert frames_of("all") == (True, True)


def test_empty_cache_gives_back() -> None:
    block = torch.empty(512 * MIB, dtype=torch.uint8, device="cuda")
    free, _ = torch.cuda.mem_get_info()
    del block
    torch.cuda.empty_cache()
    after, _ = torch.cuda.mem_get_info()
    assert after - free >= 500 * MIB


def test_threads_allocate_and_free_each_others_blocks() -> None:
    failures: list[str] = []

    def work(seed: int) -> None:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for i in range(200):
                a = torch.full((1000 + 17 * i,), float(seed), device="cuda")
                b = a + i
                if b.sum().item() != (seed + i) * b.numel():
                    failures.append(f"{seed} {i}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_raw_block_is_checked() -> None:
    block = torch.cuda.caching_allocator_alloc(1000)
    torch.cuda.caching_allocator_delete(block)
    with pytest.raises(RuntimeError, match="INVALID_ARGUMENT"):
        torch.cuda.caching_allocator_delete(block)


def test_what_is_not_there_says_so() -> None:
    a = torch.ones(10, device="cuda")
    with pytest.raises(NotImplementedError, match=r"tensor\.cpu\(\)"):
        a.untyped_storage()._share_cuda_()


def run_alone(code: str, timeout: float = 120, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_too_late_is_an_error() -> None:
    out = run_alone("""
        import keel, keel.torch, torch
        torch.ones(1, device="cuda")
        try:
            keel.torch.install()
        except keel.StateError as error:
            print(error)
    """)
    assert "before the first tensor" in out


def test_the_functions_route() -> None:
    out = run_alone("""
        import keel, keel.torch, torch
        assert keel.torch.install("functions") == "functions"
        a = torch.ones(1000, device="cuda")
        print(keel.memory.memory_allocated("cuda:0"), a.sum().item())
        side = torch.cuda.Stream()
        a.record_stream(side)
        del a
        torch.cuda.empty_cache()
        print(keel.memory.memory_allocated("cuda:0"), keel.memory.memory_reserved("cuda:0"))
        torch.cuda.set_per_process_memory_fraction(0.01)
        try:
            torch.empty(16 << 30, dtype=torch.uint8, device="cuda")
        except RuntimeError as error:
            print(str(error)[:20])
    """)
    lines = out.split("\n")
    assert lines[0] == "4096 1000.0"
    assert lines[1] == "0 0"
    assert lines[2] == "CUDA out of memory. "


def test_a_pool_of_keels_segments_under_pytorchs_allocator() -> None:
    out = run_alone("""
        import keel, keel.torch, torch
        pool = keel.torch.mem_pool()
        with torch.cuda.use_mem_pool(pool):
            a = torch.ones(30 << 20, dtype=torch.uint8, device="cuda")
        print(torch.cuda.get_allocator_backend(), keel.memory.memory_allocated("cuda:0") >> 20)
        del a, pool
        torch.cuda.empty_cache()
        print(keel.memory.memory_allocated("cuda:0"))
    """)
    assert out.split("\n")[:2] == ["native 30", "0"]


def test_a_forked_child_goes_its_way() -> None:
    out = run_alone("""
        import os, sys
        import keel.torch, torch
        keel.torch.install()
        a = torch.ones(1000, device="cuda")
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            del a          # the parent's memory: nothing to do, and nothing breaks
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), a.sum().item())
    """)
    assert out == "7 1000.0\n"


def test_without_a_compiler_the_reason_is_given() -> None:
    out = run_alone(
        """
        import keel, keel.torch
        try:
            keel.torch.install("full")
        except keel.UnavailableError as error:
            print(error)
        import warnings
        warnings.simplefilter("error")
        try:
            keel.torch.install()
        except RuntimeWarning as warning:
            print("warned:", "OutOfMemoryError" in str(warning))
    """,
        CXX="/nowhere/c++",
    )
    assert "/nowhere/c++" in out
    assert "warned: True" in out
