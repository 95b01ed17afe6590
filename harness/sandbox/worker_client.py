import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from harness.domain import AnswerBuild, CallKind, CandidateFailure, Finding, HarnessError, Outcome, WorkerTimeout
from harness.domain.options import TimeLimits
from harness.hardware.host import count_cores
from harness.languages import list_compiled_in_worker
from harness.protocol import (
    GO,
    REST,
    Doorbell,
    Region,
    Signal,
    TensorSpec,
    count_span,
    flatten_value,
    make_doorbell,
    place_contiguous,
    storage_bytes,
)
from harness.protocol.channel import Mode, WorkerReply, WorkerRequest
from harness.protocol.descriptors import closing_on_error
from harness.protocol.tensor_layout import MOST_KEPT, place_strided, take_values
from harness.sandbox.devices import Device, SharedArena
from harness.sandbox.exchange import BETWEEN_CALLS_S, Exchange, explain_failure, require_kind
from harness.sandbox.memory_limits import limit_worker
from harness.sandbox.memory_probe import Element
from harness.sandbox.replies import parse_outputs, parse_pages, parse_spec, read_as, read_list, read_pairs
from harness.sandbox.worker_process import CodeSample, StillRunning, Stopped, WorkerLimits, WorkerProcess
from harness.tensors.outputs import Span
from harness.tensors.values import has_same_bits, pack_by_dtype, read_seed

CANDIDATE_ENTRY = "ModelNew"
MAX_REPORTED_NS = 10**15
T = TypeVar("T")
DOORBELL_POLLS = 4000  # between two checks of everything else: about 0.2 ms


class Announced(NamedTuple):
    """The tree without values, which a worker learns before the call, and `words`, the seed and values, with GO."""

    tree: dict[str, Any]
    words: list[int]


@dataclass(frozen=True, kw_only=True)
class PlacedInputs:
    """A call's arguments in shared memory, the evaluator's copies, and torch's seed. The last `state_tensors` tensors
    are the packed initial state; with 0 the call begins with the state that the last call left.
    """

    tree: dict[str, Any]
    specs: tuple[TensorSpec, ...]
    tensors: tuple[Tensor, ...]
    seed: int | None = None
    state_tensors: int = 0

    @cached_property
    def announced(self) -> Announced:
        values = list[int]()
        tree = take_values(self.tree, values)
        return Announced(tree, values if self.seed is None else [self.seed, *values])


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """`reported_us` is the worker's time, `loading_us` its time for copying the state on a CPU; both are unchecked.
    `at_ns` is the arrival (monotonic). `specs` and `addresses` are those in the worker.
    """

    reported_us: float
    at_ns: int
    tree: dict[str, Any]
    specs: tuple[TensorSpec, ...]
    devices: tuple[str, ...]
    addresses: tuple[int, ...]
    released_bytes: int = 0  # device memory freed by the worker so far
    loading_us: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """`answer_build` None marks trusted code. `compiled` are files that compilers wrote in an earlier worker."""

    source: str
    answer_build: AnswerBuild | None
    limits: TimeLimits
    entry: str = CANDIDATE_ENTRY
    threads: int = field(default_factory=count_cores)
    allow_tf32: bool = False
    mode: Mode = "plain"
    compiled: Mapping[str, str] = field(default_factory=dict)


class WorkerClient:
    """Each request has the limit of a call, unless it says another one."""

    def __init__(self, worker: WorkerProcess, arena: SharedArena, exchange: Exchange) -> None:
        self.worker = worker
        self._arena = arena
        self._exchange = exchange
        self._bell: Doorbell | None = None  # on a GPU
        self._early: dict[str, Any] | None = None  # a "called" that arrived before the doorbell's answer
        self.arena_address = 0  # in the worker, once it has started

    @property
    def call_s(self) -> float:
        return self._exchange.limits.call_s

    def limit_calls(self, call_s: float) -> None:
        self._exchange.limits = replace(self._exchange.limits, call_s=call_s)

    def start(self, program: Program, device: Device, most_kept: int = MOST_KEPT) -> None:
        load_s = self._exchange.limits.load_s
        with ExitStack() as stack:
            descriptors = [self._arena.descriptor]
            if device.torch_device.type == "cuda":
                descriptors.append(make_doorbell())
                stack.callback(os.close, descriptors[1])
                self._bell = Doorbell(descriptors[1])
            answer = self._exchange.ask(
                WorkerRequest.SETTLE,
                failure=Outcome.LOAD_ERROR,
                timeout_s=load_s,
                descriptors=tuple(descriptors),
                device=str(device.torch_device),
                threads=program.threads,
                allow_tf32=program.allow_tf32,
                size_bytes=self._arena.size_bytes,
                emulates=device.describe_emulation(program.threads, program.limits.call_s),
                most_kept=most_kept,
            )
        self.arena_address = int(answer["address"])  # no candidate code has run yet
        self._exchange.ask(
            WorkerRequest.START,
            failure=Outcome.LOAD_ERROR,
            timeout_s=load_s,
            source=program.source,
            entry=program.entry,
            mode=program.mode,
            compiled=dict(program.compiled),
            languages=list_compiled_in_worker(program.source),
        )

    def read_compiled(self, *, timeout_s: float) -> dict[str, str]:
        """Return files that compilers wrote in the worker, unchecked: only for later workers of the same program."""
        answer = self._exchange.ask(WorkerRequest.READ_COMPILED, timeout_s=timeout_s)
        files: dict[str, str] = read_as(dict[str, str], answer.get("files"), "compiled files")
        return files

    def construct(
        self,
        seed: int,
        init_inputs: Sequence[Any],
        *,
        compile_mode: str = "",
        training: bool = False,
        dtype: str = "",
        call: CallKind = "forward",
        returned_inputs: Sequence[int] = (),
        frozen: Sequence[int | str] = (),
        constants: Sequence[tuple[int, float]] = (),
    ) -> dict[str, TensorSpec]:
        """Return the module's state. `dtype` applies to floating weights; "" leaves them as constructed. `compile_mode`
        is torch.compile's; "" does not compile. For `constants` see `constant_weights`.
        """
        answer = self._exchange.ask(
            WorkerRequest.CONSTRUCT,
            failure=Outcome.LOAD_ERROR,
            timeout_s=self._exchange.limits.load_s,
            seed=seed,
            compile_mode=compile_mode,
            training=training,
            dtype=dtype,
            call=call,
            returned_inputs=list(returned_inputs),
            frozen=list(frozen),
            constants=[list(kind) for kind in constants],
            **_value_fields(self.place(tuple(init_inputs))),
        )
        return {str(name): parse_spec(spec) for name, spec in read_pairs(answer.get("state"))}

    def read_state(self, names: Sequence[str], expected: Sequence[TensorSpec]) -> list[Tensor]:
        """Returns arena views, which the next call overwrites."""
        size_bytes = self._arena.size_bytes
        answer = self._exchange.ask(WorkerRequest.DUMP_STATE, names=list(names), offset=0, size_bytes=size_bytes)
        specs = tuple(parse_spec(spec) for spec in read_list(answer.get("specs")))
        if specs != place_contiguous(expected)[0]:
            changed = "its weights changed shapes or dtypes after construction"
            raise CandidateFailure.of_check(Outcome.WRONG_VALUE, "state", changed)
        return [self._arena.view(spec) for spec in specs]

    def write_weights(self, state: dict[str, Tensor]) -> None:
        placed = self.place(tuple(state.values()))
        entries = [[name, spec.to_json()] for name, spec in zip(state, placed.specs, strict=True)]
        self._exchange.ask(WorkerRequest.LOAD_STATE, entries=entries)

    def hold_state(self, state: Mapping[str, Tensor], own: Mapping[str, str]) -> None:
        """`own` are the module's names for the state."""
        entries = [[name, own[name], describe(tensor).to_json()] for name, tensor in state.items()]
        self._exchange.ask(WorkerRequest.HOLD_STATE, entries=entries)

    def lay_out(self, values: Sequence[Any], state: Mapping[str, Tensor] | None = None) -> PlacedInputs:
        tree, inputs = flatten_value(tuple(values), torch.is_tensor)
        packed = pack_by_dtype(list((state or {}).values()))
        tensors = (*inputs, *packed)
        specs, _ = place_strided([describe(tensor) for tensor in tensors])
        return PlacedInputs(tree=tree, specs=specs, tensors=tensors, seed=read_seed(values), state_tensors=len(packed))

    def write(self, placed: PlacedInputs) -> None:
        for spec, tensor in zip(placed.specs, placed.tensors, strict=True):
            self._storage_bytes(spec).copy_(flat_bytes(tensor))

    def place(self, values: Sequence[Any]) -> PlacedInputs:
        placed = self.lay_out(values)
        self.write(placed)
        return placed

    def inputs_unchanged(self, placed: PlacedInputs) -> bool:
        """Compares bits."""
        pairs = zip(placed.specs, placed.tensors, strict=True)
        return all(has_same_bits(self._storage_bytes(spec), flat_bytes(tensor)) for spec, tensor in pairs)

    def arm(self, placed: PlacedInputs, *, in_window: bool = False) -> None:
        """Announce a call. The worker wakes threads and device, and waits for GO or REST, or `in_window` polls."""
        kind = WorkerRequest.WINDOW if in_window else WorkerRequest.CALL
        tree, words = placed.announced
        fields = {**_call_fields(placed), "tree": tree, "words": len(words), "seeded": placed.seed is not None}
        self._exchange.ask(kind, expected=WorkerReply.ARMED, **fields)

    def disarm(self) -> None:
        self._exchange.signal(REST, WorkerReply.DISARMED, self.call_s)
        self._exchange.hear(WorkerReply.DISARMED)

    def tell_go(self, placed: PlacedInputs) -> int:
        """Send GO with the values to a worker that may be stopped; return the clock. `await_called` must follow."""
        self._arena.synchronize()
        began_ns = time.monotonic_ns()
        signal = GO + b"".join(word.to_bytes(8, "little") for word in placed.announced.words)
        self._exchange.signal(signal, WorkerReply.CALLED, self._exchange.call_s)
        return began_ns

    def await_called(self, *, stop: bool = False) -> Called:
        """`stop` stops the worker on arrival; `pause` or `resume_at_once` must follow."""
        answer = self._early or self._exchange.hear(WorkerReply.CALLED, timeout_s=self._exchange.call_s, stop=stop)
        self._early = None
        released_bytes = answer.get("released_bytes", 0)
        if type(released_bytes) is not int:
            raise CandidateFailure.of_protocol("an answer has an invalid number of bytes")
        return Called(
            reported_us=_read_us(answer.get("reported_ns"), least_ns=1),
            at_ns=self._exchange.arrived_ns,
            released_bytes=released_bytes,
            loading_us=_read_us(answer.get("loading_ns", 0)),
            **parse_outputs(answer),
        )

    def ring(self, kind: Signal, shift_bytes: int = 0, words: Sequence[int] = ()) -> None:
        """Wait for the answer; builds do not count. `shift_bytes` and `words` belong to a call."""
        timeout_s = self._exchange.call_s
        if self._bell is None:
            raise HarnessError("ring() for a worker without a doorbell")
        signal, deadline_s = self._bell.ring(kind, shift_bytes, words), time.monotonic() + timeout_s
        if self._bell.has_answered(signal, looks=DOORBELL_POLLS):
            return
        with self._exchange.explaining(WorkerReply.CALLED, timeout_s):
            while not self._bell.has_answered(signal, looks=DOORBELL_POLLS):
                self._exchange.watch_memory(BETWEEN_CALLS_S)
                if self.worker.line.is_readable():
                    deadline_s += self._answer_within_call(timeout_s)
                if time.monotonic() > deadline_s:
                    raise WorkerTimeout("the doorbell was not answered")

    def _answer_within_call(self, timeout_s: float) -> float:
        message, began_s = self._exchange.receive(timeout_s), time.monotonic()
        if message["kind"] == WorkerReply.BUILD:
            self._exchange.build(message)
            return time.monotonic() - began_s
        if message["kind"] == WorkerReply.FAILED:
            raise explain_failure(message, Outcome.RUNTIME_ERROR)
        if message["kind"] != WorkerReply.CALLED or self._early is not None:
            raise CandidateFailure.of_protocol(f"unexpected message {message['kind']!r} during a call")
        self._early = message
        return 0.0

    def read_addresses(self) -> tuple[int, ...]:
        return () if self._bell is None else self._bell.read_call()

    def export_pages(self, address: int) -> list[tuple[int, int, int]]:
        """Return consecutive pages: (first address, size in bytes, descriptor to close); none if not shareable."""
        answer, descriptors = self._ask_for_descriptors(WorkerRequest.EXPORT, address=address)
        with self._exchange.explaining(WorkerRequest.EXPORT, self.call_s), closing_on_error(descriptors):
            pages = parse_pages(answer.get("pages"), len(descriptors))
        return [(*page, descriptor) for page, descriptor in zip(pages, descriptors, strict=True)]

    def record(self, placed: PlacedInputs) -> tuple[dict[str, Any], list[int]]:
        """Return (unchecked facts, descriptors of the recording's JSON and bytes, to close)."""
        return self._ask_for_descriptors(WorkerRequest.RECORD, **_call_fields(placed))

    def _ask_for_descriptors(self, request: WorkerRequest, **fields: Any) -> tuple[dict[str, Any], list[int]]:
        self._exchange.tell(request, **fields)
        with self._exchange.explaining(request, self.call_s):
            answer, descriptors = self.worker.line.receive(timeout_s=self.call_s)
            with closing_on_error(descriptors):
                require_kind(answer, request)
            return answer, descriptors

    @property
    def arena_span(self) -> tuple[int, int]:
        return self.arena_address, self.arena_address + self._arena.size_bytes

    def share_arena(self) -> tuple[int, int, int]:
        """Return (address in the worker, size in bytes, descriptor to close)."""
        return self.arena_address, self._arena.size_bytes, os.dup(self._arena.descriptor)

    def store(self, output: Region, *, age: int = 0, pin: int | None = None) -> int:
        """Copy the last outputs to the arena, or those of `age` calls before, or pinned ones. Return the evaluator's
        clock in ns.
        """
        self._exchange.ask(WorkerRequest.STORE, age=age, pin=pin, **asdict(output))
        return self._exchange.arrived_ns

    def pin(self) -> None:
        self._exchange.ask(WorkerRequest.PIN)

    def profile(self, placed: PlacedInputs, *, timeout_s: float) -> dict[str, Any]:
        """The result is unchecked: see `integrity.attribution`."""
        return self._exchange.ask(WorkerRequest.PROFILE, timeout_s=timeout_s, **_call_fields(placed))

    def has_ablated_everything(self) -> bool:
        return self._exchange.ask(WorkerRequest.DESCRIBE_ABLATION).get("everything") is True

    def check_kernels(self, *, own_inputs: bool = True, **settings: str | float) -> None:
        """Configure an emulated device. With `own_inputs` calls get copies, which hides aliasing and changes."""
        self._exchange.ask(WorkerRequest.CONFIGURE_EMULATORS, settings=settings, own_inputs=own_inputs)

    def take_kernel_findings(self, *, timeout_s: float | None = None) -> object:
        """The result is unchecked."""
        return self._exchange.ask(WorkerRequest.TAKE_KERNEL_FINDINGS, timeout_s=timeout_s).get("findings")

    def collect_garbage(self) -> None:
        self._exchange.ask(WorkerRequest.COLLECT)

    def pause(self, elements: Sequence[Element] = (), spans: Sequence[Span] = ()) -> Stopped:
        return self.begin_pause(elements, spans)()

    def begin_pause(self, elements: Sequence[Element] = (), spans: Sequence[Span] = ()) -> Callable[[], Stopped]:
        """Request the stop, ahead of any later resume; return a function that waits."""
        stretches = [(element.address, element.size_bytes) for element in elements]
        return _explaining(self.worker.begin_pause(stretches, spans))

    def begin_sample(self, delay_us: float) -> Callable[[], CodeSample | None]:
        """See `WorkerProcess.begin_sample`."""
        return _explaining(self.worker.begin_sample(delay_us))

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.pause()
        try:
            yield
        finally:
            self.worker.resume()

    def _storage_bytes(self, spec: TensorSpec) -> Tensor:
        return self._arena.bytes_view(spec.offset, storage_bytes(spec))


def _explaining(finish: Callable[[], T]) -> Callable[[], T]:
    def await_stopped() -> T:
        try:
            return finish()
        except StillRunning as error:
            finding = Finding(check="pause", severity="fatal", message=str(error))
            message = f"its processes cannot be stopped: {error}"
            raise CandidateFailure(Outcome.SUSPECT, message, (finding,)) from error

    return await_stopped


def describe(tensor: Tensor) -> TensorSpec:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return TensorSpec(dtype=dtype, shape=tuple(tensor.shape), stride=tuple(tensor.stride()))


def flat_bytes(tensor: Tensor) -> Tensor:
    return tensor.as_strided((count_span(tensor.shape, tensor.stride()),), (1,)).view(torch.uint8)


def _read_us(time_ns: object, least_ns: int = 0) -> float:
    if type(time_ns) is not int or not least_ns <= time_ns < MAX_REPORTED_NS:
        raise CandidateFailure.of_protocol("an answer has an invalid time")
    return time_ns / 1e3


def _call_fields(placed: PlacedInputs) -> dict[str, Any]:
    return {**_value_fields(placed), "state_tensors": placed.state_tensors}


def _value_fields(placed: PlacedInputs) -> dict[str, Any]:
    return {"tree": placed.tree, "specs": [spec.to_json() for spec in placed.specs]}


@contextmanager
def open_client(
    start_worker: Callable[[WorkerLimits], WorkerProcess],
    device: Device,
    arena_bytes: int,
    program: Program,
    *,
    most_kept: int = MOST_KEPT,
) -> Iterator[tuple[WorkerClient, SharedArena]]:
    limits = limit_worker(device.torch_device, arena_bytes)
    with device.allocate(arena_bytes) as arena, start_worker(limits) as worker:
        client = WorkerClient(worker, arena, Exchange(worker, arena, program.answer_build, program.limits))
        client.start(program, device, most_kept)
        yield client, arena
