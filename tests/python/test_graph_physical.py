"""Graphs: physical memory that is remapped, and programs that are recorded again in every step."""

from __future__ import annotations

import threading
from typing import Any

import keel
import keel.testing
import numpy as np
import pytest
from graph_programs import NBYTES, N, adding, ramp
from keel import graph

PAGE = int(keel.device.capabilities()["granularity"])


def summing(policy: str, *, device: str | None = None) -> graph.Program:
    """y = x + w by one kernel."""
    program = graph.Program("summing", device=device)
    program.binding("x", shape=N, dtype="float32", policy=policy)
    program.binding("w", shape=N, dtype="float32", access="resident")
    program.binding("y", shape=N, dtype="float32", access="out", policy=policy)
    add = graph.standard_kernels(device)["keel_add"]
    program.kernel(add, "x", "w", graph.write("y"), graph.u64(N), block=64)
    return program


def reserved() -> int:
    keel.memory.empty_cache()
    return keel.memory.memory_reserved()


# --- Physical memory ------------------------------------------------------------------------------


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("policy", ["remap", "copy"])
def test_steps_with_memory_that_is_remapped(policy: str, eager: bool) -> None:
    executable = graph.Executable(summing(policy), slots=1, eager=eager)
    executable.bind(w=keel.from_numpy(ramp(1000)))
    inputs = [graph.PhysicalMemory(PAGE) for _ in range(3)]
    outputs = [graph.PhysicalMemory(PAGE) for _ in range(2)]
    for step in range(8):
        x, y = inputs[step % 3], outputs[step % 2]
        x.array(N, "float32").copy_from(ramp(step))
        done = executable.step(x=x, y=y)
        np.testing.assert_array_equal(y.array(N, "float32").numpy(), ramp(step) + ramp(1000))
        assert done.report["remapped"] == (2 if policy == "remap" else 0)
        assert done.report["copied_in"] == (NBYTES if policy == "copy" else 0)
        assert done.report["recorded"] == (1 if step == 0 and not eager else 0)
    assert executable.policy("x") == policy
    executable.close()
    for memory in [*inputs, *outputs]:
        memory.close()


def test_memory_on_another_stream_than_the_step() -> None:
    executable = graph.Executable(summing("remap"))
    executable.bind(w=keel.from_numpy(ramp(0)))
    first, other = keel.device.Stream(), keel.device.Stream()
    source = keel.from_numpy(ramp(5), stream=first)
    with (
        keel.device.Stream() as own,
        graph.PhysicalMemory(PAGE) as x,
        graph.PhysicalMemory(PAGE) as y,
    ):
        with keel.testing.hold(own):
            x.array(N, "float32").copy_from(source)  # queued
            step = executable.step(stream=other, x=x, y=y)
        assert step.number == 1
        np.testing.assert_array_equal(y.array(N, "float32").numpy(), ramp(5) + ramp(0))
    executable.close()


def test_an_executable_keeps_what_it_has_mapped() -> None:
    before = reserved()
    executable = graph.Executable(summing("remap"), slots=1)
    executable.bind(w=keel.from_numpy(ramp(0)))
    y = graph.PhysicalMemory(PAGE)
    with graph.PhysicalMemory(PAGE) as x:
        x.array(N, "float32").copy_from(ramp(7))
        executable.bind(x=x, y=y)
    assert x.closed
    for _ in range(2):
        executable.step()
        np.testing.assert_array_equal(y.array(N, "float32").numpy(), ramp(7) + ramp(0))
    y.close()
    executable.close()
    del executable
    assert reserved() == before


def test_the_address_goes_with_the_last_array() -> None:
    before = reserved()
    memory = graph.PhysicalMemory(2 * PAGE)
    assert memory.nbytes == 2 * PAGE
    assert memory.device == "sim:0"
    assert repr(memory) == f"<keel.graph.PhysicalMemory {2 * PAGE} bytes on sim:0>"
    whole = memory.array()
    assert whole.nbytes == 2 * PAGE
    assert whole.address == memory.address
    memory.close()
    memory.close()
    assert repr(memory) == "<keel.graph.PhysicalMemory closed>"
    whole.copy_from(bytes(2 * PAGE))
    assert reserved() == before + 2 * PAGE
    whole.close()
    assert reserved() == before


def test_the_end_of_memory_waits_for_the_device() -> None:
    with keel.device.Stream() as stream:
        memory = graph.PhysicalMemory(PAGE)
        with keel.testing.hold(stream):
            with memory.array() as array:
                array._storage.clear()
            closing = threading.Thread(target=memory.close)
            closing.start()
        closing.join(60)
        assert not closing.is_alive()
        keel.device.synchronize(timeout=60)
        assert keel.zeros(4).tobytes() == bytes(16), "the device is in order"


def test_memory_that_makes_no_sense() -> None:
    message = "physical memory of 1000 bytes: it comes in multiples of the device's granularity"
    with pytest.raises(keel.InvalidArgumentError, match=message):
        graph.PhysicalMemory(1000)
    with pytest.raises(keel.InvalidArgumentError, match="in multiples of"):
        graph.PhysicalMemory(PAGE + 4096)
    with pytest.raises(keel.OutOfMemoryError):
        graph.PhysicalMemory(1 << 40)
    executable = graph.Executable(summing("remap"))
    message = "binding 'x' is remapped: the buffer must bring its physical memory"
    memory = graph.PhysicalMemory(PAGE)
    for buffer in (keel.zeros(N), memory.array(N, "float32"), memory.address):
        with pytest.raises(keel.InvalidArgumentError, match=message):
            executable.bind(x=buffer)
    with (
        graph.PhysicalMemory(2 * PAGE) as large,
        pytest.raises(keel.InvalidArgumentError, match=r"'x' .* must have 2 MiB, not 4 MiB"),
    ):
        executable.bind(x=large)
    with (
        graph.PhysicalMemory(PAGE, device="sim:1") as foreign,
        pytest.raises(ValueError, match="'x' is on sim:1, the program on sim:0"),
    ):
        executable.bind(x=foreign)
    with pytest.raises(ValueError, match=f"{PAGE + 1} bytes are more than .* has, {PAGE}"):
        memory.array(PAGE + 1)
    memory.close()
    for use in (lambda: executable.bind(x=memory), lambda: memory.array(), lambda: memory.address):
        with pytest.raises(ValueError, match="this physical memory was closed"):
            use()


# --- Recorded again -------------------------------------------------------------------------------


@pytest.mark.parametrize("update", [False, True])
def test_the_program_recorded_again_in_every_step(update: bool) -> None:
    program, calls = adding(out="copy")
    weights = keel.from_numpy(ramp(1000))
    inputs = [keel.from_numpy(ramp(0)) for _ in range(3)]
    with graph.Rerecorder(program, update=update) as rerecorder:
        assert rerecorder.program is program
        for step in range(7):
            x, y = inputs[step % 3], keel.empty((2, N // 2))
            x.copy_from(ramp(step))
            rerecorder.run(x=x, w=weights, y=y)
            np.testing.assert_array_equal(y.numpy().reshape(N), 2 * ramp(step) + ramp(1000))
        assert rerecorder.stats() == {
            "steps": 7,
            "captured": 6,  # the first one warms up
            "instantiated": 1 if update else 6,
            "updated": 5 if update else 0,
        }
    assert [call.capturing for call in calls] == [False] + [True] * 6


def test_a_step_that_is_recorded_again_is_ordered_with_its_arrays() -> None:
    first, other = keel.device.Stream(), keel.device.Stream()
    source = keel.from_numpy(ramp(10), stream=first)
    with keel.device.Stream() as own, graph.Rerecorder(summing("auto")) as rerecorder:
        x, w, y = (keel.from_numpy(ramp(first)) for first in (1, 2, 0))
        with keel.testing.hold(own):
            x.copy_from(source)  # queued
            rerecorder.run(stream=other, x=x, w=w, y=y)
        np.testing.assert_array_equal(y.numpy(), ramp(10) + ramp(2))


def test_physical_memory_is_recorded_at_its_own_address() -> None:
    w = keel.from_numpy(ramp(3))
    with (
        graph.PhysicalMemory(PAGE) as x,
        graph.PhysicalMemory(PAGE) as y,
        graph.Rerecorder(summing("remap")) as rerecorder,
    ):
        x.array(N, "float32").copy_from(ramp(4))
        rerecorder.run(x=x, w=w, y=y)
        np.testing.assert_array_equal(y.array(N, "float32").numpy(), ramp(4) + ramp(3))


def test_recording_again_that_makes_no_sense() -> None:
    rerecorder = graph.Rerecorder(summing("auto"))
    x, w, y = keel.zeros(N), keel.zeros(N), keel.zeros(N)
    with pytest.raises(keel.InvalidArgumentError, match="'y' of program 'summing' has no address"):
        rerecorder.run(x=x, w=w)
    with pytest.raises(keel.InvalidArgumentError, match=r"binding 'y' needs 1 KiB; .* has 4 B"):
        rerecorder.run(x=x, w=w, y=keel.zeros(1))
    with pytest.raises(keel.NotFoundError, match="z"):
        rerecorder.run(x=x, w=w, y=y, z=y)
    with pytest.raises(ValueError, match="'x' is on sim:1, the program on sim:0"):
        rerecorder.run(x=keel.zeros(N, device="sim:1"), w=w, y=y)
    with (
        keel.device.Stream("sim:1") as foreign,
        pytest.raises(ValueError, match="the stream is of sim:1, the program of sim:0"),
    ):
        rerecorder.run(stream=foreign, x=x, w=w, y=y)
    assert rerecorder.stats()["steps"] == 0
    rerecorder.close()
    rerecorder.close()
    with pytest.raises(ValueError, match="this re-recorder was closed"):
        rerecorder.run(x=x, w=w, y=y)


def test_what_a_function_raises_comes_out_of_the_step() -> None:
    program = graph.Program("raises")
    program.binding("y", N, access="out")
    inside: list[Any] = []

    @program.traced(writes=["y"])
    def fails(call: graph.Call) -> None:
        with pytest.raises(keel.StateError, match="another call works with this re-recorder"):
            inside[0].run(y=0)
        raise LookupError("on purpose")

    with graph.Rerecorder(program) as rerecorder:
        inside.append(rerecorder)
        y = keel.zeros(N, "uint8")
        with pytest.raises(LookupError, match="on purpose"):
            rerecorder.run(y=y)
        inside.clear()
