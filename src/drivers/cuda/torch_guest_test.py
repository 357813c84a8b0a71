#!/usr/bin/env python3
"""A PyTorch program with Keel's CUDA driver at work beside it, and without: both compute the same.

The program trains a small network eagerly, then records a step with torch.cuda.graph in global mode
(in which an unsafe call of any thread breaks the recording) and replays it. The guest
(torch_guest.cc) allocates, maps, copies, launches, queries, records graphs of its own and frees: on
threads of its own all the time, and on the program's own thread between its calls, in the middle of
the recording too.

Usage: torch_guest_test.py GUEST_LIBRARY    Ends with 77 where there is no PyTorch or no GPU.
"""

import ctypes
import os
import sys

SKIPPED = 77

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # matrix products that repeat bit for bit
try:
    import torch
except ImportError:
    print("no PyTorch here")
    sys.exit(SKIPPED)
if not torch.cuda.is_available():
    print("PyTorch finds no GPU")
    sys.exit(SKIPPED)


class NoGuest:
    def step(self):
        pass

    def start(self):
        pass

    def stop(self):
        pass


class Guest:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.guest_error.restype = ctypes.c_char_p
        self.seed = 0
        self.check(self.library.guest_open())

    def check(self, ok):
        if not ok:
            raise AssertionError("the guest failed: " + self.library.guest_error().decode())

    def step(self):
        self.seed += 1
        before = current_state()
        self.check(self.library.guest_step(self.seed))
        after = current_state()
        assert before == after, f"the guest changed what is current: {before} -> {after}"

    def start(self):
        self.library.guest_start(3)

    def stop(self):
        self.library.guest_stop()
        self.check(not self.library.guest_error())


DRIVER = ctypes.CDLL("libcuda.so.1")


def current_state():
    context = ctypes.c_void_p()
    assert DRIVER.cuCtxGetCurrent(ctypes.byref(context)) == 0
    return (context.value, torch.cuda.current_device(), torch.cuda.current_stream().cuda_stream)


def train(guest):
    """Losses of eager steps and of replayed ones, as bytes, and the weights at the end."""
    torch.manual_seed(1234)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.use_deterministic_algorithms(True)
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 64)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    inputs = torch.randn(32, 256, device="cuda")
    targets = torch.randn(32, 64, device="cuda")
    losses = []

    def step():
        optimizer.zero_grad(set_to_none=True)
        guest.step()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        guest.step()
        loss.backward()
        guest.step()
        optimizer.step()
        return loss

    guest.start()
    try:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(10):
                losses.append(step().detach().clone())
        torch.cuda.current_stream().wait_stream(side)

        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="global"):
            recorded = step()
        for i in range(50):
            inputs.copy_(torch.full_like(inputs, 0.01 * i))
            graph.replay()
            guest.step()
            losses.append(recorded.detach().clone())
        torch.cuda.synchronize()
    finally:
        guest.stop()
    values = torch.stack(losses).cpu().numpy().tobytes()
    weights = b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())
    return values, weights


def main(path):
    alone = train(NoGuest())
    again = train(NoGuest())
    assert alone == again, "the program is not deterministic by itself"
    guest = Guest(path)
    beside = train(guest)
    assert alone == beside, "with Keel beside it the program computed something else"
    steps = guest.library.guest_steps()
    assert steps > 100, f"the guest made {steps} steps only"
    print(f"the same 60 losses and weights, bit for bit, beside {steps} steps of the guest")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
