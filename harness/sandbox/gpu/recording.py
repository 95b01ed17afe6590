"""A call's GPU work as data, with the device memory that it uses, which outlive their worker; and processes that replay
it. Code of a candidate shares their address space: another clock bounds times, outputs are compared.
"""

from __future__ import annotations

import math
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from harness.domain import CandidateFailure, DeviceError, Outcome, WireError, WorkerLost, WorkerTimeout
from harness.protocol import ITEM_BYTES, TensorSpec, storage_bytes
from harness.protocol.channel import MAX_DESCRIPTORS, WorkerRequest
from harness.protocol.descriptors import close_all
from harness.protocol.device_memory import FIRST_ADDRESS, NO_FUNCTION, RANGE_BYTES
from harness.sandbox.arena_layout import Footprint
from harness.sandbox.devices import Device
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.gpu.recorded_code import MalformedRecording, RecordedFunction, list_readable, read_functions
from harness.sandbox.gpu.worker_memory import WorkerPages, export_pages, repeats_memory
from harness.sandbox.memory_probe import REPEATED_PAGES
from harness.sandbox.model_session import POISON, Run
from harness.sandbox.replies import parse_outputs, read_list, read_pairs
from harness.sandbox.worker_client import Called, PlacedInputs, WorkerClient, flat_bytes
from harness.sandbox.worker_process import WorkerLimits, WorkerProcess
from harness.tensors.outputs import FlatOutputs
from harness.tensors.values import has_same_bits

MOST_REASON_CHARACTERS = 200
MOST_PAGES = 4096
_MOST_MARKS = 251
_MARKS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}  # by bytes
# Bytes of which numbers consist that are neither small nor infinite in any floating format.
_NUMBERS = (*range(0x40, 0x48), *range(0xC0, 0xC8))
MOST_COPIED = 0.9  # of the free memory
_TILE = 1 << 22  # elements after which secret choices between NaN and a number repeat
READS_BACK = "device memory is read back to the host"  # as the recorder says


class NotReplayable(Exception):
    """The message is the reason. `functions` are those of the recording, if one was asked for."""

    functions: list[RecordedFunction] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """All addresses are the worker's. `placed` are the recorded call's inputs, with offsets from `inputs_at`;
    `state_at` is the place of the initial state. If the call `reads_back` values, its work may fit only equal ones.
    """

    descriptors: tuple[int, int]
    pages: WorkerPages
    placed: PlacedInputs
    inputs_at: int
    state_at: tuple[int, ...]
    is_parallel: bool  # as the worker says: work of several streams, or graphs of its own
    reads_back: bool
    called: Called
    client: WorkerClient
    views: frozenset[int]  # outputs that may lie in the memory of inputs or state
    seed: int = 0  # of the recorded call's inputs

    @property
    def own_bytes(self) -> int:
        """Device memory of the program: without the inputs and the evaluator's buffers, which are the first page."""
        return sum(size for _, size, _ in self.pages.pages[1:])

    def write_inputs(self, placed: PlacedInputs, state: Iterable[Tensor] = ()) -> None:
        """Fill outputs with NaN or secret bytes: state before, since it may lie where the given one is written, others
        afterwards, also in case that they lie in the memory of inputs or state. Raises NotReplayable for inputs of
        another form.
        """
        specs = self._list_inputs()
        if (placed.tree, _list_forms(placed.specs)) != (self.placed.tree, _list_forms(specs)):
            raise NotReplayable("arguments beside the values of its inputs change from call to call")
        outputs = range(len(self.called.specs))
        self._poison(outputs[len(outputs) - len(self.state_at) :])
        for view, tensor in zip(self._view_inputs(), placed.tensors, strict=True):
            view.copy_(flat_bytes(tensor))
        for address, tensor in zip(self.state_at, state, strict=True):
            self.pages.view(address, tensor.nbytes).copy_(flat_bytes(tensor.contiguous()))
        self._poison([at for at in outputs if at not in self.views])

    def _poison(self, outputs: Iterable[int]) -> None:
        views = self.view_outputs()
        for at in outputs:
            _fill(views[at], getattr(torch, self.called.specs[at].dtype))

    def describe_run(self, placed: PlacedInputs) -> Run:
        """The outputs are valid until the next replay."""
        specs, views = self.called.specs, self.view_outputs()
        outputs = (
            view.view(getattr(torch, spec.dtype)).as_strided(spec.shape, spec.stride)
            for spec, view in zip(specs, views, strict=True)
        )
        found = FlatOutputs(tree=self.called.tree, tensors=tuple(outputs))
        return Run(outputs=found, called=self.called, taken=True, inputs_unchanged=self._has_inputs(placed))

    def read(self, address: int, size_bytes: int) -> bytes:
        return bytes(self.pages.view(address, size_bytes).cpu().numpy())

    @property
    def functions(self) -> list[RecordedFunction]:
        """Of a malformed recording none."""
        return list_readable(*self.descriptors)

    def list_functions(self) -> list[RecordedFunction]:
        """Call after the end of the worker. Raises NotReplayable."""
        try:
            return read_functions(*self.descriptors)
        except MalformedRecording as error:
            raise NotReplayable(str(error)) from error

    def end_worker(self) -> None:
        """End the worker with all its processes, but keep its memory."""
        self.client.worker.end()

    def close(self) -> None:
        self.pages.close()
        close_all(self.descriptors)

    def _has_inputs(self, placed: PlacedInputs) -> bool:
        pairs = zip(self._view_inputs(), placed.tensors, strict=True)
        return all(has_same_bits(view, flat_bytes(tensor)) for view, tensor in pairs)

    def _view_inputs(self) -> list[Tensor]:
        return [self.pages.view(self.inputs_at + spec.offset, storage_bytes(spec)) for spec in self._list_inputs()]

    def _list_inputs(self) -> Sequence[TensorSpec]:
        return self.placed.specs[: len(self.placed.specs) - self.placed.state_tensors]

    def view_memory(self) -> list[tuple[int, Tensor]]:
        """Return all memory as addresses and bytes. Pages that follow each other are one piece."""
        runs: list[list[int]] = []
        for address, size, _ in sorted(self.pages.pages):
            if runs and runs[-1][1] == address:
                runs[-1][1] += size
            else:
                runs.append([address, address + size])
        return [(start, self.pages.view(start, end - start)) for start, end in runs]

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Put all memory back to what it was. Raises NotReplayable if it is too large for a copy."""
        memory = [content for _, content in self.view_memory()]
        if sum(one.numel() for one in memory) > torch.cuda.mem_get_info(memory[0].device)[0] * MOST_COPIED:
            raise NotReplayable("its memory is too large to be put back between replays")
        kept = [one.clone() for one in memory]
        yield
        for content, before in zip(memory, kept, strict=True):
            content.copy_(before)

    def list_given(self, *, with_inputs: bool) -> list[Place]:
        """Where the inputs and the state of a call are written."""
        inputs = [(self.inputs_at + spec.offset, storage_bytes(spec)) for spec in self._list_inputs()]
        state = self.called.specs[len(self.called.specs) - len(self.state_at) :]
        return [*(inputs if with_inputs else ()), *zip(self.state_at, map(storage_bytes, state), strict=True)]

    def view_outputs(self) -> list[Tensor]:
        """As bytes."""
        sizes = map(storage_bytes, self.called.specs)
        return [self.pages.view(*place) for place in zip(self.called.addresses, sizes, strict=True)]


def make_recording(
    client: WorkerClient,
    placed: PlacedInputs,
    footprint: Footprint,
    device: Device,
    *,
    state: Sequence[Tensor],
    check: Callable[[Called], Called],
    may_read_back: bool = False,
) -> Recording:
    """Inputs and `state` must be in place. Only trusted code `may_read_back` values if its replays are timed. Raises
    NotReplayable.
    """
    facts, descriptors = client.record(placed)
    count = len(footprint.output_specs)
    views = footprint.views.union(range(count - len(state), count))  # the last outputs are the state
    try:
        reasons = list(map(str, read_list(facts.get("unsupported"))))
        reads_back = READS_BACK in reasons
        _require_replayable(facts, descriptors, [one for one in reasons if one != READS_BACK or not may_read_back])
        called = check(Called(reported_us=0.0, at_ns=0, **parse_outputs(facts)))
        pages = _map_memory(client, facts, device)
        state_at = _read_state(facts.get("state"), state, pages)
        places = list(zip(called.addresses, called.specs, strict=True))
        is_aligned = not any(address % ITEM_BYTES[spec.dtype] for address, spec in places)
        if not is_aligned or not all(pages.contains(address, storage_bytes(spec)) for address, spec in places):
            pages.close()
            raise NotReplayable("an output lies in memory that cannot be shared")
        if _have_common_elements(called, pages, footprint.views | footprint.alike, count - len(state)):
            pages.close()
            raise NotReplayable("outputs share memory with each other")
        if any(repeats_memory(pages.view(*place)) for place in _list_places(called, views)):
            pages.close()
            raise CandidateFailure.of_check(Outcome.SUSPECT, "alias_output", REPEATED_PAGES)
    except BaseException as error:
        if isinstance(error, NotReplayable):
            error.functions = list_readable(*descriptors) if len(descriptors) == 2 else []
        close_all(descriptors)
        raise
    return Recording(
        descriptors=(descriptors[0], descriptors[1]),
        pages=pages,
        placed=placed,
        inputs_at=client.arena_address,
        state_at=state_at,
        is_parallel=facts.get("is_parallel") is not False,
        reads_back=reads_back,
        called=called,
        client=client,
        views=views,
    )


def _fill(view: Tensor, dtype: torch.dtype) -> None:
    """No program can know which values need not be written: numbers may be right, and so may NaN."""
    if dtype is torch.bool:
        view.random_(0, 2)  # two values, of which one is right: each place has its own
    elif not (dtype.is_floating_point or dtype.is_complex):
        view.fill_(secrets.randbelow(256))
    elif view.numel():
        values = torch.tensor([POISON, secrets.choice(_NUMBERS)], dtype=torch.uint8, device=view.device)
        count = min(view.numel() // dtype.itemsize, _TILE)
        tile = values[torch.randint(2, (count,), device=view.device)].repeat_interleave(dtype.itemsize)
        whole = view.numel() // tile.numel() * tile.numel()
        view[:whole].view(-1, tile.numel()).copy_(tile)
        view[whole:].copy_(tile[: view.numel() - whole])


def _list_places(called: Called, views: frozenset[int]) -> list[Place]:
    places = enumerate(zip(called.addresses, map(storage_bytes, called.specs), strict=True))
    return [place for at, place in places if at not in views]


def _have_common_elements(called: Called, pages: WorkerPages, shared: frozenset[int], first_state: int) -> bool:
    """Overwrite the outputs, which may have the same memory at several addresses, or lie between each other. Those from
    `first_state` on are parts of the state, which may have elements in common.
    """
    marked = [
        (
            pages.view(address, storage_bytes(spec))
            .view(_MARKS[ITEM_BYTES[spec.dtype]])
            .as_strided(spec.shape, spec.stride),
            1 + min(at, first_state) % _MOST_MARKS,
        )
        for at, (spec, address) in enumerate(zip(called.specs, called.addresses, strict=True))
        if at not in shared
    ]
    if len(marked) < 2:
        return False
    for view, mark in marked:
        view.fill_(mark)
    return not all(bool((view == mark).all()) for view, mark in marked)


def _read_state(addresses: object, state: Sequence[Tensor], pages: WorkerPages) -> tuple[int, ...]:
    found = tuple(one for one in read_list(addresses) if type(one) is int)
    is_known = len(found) == len(state) and all(map(pages.contains, found, (one.nbytes for one in state)))
    if not is_known:
        pages.close()
        raise NotReplayable("state that calls change lies in memory that cannot be shared")
    return found


def _require_replayable(facts: dict[str, Any], descriptors: Sequence[int], reasons: Sequence[str]) -> None:
    if reasons:
        raise NotReplayable("; ".join(reasons[:3])[:MOST_REASON_CHARACTERS])
    if facts.get("has_fixed_addresses") is not True:
        raise NotReplayable("the worker's device memory has no fixed addresses")
    if len(descriptors) != 2:
        raise CandidateFailure.of_protocol("a recording is incomplete")


def _map_memory(client: WorkerClient, facts: dict[str, Any], device: Device) -> WorkerPages:
    addresses = _read_addresses(facts.get("memory"))
    pages, is_whole = export_pages(addresses, client.export_pages, client.share_arena())
    try:
        mapped = WorkerPages(pages, device)
    except DeviceError as error:
        raise NotReplayable(f"its device memory cannot be mapped: {error}") from error
    if not is_whole:
        mapped.close()
        raise NotReplayable("some of its device memory cannot be shared")
    return mapped


def _read_addresses(memory: object) -> list[int]:
    if isinstance(memory, list) and len(memory) > MOST_PAGES:
        raise NotReplayable(f"its device memory has more than {MOST_PAGES} parts")
    addresses = [address for address, _ in read_pairs(memory)]
    if not all(type(one) is int and 0 <= one - FIRST_ADDRESS < RANGE_BYTES for one in addresses):
        raise CandidateFailure.of_protocol("a recording names memory outside of the worker's range of addresses")
    return addresses


def _list_forms(specs: Sequence[TensorSpec]) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    return [(spec.dtype, spec.shape, spec.stride) for spec in specs]


MOST_US = 1e12
START_S, REPLAY_S = 60.0, 60.0
CONNECTIONS = 8  # for work in parallel: the driver's own default
Graph = Literal["call", "empty", "nothing", "without"]
Clock = Literal["device", "host"]
Place = tuple[int, int]  # address, bytes


class KernelTimes(NamedTuple):
    times_us: dict[int, float]  # by function or NO_FUNCTION
    operations: int


class Replayer:
    """Methods raise NotReplayable if the process failed. It replays recordings of one program, one after the other."""

    def __init__(self, worker: WorkerProcess) -> None:
        self._worker = worker

    def end(self) -> None:
        self._worker.end()

    def load(self, recording: Recording) -> None:
        pages = recording.pages.pages
        for first in range(0, len(pages), MAX_DESCRIPTORS):
            part = pages[first : first + MAX_DESCRIPTORS]
            self.ask(WorkerRequest.MAP_PAGES, [page[2] for page in part], pages=[page[:2] for page in part])
        self.ask(WorkerRequest.BUILD_GRAPH, recording.descriptors)

    def unload(self) -> bool:
        """Return whether another recording can be loaded."""
        return self._succeeds(lambda: self.ask(WorkerRequest.UNLOAD))

    def is_alive(self) -> bool:
        return self._succeeds(lambda: self.replay("empty"))

    def _succeeds(self, request: Callable[[], object]) -> bool:
        try:
            request()
        except NotReplayable:
            return False
        return True

    def replay(
        self, graph: Graph = "call", clock: Clock = "device", places: Sequence[Place] = ()
    ) -> tuple[float, list[str]]:
        """Return the time in us and the bytes of `places` in hexadecimal."""
        answer = self.ask(WorkerRequest.REPLAY, graph=graph, clock=clock, places=[list(one) for one in places])
        time_us, read = answer.get("time_us"), answer.get("read")
        if not isinstance(time_us, float) or not math.isfinite(time_us) or not isinstance(read, list):
            raise NotReplayable("the process that replays it gave an invalid answer")
        return time_us, [str(one) for one in read]

    def leave_out(self, functions: Sequence[int]) -> None:
        """Make a graph "without" their launches."""
        self.ask(WorkerRequest.LEAVE_OUT, functions=list(functions))

    def time_kernels(self, own: Sequence[int]) -> KernelTimes:
        """Replay the call with events around its operations; the first time is longer. While operations run at the same
        time, it is that of those that are no `own` functions.
        """
        answer = self.ask(WorkerRequest.TIME_KERNELS, own=list(own))
        times, operations = read_pairs(answer.get("times")), answer.get("operations")
        times_us = {at: time_us for at, time_us in times if type(at) is int and isinstance(time_us, float)}
        is_valid = all(at >= NO_FUNCTION and 0 <= one < MOST_US for at, one in times_us.items())
        if type(operations) is not int or not times_us or not is_valid:
            raise NotReplayable("the process that replays it gave an invalid answer")
        return KernelTimes(times_us, operations)

    def replay_in_row(self, count: int) -> int:
        """Replay the call `count` times without a wait between, and return `count`."""
        self.ask(WorkerRequest.REPLAY_IN_ROW, count=count)
        return count

    def ask(self, request: WorkerRequest, descriptors: Sequence[int] = (), **fields: Any) -> dict[str, Any]:
        try:
            self._worker.line.send({"kind": request, **fields}, descriptors, timeout_s=START_S)
            answer, _ = self._worker.line.receive(timeout_s=REPLAY_S)
        except (WorkerLost, WorkerTimeout, WireError, OSError) as error:  # OSError: it was ended
            raise NotReplayable(f"the process that replays it failed: {error}") from error
        if answer["kind"] != request:
            raise NotReplayable(f"its replay failed: {answer.get('message', answer['kind'])}"[:300])
        return answer


@dataclass
class KeptBaseline:
    """A baseline's recording and its replayers, shared by all candidates of a problem."""

    recording: Recording
    call_us: float | None = None  # of a whole call, in its worker
    replayers: deque[Replayer] = field(default_factory=deque)  # loaded; the oldest first

    @cached_property
    def functions(self) -> frozenset[RecordedFunction]:
        return frozenset(self.recording.functions)

    def end_replayers(self) -> None:
        while self.replayers:
            self.replayers.popleft().end()

    def close(self) -> None:
        self.end_replayers()
        self.recording.close()


def start_replayer(forkserver: Forkserver, device: Device, *, is_parallel: bool) -> Replayer:
    """Opening the device takes half the time if not `is_parallel`. Raises NotReplayable or HarnessError."""
    replayer = Replayer(forkserver.spawn(WorkerLimits(memory_bytes=None)))
    index = device.torch_device.index or 0
    connections = CONNECTIONS if is_parallel else 1
    try:
        replayer.ask(WorkerRequest.OPEN_REPLAYER, device=index, cores=device.replayer_cores, connections=connections)
    except NotReplayable:
        replayer.end()
        raise
    return replayer
