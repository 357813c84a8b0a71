"""Devices, streams and events."""

from __future__ import annotations

import asyncio
import threading

import keel
import keel.testing
import pytest
from conftest import Run


def test_devices_are_named_and_counted() -> None:
    assert "sim" in keel.device.drivers()
    assert keel.device.default_driver() == "sim"
    assert keel.device.count() == keel.device.count("sim") == 2
    assert keel.device.is_available()
    assert not keel.device.is_available("hip")
    assert "accelerator 1" in keel.device.name(1)
    properties = keel.device.properties("sim:1")
    assert (properties.driver, properties.ordinal, properties.simulated) == ("sim", 1, True)
    assert properties.total_memory == 256 << 20
    assert keel.device.capabilities()["virtual_memory"] is True
    with pytest.raises(keel.NotFoundError, match="nix"):
        keel.device.count("nix")


def test_the_current_device() -> None:
    assert keel.device.current() == "sim:0"
    with keel.device.use(1) as name:
        assert name == keel.device.current() == keel.empty(1).device == "sim:1"
        with keel.device.use("sim:0"):
            assert keel.device.current() == "sim:0"
        assert keel.device.current() == "sim:1"
    keel.device.set_device(1)
    assert keel.device.current() == "sim:1"
    keel.device.set_device(0)
    with pytest.raises(keel.NotFoundError, match="sim:5"):
        keel.device.set_device(5)
    assert keel.device.current() == "sim:0"


def test_the_current_device_is_the_threads_own() -> None:
    seen: list[str] = []
    with keel.device.use(1):
        thread = threading.Thread(target=lambda: seen.append(keel.device.current()))
        thread.start()
        thread.join()
    assert seen == ["sim:0"]


def test_the_current_device_is_the_tasks_own() -> None:
    async def task(device: int, barrier: asyncio.Event, first: bool) -> str:
        with keel.device.use(device):
            if first:
                await barrier.wait()
            else:
                barrier.set()
            return keel.device.current()

    async def both() -> list[str]:
        barrier = asyncio.Event()
        return list(await asyncio.gather(task(0, barrier, True), task(1, barrier, False)))

    assert asyncio.run(both()) == ["sim:0", "sim:1"]


def test_peers() -> None:
    assert keel.device.can_access_peer(0, 1)
    keel.device.enable_peer_access(0, 1)
    keel.device.enable_peer_access(0, 1)
    assert keel.device.peer_snapshot() == {"sim:0": {"sim:1": True}, "sim:1": {"sim:0": True}}
    assert keel.device.peer_snapshot(["sim:1"]) == {"sim:1": {}}


def test_devices_that_cannot_reach_each_other(run: Run) -> None:
    result = run(
        "import keel\n"
        "print(keel.device.can_access_peer(0, 1))\n"
        "try: keel.device.enable_peer_access(0, 1)\n"
        "except keel.StateError as error: print('refused')\n",
        KEEL_SIM="devices:2,peers:none,arena:16GiB",
    )
    assert result.stdout.split() == ["False", "refused"], result.stderr


def test_streams_order_work_and_are_waited_for() -> None:
    stream = keel.device.Stream()
    with keel.testing.hold(stream):
        with stream:
            assert keel.device.current_stream().handle == stream.handle
            a = keel.zeros(1024)
        assert a.stream.handle == stream.handle
        assert not stream.query()
        event = stream.record_event()
        assert not event.query()
        with pytest.raises(keel.WaitTimeoutError, match="in time") as caught:
            stream.synchronize(0)
        assert isinstance(caught.value, TimeoutError)
        with pytest.raises(TimeoutError):
            event.synchronize(timeout=0.01)
        with pytest.raises(TimeoutError):
            keel.device.synchronize(timeout=0.01)
    stream.synchronize()
    event.synchronize(10)
    keel.device.synchronize()
    assert stream.query()
    assert event.query()
    assert keel.device.current_stream().handle != stream.handle
    with pytest.raises(ValueError, match="timeout"):
        stream.synchronize(-1)


def test_one_stream_is_current_in_several_threads() -> None:
    stream = keel.device.Stream()
    inside, leave = threading.Event(), threading.Event()
    seen: list[bool] = []

    def work() -> None:
        with stream, keel.device.Stream() as inner, stream:
            inside.set()
            leave.wait()
            seen.append(keel.device.current_stream() is stream)
        seen.append(keel.device.current_stream() not in (stream, inner))

    thread = threading.Thread(target=work)
    with stream:
        thread.start()
        inside.wait()
    assert keel.device.current_stream() is not stream
    leave.set()
    thread.join()
    assert seen == [True, True]


def test_streams_wait_for_each_other() -> None:
    first, second = keel.device.Stream(), keel.device.Stream()
    with keel.testing.hold(first):
        with first:
            a = keel.zeros(16)
        second.wait_stream(first)
        with second:
            b = keel.zeros(16)
        assert not second.query()
    second.synchronize(30)
    first.synchronize(30)  # it may not have noticed yet that its last command is done
    assert first.query()
    del a, b


def test_events_measure_time() -> None:
    start, end = keel.device.Event(timing=True), keel.device.Event(timing=True)
    with keel.device.Stream() as stream:
        start.record()
        end.record()
    stream.synchronize()
    assert start.elapsed_time(end) >= 0
    plain = keel.device.Event()
    plain.record()
    plain.synchronize()
    with pytest.raises(keel.Error):
        plain.elapsed_time(end)


def test_a_borrowed_stream_stays_its_owners() -> None:
    owner = keel.device.Stream()
    borrowed = keel.device.Stream.borrow(owner.handle)
    with borrowed:
        keel.zeros(16).close()
    borrowed.close()
    assert borrowed.closed
    assert repr(borrowed) == "<keel.device.Stream, closed>"
    with pytest.raises(ValueError, match="closed"):
        borrowed.synchronize()
    owner.synchronize(10)
    with pytest.raises(keel.InvalidArgumentError):
        keel.device.Stream.borrow(12345)


def test_a_stream_lives_as_long_as_its_arrays() -> None:
    stream = keel.device.Stream()
    a = keel.zeros(16, stream=stream)
    stream.close()
    del stream
    assert not a.numpy().any()


def test_memory_that_another_stream_uses_is_kept() -> None:
    first, second = keel.device.Stream(), keel.device.Stream()
    a = keel.zeros(4096, "uint8", stream=first)
    with keel.testing.hold(second):
        with second:
            b = keel.zeros(16)
        a.record_stream(second)
        address = a.address
        a.close()
        taken = [keel.empty(4096, "uint8", stream=first) for _ in range(8)]
        assert address not in [other.address for other in taken]
    second.synchronize()
    del b


def test_a_lost_device_says_so_until_it_is_forgotten() -> None:
    a = keel.zeros(16, device=1)
    keel.testing.lose_device(1, "a wire was cut")
    for use in (a.numpy, lambda: keel.zeros(1 << 20, device=1)):
        with pytest.raises(keel.DeviceLostError, match="a wire was cut") as caught:
            use()
        assert caught.value.code == "DEVICE_LOST"
    assert keel.zeros(4, device=0).numpy().tolist() == [0] * 4
    a.close()
    del a, caught
    keel.device.forget(1)
    assert "sim:1" not in keel.device.in_use()
    assert not keel.zeros(16, device=1).numpy().any()
    keel.device.forget(1)
    with pytest.raises(keel.NotFoundError):
        keel.device.forget(1)


def test_only_simulated_devices_can_be_tormented(cuda: str) -> None:
    with pytest.raises(ValueError, match="simulated"):
        keel.testing.lose_device(cuda)
    with (
        pytest.raises(ValueError, match="simulated"),
        keel.testing.hold(keel.device.Stream(cuda)),
    ):
        pass
