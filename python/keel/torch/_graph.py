"""keel.torch.graph: a function of tensors that is recorded once and replayed for ever."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, overload

from keel import _keel
from keel import graph as graphs
from keel._dtypes import dtype_of
from keel.errors import StateError

#: The binding that stands for what the function returns, and tells slots apart.
_TOKEN = "token"
_CUDA = 2  # to DLPack


@overload
def graph(
    function: Callable[..., Any], *, slots: int = ..., warm_up: int = ..., signatures: int = ...
) -> Graphed: ...


@overload
def graph(
    function: None = ..., *, slots: int = ..., warm_up: int = ..., signatures: int = ...
) -> Callable[[Callable[..., Any]], Graphed]: ...


def graph(
    function: Callable[..., Any] | None = None,
    *,
    slots: int = 2,
    warm_up: int = 1,
    signatures: int = 16,
) -> Graphed | Callable[[Callable[..., Any]], Graphed]:
    """The function, or module, recorded into a graph and replayed, on tensors that may be anywhere.

        model = keel.torch.graph(model.eval())           # inference
        y = model(x)                                     # x is where it is; nobody copies

        @keel.torch.graph                                # a whole step of training
        def step(x, target):
            optimizer.zero_grad()
            loss = loss_of(model(x), target)
            loss.backward()
            optimizer.step()
            return loss

    The first ``warm_up`` calls run as they are. The next one records, once for each of the
    ``slots``, and from then on a call is one launch: the graph itself fetches the arguments from
    where they are, and arguments that the function writes go back there. It is recorded anew for
    other shapes, types and values of what is no tensor; ``signatures`` are kept.

    What it returns stays as it is for as long as somebody has it: a slot whose result is in use is
    left alone, and when only one slot is left results are copied out of it. Results have no
    gradient: what is to be differentiated is differentiated inside, as above.

    As in every recorded graph, what Python computes is computed when it is recorded (twice with two
    slots) and never again, tensors that the function uses without being given them must stay where
    they are, and it must not wait for the device. Optimizers need ``capturable=True`` if they have
    it. Random numbers are drawn anew in every call.
    """
    if slots < 1:
        raise ValueError(f"slots must be 1 or more, not {slots}")
    if warm_up < 1:
        raise ValueError(f"warm_up must be 1 or more, not {warm_up}: libraries want to have run")
    if signatures < 1:
        raise ValueError(f"signatures must be 1 or more, not {signatures}")
    if function is None:
        return lambda decorated: Graphed(decorated, slots, warm_up, signatures)
    return Graphed(function, slots, warm_up, signatures)


class Graphed:
    """What `graph` makes. Threads may call it at the same time, each on its own stream."""

    def __init__(
        self, function: Callable[..., Any], slots: int, warm_up: int, signatures: int
    ) -> None:
        from keel.torch import _torch, installed

        self._torch = _torch()
        if installed() == "functions":
            raise StateError(
                "on the functions route the memory of a graph is not kept for its replays: "
                'keel.torch.install("full")'
            )
        if not callable(function):
            raise TypeError(f"{type(function).__name__} cannot be called")
        self._function = function
        self._slots = slots
        self._warm_up = warm_up
        self._most = signatures
        self._lock = threading.Lock()
        self._recordings: OrderedDict[Any, _Recording] = OrderedDict()
        self._module = isinstance(function, self._torch.nn.Module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        torch = self._torch
        if kwargs or not all(type(arg) is torch.Tensor for arg in args):
            leaves, spec = torch.utils._pytree.tree_flatten((args, kwargs))
            tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            others = tuple(
                None if isinstance(leaf, torch.Tensor) else (type(leaf), leaf) for leaf in leaves
            )
        else:
            leaves, spec, tensors, others = None, None, list(args), ()
        for i, tensor in enumerate(tensors):
            if not tensor.is_contiguous():
                tensors[i] = tensor.contiguous()
        key = (
            tuple([(tensor.shape, tensor.dtype, tensor.device) for tensor in tensors]),
            others,
            spec,
            torch.is_grad_enabled(),
            torch.is_autocast_enabled(),
            self._module and self._function.training,  # type: ignore[attr-defined]
        )
        try:
            recording = self._recordings.get(key)
        except TypeError:
            raise TypeError(
                "arguments that are no tensors are part of the recording, and must be hashable"
            ) from None
        if recording is None:
            recording = self._begin(key, tensors, leaves, spec)
        return recording.run(tensors)

    def _begin(
        self, key: Any, tensors: Sequence[Any], leaves: list[Any] | None, spec: Any
    ) -> _Recording:
        _check(tensors)
        with self._lock:
            recording = self._recordings.get(key)
            if recording is None:
                call = _Call(self._torch, self._function, leaves, spec)
                recording = _Recording(self._torch, call, tensors, self._slots, self._warm_up)
                self._recordings[key] = recording
            gone = None
            if len(self._recordings) > self._most:
                _, gone = self._recordings.popitem(last=False)
        if gone is not None:
            gone.close()
        return recording

    @property
    def stats(self) -> list[dict[str, int]]:
        """The statistics of the executables that there are: docs/graphs.md."""
        with self._lock:
            recordings = list(self._recordings.values())
        return [stats for stats in (recording.stats() for recording in recordings) if stats]

    def close(self) -> None:
        """Give the graphs and their memory back. The next call begins anew."""
        with self._lock:
            recordings = list(self._recordings.values())
            self._recordings.clear()
        for recording in recordings:
            recording.close()

    def __repr__(self) -> str:
        return f"keel.torch.graph({self._function!r})"


def _check(tensors: Sequence[Any]) -> None:
    if not tensors:
        raise ValueError("a function without an argument that is a tensor on a GPU")
    for i, tensor in enumerate(tensors):
        if not tensor.is_cuda:
            raise ValueError(f"tensor {i} of the arguments is on {tensor.device}: move it to a GPU")
        if tensor.device != tensors[0].device:
            raise ValueError(f"arguments on {tensors[0].device} and on {tensor.device}")
        if tensor.requires_grad:
            raise ValueError(
                f"tensor {i} of the arguments requires a gradient, which would stay in the graph: "
                "detach it, and differentiate inside the function"
            )


class _Call:
    """The function, on tensors in the place of those that it was first called with."""

    def __init__(
        self, torch: Any, function: Callable[..., Any], leaves: list[Any] | None, spec: Any
    ) -> None:
        self._torch = torch
        self._function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self._spec = spec
        # Only what is no tensor; these are not kept.
        self._leaves = None
        if leaves is not None:
            self._leaves = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            self._places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def __call__(self, tensors: Sequence[Any]) -> Any:
        if self._leaves is None:
            return self._function(*tensors)
        leaves = list(self._leaves)
        for place, tensor in zip(self._places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = self._torch.utils._pytree.tree_unflatten(leaves, self._spec)
        return self._function(*args, **kwargs)


class _Replay:
    """What was captured for one slot. Its pool of memory lives as long as it does."""

    def __init__(self, graph: Any, inputs: list[Any], outputs: list[Any], spec: Any) -> None:
        self.graph = graph
        self.inputs = inputs
        self.outputs = outputs  # contiguous, without gradients; what is no tensor is in `spec`
        self.spec = spec


class _Recording:
    """One function with arguments of one kind."""

    def __init__(
        self, torch: Any, call: _Call, tensors: Sequence[Any], slots: int, warm_up: int
    ) -> None:
        self._torch = torch
        self._call = call
        self._slots = slots
        self._device = tensors[0].device
        self._index: int = self._device.index
        self._like = [(t.shape, t.stride(), t.dtype, t.nbytes) for t in tensors]
        self._lock = threading.Lock()
        self._warm_up = warm_up
        self._written = [False] * len(tensors)
        self._random = False
        self._held = 0
        self._replays: dict[int, _Replay] = {}
        self._executable: graphs.Executable | None = None
        self._token = len(tensors)  # the number of its binding, after those of the arguments

    # --- A call ---

    def run(self, tensors: Sequence[Any]) -> Any:
        executable = self._executable
        if executable is None:
            with self._lock:
                if self._executable is None and self._warm_up > 0:
                    return self._watch(tensors)
                executable = self._executable = self._executable or self._make()
        stream = self._torch._C._cuda_getCurrentRawStream(self._index)
        with executable.acquire(stream) as lease:
            lease.bind_addresses([tensor.data_ptr() for tensor in tensors])
            lease.launch()
            replay = self._replays[lease.address(self._token)]
            held = lease.held(self._token)
        with self._lock:
            # Another call shall find a slot, whatever becomes of this one's results.
            copies = self._held + 1 >= self._slots
            self._held += 0 if copies else 1
        if copies:
            outputs = [output.clone() for output in replay.outputs]
            held.close()
        else:
            hold = _Hold(self, replay, held)
            outputs = [hold.tensor(output) for output in replay.outputs]
        return self._torch.utils._pytree.tree_unflatten(outputs, replay.spec)

    def let_go(self) -> None:
        with self._lock:
            self._held -= 1

    # --- Before the recording ---

    def _watch(self, tensors: Sequence[Any]) -> Any:
        """Run it as it is, and see what it does with its arguments."""
        torch = self._torch
        versions = [tensor._version for tensor in tensors]
        before = torch.cuda.get_rng_state(self._device)
        result = self._call(tensors)
        self._random |= not torch.equal(before, torch.cuda.get_rng_state(self._device))
        for i, tensor in enumerate(tensors):
            self._written[i] |= tensor._version != versions[i]
        self._warm_up -= 1
        return torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.detach(), result)

    def _make(self) -> graphs.Executable:
        program = graphs.Program(self._call.name, device=f"cuda:{self._index}")
        names = [f"argument_{i}" for i in range(len(self._like))]
        for i, (_, _, _, nbytes) in enumerate(self._like):
            access = "in-out" if self._written[i] else "in"
            program.binding(names[i], nbytes, access=access, policy="copy")
        program.binding(_TOKEN, 8, access="out", policy="in-place")
        writes = [name for name, written in zip(names, self._written, strict=True) if written]
        if self._random:
            # The seed is PyTorch's to put in place, before each replay: it replays by itself.
            program.eager(self._replay, reads=names, writes=[*writes, _TOKEN])
        else:
            program.recorded(self._record, reads=names, writes=[*writes, _TOKEN])
        return graphs.Executable(program, slots=self._slots, warm_up=0)

    # --- The recording ---

    def _replay(self, call: graphs.Call) -> None:
        token = call.addresses[self._token]
        if token not in self._replays:
            self._record(call)
        self._replays[token].graph.replay()

    def _record(self, call: graphs.Call) -> int:
        torch = self._torch
        # The arguments, in their order, and the token.
        addresses = call.addresses
        inputs = [self._at(addresses[i], *like) for i, like in enumerate(self._like)]
        captured = torch.cuda.CUDAGraph(keep_graph=not self._random)
        stream = torch.cuda.Stream(self._device)
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.device(self._device), torch.cuda.stream(stream):
            captured.capture_begin(capture_error_mode="thread_local")
            try:
                result = self._call(inputs)
                leaves, spec = torch.utils._pytree.tree_flatten(result)
                for leaf in leaves:
                    if not (isinstance(leaf, torch.Tensor) and leaf.is_cuda):
                        raise TypeError(
                            "a function in a graph returns tensors on the GPU, not "
                            f"{type(leaf).__name__}: what Python computes is computed once only"
                        )
                outputs = [leaf.detach().contiguous() for leaf in leaves]
            except BaseException:
                with contextlib.suppress(RuntimeError):  # what broke it is said already
                    captured.capture_end()
                raise
            captured.capture_end()
        self._replays[addresses[self._token]] = _Replay(captured, inputs, outputs, spec)
        return 0 if self._random else int(captured.raw_cuda_graph())

    def _at(self, address: int, shape: Any, stride: Any, dtype: Any, nbytes: int) -> Any:
        torch = self._torch
        storage = torch._C._construct_storage_from_data_pointer(address, self._device, nbytes)
        tensor = torch.empty(0, dtype=dtype, device=self._device)
        return tensor.set_(storage, 0, shape, stride)

    # --- The end ---

    def stats(self) -> dict[str, int] | None:
        executable = self._executable
        return None if executable is None else executable.stats()

    def close(self) -> None:
        executable, self._executable = self._executable, None
        if executable is not None:
            executable.close()  # the graphs first, then what they work with
        self._replays.clear()

    def __del__(self) -> None:
        self.close()


class _Hold:
    """What a call returned: held until the last of its tensors goes."""

    def __init__(self, recording: _Recording, replay: _Replay, held: graphs.Held) -> None:
        self._recording = recording
        self._replay = replay
        self._held = held

    def tensor(self, output: Any) -> Any:
        """The same memory as a tensor that keeps this."""
        recording = self._recording
        storage = self._held._raw.view_beside(output.data_ptr(), output.nbytes, self)
        dtype = dtype_of(str(output.dtype).removeprefix("torch."))
        bits = 8 * dtype.itemsize
        shape = list(output.shape)
        capsule = _keel.dlpack_capsule(
            storage, shape, dtype.code, bits, _CUDA, recording._index, False, False
        )
        return recording._torch.from_dlpack(capsule)

    def __del__(self) -> None:
        self._held.close()
        self._recording.let_go()
