"""keel.task at the end of the interpreter, and in a forked child."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from conftest import MARK, Run, processes_with, seconds_until_none

START = """
import os, sys, threading, time, numpy
from keel import task
import keel
o = task.Orchestrator([0, 1], stop_timeout=0.2)
begun = threading.Event()
"""


def test_the_end_of_the_interpreter_with_tasks_under_way(run: Run) -> None:
    result = run(
        START + "@o.callable\n"
        "def short(call): time.sleep(0.001); call[0].copy_from(call[0].numpy() + 1)\n"
        "x = numpy.zeros(1000)\n"
        "tasks = [o.submit(short, task.InOut(x)) for _ in range(1000)]\n"
        "tasks[2].wait()\n"
        "print('done')\n",
        KEEL_LOG="off",  # a worker may be given up
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


def test_the_end_of_the_interpreter_lets_end_what_runs(run: Run) -> None:
    result = run(
        START.replace("0.2", "60") + "@o.callable\n"
        "def long(call): begun.set(); time.sleep(0.1); print('ended', flush=True)\n"
        "o.submit(long, worker=0); o.submit(long, worker=0)\n"
        "begun.wait()\n"
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "ended\nended\n", "")


@pytest.mark.parametrize(
    "hangs",
    [
        "while True: pass",
        "while True: time.sleep(0.01)",
        "lock.acquire()",
        "while True:\n        try: time.sleep(0.01)\n        except BaseException: pass",
    ],
)
def test_the_end_of_the_interpreter_with_a_function_that_hangs(run: Run, hangs: str) -> None:
    result = run(
        START + "lock = threading.Lock(); lock.acquire()\n"
        "@o.callable\n"
        "def hang(call):\n"
        "    begun.set()\n"
        f"    {hangs}\n"
        "x = numpy.zeros(1000)\n"
        "o.submit(hang, task.InOut(x)); o.submit(hang, task.InOut(x))\n"
        "begun.wait()\n"
        "print('done')\n",
        KEEL_LOG="off",
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


def test_the_end_of_a_program_by_an_error(run: Run) -> None:
    result = run(
        START + "@o.callable\n"
        "def short(call): begun.set(); time.sleep(0.01)\n"
        "for _ in range(10): o.submit(short)\n"
        "begun.wait()\n"
        "raise SystemExit(7)\n"
    )
    assert (result.returncode, result.stdout, result.stderr) == (7, "", "")


def test_an_interrupt_ends_a_wait(run: Run) -> None:
    result = run(
        START + "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "go = threading.Event()\n"
        "@o.callable\n"
        "def hold(call): begun.set(); go.wait()\n"
        "t = o.submit(hold)\n"
        "begun.wait()\n"
        "for wait in (t.wait, o.wait_all):\n"
        "    threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()\n"
        "    try: wait()\n"
        "    except KeyboardInterrupt: print('interrupted')\n"
        "go.set(); t.wait()\n"
    )
    assert (result.stdout, result.stderr) == ("interrupted\ninterrupted\n", "")


def test_an_interrupt_leaves_no_task_without_its_arrays(run: Run) -> None:
    result = run(
        START + "import signal\n"
        "class Interrupt(Exception): pass\n"
        "inside, hits, go = False, 0, threading.Event()\n"
        "def handler(*_):\n"
        "    global inside\n"
        "    if inside: inside = False; raise Interrupt\n"
        "signal.signal(signal.SIGALRM, handler)\n"
        "@o.callable\n"
        "def hold(call): go.wait()\n"
        "x = numpy.zeros(10)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)\n"
        "until = time.monotonic() + 0.5\n"
        "while time.monotonic() < until:\n"
        "    try:\n"
        "        inside = True\n"
        "        while time.monotonic() < until: o.submit(hold, task.InOut(x), worker=0)\n"
        "        inside = False\n"
        "    except Interrupt: hits += 1\n"
        "signal.setitimer(signal.ITIMER_REAL, 0)\n"
        "assert hits > 0\n"
        "print(o.live_tasks - len(o._pending))\n"
        "go.set()\n",
        KEEL_LOG="off",
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "0\n", "")


def test_a_forked_child_is_refused(run: Run) -> None:
    result = run(
        START + "go = threading.Event()\n"
        "@o.callable\n"
        "def short(call): begun.set(); go.wait()\n"
        "block = o.malloc(0, 10)\n"
        "tasks = [o.submit(short) for _ in range(20)]\n"
        "begun.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    for use in (short, block.numpy, lambda: o.malloc(0, 1), tasks[-1].wait, o.wait_all,\n"
        "                lambda: o.register(print)):\n"
        "        try: use()\n"
        "        except keel.ForkedProcessError as error: assert 'fork' in str(error), error\n"
        "        else: print('no error:', use, flush=True)\n"
        "    del o, block, short, tasks\n"
        "    import gc; gc.collect()\n"
        "    print('child done', flush=True)\n"
        "    sys.exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "go.set()\n"
        "for t in tasks: t.wait()\n"
        "print('parent done')\n"
    )
    assert result.stderr == ""
    assert result.stdout.splitlines() == ["child done", "parent done"]


# With workers that are processes. A function of theirs never ends, and leaves no turn to others.
WITH_PROCESSES = """
import signal, sys, threading
import numpy
from keel import task

def hang(call):
    while True: pass

def whole(call):
    call[0].copy_from(call[0].numpy() + 1)

if __name__ == "__main__":
    python, what = sys.argv[1] == "python", sys.argv[2]
    o = task.Orchestrator([0, 1], transport="process", python_workers=python, stop_timeout=0.2)
    block = o.upload(1, b"12345")
    if python:
        x = numpy.zeros(3)
        o.submit(o.register(whole), task.InOut(x), worker=0).wait(60)
        o.submit(o.register(hang), worker=0)
    print(bytes(block.numpy()).decode(), flush=True)
    if what == "wait": signal.pause()
"""


def _start_with_processes(
    folder: Path, workers: str, what: str
) -> tuple[subprocess.Popen[str], str]:
    script = folder / "script.py"
    script.write_text(WITH_PROCESSES)
    mark = uuid.uuid4().hex
    program = subprocess.Popen(
        [sys.executable, script, workers, what],
        env={**os.environ, MARK: mark, "KEEL_LOG": "off"},
        stdout=subprocess.PIPE,
        text=True,
    )
    return program, mark


@pytest.mark.parametrize("workers", ["keel-worker", "python"])
def test_processes_end_with_the_interpreter(tmp_path: Path, workers: str) -> None:
    program, mark = _start_with_processes(tmp_path, workers, "end")
    try:
        # The workers have its output, too, and would hold it open.
        output, _ = program.communicate(timeout=120)
        assert (program.returncode, output) == (0, "12345\n")
        assert processes_with(mark) == []
    finally:
        seconds_until_none(mark)


@pytest.mark.parametrize("workers", ["keel-worker", "python"])
def test_t9_processes_end_within_a_second_of_an_interpreter_that_was_killed(
    tmp_path: Path, workers: str
) -> None:
    times = []
    for _ in range(4):
        program, mark = _start_with_processes(tmp_path, workers, "wait")
        with program:
            try:
                assert program.stdout is not None
                assert program.stdout.readline() == "12345\n"
                assert len(processes_with(mark)) == 3
            finally:
                program.kill()
            program.wait()
            times.append(seconds_until_none(mark))
    # A machine that is loaded adds to one of them.
    assert sorted(times)[-2] <= 1, times
