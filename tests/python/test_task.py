"""keel.task: images, memory on workers, functions."""

from __future__ import annotations

import array
import gc
import threading
import weakref
from typing import Any

import keel
import keel.testing
import numpy as np
import pytest
from keel import task
from keel.task import In, InOut, Out
from task_callables import code_of, launch_add

# --- Images -------------------------------------------------------------------------------------


def test_an_image_is_what_was_put_in() -> None:
    image = task.Image.build(b"code", parts=[b"kernels", "keel"], kernels=["x", (1, "keel_add")])
    assert image.kernels == ["x", "keel_add"]
    assert image.orchestrated
    again = task.Image(bytes(image))
    assert bytes(again) == bytes(image)
    assert bytes(again).startswith(b"KEELIMG\1")
    kernels = task.Image.build(kernels=["keel_add"])
    assert not kernels.orchestrated
    assert task.Image.build().kernels == []
    with pytest.raises(keel.InvalidArgumentError, match="checksum"):
        task.Image(bytes(image)[:-9] + b"?" + bytes(image)[-8:])
    with pytest.raises(keel.InvalidArgumentError, match="kernel 0 is of part 3"):
        task.Image.build(kernels=[(3, "x")])


def test_an_image_runs_on_either_transport(either: task.Orchestrator) -> None:
    add = either.register(task.Image.build(code_of("Add"), kernels=["keel_add"]))
    a = np.arange(1000, dtype="float32")
    b = either.upload(1, np.full(1000, 0.5, "float32"))
    c = np.zeros(1000, "float32")
    done = either.submit(add, In(a), b, Out(c))
    assert done.result(60) is c
    assert np.array_equal(c, a + 0.5)
    assert (done.worker, done.done, done.error) == (1, True, None)
    # By calling it, and with a result on the worker.
    sums = either.malloc(1, 1000)
    add(a, b, Out(sums)).wait(60)
    assert np.array_equal(sums.numpy(), c)
    report = either.report()[1]
    assert (report.device, report.up, report.tasks, report.restarts) == ("sim:1", True, 2, 0)
    assert report.bytes_from_device == 2 * 4000
    assert report.uploads == 1
    assert report.callables == 1
    add.unregister()
    assert either.report()[1].callables == 0
    with pytest.raises(keel.NotFoundError):
        add(a, b, Out(sums))
    with pytest.raises(keel.InvalidArgumentError, match="register it with a function"):
        either.register(task.Image.build(kernels=["keel_add"]))


def test_orchestration_code_that_fails(either: task.Orchestrator) -> None:
    fail = either.register(task.Image.build(code_of("Fail")))
    first = either.submit(fail)
    with pytest.raises(keel.InvalidArgumentError, match="told to fail") as raised:
        first.wait(60)
    error = first.error
    assert isinstance(error, keel.InvalidArgumentError)
    assert str(error) == str(raised.value)
    assert "failed" in repr(first)
    assert either.report()[0].restarts == 0


# --- Memory -------------------------------------------------------------------------------------


def test_memory_on_a_worker(either: task.Orchestrator) -> None:
    source = np.arange(12, dtype="int32").reshape(3, 4)
    block = either.malloc(1, (3, 4), "int32")
    assert (block.worker, block.shape, block.dtype, block.nbytes) == (1, (3, 4), "int32", 48)
    either.copy_to(block, source)
    assert np.array_equal(either.copy_from(block), source)
    into = np.zeros((3, 4), "int32")
    assert either.copy_from(block, into) is into
    assert np.array_equal(into, source)
    # Raw bytes, any buffer, and what has gaps.
    block.copy_from(bytes(range(48)))
    back = bytearray(48)
    either.copy_from(block, back)
    assert back == bytes(range(48))
    block.copy_from(source.T.copy().T)
    assert np.array_equal(block[1:].numpy(), source[1:])
    block[2:3].copy_from(np.full((1, 4), 9, "int32"))
    assert block.numpy()[2].tolist() == [9] * 4
    numbers = either.upload(0, array.array("d", [1.0, 2.0]))
    assert (numbers.dtype, numbers.numpy().tolist()) == ("float64", [1.0, 2.0])

    with pytest.raises(TypeError, match="float64 are given, and int32"):
        block.copy_from(np.zeros((3, 4)))
    with pytest.raises(ValueError, match="shape"):
        block.copy_from(np.zeros((4, 3), "int32"))
    with pytest.raises(ValueError, match="5 bytes"):
        block.copy_from(b"hello")
    with pytest.raises(ValueError, match="gaps"):
        either.copy_from(block, np.zeros((4, 3), "int32").T)
    with pytest.raises(ValueError, match="cannot be written"):
        either.copy_from(block, bytes(48))
    with pytest.raises(ValueError, match="step"):
        block[::2]
    with pytest.raises(ValueError, match="view"):
        block[1:].free()
    with pytest.raises(keel.InvalidArgumentError, match="no worker 2"):
        either.malloc(2, 1)
    with pytest.raises(keel.InvalidArgumentError, match="0 bytes"):
        either.malloc(0, 0)
    view = block[1:]
    block.free()
    block.free()
    assert (block.freed, view.freed) == (True, True)
    fresh = either.malloc(1, (3, 4), "int32")  # perhaps where the other was
    for use in (block.numpy, view.numpy, lambda: block.copy_from(source)):
        with pytest.raises(ValueError, match="this memory was freed"):
            use()
    fresh.free()


def test_memory_goes_with_its_object(orchestrator: task.Orchestrator) -> None:
    before = keel.memory.memory_allocated("sim:1")
    block = orchestrator.malloc(1, 1 << 20, "uint8")
    view = block[5:10]
    assert keel.memory.memory_allocated("sim:1") >= before + (1 << 20)
    del block
    assert keel.memory.memory_allocated("sim:1") >= before + (1 << 20), "the view keeps it"
    del view
    assert keel.memory.memory_allocated("sim:1") == before
    with orchestrator.scope() as scope:
        one = scope.malloc(1, 100)
        two = scope.upload(1, b"12345")
        assert not two.freed
    assert one.freed
    assert two.freed
    assert keel.memory.memory_allocated("sim:1") == before


def test_memory_of_others(orchestrator: task.Orchestrator) -> None:
    add = orchestrator.register(launch_add, kernels=["keel_add"])
    foreign = keel.from_numpy(np.full(100, 2, "float32"), device="sim:1")
    with pytest.raises(TypeError, match="register_memory"):
        orchestrator.submit(add, foreign)
    with pytest.raises(ValueError, match="worker 0 on sim:0"):
        orchestrator.register_memory(0, foreign)
    with pytest.raises(ValueError, match="no worker 7"):
        orchestrator.register_memory(7, foreign)
    stream = keel.device.Stream("sim:1")
    queued = keel.zeros(10, stream=stream)
    stream.synchronize()
    hold = keel.testing.hold(stream)
    hold.__enter__()
    queued._storage.clear()
    threading.Timer(0.05, hold.__exit__, (None, None, None)).start()
    orchestrator.register_memory(1, queued).free()
    assert stream.query(), "what is queued for an array is waited for"
    known = orchestrator.register_memory(1, foreign)
    assert (known.address, known.shape, known.dtype) == (foreign.address, (100,), "float32")
    c = np.zeros(100, "float32")
    done = orchestrator.submit(add, known, known, Out(c))
    done.wait(60)
    assert done.worker == 1
    assert c.tolist() == [4.0] * 100
    with pytest.raises(keel.Error, match="overlap"):
        orchestrator.register_memory(1, foreign)
    # Kept alive by the registration.
    gone = weakref.ref(foreign)
    del foreign
    gc.collect()
    assert gone() is not None
    orchestrator.unregister_memory(known)
    assert gone() is None
    # Whatever becomes of the array, and of what stands for the registration.
    before = keel.memory.memory_allocated("sim:1")
    closed = keel.zeros(1000, device="sim:1")
    known = orchestrator.register_memory(1, closed)
    closed.close()
    del closed, known
    gc.collect()
    assert keel.memory.memory_allocated("sim:1") > before


class Interface:
    """Another library's tensor, of which no more is known."""

    def __init__(self, owner: keel.Array, **changes: Any) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = {**owner.__cuda_array_interface__, **changes}


def test_tensors_of_other_libraries_on_the_device(cuda: str) -> None:
    with task.Orchestrator([cuda]) as orchestrator:
        double = orchestrator.register(lambda call: call[0].copy_from(call[0].numpy() * 2))
        owner = keel.from_numpy(np.arange(6, dtype="float32").reshape(2, 3), device=cuda)
        owner.stream.synchronize()
        known = orchestrator.register_memory(0, Interface(owner))
        assert (known.address, known.shape, known.dtype) == (owner.address, (2, 3), "float32")
        double(InOut(known)).wait(60)
        assert np.array_equal(owner.numpy(), 2 * np.arange(6).reshape(2, 3))
        known.free()
        frozen = orchestrator.register_memory(0, Interface(owner, data=(owner.address, True)))
        with pytest.raises(ValueError, match="cannot be written"):
            double(InOut(frozen))
        with pytest.raises(ValueError, match="nobody write"):
            frozen.copy_from(np.zeros((2, 3), "float32"))
        assert frozen[1:].read_only
        frozen.free()
        with pytest.raises(BufferError, match="gaps"):
            orchestrator.register_memory(0, Interface(owner, strides=(4, 8)))
        with pytest.raises(TypeError, match="<M8"):
            orchestrator.register_memory(0, Interface(owner, typestr="<M8"))
        owner.close()


class Dlpack:
    """A tensor on the host that has DLPack and nothing else, as PyTorch's."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **arguments: Any) -> Any:
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_tensors_of_other_libraries_on_the_host(either: task.Orchestrator) -> None:
    add = either.register(task.Image.build(code_of("Add"), kernels=["keel_add"]))
    a, c = np.arange(9, dtype="float32"), np.zeros(9, "float32")
    tensor = Dlpack(c)
    assert either.submit(add, Dlpack(a), a, Out(tensor)).result(60) is tensor
    assert np.array_equal(c, 2 * a)
    view = memoryview(bytearray(36)).cast("f")
    either.submit(add, a, a, Out(view)).wait(60)
    assert view.tolist() == c.tolist()
    with pytest.raises(BufferError, match="gaps"):
        either.submit(add, Dlpack(np.ones((3, 3), "float32").T))


def test_memory_of_this_process_is_not_a_processs() -> None:
    with task.Orchestrator([0], transport="process") as processes:
        mine = keel.zeros(10)
        with pytest.raises(keel.UnsupportedError, match="use threads"):
            processes.register_memory(0, mine)
        with pytest.raises(keel.UnsupportedError, match="register an image"):
            processes.register(launch_add)


# --- Functions ----------------------------------------------------------------------------------


def test_a_function_launches_kernels(orchestrator: task.Orchestrator) -> None:
    seen: list[Any] = []

    @orchestrator.callable(kernels=["keel_fill", "keel_axpy"])
    def axpy(call: task.Call) -> None:
        x, y = call.tensors
        seen.append((call.device, len(call), x.tag, y.tag, x.shape, y.dtype, call.stream.handle))
        a = call.scalar(0, "float32")
        call.launch("keel_axpy", x, y, task.f32(a), task.u64(y.size), grid=2, block=(64, 1))

    assert axpy.name.endswith("axpy")
    x = np.arange(500, dtype="float32")
    y = orchestrator.upload(1, np.ones(500, "float32"))
    for _ in range(3):
        last = orchestrator.submit(axpy, x, InOut(y), task.f32(0.5))
    assert last.result(60) is y
    assert np.array_equal(y.numpy(), 1 + 1.5 * x)
    assert [each[:6] for each in seen] == [("sim:1", 2, In, InOut, (500,), "float32")] * 3
    assert orchestrator.report()[1].uploads == 0, "nothing but the kernels"


def test_a_function_works_with_arrays(orchestrator: task.Orchestrator) -> None:
    kept: list[Any] = []

    @orchestrator.callable
    def double(call: task.Call) -> None:
        call[1].copy_from(call[0].numpy() * 2)
        kept.append((call, call[0].array()))

    x = np.arange(6, dtype="int64").reshape(2, 3)
    y = np.zeros((2, 3), "int64")
    assert double(x, Out(y)).result(60) is y
    assert np.array_equal(y, 2 * x)
    (call, taken) = kept.pop()
    assert taken.closed
    assert call.stream.closed
    with pytest.raises(keel.StateError, match="over"):
        call.launch(0)
    with pytest.raises(keel.StateError, match="over"):
        call[0].array()


def test_an_array_of_a_function_outlives_its_worker() -> None:
    kept: list[keel.Array] = []
    with task.Orchestrator(["sim:0"]) as made:
        made.register(
            lambda call: kept.append(keel.from_numpy(np.arange(5.0), device="sim:0"))
        )().wait(60)
    # On the stream of a worker that is no more.
    assert kept[0].numpy().tolist() == [0, 1, 2, 3, 4]
    kept[0].copy_from(np.ones(5))
    kept.clear()
    keel.zeros(5, "float64", device="sim:0").close()


def test_scalars(orchestrator: task.Orchestrator) -> None:
    seen: list[Any] = []

    @orchestrator.callable
    def look(call: task.Call) -> None:
        types = ["int64", "float64", "float32", "uint8", "float64", "int32", "uint64"]
        seen.extend(call.scalar(i, kind) for i, kind in enumerate(types))

    look(-3, 0.1, task.f32(0.5), b"\7", np.float64(2.5), np.int32(-9), 2**64 - 1).wait(60)
    assert seen == [-3, 0.1, 0.5, 7, 2.5, -9, 2**64 - 1]
    for wrong in (2**64, -(2**63) - 1, b"", b"123456789"):
        with pytest.raises(ValueError, match=r"bits|bytes"):
            look(wrong)


def test_what_a_function_raises_is_the_error(orchestrator: task.Orchestrator) -> None:
    submitted = threading.Event()

    @orchestrator.callable
    def wrong(call: task.Call) -> None:
        assert submitted.wait(60)
        raise ValueError("not like this")

    @orchestrator.callable
    def typed(call: task.Call) -> None:
        raise keel.NotFoundError("nowhere", "NOT_FOUND")

    @orchestrator.callable(kernels=["keel_add"])
    def careless(call: task.Call) -> None:
        with pytest.raises(keel.InvalidArgumentError):
            call.launch(7)

    @orchestrator.callable
    def leaves(call: task.Call) -> None:
        raise SystemExit(3)

    @orchestrator.callable
    def broken(call: task.Call) -> None:
        raise ValueError("half \ud800 of it")

    x = np.zeros(4, "float32")
    first = wrong(InOut(x))
    after = wrong(InOut(x))
    submitted.set()
    with pytest.raises(keel.Error, match=r"it raised ValueError: not like this \(.*test_task.py"):
        first.wait(60)
    with pytest.raises(keel.Error, match="which it depends on, failed") as aborted:
        after.wait(60)
    assert aborted.value.code == "ABORTED"
    with pytest.raises(keel.NotFoundError, match="NotFoundError: nowhere"):
        typed().wait(60)
    with pytest.raises(keel.InvalidArgumentError, match="kernel 7, and has 1"):
        careless().wait(60)
    with pytest.raises(keel.Error, match="SystemExit: 3"):
        leaves().wait(60)
    with pytest.raises(keel.Error, match=r"ValueError: half \? of it"):
        broken().wait(60)
    assert [report.restarts for report in orchestrator.report()] == [0, 0]


def test_a_refused_launch_fails_the_task(orchestrator: task.Orchestrator) -> None:
    other: list[task.Tensor] = []
    x = np.zeros(4, "float32")
    orchestrator.register(lambda call: other.append(call[0]))(x).wait(60)
    for arguments, kind, text in (
        ((10,), TypeError, "how wide is 10"),
        ((0.5,), TypeError, "how wide is 0.5"),
        ((other[0],), ValueError, "another call"),
        ((In(b"1234"),), TypeError, "tensors of the call"),
        ((b"1" * 17,), ValueError, "1 to 16 bytes"),
    ):

        @orchestrator.callable(kernels=["keel_add"])
        def careless(
            call: task.Call, arguments: Any = arguments, kind: Any = kind, text: str = text
        ) -> None:
            with pytest.raises(kind, match=text):
                call.launch("keel_add", *arguments)

        with pytest.raises(keel.Error, match=text):
            careless().wait(60)

    @orchestrator.callable
    def nameless(call: task.Call) -> None:
        with pytest.raises(KeyError, match="it has none"):
            call.launch("keel_add")

    with pytest.raises(keel.Error, match="no kernel 'keel_add'"):
        nameless().wait(60)


def test_a_function_uses_the_orchestrator(orchestrator: task.Orchestrator) -> None:
    add = orchestrator.register(launch_add, kernels=["keel_add"])
    c = np.zeros(10, "float32")

    @orchestrator.callable
    def outer(call: task.Call) -> None:
        ones = np.ones(10, "float32")
        add(ones, ones, Out(c), worker=1).wait(60)

    outer(worker=0).wait(60)
    assert c.tolist() == [2.0] * 10


def test_functions_of_two_workers_run_at_the_same_time(orchestrator: task.Orchestrator) -> None:
    both = threading.Barrier(2)
    meet = orchestrator.register(lambda call: both.wait(60))
    group = orchestrator.submit_group(meet, [[], []])
    group.wait(60)
    assert not both.broken
    open_member = orchestrator.submit_group(meet, [[], []], workers=[None, 0])
    open_member.wait(60)
    assert open_member.worker == 1
    with pytest.raises(keel.InvalidArgumentError, match="worker 1"):
        orchestrator.submit_group(meet, [[], []], workers=[1, 1])
    with pytest.raises(keel.InvalidArgumentError, match="a group of 3"):
        orchestrator.submit_group(meet, [[], [], []])


def test_a_group_writes_its_members_results(either: task.Orchestrator) -> None:
    add = either.register(task.Image.build(code_of("Add"), kernels=["keel_add"]))
    x = np.ones(8, "float32")
    one, two = np.zeros(8, "float32"), np.zeros(8, "float32")
    group = either.submit_group(add, [[x, x, Out(one)], [x, x, Out(two)]], workers=[1, 0])
    first, second = group.result(60)
    assert first is one
    assert second is two
    assert one.tolist() == two.tolist() == [2.0] * 8
    assert group.worker == 1
    group = either.submit_group(add, [[x, x, Out(one)], [x, x, Out(two)]], workers=[None, 0])
    group.wait(60)
    assert group.worker == 1
