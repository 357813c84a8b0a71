"""Serves requests of many sizes in nearly all the memory that it may use, and counts the refused.

A request is some memory that is held for a while. Old ones end, in no order, when what is held and
the next one would be more than the program allows itself; so whenever memory runs out, it is there
but not in one piece. Its losses are how many pieces of memory were found changed: none.
"""

from dataclasses import dataclass
import math

from program import Run
import torch

MIB = 1 << 20
SAMPLES = 4096  # of a piece of memory that are looked at


@dataclass
class Sizes:
    limit: int  # what the allocator may reserve
    held: float  # the part of it that the program allows itself
    smallest: int
    largest: int
    requests: int  # in a step


GPU = Sizes(limit=8 << 30, held=0.94, smallest=MIB // 4, largest=384 * MIB, requests=24)
CPU = Sizes(limit=16 * MIB, held=0.94, smallest=MIB // 32, largest=MIB, requests=8)


def main():
    run = Run(__doc__, gpu=GPU, cpu=CPU, steps=40, warm_up=8)
    sizes = run.sizes
    if run.on_gpu:
        total = torch.cuda.get_device_properties(run.device).total_memory
        torch.cuda.set_per_process_memory_fraction(sizes.limit / total)
    else:
        run.note("limit", "left out: there is none on the CPU")
    allowed = int(sizes.limit * sizes.held)
    held = []  # of number and memory
    # All that looking at memory needs: where there is none left it must not ask for more.
    differs = torch.empty(SAMPLES, dtype=torch.bool, device=run.device)
    any_differs = torch.empty((), dtype=torch.bool, device=run.device)
    wrong = torch.zeros((), dtype=torch.int64, device=run.device)
    bytes_held = number = done = refused = 0

    def end_one():
        nonlocal bytes_held
        place = run.random.randrange(len(held))
        held[place], held[-1] = held[-1], held[place]
        which, memory = held.pop()
        apart = len(memory) // SAMPLES
        torch.ne(memory[: SAMPLES * apart: apart], which, out=differs)
        torch.any(differs, out=any_differs)
        wrong.add_(any_differs)
        bytes_held -= memory.nbytes

    def serve():
        """Whether it got its memory."""
        nonlocal bytes_held, number
        number += 1
        size = math.exp(run.random.uniform(math.log(sizes.smallest), math.log(sizes.largest)))
        count = int(size) // 4
        while held and bytes_held + 4 * count > allowed:
            end_one()
        try:
            memory = torch.empty(count, dtype=torch.int32, device=run.device)
        except torch.OutOfMemoryError:
            return False
        memory.fill_(number)
        held.append((number, memory))
        bytes_held += memory.nbytes
        return True

    def step(index):
        nonlocal done, refused
        missing = sum(not serve() for _ in range(sizes.requests))
        refused += missing
        done += not missing
        return wrong

    # From nothing to full is not what is measured.
    while bytes_held < 0.9 * allowed and serve():
        pass
    run.steps(step)
    run.note("steps done", done)
    run.note("OutOfMemoryErrors", refused)
    run.finish()


if __name__ == "__main__":
    main()
