"""Graphs: the functions that steps call, threads, and how things end."""

from __future__ import annotations

import faulthandler
import gc
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import keel
import keel.testing
import numpy as np
import pytest
from conftest import Run
from graph_programs import N, adding, ramp
from keel import graph

# --- Functions that fail --------------------------------------------------------------------------


def failing(fails: Callable[[int], BaseException | None]) -> graph.Program:
    """A program whose function is asked, call by call, what to raise."""
    program = graph.Program("failing")
    program.binding("y", 16, access="out", policy="in-place")
    calls = iter(range(1, 1000))

    @program.traced(writes=["y"])
    def function(call: graph.Call) -> None:
        error = fails(next(calls))
        if error is not None:
            raise error
        call["y"].copy_from(bytes(16)) if not call.capturing else None

    program.fill("y", 3)
    return program


def test_what_a_function_raises_comes_out_of_the_step() -> None:
    raised = [KeyError("mine"), KeyError("captured")]
    program = failing(lambda call: raised[call // 2] if call in (1, 3) else None)
    executable = graph.Executable(program, slots=1)
    for expected in (raised[0], None, raised[1], None, None):
        if expected is None:
            assert executable.step(hold="y")["y"].tobytes() == b"\3" * 16
            continue
        with pytest.raises(KeyError) as caught:
            executable.step()
        assert caught.value is expected
        assert any(entry.name == "function" for entry in caught.traceback)
    assert executable.stats()["failed_steps"] == 2
    program = failing(lambda call: ZeroDivisionError() if call == 1 else None)
    lease = graph.Executable(program).acquire()
    with pytest.raises(ZeroDivisionError):
        lease.launch()
    lease.launch()  # may be tried again
    lease.close()


def test_a_slot_that_could_not_be_recorded_ahead_says_so_in_its_own_step() -> None:
    executable = graph.Executable(
        failing(lambda call: OSError("in vain") if call in (3, 4) else None)
    )
    executable.step()
    executable.synchronize(60)  # so that its slot can be recorded with the other
    executable.step()  # records two slots; the second in vain
    with pytest.raises(OSError, match="in vain"):
        executable.step()
    for _ in range(4):
        executable.step()


def test_an_interrupt_is_never_lost() -> None:
    interrupt = KeyboardInterrupt()
    executable = graph.Executable(failing(lambda call: interrupt if call == 3 else None))
    executable.step()
    executable.synchronize(60)
    with pytest.raises(KeyboardInterrupt) as caught:
        executable.step()
    assert caught.value is interrupt
    executable.step()


def test_arrays_of_a_call_end_with_it() -> None:
    kept: list[keel.Array] = []
    program = graph.Program("keeps")
    program.binding("y", 16, access="out", policy="in-place")

    @program.traced(writes=["y"])
    def function(call: graph.Call) -> None:
        kept.append(call["y"])
        with pytest.raises(KeyError, match="does not use 'z'; it uses y"):
            call["z"]

    graph.Executable(program).step()
    assert kept[0].closed


def test_what_a_host_call_raises_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told = threading.Semaphore(0)
    errors: list[Any] = []

    def tell(unraisable: Any) -> None:
        errors.append(unraisable.exc_value)
        told.release()

    monkeypatch.setattr(sys, "unraisablehook", tell)
    program = graph.Program("host")

    @program.call
    def function() -> None:
        raise ArithmeticError("on the driver's thread")

    executable = graph.Executable(program)
    executable.step()
    assert told.acquire(timeout=60)
    assert isinstance(errors[0], ArithmeticError)
    del errors[:], executable


def test_a_step_of_the_caller_s_own_executable_is_refused() -> None:
    refused: list[str] = []
    program = graph.Program("nested")

    @program.eager()
    def function(call: graph.Call) -> None:
        with pytest.raises(keel.StateError) as caught:
            executable.step()
        refused.append(str(caught.value))

    executable = graph.Executable(program)
    executable.step()
    assert "launches a step of 'nested'" in refused[0]


# --- Threads --------------------------------------------------------------------------------------


def test_threads_share_an_executable() -> None:
    """They launch, call functions, wait and read at once; nobody holds the interpreter's lock while
    he waits for another."""
    program, _ = adding("retrace")
    inside = traced = 0

    @program.traced(reads=["x"])
    def sees_the_address(call: graph.Call) -> None:
        nonlocal traced
        traced += 1

    @program.eager(reads=["y"])
    def alone(call: graph.Call) -> None:
        nonlocal inside
        inside += 1
        assert inside == 1
        gc.collect(0)  # the interpreter changes threads in between
        inside -= 1

    called = 0

    @program.call
    def host() -> None:
        nonlocal called
        called += 1

    executable = graph.Executable(program, kept_traces=2)
    executable.bind(w=keel.from_numpy(ramp(1000)))
    failures: list[BaseException] = []

    def work(first: int) -> None:
        try:
            with keel.device.Stream():
                for step in range(first, first + 30):
                    x = keel.from_numpy(ramp(step))
                    # Let go before the next step: three threads share two slots.
                    with executable.step(x=x, hold="y", timeout=60)["y"] as y:
                        result = y.numpy().reshape(N)
                    np.testing.assert_array_equal(result, 2 * ramp(step) + ramp(1000))
        except BaseException as error:
            failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    # If one waits with the interpreter's lock, not even this thread goes on.
    faulthandler.dump_traceback_later(120, exit=True)
    try:
        threads = [threading.Thread(target=work, args=(first,)) for first in (0, 1000, 2000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(100)
            assert not thread.is_alive(), "they wait for each other"
    finally:
        faulthandler.cancel_dump_traceback_later()
        sys.setswitchinterval(before)
    assert failures == []
    executable.synchronize(60)
    assert called == executable.stats()["steps"] == 90
    assert traced > 3, "traced again for other addresses"


def test_a_lease_is_one_thread_s_at_a_time() -> None:
    refused: list[BaseException] = []
    program = graph.Program("shared")

    @program.eager()
    def function(call: graph.Call) -> None:
        def other() -> None:
            for use in (lease.launch, lease.close, lambda: lease.slot):
                try:
                    use()
                except keel.StateError as error:
                    refused.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join(60)

    executable = graph.Executable(program)
    lease = executable.acquire()
    lease.launch()
    lease.close()
    assert ["another call works with this lease" in str(error) for error in refused] == [True] * 3


def test_waiting_for_a_slot_can_be_interrupted() -> None:
    program, _ = adding()
    executable = graph.Executable(program, slots=1)
    executable.bind(w=keel.zeros(N), x=keel.zeros(N))
    lease = executable.acquire()

    def interrupt(number: int, frame: object) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptedError):
            executable.step()
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptedError):
            executable.acquire()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    lease.close()
    executable.step(timeout=60)


# --- The end --------------------------------------------------------------------------------------


def test_a_circle_through_a_function_is_collected() -> None:
    class Model:
        def __init__(self) -> None:
            program = graph.Program("model")
            program.binding("y", 16, access="out", policy="in-place")
            program.traced(writes=["y"])(self.forward)
            program.call(self.count)
            self.executable = graph.Executable(program)

        def forward(self, call: graph.Call) -> None:
            pass

        def count(self) -> None:
            pass

    model = Model()
    for _ in range(3):
        model.executable.step()
    model.executable.synchronize(60)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_a_program_that_ends_with_work_under_way(run: Run) -> None:
    result = run(
        """
import keel
from keel import graph
program = graph.Program("ends")
program.binding("y", 1 << 20, access="out", policy="in-place")
program.fill("y", 1)
program.traced(writes=["y"])(lambda call: None)
program.call(lambda: None)
executable = graph.Executable(program)
for _ in range(20):
    step = executable.step()
held = executable.step(hold="y")["y"]
"""
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_a_forked_child_is_refused_and_ends(run: Run) -> None:
    result = run(
        """
import os
import keel
from keel import graph
program = graph.Program("forked")
program.binding("y", 64, access="out", policy="in-place")
program.traced(writes=["y"])(lambda call: None)
program.fill("y", 5)
executable = graph.Executable(program)
held = [executable.step(hold="y")["y"]]
child = os.fork()
if child == 0:
    for use in (executable.step, executable.acquire, held[0].tobytes):
        try:
            use()
        except keel.ForkedProcessError:
            continue
        os._exit(1)
    held.clear()
    del executable, program
else:
    assert os.waitpid(child, 0)[1] == 0
    assert held[0].tobytes() == executable.step(hold="y")["y"].tobytes() == bytes([5]) * 64
"""
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_a_lost_device() -> None:
    program = graph.Program("lost", device=1)
    program.binding("y", 16, access="out", policy="in-place")
    program.fill("y", 1)
    executable = graph.Executable(program)
    stream = keel.device.Stream(1)
    executable.step()
    with keel.testing.hold(stream), executable.acquire(stream) as lease:
        lease.launch()
        assert not lease.done
        keel.testing.lose_device(1)
        with pytest.raises(keel.DeviceLostError):
            bool(lease.done)
    with pytest.raises(keel.DeviceLostError):
        executable.step()
    del lease, executable, program, stream
    keel.device.forget(1)
