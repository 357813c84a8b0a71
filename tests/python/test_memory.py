"""keel.memory: numbers, limits, errors, snapshots."""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import subprocess
from pathlib import Path

import keel
import pytest
from conftest import Run


def test_how_much_is_in_use() -> None:
    keel.memory.empty_cache()
    keel.memory.reset_peak_memory_stats()
    before = keel.memory.memory_allocated()
    with keel.empty(1 << 20, "uint8"), keel.empty(1 << 20, "uint8"):
        assert keel.memory.memory_allocated() == before + (2 << 20)
        assert keel.memory.memory_reserved() >= before + (2 << 20)
    assert keel.memory.memory_allocated() == before
    assert keel.memory.max_memory_allocated() == before + (2 << 20)
    assert keel.memory.max_memory_reserved() >= keel.memory.memory_reserved() > 0
    keel.memory.reset_peak_memory_stats()
    assert keel.memory.max_memory_allocated() == before
    assert keel.memory.memory_stats()["allocation.all.allocated"] >= 2
    keel.memory.reset_accumulated_memory_stats()
    assert keel.memory.memory_stats()["allocation.all.allocated"] == 0
    keel.memory.empty_cache()
    assert keel.memory.memory_reserved() == 0


def test_one_number_by_several_names() -> None:
    a = keel.empty(5000, device=1)
    stats = keel.memory.memory_stats(1)
    assert keel.memory.memory_allocated("sim:1") == stats["allocated_bytes.all.current"] == 20480
    assert stats["requested_bytes.all.current"] == a.nbytes
    assert keel.memory.memory_reserved(1) == stats["reserved_bytes.all.current"]
    with keel.device.use(1):
        assert keel.memory.memory_stats() == stats
    free, total = keel.memory.mem_get_info(1)
    assert total == 256 << 20
    assert total - free == keel.memory.memory_reserved(1)
    keel.memory.empty_cache("sim:1")


def test_numbers_open_no_device(run: Run) -> None:
    result = run(
        "import keel, keel.memory as m\n"
        "stats = m.memory_stats()\n"
        "assert set(stats.values()) <= {0, -1}, stats\n"
        "assert m.memory_allocated(1) == m.max_memory_reserved() == 0\n"
        "assert sum(m.host_memory_stats().values()) == 0\n"
        "m.empty_cache(); m.reset_peak_memory_stats(); m.reset_accumulated_memory_stats()\n"
        "assert m.memory_snapshot() == [] and 'memory of sim:0' in m.memory_summary()\n"
        "assert m.get_allocator_backend() == 'native'\n"
        "assert keel.device.in_use() == []\n"
        "keel.empty(1)\n"
        "assert keel.device.in_use() == ['sim:0'] and m.memory_stats().keys() == stats.keys()\n"
    )
    assert (result.returncode, result.stderr) == (0, "")


class C:
    """The C interface of the library that the package has beside it."""

    def __init__(self) -> None:
        (path,) = Path(keel.__file__).parent.glob("libkeel.so.*")
        self.library = ctypes.CDLL(str(path))
        self.device = ctypes.c_void_p()
        assert self.library.keel_device_open(b"sim:0", ctypes.byref(self.device)) == 0

    def stats(self) -> dict[str, int]:
        stats: dict[str, int] = {}

        def visit(key: bytes, value: int, _: object) -> None:
            stats[key.decode()] = value

        kind = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p)
        assert self.library.keel_for_each_stat(self.device, kind(visit), None) == 0
        return stats


def test_the_c_interface_sees_the_same_memory() -> None:
    c = C()
    a = keel.empty(100_000)
    assert c.stats() == keel.memory.memory_stats("sim:0")
    before = keel.memory.memory_allocated(0)
    address = ctypes.c_uint64()
    assert c.library.keel_malloc(
        c.device, None, ctypes.c_uint64(4096), None, ctypes.byref(address)
    ) == 0  # fmt: skip
    assert keel.memory.memory_allocated(0) == before + 4096
    assert c.stats() == keel.memory.memory_stats("sim:0")
    # What C allocated Python frees: there is one allocator.
    keel.memory.caching_allocator_delete(address.value, 0)
    assert keel.memory.memory_allocated(0) == before
    assert c.library.keel_device_close(c.device) == 0
    del a


def test_addresses_without_an_owner() -> None:
    before = keel.memory.memory_allocated()
    address = keel.memory.caching_allocator_alloc(1000)
    assert keel.memory.memory_allocated() == before + 1024
    keel.memory.caching_allocator_delete(address)
    with pytest.raises(keel.InvalidArgumentError, match=hex(address)[2:]):
        keel.memory.caching_allocator_delete(address)
    with pytest.raises(ValueError, match="-1"):
        keel.memory.caching_allocator_alloc(-1)
    with pytest.raises(TypeError, match="str"):
        keel.memory.caching_allocator_alloc("1")  # type: ignore[arg-type]


def test_out_of_memory_says_what_is_held() -> None:
    a = keel.empty(1 << 20, tag="the culprit")
    with pytest.raises(keel.OutOfMemoryError, match="1 GiB asked for") as caught:
        keel.empty(1 << 28)
    error = caught.value
    assert isinstance(error, MemoryError)
    assert isinstance(error, keel.Error)
    assert error.code == "RESOURCE_EXHAUSTED"
    assert "the culprit" in error.report
    assert "256 MiB" in error.report
    with pytest.raises(MemoryError):
        keel.memory.caching_allocator_alloc(1 << 30)
    assert keel.memory.memory_stats()["num_ooms"] >= 2
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.report, copy.code) == (str(error), error.report, error.code)
    del a


def test_a_fraction_limits_without_disturbing() -> None:
    keel.memory.empty_cache()
    a = keel.empty(64 << 20, "uint8")
    keel.memory.set_per_process_memory_fraction(0.125)
    with pytest.raises(keel.OutOfMemoryError, match="limit of 32 MiB"):
        keel.empty(8 << 20, "uint8")
    keel.memory.set_per_process_memory_fraction(0)  # what is held is all there is
    with pytest.raises(keel.OutOfMemoryError):
        keel.empty(8 << 20, "uint8")
    a.copy_from(bytes(64 << 20))
    keel.memory.set_per_process_memory_fraction(1)
    keel.empty(8 << 20, "uint8").close()
    for wrong in (-1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="fraction"):
            keel.memory.set_per_process_memory_fraction(wrong)
    with pytest.raises(TypeError, match="str"):
        keel.memory.set_per_process_memory_fraction("1")  # type: ignore[arg-type]


def test_the_summary_is_for_people() -> None:
    a = keel.empty(3 << 20, "uint8", device=1)
    summary = keel.memory.memory_summary(1)
    assert "memory of sim:1" in summary
    assert "large pool" in summary
    assert "3072 KiB" in summary
    assert "large pool" not in keel.memory.memory_summary(1, abbreviated=True)
    assert "256 MiB" in keel.memory.memory_report(1)
    del a


def test_the_backend_is_the_configurations(run: Run) -> None:
    program = "import keel; print(keel.memory.get_allocator_backend()); keel.empty(4)"
    assert run(program, KEEL_ALLOC_CONF="backend:passthrough").stdout == "passthrough\n"
    wrong = run(program, KEEL_ALLOC_CONF="bakend:native")
    assert "InvalidArgumentError: KEEL_ALLOC_CONF" in wrong.stderr
    assert "bakend" in wrong.stderr


# --- Snapshots ---


def test_a_snapshot_has_what_the_numbers_say() -> None:
    arrays = [keel.empty(size, "uint8") for size in (100, 5000, 3 << 20)]
    arrays.append(keel.empty(1 << 20, "uint8", device=1))
    segments = keel.memory.memory_snapshot()
    for number in (0, 1):
        own = [segment for segment in segments if segment["device"] == number]
        assert sum(s["total_size"] for s in own) == keel.memory.memory_reserved(number)
        assert sum(s["allocated_size"] for s in own) == keel.memory.memory_allocated(number)
    live = {b["address"] for s in segments for b in s["blocks"] if b["state"] == "active_allocated"}
    assert live >= {a.address for a in arrays}
    assert {s["device"] for s in keel.memory.memory_snapshot(1)} == {1}
    arrays.clear()


def test_a_history_is_kept_on_demand() -> None:
    keel.memory.record_memory_history(max_entries=1000, clear_history=True)
    with keel.empty(12345, "uint8", tag="activations") as a:
        address = a.address
    keel.memory.record_memory_history(None)
    keel.empty(99).close()
    trace = keel.memory.snapshot("sim:0")["device_traces"][0]
    mine = [event["action"] for event in trace if event.get("addr") == address]
    assert mine[:2] == ["alloc", "free_requested"]
    assert any(event["size"] == 12345 for event in trace)
    keel.memory.record_memory_history(None, clear_history=True)
    assert not any(
        event["action"] == "alloc"
        for events in keel.memory.snapshot()["device_traces"]
        for event in events
    )


def test_wrong_histories_are_named() -> None:
    with pytest.raises(ValueError, match="state"):
        keel.memory.record_memory_history("state")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="context"):
        keel.memory.record_memory_history(context="alloc")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_entries"):
        keel.memory.record_memory_history(max_entries=0)


@pytest.mark.parametrize("name", ["memory.pickle", "memory.pkl", "memory.json"])
def test_a_dump_is_read_by_python_and_by_the_command_line(
    tmp_path: Path, command_line: Path, name: str
) -> None:
    keel.memory.record_memory_history(clear_history=True)
    a = keel.empty(3 << 20, "uint8")
    keel.empty(1 << 20, "uint8").close()
    path = tmp_path / name
    path.write_text("what was there before")
    keel.memory.dump_snapshot(path)
    content = path.read_bytes()
    read = json.loads(content) if name.endswith("json") else pickle.loads(content)
    now = keel.memory.memory_snapshot()
    assert read["segments"] == (json.loads(json.dumps(now)) if name.endswith("json") else now)
    assert os.listdir(tmp_path) == [name]
    replayed = subprocess.run(
        [command_line, "replay", path, "--json"], capture_output=True, text=True, check=False
    )
    assert replayed.returncode == 0, replayed.stderr
    assert json.loads(replayed.stdout)
    del a


def test_a_dump_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.txt"):
        keel.memory.dump_snapshot(tmp_path / "memory.txt")
    with pytest.raises(FileNotFoundError) as caught:
        keel.memory.dump_snapshot(tmp_path / "no" / "memory.json")
    assert caught.value.filename == str(tmp_path / "no" / "memory.json")
    assert os.listdir(tmp_path) == []


def test_observers_are_told_before_an_error_is_raised(capfd: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[str, int]] = []
    with keel.empty(5 << 20, "uint8"):
        held = keel.memory.memory_allocated()

        def observe(error: keel.OutOfMemoryError) -> None:
            told.append((error.code, keel.memory.memory_allocated()))
            with pytest.raises(keel.OutOfMemoryError):  # which nobody is told of
                keel.empty(1 << 40)

        def fail(error: keel.OutOfMemoryError) -> None:
            raise LookupError(error.code)

        ends = [keel.memory.on_out_of_memory(observer) for observer in (fail, observe)]
        with pytest.raises(keel.OutOfMemoryError, match="4 TiB"):
            keel.empty(1 << 40)
        assert told == [("RESOURCE_EXHAUSTED", held)]
        assert "LookupError: RESOURCE_EXHAUSTED" in capfd.readouterr().err
        for end in ends:
            end()
            end()
        with pytest.raises(keel.OutOfMemoryError):
            keel.empty(1 << 40)
        assert len(told) == 1
