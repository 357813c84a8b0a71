"""What must work where the package is installed and nothing else is: no NumPy, no compiler.

Not a test of pytest's, which such an environment does not have: ./dev runs it.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util

import keel


def main() -> None:
    assert importlib.util.find_spec("numpy") is None
    assert importlib.metadata.version("keel") == keel.__version__
    assert keel.device.in_use() == []
    with keel.zeros((2, 3), "int16") as a, keel.from_numpy(b"abc") as b:
        assert a.tobytes() == bytes(12)
        assert b.tobytes() == b"abc"
        assert keel.from_dlpack(a).nbytes == 12
        assert keel.memory.memory_allocated() == 1024
        assert len(keel.memory.memory_snapshot()) > 0
    # With the program of worker processes that the package brings.
    for transport in ("thread", "process"):
        with keel.task.Orchestrator([0], transport=transport) as orchestrator:
            back = bytearray(3)
            orchestrator.copy_from(orchestrator.upload(0, b"abc"), back)
            assert back == b"abc"
    assert keel.memory.memory_allocated() == 0


if __name__ == "__main__":
    main()
