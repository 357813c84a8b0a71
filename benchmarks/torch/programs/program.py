"""What the programs here share: options, fixed seeds, timed steps and the file of figures.

A program is an ordinary user of PyTorch. It does the same work, bit by bit, wherever it runs on
the same kind of device, so what differs between two runs is the allocator's doing. To be imported
before torch is used.
"""

import argparse
import json
import os
import random
import sys
import time

# Read when the library makes its first handle: without it some products are not the same twice.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch  # noqa: E402

_STATISTICS = {
    "peak_allocated": "allocated_bytes.all.peak",
    "peak_reserved": "reserved_bytes.all.peak",
    "peak_requested": "requested_bytes.all.peak",
    "allocations": "allocation.all.allocated",
    "device_allocations": "num_device_alloc",
    "device_frees": "num_device_free",
    "retries": "num_alloc_retries",
    "ooms": "num_ooms",
}


def _memory(device):
    """What the allocator says about itself, and what the device says is in use."""
    statistics = torch.cuda.memory_stats(device)
    free, total = torch.cuda.mem_get_info(device)
    figures = {name: statistics.get(key) for name, key in _STATISTICS.items()}
    return {**figures, "device_used": total - free}


class Run:
    """One run: `steps(step)` calls step(index) for every step, `finish()` writes what was found.

    `sizes` is the program's own description of its work for this device: on a GPU the real one, on
    the CPU one that is small enough to try the program out.
    """

    def __init__(self, description, *, gpu, cpu, steps, warm_up):
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda",
                            help="cpu: tiny, to try the program out (default: cuda)")
        parser.add_argument("--steps", type=int, default=steps, metavar="N",
                            help=f"timed ones, after {warm_up} that are not (default: {steps})")
        parser.add_argument("--json", metavar="FILE", help="where to write what was found out")
        parser.add_argument("--wait", metavar="FILE",
                            help="once all is imported, make FILE and wait for a line of input")
        options = parser.parse_args()
        if options.wait:
            with open(options.wait, "w", encoding="utf-8"):
                pass
            sys.stdin.readline()
        if options.steps < 1:
            parser.error("--steps: at least 1")
        self.device = torch.device(options.device)
        self.on_gpu = options.device == "cuda"
        self.sizes = gpu if self.on_gpu else cpu
        self.count = warm_up + options.steps
        self.random = random.Random(1)
        self.notes = {}
        self._json = options.json
        self._warm_up = warm_up
        self._losses = []
        self._times = []
        torch.manual_seed(1)
        # Like use_deterministic_algorithms(True), which also loads the compiler: a second per run.
        torch.set_deterministic_debug_mode("error")
        # Kernels that fill what `empty` returns are not part of anybody's program.
        torch.utils.deterministic.fill_uninitialized_memory = False
        torch.set_float32_matmul_precision("high")

    def note(self, name, value):
        """Something else that is worth knowing about this run: a number or a text."""
        self.notes[name] = value
        print(f"{name}: {value}")

    def refused(self, error):
        """What the program is about cannot be had here; what it did until then says nothing."""
        self._losses, self._times = [], []
        self.note("refused", f"{type(error).__name__}: {error}".strip())

    def steps(self, step):
        """What a step returns are its losses: tensors of one element, or one such tensor."""
        self._synchronize()
        for index in range(self.count):
            begin = time.perf_counter()
            losses = step(index)
            self._synchronize()
            self._times.append((time.perf_counter() - begin) * 1000)
            losses = losses if isinstance(losses, (tuple, list)) else (losses,)
            self._losses.append(" ".join(float(loss).hex() for loss in losses))

    def finish(self):
        figures = {
            "torch": torch.__version__,
            "device": torch.cuda.get_device_name() if self.on_gpu else "cpu",
            "backend": torch.cuda.get_allocator_backend() if self.on_gpu else None,
            "warm_up": self._warm_up,
            "losses": self._losses,
            "warm_up_ms": [round(ms, 4) for ms in self._times[: self._warm_up]],
            "step_ms": [round(ms, 4) for ms in self._times[self._warm_up:]],
            "memory": _memory(self.device) if self.on_gpu else {},
            "notes": self.notes,
        }
        if self._json:
            with open(self._json, "w", encoding="utf-8") as file:
                json.dump(figures, file, indent=1)
                file.write("\n")
        last = self._losses[-1] if self._losses else "none"
        print(f"{os.path.basename(sys.argv[0])}: {len(self._losses)} steps, "
              f"{sum(self._times) / 1000:.2f} s, last loss {last}")

    def _synchronize(self):
        if self.on_gpu:
            torch.cuda.synchronize()
