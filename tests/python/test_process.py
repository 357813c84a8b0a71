"""Threads, forks, the start and the end of a process."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import keel
import keel.testing
import numpy as np
import pytest
from conftest import Run


def test_importing_opens_nothing_and_needs_nothing(run: Run) -> None:
    result = run(
        "import sys, keel\n"
        "assert 'numpy' not in sys.modules\n"
        "assert keel.device.in_use() == []\n"
        "import os; print(len(os.listdir('/proc/self/task')))\n"
    )
    assert (result.stdout, result.stderr) == ("1\n", "")


def test_a_machine_without_the_chosen_device(run: Run) -> None:
    result = run(
        "import keel\n"
        "print(keel.device.is_available('cuda'), keel.device.count('cuda'))\n"
        "try: keel.empty(1)\n"
        "except keel.UnavailableError as error: print('cuda' in str(error))\n",
        KEEL_DRIVER="cuda",
        KEEL_CUDA_LIBRARY="/nowhere/libcuda.so.1",
    )
    assert result.stdout.split() == ["False", "0", "True"], result.stderr


def test_the_end_is_clean_with_memory_in_use(run: Run) -> None:
    result = run(
        "import keel\n"
        "keep = [keel.zeros(1000, device=d, stream=keel.device.Stream(d)) for d in (0, 1)]\n"
        "keel.memory.cycle = keep; keep.append(keep)\n"
        "capsule = keel.zeros(3).__dlpack__(dl_device=(1, 0))\n"
    )
    assert (result.returncode, result.stderr) == (0, "")


FORKED = """
import gc, os, sys, keel
a = keel.zeros(1000)
s = keel.device.Stream()
b = keel.zeros(10, stream=s)
child = os.fork()
if child == 0:
    for use in (lambda: keel.zeros(1), a.numpy, keel.memory.memory_allocated,
                keel.memory.memory_snapshot, s.synchronize, keel.memory.empty_cache,
                lambda: keel.device.Stream()):
        try:
            use()
        except keel.ForkedProcessError as error:
            assert 'spawn' in str(error) or 'fork' in str(error), error
        else:
            print('no error:', use, flush=True)
    assert keel.device.count() == 2 and keel.device.current() == 'sim:0'
    assert a.shape == (1000,) and keel.memory.get_allocator_backend() == 'native'
    a.close()
    del a, b, s
    gc.collect()
    print('child done', flush=True)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert not a.numpy().any() and keel.memory.memory_allocated() > 0
print('parent done')
"""


def test_a_forked_child_is_refused_and_harms_nobody(run: Run) -> None:
    result = run(FORKED)
    assert result.stderr == ""
    assert result.stdout.splitlines() == ["child done", "parent done"]


def test_a_child_forked_before_the_first_use_is_like_any_other(run: Run) -> None:
    result = run(
        "import os, keel\n"
        "assert keel.device.is_available()\n"
        "child = os.fork()\n"
        "assert not keel.zeros(1000).numpy().any()\n"
        "if child: assert os.waitpid(child, 0)[1] == 0\n"
        "print('done')\n"
    )
    assert (result.stdout, result.stderr) == ("done\ndone\n", "")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_multiprocessing(run: Run, tmp_path: Path, method: str) -> None:
    program = tmp_path / "workers.py"
    program.write_text(
        "import multiprocessing, sys, numpy, keel\n"
        "def load(i):\n"  # as a DataLoader's worker does: host work, and an array by mistake
        "    try: return float(keel.from_numpy(numpy.full(3, i)).numpy().sum())\n"
        "    except keel.ForkedProcessError: return 'refused'\n"
        "if __name__ == '__main__':\n"
        "    a = keel.zeros(4)\n"
        "    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:\n"
        "        print(pool.map(load, [1.0, 2.0]))\n"
        "    assert not a.numpy().any()\n"
    )
    result = run(
        f"import sys, runpy; sys.argv = ['workers', '{method}']\n"
        f"sys.path.insert(0, '{tmp_path}')\n"
        f"runpy.run_path('{program}', run_name='__main__')"
        if method == "fork"
        else f"import subprocess, sys\n"
        f"sys.exit(subprocess.call([sys.executable, '{program}', '{method}']))"
    )
    assert result.stdout.strip() == ("['refused', 'refused']" if method == "fork" else "[3.0, 6.0]")
    assert result.stderr == ""


def test_errors_travel_from_a_worker(run: Run) -> None:
    # The error is made of plain values, so a pool can hand it on.
    result = run(
        "import multiprocessing, keel\n"
        "def work(_): return keel.empty(1 << 40)\n"
        "with multiprocessing.get_context('fork').Pool(1) as pool:\n"
        "    try: pool.map(work, [0])\n"
        "    except MemoryError as error: print(type(error).__name__, '256 MiB' in error.report)\n"
    )
    assert result.stdout == "OutOfMemoryError True\n", result.stderr


def test_threads_share_the_memory() -> None:
    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        with keel.device.Stream() as stream:
            for _ in range(50):
                source = random.integers(0, 255, random.integers(1, 200_000)).astype("uint8")
                with keel.from_numpy(source) as a:
                    assert np.array_equal(a.numpy(), source)
        stream.close()

    before = keel.memory.memory_allocated()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert keel.memory.memory_allocated() == before


def test_others_run_while_one_waits() -> None:
    stream = keel.device.Stream()
    waiting = threading.Event()

    def wait() -> None:
        waiting.set()
        stream.synchronize(30)

    thread = threading.Thread(target=wait)
    with keel.testing.hold(stream):
        a = keel.zeros(16, stream=stream)
        thread.start()
        waiting.wait()
        # This thread goes on, or the stream would be held for ever.
    thread.join(30)
    assert not thread.is_alive()
    del a


def test_others_run_while_a_stream_ends(run: Run) -> None:
    result = run(
        "import sys, threading, keel, keel.testing\n"
        "sys.setswitchinterval(10)\n"
        "stream = keel.device.Stream()\n"
        "hold = keel.testing.hold(keel.device.Stream.borrow(stream.handle))\n"
        "hold.__enter__()\n"
        "keel.zeros(16, stream=stream).close()\n"
        "ends = threading.Event()\n"
        "def release(): ends.wait(); hold.__exit__(None, None, None)\n"
        "thread = threading.Thread(target=release)\n"
        "thread.start()\n"
        "ends.set()\n"
        "del stream\n"  # waits for its work, which the other thread lets go on
        "thread.join()\n"
        "print('done')\n"
    )
    assert (result.stdout, result.stderr) == ("done\n", "")


def test_closing_during_a_copy_is_safe() -> None:
    source = np.random.default_rng(1).integers(0, 255, 8 << 20).astype("uint8")
    for _ in range(5):
        a = keel.from_numpy(source)
        got: list[Any] = []
        thread = threading.Thread(target=lambda a=a, got=got: got.append(_copy(a)))
        thread.start()
        a.close()
        keel.zeros(8 << 20, "uint8").close()
        thread.join()
        assert got[0] is None or np.array_equal(got[0], source)


def _copy(a: keel.Array) -> Any:
    try:
        return a.numpy()
    except ValueError:  # closed before it began
        return None


def test_an_interrupt_ends_a_wait(run: Run) -> None:
    result = run(
        "import signal, threading, keel, keel.testing\n"
        # A shell starts what it puts into the background with the signal ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "stream = keel.device.Stream()\n"
        "with keel.testing.hold(stream):\n"
        "    a = keel.zeros(16, stream=stream)\n"
        "    threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()\n"
        "    try: stream.synchronize()\n"
        "    except KeyboardInterrupt: print('interrupted')\n"
    )
    assert (result.stdout, result.stderr) == ("interrupted\n", "")


def test_importing_is_cheap(run: Run) -> None:
    # A bound that only a mistake (NumPy, opening a device) exceeds, in processor time, relative to
    # what starting Python costs.
    program = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"
    ours = min(float(run(program.format("keel")).stdout) for _ in range(3))
    numpys = min(float(run(program.format("numpy")).stdout) for _ in range(3))
    assert ours < numpys


def test_the_package_brings_its_library() -> None:
    folder = Path(keel.__file__).parent
    loaded = {
        line.split()[-1]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if "libkeel.so" in line
    }
    assert loaded == {str(library) for library in folder.glob("libkeel.so.*")}
    assert (folder / "py.typed").exists()
    assert keel.__version__.count(".") == 2
