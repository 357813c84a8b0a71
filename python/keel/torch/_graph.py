"""keel.torch.graph: a function of tensors that is recorded once and replayed for ever."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, overload

from keel import _keel
from keel import graph as graphs
from keel.errors import DeviceLostError, StateError, WaitTimeoutError
from keel.torch._capture import alone, capture, captures, prepare_thread, take

#: The binding that stands for what the function returns, and tells slots apart.
_TOKEN = "token"
_CUDA, _UINT, _BYTE = 2, 1, 8  # to DLPack: the device, and elements of a byte


class _ClosedError(Exception):
    """A recording ended between a call's finding it and its beginning."""


@overload
def graph(
    function: Callable[..., Any],
    *,
    slots: int = ...,
    warm_up: int = ...,
    signatures: int = ...,
    timeout: float | None = ...,
) -> Graphed: ...


@overload
def graph(
    function: None = ...,
    *,
    slots: int = ...,
    warm_up: int = ...,
    signatures: int = ...,
    timeout: float | None = ...,
) -> Callable[[Callable[..., Any]], Graphed]: ...


def graph(
    function: Callable[..., Any] | None = None,
    *,
    slots: int = 2,
    warm_up: int = 1,
    signatures: int = 16,
    timeout: float | None = None,
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
    other shapes, types and values of what is no tensor; ``signatures`` are kept, and the one that
    was used longest ago goes.

    A call waits where its slot's last step runs on another stream, and where another thread's call
    runs the function as it is or records: for at most ``timeout`` seconds each, and then it raises
    WaitTimeoutError and nothing was launched. None: for as long as it takes.

    What it returns stays as it is for as long as somebody has it: a slot whose result is in use is
    left alone. While a caller keeps as many results as there are slots, further ones are copies,
    from a slot that is there for that and is recorded when it is first needed. Results have no
    gradient: what is to be differentiated is differentiated inside, as above. They belong to the
    stream of the call: if another stream reads one, that of the call must wait for it before the
    result goes.

    Called while its stream is captured, as from another function that is recorded or inside of
    ``torch.cuda.graph``, it runs the function as it is, which becomes a part of that graph.

    As in every recorded graph, what Python computes is computed when it is recorded (once for each
    slot) and never again, tensors that the function uses without being given them must stay where
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
        return lambda decorated: Graphed(decorated, slots, warm_up, signatures, timeout)
    return Graphed(function, slots, warm_up, signatures, timeout)


class Graphed:
    """What `graph` makes. Threads may call it at the same time, each on its own stream."""

    def __init__(
        self,
        function: Callable[..., Any],
        slots: int,
        warm_up: int,
        signatures: int,
        timeout: float | None,
    ) -> None:
        from keel.torch import _torch, installed

        self._recordings: OrderedDict[Any, _Recording] = OrderedDict()
        self._gone: list[_Recording] = []  # that were closed, but may still have memory
        self._lock = threading.RLock()
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
        self._timeout = timeout
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
        if captures(torch):
            # A launch of what is recorded would break the capture, and so would another recording.
            _check(tensors)
            return _without_gradients(torch, self._function(*args, **kwargs))
        given: list[tuple[int, Any]] = []  # those whose bytes are not in order, and have a copy
        for i, tensor in enumerate(tensors):
            if not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
                given.append((i, tensor))
                tensors[i] = tensor.resolve_conj().resolve_neg().contiguous()
        key = (
            tuple([(t.shape, t.dtype, t.device, t.requires_grad) for t in tensors]),
            others,
            spec,
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled() and torch.get_autocast_dtype("cuda"),
            self._module and self._function.training,  # type: ignore[attr-defined]
        )
        while True:
            try:
                recording = self._recordings.get(key)
            except TypeError:
                raise TypeError(
                    "arguments that are no tensors are part of the recording, and must be hashable"
                ) from None
            if recording is None:
                recording = self._begin(key, tensors, leaves, spec)
            elif len(self._recordings) > 1:
                with self._lock:
                    if key in self._recordings:  # another thread's call may have taken its place
                        self._recordings.move_to_end(key)
            try:
                result = recording.run(tensors)
                break
            except _ClosedError:
                continue  # another thread's call took its place, or closed it
        for i, tensor in given:
            if recording.written[i]:
                tensor.copy_(tensors[i])
        return result

    def _begin(
        self, key: Any, tensors: Sequence[Any], leaves: list[Any] | None, spec: Any
    ) -> _Recording:
        _check(tensors)
        gone = None
        with self._lock:
            recording = self._recordings.get(key)
            if recording is None:
                call = _Call(self._torch, self._function, leaves, spec)
                recording = _Recording(
                    self._torch, call, tensors, self._slots, self._warm_up, self._timeout
                )
                self._recordings[key] = recording
                if len(self._recordings) > self._most:
                    _, gone = self._recordings.popitem(last=False)  # used longest ago
                    self._gone = [each for each in self._gone if not each.over]
                    self._gone.append(gone)
        _end_late()
        if gone is not None:
            gone.end()
        return recording

    def stats(self) -> list[dict[str, int]]:
        """Of each recording that there is, the one that was used longest ago first: see
        `keel.graph.Executable.stats`."""
        with self._lock:
            recordings = list(self._recordings.values())
        return [stats for stats in (recording.stats() for recording in recordings) if stats]

    def close(self) -> None:
        """Give the graphs and their memory back, as far as no results are in use; those keep theirs
        until they go. It waits for the calls that still run on the device, for at most the graph's
        ``timeout`` each, and for nothing else there; then it raises WaitTimeoutError, and they go
        later. While its stream is captured it waits for nothing, and they go later, too. It may be
        called again, for what is left. The next call begins anew.
        """
        with self._lock:
            self._gone += self._recordings.values()
            self._recordings.clear()
            gone = list(self._gone)
        first: Exception | None = None
        for recording in gone:
            try:
                recording.close(self._timeout)
            except Exception as error:
                first = first or error
        with self._lock:
            self._gone = [each for each in self._gone if not each.over]
        if first is not None:
            raise first
        _end_late()

    def __del__(self) -> None:
        for recording in (*self._gone, *self._recordings.values()):
            recording.end()

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
        if tensor.numel() == 0:
            raise ValueError(f"tensor {i} of the arguments has no elements: leave it out")
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
        # Only what is no tensor; those are not kept.
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


def _without_gradients(torch: Any, result: Any) -> Any:
    return torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.detach(), result)


class _Replay:
    """What was captured for one slot. Its pool of memory lives as long as it does."""

    def __init__(self, graph: Any, addresses: list[int], outputs: list[Any], spec: Any) -> None:
        self.graph = graph
        self.addresses = addresses  # of the arguments and the token
        self.outputs = outputs  # contiguous, without gradients; or None
        self.spec = spec


class _Recording:
    """One function with arguments of one kind."""

    def __init__(
        self,
        torch: Any,
        call: _Call,
        tensors: Sequence[Any],
        slots: int,
        warm_up: int,
        timeout: float | None,
    ) -> None:
        self._torch = torch
        self._timeout = timeout
        self._call = call
        self._slots = slots
        self._device = tensors[0].device
        self._index: int = self._device.index
        self._like = [(t.shape, t.stride(), t.dtype, t.nbytes) for t in tensors]
        # Of who runs the function as it is: for as long as that takes.
        self._first = threading.RLock()
        self._warm_up = warm_up
        self.written = [False] * len(tensors)
        self._writes = False
        self._random = False
        # Of the fields below. Nobody waits while he has it. Results may go, and let go of their
        # slots, at any line of this thread's.
        self._lock = threading.RLock()
        self._users = 0  # calls under way, and results that are in a slot
        self._closed = False
        self._replays: dict[int, _Replay] = {}
        self._executable: graphs.Executable | None = None
        self._spare: graphs.Executable | None = None  # for calls whose results are copied
        self._warned = False
        self._token = len(tensors)  # the number of its binding, after those of the arguments

    # --- A call ---

    def run(self, tensors: Sequence[Any]) -> Any:
        if self._executable is None:
            take(self._first, self._timeout, "runs the function for the first time")
            try:
                if self._closed:
                    raise _ClosedError
                if self._executable is None:
                    if self._warm_up > 0:
                        return self._watch(tensors)
                    self._writes = any(self.written)
                    self._executable = self._make(self._slots)
            finally:
                self._first.release()
        if self._writes:
            self._check_overlap(tensors)
        with self._lock:
            if self._closed:
                raise _ClosedError
            executable = self._executable
            # Whoever keeps results and waited for a slot would wait for himself.
            kept = self._users < self._slots
            if not kept:
                if self._spare is None:
                    self._spare = self._make(1)
                executable = self._spare
            self._users += 1
        hold = None
        try:
            hold = self._launch(executable, tensors)
            if self._writes:  # PyTorch counts its own, and a graph around this one looks there
                written = [t for t, it_is in zip(tensors, self.written, strict=True) if it_is]
                self._torch.autograd.graph.increment_version(written)
            return hold.results(kept)
        finally:
            if hold is None:
                self.left()

    def _launch(self, executable: graphs.Executable, tensors: Sequence[Any]) -> _Hold:
        prepare_thread(self._torch, self._device)
        stream = self._torch._C._cuda_getCurrentRawStream(self._index)
        with executable.acquire(stream, self._timeout) as lease:
            lease.bind_addresses([tensor.data_ptr() for tensor in tensors])
            lease.launch(self._timeout)
            return _Hold(self, self._replays[lease.address(self._token)], lease.held(self._token))

    def left(self) -> None:
        """A call is over, or its results are gone."""
        with self._lock:
            self._users -= 1
            last = self._users == 0 and self._closed
        if last:
            _late.add(self)
            _end_late()

    # --- Before the recording ---

    def _watch(self, tensors: Sequence[Any]) -> Any:
        """Run it as it is, and see what it does with its arguments."""
        torch = self._torch
        # Of tensors of inference mode nobody counts.
        versions = [None if t.is_inference() else t._version for t in tensors]
        before = torch.cuda.get_rng_state(self._device)
        result = self._call(tensors)
        self._random |= not torch.equal(before, torch.cuda.get_rng_state(self._device))
        for i, tensor in enumerate(tensors):
            self.written[i] |= versions[i] is None or tensor._version != versions[i]
        self._warm_up -= 1
        return _without_gradients(torch, result)

    def _make(self, slots: int) -> graphs.Executable:
        program = graphs.Program(self._call.name, device=f"cuda:{self._index}")
        names = [f"argument_{i}" for i in range(len(self._like))]
        for i, (_, _, _, nbytes) in enumerate(self._like):
            access = "in-out" if self.written[i] else "in"
            program.binding(names[i], nbytes, access=access, policy="copy")
        program.binding(_TOKEN, 8, access="out", policy="in-place")
        writes = [name for name, written in zip(names, self.written, strict=True) if written]
        if self._random:
            # The seed is PyTorch's to put in place, before each replay: it replays by itself.
            program.eager(reads=names, writes=[*writes, _TOKEN])(self._replay)
        else:
            program.recorded(reads=names, writes=[*writes, _TOKEN])(self._record)
        return graphs.Executable(program, slots=slots, warm_up=0)

    def _check_overlap(self, tensors: Sequence[Any]) -> None:
        spans = sorted((t.data_ptr(), t.data_ptr() + t.nbytes, i) for i, t in enumerate(tensors))
        # The furthest end of those so far, and whose it is: of all, and of those that are written.
        last = last_written = (0, -1)
        for begin, end, i in spans:
            before = last if self.written[i] else last_written
            if begin < before[0]:
                raise ValueError(
                    f"tensors {before[1]} and {i} of the arguments share memory, and the function "
                    "may write there: in the graph each has its own"
                )
            last = max(last, (end, i))
            if self.written[i]:
                last_written = (end, i)

    # --- The recording ---

    def _replay(self, call: graphs.Call) -> None:
        addresses = call.addresses
        replay = self._replays.get(addresses[self._token])
        # A slot that was given back and made again may have one address of before, and not others.
        if replay is None or replay.addresses != addresses:
            self._record(call)
            replay = self._replays[addresses[self._token]]
        replay.graph.replay()

    def _record(self, call: graphs.Call) -> int:
        torch = self._torch
        # The arguments, in their order, and the token.
        addresses = call.addresses
        inputs = [self._at(addresses[i], *like) for i, like in enumerate(self._like)]
        captured = torch.cuda.CUDAGraph(keep_graph=not self._random)
        with (
            alone(self._timeout),
            torch.cuda.device(self._device),
            capture(torch, self._device, captured),
        ):
            # A cast that autocast keeps would be gone when the graph is replayed.
            torch.clear_autocast_cache()
            cast = torch.is_autocast_enabled()
            with torch.autocast("cuda", enabled=cast, cache_enabled=False):
                result = self._call(inputs)
            leaves, spec = torch.utils._pytree.tree_flatten(result)
            for leaf in leaves:
                if leaf is not None and not (isinstance(leaf, torch.Tensor) and leaf.is_cuda):
                    raise TypeError(
                        "a function in a graph returns tensors on the GPU, not "
                        f"{type(leaf).__name__}: what Python computes is computed once only"
                    )
            outputs = [None if leaf is None else leaf.detach().contiguous() for leaf in leaves]
        self._replays[addresses[self._token]] = _Replay(captured, addresses, outputs, spec)
        return 0 if self._random else int(captured.raw_cuda_graph())

    def _at(self, address: int, shape: Any, stride: Any, dtype: Any, nbytes: int) -> Any:
        torch = self._torch
        storage = torch._C._construct_storage_from_data_pointer(address, self._device, nbytes)
        tensor = torch.empty(0, dtype=dtype, device=self._device)
        return tensor.set_(storage, 0, shape, stride)

    # --- The end ---

    def stats(self) -> dict[str, int] | None:
        executable, spare = self._executable, self._spare
        if executable is None:
            return None
        stats = executable.stats()
        if spare is not None:
            for name, value in spare.stats().items():
                stats[name] += value
        return stats

    @property
    def over(self) -> bool:
        """Closed, with nothing left to give back."""
        with self._lock:
            freed = self._executable is None and self._spare is None
            return self._closed and self._users == 0 and freed

    def close(self, timeout: float | None) -> None:
        """No call begins any more. What is in use ends with its last user. After an error: again,
        by whatever ends next, or is recorded, if not by its owner."""
        with self._lock:
            self._closed = True
            used = self._users > 0
        if used:
            if not captures(self._torch):
                for executable in (self._executable, self._spare):
                    if executable is not None:  # and not the one in use
                        with contextlib.suppress(DeviceLostError, StateError, WaitTimeoutError):
                            executable.close(0)
            return
        _late.add(self)
        if captures(self._torch):
            return
        # Its calls have ended on the device then: theirs only, because to wait for the whole device
        # would break a capture that any other thread is in.
        for executable in (self._executable, self._spare):
            if executable is not None:
                with contextlib.suppress(DeviceLostError):  # which ends its calls, too
                    executable.close(timeout)
        self._executable = self._spare = None
        self._replays.clear()
        _late.discard(self)

    def end(self) -> None:
        """The same for those whose part it is not, destructors among them: it neither waits nor
        fails."""
        try:
            self.close(0)
        except WaitTimeoutError:
            pass
        except Exception as error:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"the memory of a graph of {self._call.name!r} is not given back: {error}",
                    RuntimeWarning,
                    stacklevel=2,
                )


#: What ended, but keeps its memory: the device was not done with it in time, or the thread was in a
#: capture, perhaps with no idea of what its destructors do.
_late: set[_Recording] = set()


def _end_late() -> None:
    """Those that the device is done with by now."""
    for recording in list(_late):
        recording.end()


class _Hold:
    """What a call returns: its slot is held until the last of the tensors goes."""

    def __init__(self, recording: _Recording, replay: _Replay, held: graphs.Held) -> None:
        self._recording = recording
        self._replay = replay
        self._held = held

    def results(self, kept: bool) -> Any:
        """In the slot if they may stay there, else copies."""
        torch = self._recording._torch
        make = self._tensor if kept else torch.Tensor.clone
        outputs = [None if output is None else make(output) for output in self._replay.outputs]
        return torch.utils._pytree.tree_unflatten(outputs, self._replay.spec)

    def _tensor(self, output: Any) -> Any:
        """The same memory as a tensor that keeps this."""
        torch = self._recording._torch
        if output.numel() == 0:
            return torch.empty_like(output)
        storage = self._held._raw.view_beside(output.data_ptr(), output.nbytes, self)
        # As bytes, because DLPack does not know every type.
        capsule = _keel.dlpack_capsule(
            storage, [output.nbytes], _UINT, _BYTE, _CUDA, self._recording._index, False, False
        )
        return torch.from_dlpack(capsule).view(output.dtype).view(output.shape)

    def __del__(self) -> None:
        self._held.close()
        self._recording.left()
