"""Graphs: programs, executables, steps."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import keel
import keel.testing
import numpy as np
import pytest
from graph_programs import NBYTES, N, adding, ramp
from keel import graph

# --- Steps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("policy", ["copy", "auto", "retrace"])
def test_steps_with_inputs_that_move(policy: str, eager: bool) -> None:
    program, calls = adding(policy)
    executable = graph.Executable(program, eager=eager)
    executable.bind(w=keel.from_numpy(ramp(1000)))
    inputs = [keel.from_numpy(ramp(0)) for _ in range(3)]
    for step in range(1, 10):
        x = inputs[step % 3]
        x.copy_from(ramp(step))
        done = executable.step(x=x, hold="y")
        y = done["y"]
        assert (y.shape, y.dtype, y.device) == ((2, N // 2), "float32", "sim:0")
        np.testing.assert_array_equal(y.numpy().reshape(N), 2 * ramp(step) + ramp(1000))
        assert done.number == done.report["step"] == step
        assert done.report["eager"] == (eager or step == 1)
    assert executable.stats()["steps"] == 9
    if eager:
        assert len(calls) == 9
    elif policy != "retrace":
        assert len(calls) == 3, "a warm-up, and one for each slot"
        assert [call.capturing for call in calls] == [False, True, True]
        # `auto` has graphs that copy and graphs that do not.
        assert executable.stats()["graphs_recorded"] == (4 if policy == "auto" else 2)
        assert executable.policy("x") in (("copy",) if policy == "copy" else ("copy", "patch"))


def test_outputs_where_the_caller_wants_them() -> None:
    program, _ = adding(out="copy")
    executable = graph.Executable(program)
    executable.bind(w=keel.zeros(N))
    for step in range(6):
        x, y = keel.from_numpy(ramp(step)), keel.empty((2, N // 2))
        executable.step(x=x, y=y)
        np.testing.assert_array_equal(y.numpy().reshape(N), 2 * ramp(step))


def test_every_explicit_command() -> None:
    called = threading.Semaphore(0)
    program = graph.Program("explicit")
    assert program.binding("a", 64, access="in-out") == 0
    assert program.binding("b", nbytes=64, access="out") == 1
    program.fill(graph.write("a", 0, 16), 0x01020304, 4)
    program.copy(graph.write("b", 32), graph.read("a", 0, 32))
    program.fill(graph.write("b", nbytes=32), 7)
    program.call(lambda: called.release())
    executable = graph.Executable(program, slots=1)
    a, b = keel.from_numpy(bytes(range(64))), keel.zeros(64, "uint8")
    for _ in range(3):
        executable.step(a=a, b=b)
        assert called.acquire(timeout=60)
    filled = b"\4\3\2\1" * 4 + bytes(range(16, 64))
    assert a.tobytes() == filled
    assert b.tobytes() == b"\7" * 32 + filled[:32]


def test_reports_say_what_was_done() -> None:
    program, _ = adding("copy")
    executable = graph.Executable(program, slots=1, warm_up=0)
    x = keel.from_numpy(ramp(0))
    executable.bind(w=keel.zeros(N))
    report = executable.step(x=x).report
    assert report["recorded"] == report["traced"] == 1
    recorded = next(action for action in report.actions if action.kind == "recorded")
    assert recorded.reason == "the slot had no graph yet"
    assert (recorded.binding, recorded.count) == (None, 1)
    assert recorded.host_ns > 0
    assert "recorded: the slot had no graph yet" in str(report)
    assert "step 1" in repr(report)
    executable.synchronize(60)
    steady = executable.step(x=x).report
    assert steady.actions == []
    assert (steady["graphs"], steady["copied_in"]) == (1, NBYTES)
    other = keel.from_numpy(ramp(1))
    executable.synchronize(60)  # or it waits for the table, and says so
    (moved,) = executable.step(x=other).report.actions
    assert (moved.kind, moved.binding) == ("rebound", "x")
    stats = executable.stats()
    assert (stats["steps"], stats["rows_rebound"], stats["slot_bytes"] > 2 * NBYTES) == (3, 2, True)
    assert stats["host_ns_recorded"] > 0 == stats["host_ns_remapped"]
    executable.close()
    assert executable.stats()["slot_bytes"] == 0
    assert executable.step(x=x).report["recorded"] == 1, "it may be used again"


def test_eager_functions_are_called_in_every_step() -> None:
    program = graph.Program("island")
    program.binding("x", 16)
    program.binding("y", 16, access="out", policy="in-place")
    program.copy("y", "x")
    seen: list[bool] = []

    def island(call: graph.Call) -> None:
        seen.append(call.capturing)
        assert call.address("y") == call.addresses[0]
        call["y"].copy_from(bytes(16))

    assert program.eager(writes="y")(island) is island
    program.copy(graph.write("y", 0, 8), graph.read("x", 0, 8))
    executable = graph.Executable(program)
    for _ in range(4):
        step = executable.step(x=keel.from_numpy(b"x" * 16), hold=["y"])
        assert step["y"].tobytes() == b"x" * 8 + bytes(8)
        assert step.report["graphs"] == 2
    assert seen == [False] * 4


def test_a_graph_of_a_library_s_is_taken_by_its_number() -> None:
    program = graph.Program("library")
    program.binding("x", NBYTES, access="out", policy="in-place")
    given: list[object] = [None, 0x123, "a graph"]
    eager: list[int] = []

    def record(call: graph.Call) -> object:
        if call.capturing:
            return given[0]
        eager.append(call.address("x"))
        return None

    program.recorded(writes=["x"])(record)
    executable = graph.Executable(program, slots=1)
    executable.step()
    assert len(eager) == 1  # the first step warms up
    with pytest.raises(keel.StateError, match="'record': it gave no graph"):
        executable.step()
    given.pop(0)
    with pytest.raises(keel.InvalidArgumentError, match="0x123 is not the handle of a graph"):
        executable.step()
    given.pop(0)
    with pytest.raises(keel.Error, match="'record'"):
        executable.step()
    assert len(eager) == 1


def test_leases() -> None:
    program, _ = adding()
    executable = graph.Executable(program)
    w, x = keel.from_numpy(ramp(5)), keel.from_numpy(ramp(1))
    for step in range(4):
        with executable.acquire(timeout=60) as lease:
            assert lease.slot == step % 2
            lease.bind(x=x, w=(w.address, w.nbytes))
            assert lease.address("y") == lease.address(3) != 0
            lease.launch()
            lease.wait(60)
            assert lease.done
            y = lease.hold("y")
            assert y.address == lease.address("y")
            assert lease.report["step"] == step + 1
        np.testing.assert_array_equal(y.numpy().reshape(N), 2 * ramp(1) + ramp(5))
        y.close()
    with pytest.raises(ValueError, match="closed"):
        lease.launch()
    lease.close()


def test_the_quick_way_with_numbers() -> None:
    program, _ = adding()
    executable = graph.Executable(program)
    stream = keel.device.Stream()
    with stream:
        w, x = keel.from_numpy(ramp(5)), keel.from_numpy(ramp(1))
    for _ in range(4):
        lease = executable.acquire(stream.handle)
        lease.bind_addresses([x.address, w.address])
        lease.launch()
        held = lease.held(3)
        lease.close()
        assert held.nbytes == NBYTES
        assert held.address == held.array().address
        np.testing.assert_array_equal(held.array().numpy().reshape(N), 2 * ramp(1) + ramp(5))
        held.close()
    lease = executable.acquire(stream.handle)
    with pytest.raises(ValueError, match="5 addresses for 4 bindings"):
        lease.bind_addresses([1] * 5)
    with pytest.raises(TypeError, match="list of addresses"):
        lease.bind_addresses(7)  # type: ignore[arg-type]
    with pytest.raises(keel.StateError, match="'y'"):
        lease.bind_addresses((None, None, None, 64))
    lease.close()


# --- Held outputs ---------------------------------------------------------------------------------


def test_an_output_keeps_its_slot_until_it_is_gone() -> None:
    program, _ = adding()
    executable = graph.Executable(program, slots=1)
    executable.bind(w=keel.zeros(N), x=keel.from_numpy(ramp(3)))
    step = executable.step(hold="y")
    y = step["y"]
    del step
    with pytest.raises(keel.WaitTimeoutError, match="1 hold outputs"):
        executable.step(timeout=0.01)
    with pytest.raises(keel.StateError, match="in use"):
        executable.close()
    shared = keel.from_dlpack(y)
    del y
    with pytest.raises(keel.WaitTimeoutError, match="1 hold outputs"):
        executable.step(timeout=0.01)
    np.testing.assert_array_equal(shared.numpy().reshape(N), 2 * ramp(3))
    shared.close()
    executable.step(timeout=60)


def test_an_output_outlives_everything() -> None:
    program, _ = adding()
    executable = graph.Executable(program)
    executable.bind(w=keel.zeros(N), x=keel.from_numpy(ramp(3)))
    y = executable.step(hold="y")["y"]
    del executable, program
    gc.collect()
    np.testing.assert_array_equal(y.numpy().reshape(N), 2 * ramp(3))


def test_the_next_step_comes_after_those_who_read() -> None:
    program, _ = adding()
    executable = graph.Executable(program, slots=1)
    executable.bind(w=keel.zeros(N))
    first, second = keel.from_numpy(ramp(1)), keel.from_numpy(ramp(100))
    for _ in range(3):  # until it replays
        executable.step(x=first)
    # Something that only has the address, on a stream that nothing orders.
    reading = graph.Program("reading")
    reading.binding("a", NBYTES)
    reading.binding("b", NBYTES, dtype="float32", access="out", policy="in-place")
    reading.copy("b", "a")
    reads = graph.Executable(reading)
    reader = keel.device.Stream()
    y = executable.step(x=first, hold="y")["y"]
    executable.synchronize(60)
    with keel.testing.hold(reader):
        seen = reads.step(stream=reader, a=y.address, hold="b")
        y.record_stream(reader)
        y.close()
        executable.step(x=second)
        with pytest.raises(keel.WaitTimeoutError):
            executable.synchronize(0.02)
    np.testing.assert_array_equal(seen["b"].numpy(), 2 * ramp(1))


def test_only_what_is_held_is_there() -> None:
    program, _ = adding()
    executable = graph.Executable(program)
    executable.bind(w=keel.zeros(N), x=keel.zeros(N))
    step = executable.step()
    with pytest.raises(KeyError, match="hold='y'"):
        step["y"]
    with pytest.raises(ValueError, match="no binding 'z'"):
        executable.step(hold="z")
    with pytest.raises(keel.StateError, match="'x' is no output"):
        executable.step(hold="x")


# --- Streams --------------------------------------------------------------------------------------


def test_arrays_of_other_streams_are_ordered_with_the_step() -> None:
    program, _ = adding(out="copy")
    executable = graph.Executable(program)
    weights, inputs, outputs, steps = (keel.device.Stream() for _ in range(4))
    w = keel.from_numpy(ramp(10), stream=weights)
    executable.bind(w=w)
    for step in range(4):
        x = keel.empty(N, stream=inputs)
        y = keel.zeros((2, N // 2), stream=outputs)
        values = keel.from_numpy(ramp(step), stream=inputs)
        with keel.testing.hold(inputs):
            x.copy_from(values)
            executable.step(stream=steps, x=x, y=y)
            assert not steps.query()
        # On the stream of y, which waits for the step.
        np.testing.assert_array_equal(y.numpy().reshape(N), 2 * ramp(step) + ramp(10))


def test_outputs_that_stay_bound_are_ordered_too() -> None:
    program, _ = adding(out="copy")
    executable = graph.Executable(program)
    outputs, steps = keel.device.Stream(), keel.device.Stream()
    y = keel.zeros((2, N // 2), stream=outputs)
    executable.bind(w=keel.zeros(N), y=y)
    for step in range(4):
        with steps:
            x = keel.from_numpy(ramp(step))
        with keel.testing.hold(steps):
            executable.step(stream=steps, x=x)
            assert not outputs.query(), "it waits for the step"
        np.testing.assert_array_equal(y.numpy().reshape(N), 2 * ramp(step))


def test_the_current_stream_is_the_step_s() -> None:
    program, _ = adding()
    executable = graph.Executable(program)
    executable.bind(w=keel.zeros(N), x=keel.zeros(N))
    with keel.device.Stream() as stream:
        assert executable.step(hold="y")["y"].stream.handle == stream.handle
    assert executable.step(hold="y")["y"].stream.handle != stream.handle
    other = keel.device.Stream(1)
    with pytest.raises(ValueError, match=r"the stream is of sim:1, the program of sim:0"):
        executable.step(stream=other)


def test_what_is_bound_is_kept() -> None:
    program, _ = adding()
    executable = graph.Executable(program)
    executable.bind(w=keel.from_numpy(ramp(7)), x=keel.zeros(N))
    gc.collect()
    others = [keel.from_numpy(ramp(99)) for _ in range(4)]
    for _ in range(3):
        np.testing.assert_array_equal(executable.step(hold="y")["y"].numpy().reshape(N), ramp(7))
    del others


# --- Memory of others -----------------------------------------------------------------------------


class Foreign:
    """A tensor as other libraries show theirs."""

    def __init__(self, array: keel.Array, **changes: object) -> None:
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": "<f4",
            "data": (array.address, True),
            "strides": None,
            "version": 3,
            **changes,
        }


def test_addresses_and_tensors_of_other_libraries() -> None:
    program, _ = adding()
    executable = graph.Executable(program)
    w, x = keel.from_numpy(ramp(5)), keel.from_numpy(ramp(1))
    executable.bind(w=w)
    for buffer in (
        x.address,
        (x.address, x.nbytes),
        (x.address, x.nbytes, 3),
        Foreign(x),
        Foreign(x, strides=(4,)),
    ):
        y = executable.step(x=buffer, hold="y")["y"]
        np.testing.assert_array_equal(y.numpy().reshape(N), 2 * ramp(1) + ramp(5))
    with pytest.raises(BufferError, match="contiguous"):
        executable.step(x=Foreign(x, strides=(8,)))
    with pytest.raises(keel.InvalidArgumentError, match="'x' needs 1 KiB"):
        executable.step(x=Foreign(x, shape=(N - 1,)))
    with pytest.raises(keel.InvalidArgumentError, match="'x' needs 1 KiB"):
        executable.step(x=(x.address, 4))
    with pytest.raises(TypeError, match="generation"):
        executable.step(x=(x.address,))
    with pytest.raises(TypeError, match=r"a buffer is a keel\.Array, an address"):
        executable.step(x="here")
    with pytest.raises(BufferError, match=r"program on sim:0"):
        executable.step(x=ramp(1))  # host memory
    elsewhere = keel.zeros(N, device=1)
    with pytest.raises(ValueError, match="'x' is on sim:1, the program on sim:0"):
        executable.step(x=elsewhere)
    with pytest.raises(TypeError, match="the address of 'x' must be a number from 0 on, not -1"):
        executable.step(x=-1)
    with pytest.raises(TypeError, match=r"the size of 'x' must be a number .* not '4'"):
        executable.step(x=(x.address, "4"))
    with pytest.raises(TypeError, match="a stream must be a number from 0 on, not 'default'"):
        executable.step(x=x, stream="default")  # type: ignore[arg-type]
    with pytest.raises(keel.NotFoundError, match="no binding 'z': it has x, w, s, y"):
        executable.step(z=x)
    with pytest.raises(keel.StateError, match="x"):
        executable.step()
    elsewhere.close()
    with pytest.raises(ValueError, match="closed"):
        executable.step(x=elsewhere)
    executable.step(x=x)


def test_tensors_by_dlpack(cuda: str) -> None:
    class Tensor:
        def __init__(self, array: keel.Array) -> None:
            self._array = array

        def __dlpack_device__(self) -> tuple[int, int]:
            return self._array.__dlpack_device__()

        def __dlpack__(self, **arguments: Any) -> object:
            assert arguments["stream"] == -1
            return self._array.__dlpack__(**arguments)

    program = graph.Program("dlpack", device=cuda)
    program.binding("x", shape=N, dtype="float32")
    program.binding("y", shape=N, dtype="float32", access="out", policy="in-place")
    program.copy("y", "x")
    executable = graph.Executable(program)
    for step in range(4):
        x = keel.from_numpy(ramp(step), device=cuda)
        y = executable.step(x=Tensor(x), hold="y")["y"]
        np.testing.assert_array_equal(y.numpy(), ramp(step))
        assert y.__cuda_array_interface__["data"] == (y.address, False)
        taken = keel.from_dlpack(Tensor2(y))
        assert taken.address == y.address
    with pytest.raises(BufferError, match=r"sim:0|of DLPack"):
        executable.step(x=keel.zeros(N, device=0).numpy())
    executable.synchronize(60)


class Tensor2:
    """Another library's view of ours, which it keeps."""

    def __init__(self, array: keel.Array) -> None:
        self._array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __dlpack__(self, **arguments: Any) -> object:
        return self._array.__dlpack__(**arguments)


# --- Mistakes -------------------------------------------------------------------------------------


def test_bindings_that_make_no_sense() -> None:
    program = graph.Program("wrong")
    program.binding("x", 16)
    for arguments, error, message in (
        (("x", 16), ValueError, "a binding 'x' already"),
        (("stream", 16), ValueError, "an argument of Executable.step"),
        (("a",), TypeError, "either nbytes or a shape"),
    ):
        with pytest.raises(error, match=message):
            program.binding(*arguments)
    with pytest.raises(TypeError, match="a dtype as well"):
        program.binding("a", shape=4)
    with pytest.raises(ValueError, match="no whole number of float32"):
        program.binding("a", 15, dtype="float32")
    with pytest.raises(ValueError, match=r"no access 'inout'.*: there are in, out"):
        program.binding("a", 16, access="inout")
    with pytest.raises(keel.InvalidArgumentError, match="no policy 'alias'"):
        program.binding("a", 16, policy="alias")


def test_commands_that_make_no_sense() -> None:
    program = graph.Program("wrong")
    program.binding("x", 16)
    kernels = graph.standard_kernels()
    with pytest.raises(ValueError, match="no binding 'z'; there are: x"):
        program.copy("x", "z")
    with pytest.raises(TypeError, match="an operand is the name of a binding"):
        program.fill(7, 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"how wide is 7\? Say keel.graph.u32"):
        program.kernel(kernels["keel_fill"], "x", 7)
    with pytest.raises(ValueError, match="1 to 16 bytes"):
        program.kernel(kernels["keel_fill"], bytes(17))
    with pytest.raises(ValueError, match="a grid has 1 to 3 lengths"):
        program.kernel(kernels["keel_fill"], grid=())
    with pytest.raises(ValueError, match="the kernel is of sim:1, the program of sim:0"):
        program.kernel(graph.standard_kernels(1)["keel_fill"])
    with pytest.raises(keel.NotFoundError, match="keel_nothing"):
        kernels["keel_nothing"]
    with pytest.raises(ValueError, match="no kernel"):
        graph.Kernel.borrow(0)
    with pytest.raises(keel.NotFoundError):
        graph.Module("/nowhere.so")
    with pytest.raises(keel.InvalidArgumentError):
        graph.Module(b"no library")
    program.fill("x", 1)
    with pytest.raises(keel.InvalidArgumentError, match="command 0: writes 'x'"):
        program.build()


def test_a_program_is_built_once() -> None:
    program = graph.Program("once")
    program.binding("s", 700, access="scratch")
    assert program.scratch_bytes == 1024
    program.build()
    with pytest.raises(keel.StateError, match="was built"):
        program.binding("y", 16)
    with pytest.raises(keel.StateError, match="was built"):
        program.traced()(lambda call: None)


def test_borrowed_kernels_are_kernels() -> None:
    kernels = graph.standard_kernels()
    fill = graph.Kernel.borrow(kernels["keel_fill"].handle)
    program = graph.Program("borrowed")
    program.binding("y", 64, access="out", policy="in-place")
    program.kernel(fill, "y", graph.u32(0x05060708), graph.u64(16))
    assert graph.Executable(program).step(hold="y")["y"].tobytes() == b"\x08\x07\x06\x05" * 16


def test_values_have_their_width() -> None:
    assert (graph.u32(1), graph.i32(-1)) == (b"\1\0\0\0", b"\xff" * 4)
    assert (graph.u64(1), graph.i64(-1)) == (b"\1" + bytes(7), b"\xff" * 8)
    assert (graph.f32(1.0), graph.f64(1.0)) == (np.float32(1).tobytes(), np.float64(1).tobytes())


def test_options_that_make_no_sense() -> None:
    program, _ = adding()
    with pytest.raises(keel.InvalidArgumentError, match="0 slots"):
        graph.Executable(program, slots=0)
    with pytest.raises(keel.InvalidArgumentError, match="kept_traces is 0"):
        graph.Executable(program, kept_traces=0)
    with pytest.raises(ValueError, match="warm_up"):
        graph.Executable(program, warm_up=-1)
    with pytest.raises(keel.InvalidArgumentError, match="of scratch; the arena has"):
        graph.Executable(program, scratch=graph.ScratchArena(512))
    for made in (graph.Kernel, keel.Array):
        with pytest.raises(TypeError):
            made()


def test_memory_that_executables_share() -> None:
    budget = graph.MemoryBudget(20 << 10)
    arena = graph.ScratchArena(NBYTES)
    assert (budget.limit, arena.nbytes) == (20 << 10, NBYTES)
    executables = [
        graph.Executable(adding(name=name)[0], budget=budget, scratch=arena) for name in "abcd"
    ]
    x, w = keel.from_numpy(ramp(1)), keel.from_numpy(ramp(2))
    for _ in range(3):
        for executable in executables:
            y = executable.step(x=x, w=w, hold="y")["y"]
            np.testing.assert_array_equal(y.numpy().reshape(N), 2 * ramp(1) + ramp(2))
            y.close()
            assert 0 < budget.used <= budget.limit
    assert sum(executable.stats()["evictions"] for executable in executables) > 0
    small = graph.Executable(adding()[0], budget=graph.MemoryBudget(16))
    with pytest.raises(keel.OutOfMemoryError, match="budget"):
        small.step(x=x, w=w)


def test_an_aliased_output_is_read_elsewhere_and_cannot_be_written() -> None:
    x = keel.from_numpy(ramp(1))
    for aliased in (True, False):
        executable = graph.Executable(adding()[0], alias_outputs=aliased)
        executable.bind(w=keel.from_numpy(ramp(2)))
        for _ in range(3):
            with executable.acquire() as lease:
                lease.bind(x=x)
                written = lease.address("y")
                lease.launch()
                y = lease.hold("y")
            np.testing.assert_array_equal(y.numpy().reshape(N), 2 * ramp(1) + ramp(2))
            assert (y.address != written) == aliased
            if aliased:
                with pytest.raises(keel.Error):
                    y.copy_from(keel.zeros((2, N // 2), "float32"))
            else:
                y.copy_from(keel.zeros((2, N // 2), "float32"))
            y.close()


def test_bytes_beside_an_output_keep_what_they_are_told_to() -> None:
    program, _ = adding()
    executable = graph.Executable(program, slots=1, eager=True)
    executable.bind(w=keel.zeros(N))
    held = executable.step(x=keel.zeros(N), hold="y").held("y")

    class Owner:
        pass

    owner = Owner()
    gone = weakref.ref(owner)
    view = held._raw.view_beside(held.address, 16, owner)
    del owner
    assert (view.address, view.size) == (held.address, 16)
    assert gone() is not None
    # Dropped by another thread, or closed: it goes.
    thread = threading.Thread(target=view.close)
    thread.start()
    thread.join()
    assert gone() is None
