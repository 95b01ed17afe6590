"""Runs one model in one worker, for candidates and baselines alike."""

import math
import random
import secrets
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import torch
from torch import Tensor

from harness.domain import CandidateFailure, HarnessError, Outcome, Weights
from harness.protocol import KEPT_CALLS, Region, TensorSpec, count_span, storage_bytes
from harness.protocol.tensor_layout import ALIGNMENT_BYTES, LARGE_OUTPUT_BYTES
from harness.sandbox.arena_layout import OUTPUT_OFFSETS, Footprint, outline
from harness.sandbox.devices import Device, SharedArena
from harness.sandbox.memory_probe import (
    REPEATED_PAGES,
    EarlierOutputs,
    Element,
    MemorySample,
    choose_elements,
    compare_sample,
    find_changes,
    record_elements,
)
from harness.sandbox.worker_client import Called, PlacedInputs, Program, WorkerClient, describe, open_client
from harness.sandbox.worker_process import CodeSample, Stopped, WorkerLimits, WorkerProcess
from harness.tensors.outputs import (
    Change,
    FlatOutputs,
    KeptOutputs,
    OutputPlaces,
    Sample,
    Span,
    TensorRecord,
    choose_sample,
)
from harness.tensors.values import HOST, copy_to, count_bytes

PROFILED_CALLS = 5  # at most; fewer if they are slow, see `harness.worker.instrumentation`
MAX_PINS = 6
SAMPLED_BEFORE = 4  # earlier calls whose outputs are sampled after a timed one
POISON = 0xFF  # NaN in every floating format, -1 in signed integers


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """`evaluator_us` is the time from the resume with staged inputs to the answer, exchange included; on a GPU the
    whole window. `taken` outputs were copied, in `copy_us` after the answer (None with a `memory_sample`).
    With a `sample`, `outputs` are its parts.
    """

    outputs: FlatOutputs
    called: Called
    evaluator_us: float = math.nan  # of a timed call: set by `complete`
    taken: bool = False
    copy_us: float | None = None
    inputs_unchanged: bool = True
    memory_sample: MemorySample | None = None
    sample: Sample | None = None
    call_us: float | None = None  # on a GPU: from the start signal until the evaluator has the outputs


class ModelSession:
    """`open_session` opens it. `client` makes requests that have nothing to do with calls."""

    def __init__(
        self, client: WorkerClient, arena: SharedArena, footprint: Footprint, *, keeps_on_host: bool = False
    ) -> None:
        self._keeps_on_host = keeps_on_host
        self.saw_new_memory = False  # the last call's window on a GPU included mapping memory
        self.outlasted_hold = False  # the last call was read too late to show whether it waits for other streams
        self._is_sampling = False
        self._sample: Sample | None = None  # of the last call
        self.client = client
        self._arena = arena
        self._footprint = footprint
        self._random = random.Random(secrets.randbits(62))
        self._output = footprint.output
        self._output_places = OutputPlaces(client.arena_span)
        self._earlier: list[EarlierOutputs] = []  # still kept by the worker
        self.state: dict[str, TensorSpec] = {}
        self._returned_inputs: tuple[int, ...] = ()  # the first outputs are these, see `harness.construction.calls`
        self._held: dict[str, Tensor] = {}
        self._given: dict[str, Tensor] = {}  # state that the next call begins with; empty: as the last one left it
        self._used_ns = 0
        self._armed: PlacedInputs | None = None
        self._rest: Callable[[], Stopped] | None = None  # waits for the stop after a call
        self._samples_memory = False
        self._pinned: list[KeptOutputs] = []
        self._resumed_ns = 0  # for the last call; 0 until the next stop

    def construct(
        self, seed: int, init_inputs: Sequence[Any], *, returned_inputs: Sequence[int] = (), **how: Any
    ) -> None:
        """`how` are further arguments of `WorkerClient.construct`."""
        self._returned_inputs = tuple(returned_inputs)
        self.state = self.client.construct(seed, init_inputs, returned_inputs=returned_inputs, **how)

    def match_weights(self, reference: dict[str, Tensor]) -> Weights:
        if not reference:
            return "none"
        if not all(fits(self.state.get(name), describe(tensor)) for name, tensor in reference.items()):
            return "unmatched"
        found = self.read_state(reference)
        if all(torch.equal(mine, theirs) for mine, theirs in zip(found, reference.values(), strict=True)):
            return "identical"
        self.write_weights(reference)
        return "loaded"

    def hold_state(self, state: dict[str, Tensor]) -> None:
        """Calls begin with this state after `reset_state`. Raises CandidateFailure (wrong_value) if some is missing."""
        own = match_state(self.state, {name: describe(tensor) for name, tensor in state.items()})
        missing = [name for name in state if name not in own]
        if missing:
            message = f"calls of the reference change {', '.join(missing)}; the candidate has no such state"
            raise CandidateFailure.of_check(Outcome.WRONG_VALUE, "state", message)
        self._held = dict(state)
        if state:
            self.client.hold_state(state, own)

    def reset_state(self, given: dict[str, Tensor] | None = None) -> None:
        """A `given` state is written together with the next call's inputs."""
        self._given = (given or self._held) if self._held else {}

    def _lay_out(self, inputs: Sequence[Any]) -> PlacedInputs:
        given, self._given = self._given, {}
        return self.client.lay_out(inputs, given)

    def write_weights(self, state: dict[str, Tensor]) -> None:
        self._given = {}
        self.client.write_weights(state)

    def read_state(self, like: dict[str, Tensor]) -> list[Tensor]:
        """Returns arena views, which the next call overwrites."""
        specs = [describe(tensor) for tensor in like.values()]
        return self.client.read_state(list(like), specs)

    def take_samples(self) -> None:
        self._is_sampling = True

    def _choose_sample(self, source: random.Random) -> None:
        self._sample = choose_sample(self._footprint.output_specs, source) if self._is_sampling else None

    @contextmanager
    def expecting(self, footprint: Footprint) -> Iterator[None]:
        usual, self._footprint = self._footprint, footprint
        try:
            yield
        finally:
            self._footprint = usual

    def place(self, inputs: Sequence[Any]) -> None:
        self.client.place(inputs)

    def call(self, inputs: Sequence[Any], device: Device, *, look: bool = True, hold_streams: bool = False) -> Run:
        """Make one untimed call. `look` samples memory. `hold_streams` copies once the current stream is ready."""
        placed = self._lay_out(inputs)
        self.client.arm(placed)
        self._write(placed)
        device.synchronize()
        began_ns = self.client.tell_go(placed)
        run = self._take(placed, sampled_before=KEPT_CALLS if look else None, take=True)
        return replace(run, evaluator_us=(run.called.at_ns - began_ns) / 1e3)

    def prepare_call(self, like: Sequence[Any]) -> None:
        self.reset_state()
        self._begin_rest(self._lay_out(like))
        self.await_rest()

    def _begin_rest(self, like: PlacedInputs) -> None:
        self.client.arm(like)
        self._armed = like
        self._rest = self.client.begin_pause()

    def await_rest(self) -> None:
        if self._rest is not None:
            rest, self._rest = self._rest, None
            self._used_ns = self._note_stop(rest()).used_ns

    def disarm(self) -> None:
        self.client.worker.resume()
        self.client.disarm()

    @property
    def used_s(self) -> float:
        return self._used_ns / 1e9

    def stage(self, inputs: Sequence[Any], state: dict[str, Tensor] | None = None, *, look: bool = False) -> None:
        """The stopped worker cannot see the written inputs and state. `look` samples its memory after the call."""
        self.await_rest()
        self._samples_memory = look
        if look:
            self.client.worker.find_processes()
        self.reset_state(state)
        placed = self._lay_out(inputs)
        self._arm_again(placed)
        self._write(placed)

    def call_timed(self, *, take: bool = True, keep: bool = False) -> Run:
        """Call with the staged inputs and request the next stop, which `complete` awaits. The start signal is queued
        before the worker is resumed, so inputs and state are never visible untimed.

        `take` copies the outputs. `keep` pins them if the first were pinned and fewer than MAX_PINS since.
        """
        placed = self._require_armed()
        self.client.tell_go(placed)
        self._resumed_ns = 0
        self.client.worker.resume()
        run = self._take(placed, sampled_before=SAMPLED_BEFORE if self._samples_memory else None, take=take)
        if keep and run.taken and self._footprint.has_form(run.called) and 0 < len(self._pinned) < MAX_PINS:
            self.pin(run.outputs, self._pinned[0].record.skipped)
        self._begin_rest(placed)
        return run

    def call_sampled(self, delay_us: float) -> CodeSample | None:
        """As `call_timed`, stopped for a moment after `delay_us`. Return what executed then, None if unknown."""
        placed = self._require_armed()
        self.client.tell_go(placed)
        finish = self.client.begin_sample(delay_us)
        self._take(placed, sampled_before=None, take=False)
        sample = finish()
        self._begin_rest(placed)
        return sample

    def _require_armed(self) -> PlacedInputs:
        if self._armed:
            return self._armed
        raise HarnessError("a timed call before prepare_call()")

    def complete(self, run: Run) -> Run:
        self.await_rest()
        return replace(run, evaluator_us=(run.called.at_ns - self._resumed_ns) / 1e3)

    def _arm_again(self, placed: PlacedInputs) -> None:
        """Does nothing unless the form of the inputs changed."""
        armed = self._armed
        if armed and (placed.announced.tree, placed.specs) == (armed.announced.tree, armed.specs):
            self._armed = placed
            return
        self.disarm()
        self._begin_rest(placed)
        self.await_rest()

    def _pause(self, elements: Sequence[Element] = (), spans: Sequence[Span] = ()) -> Stopped:
        return self._note_stop(self.client.pause(elements, spans))

    def _note_stop(self, stopped: Stopped) -> Stopped:
        self._resumed_ns = self._resumed_ns or stopped.resumed_ns
        return stopped

    def _write(self, placed: PlacedInputs) -> None:
        """The NaN-filled output buffer has a random offset, so that it cannot already contain the outputs."""
        self.client.write(placed)
        shift = self._random.randrange(OUTPUT_OFFSETS) * ALIGNMENT_BYTES
        self._output = replace(self._footprint.output, offset=self._footprint.output.offset + shift)
        self._bytes_of(self._output).fill_(POISON)

    def _take(self, placed: PlacedInputs, *, sampled_before: int | None, take: bool) -> Run:
        samples = sampled_before is not None
        try:
            called = self.client.await_called(stop=samples)
            called = self._restore_inputs(called, placed)
        except CandidateFailure:
            self.client.worker.resume_at_once()
            raise
        has_form = self._note_call(called)
        if not take and has_form:  # no memory sample either
            return Run(outputs=outline(called), called=called)
        elements, seen, change, changed = [], None, Change.NONE, ""
        if samples and has_form:
            elements = choose_elements(called.specs, called.addresses, self._random)
            seen, change, changed = self._sample_memory(elements, called, sampled_before or 0, placed)
        elif samples:
            self.client.worker.resume_at_once()
        stored_ns = self.client.store(self._output)
        self._choose_sample(self._random)
        outputs = self._take_outputs(called, placed) if has_form else outline(called)
        run = Run(
            outputs=outputs,
            called=called,
            taken=True,
            copy_us=None if samples else (stored_ns - called.at_ns) / 1e3,
            inputs_unchanged=self.client.inputs_unchanged(placed),
            memory_sample=None if seen is None else compare_sample(elements, seen, outputs.tensors, change, changed),
            sample=self._sample,
        )
        if has_form and self._sample is None:
            elements = elements or choose_elements(called.specs, called.addresses, self._random)
            self._earlier.append(record_elements(self._output_places.calls, elements, outputs.tensors))
        return run

    def _note_call(self, called: Called) -> bool:
        has_form = self._footprint.has_form(called)
        self._output_places.note_call(*((called.specs, called.addresses) if has_form else ((), ())))
        kept = self._footprint.kept_calls if has_form else 0
        self._earlier = [earlier for earlier in self._earlier if self._output_places.calls - earlier.call < kept]
        return has_form

    def _sample_memory(
        self, elements: list[Element], called: Called, most: int, placed: PlacedInputs
    ) -> tuple[Sequence[bytes | None], Change, str]:
        """Raises CandidateFailure if outputs have pages that are mapped at several addresses."""
        before = self._random.sample(self._earlier, min(len(self._earlier), most))
        self._pause()
        with self._inverted(placed):
            wanted = [*elements, *(element for earlier in before for element in earlier.elements)]
            stopped = self._pause(wanted, self._footprint.list_own_spans(called))
        self.client.worker.resume()
        if stopped.repeats:
            raise CandidateFailure.of_check(Outcome.WRONG_VALUE, "alias_output", REPEATED_PAGES)
        seen, rest = stopped.seen[: len(elements)], stopped.seen[len(elements) :]
        return seen, *find_changes(before, rest, self._output_places)

    @contextmanager
    def _inverted(self, placed: PlacedInputs) -> Iterator[None]:
        """An output in the pages of the inputs, at whatever address, shows other values. The worker must be stopped."""
        is_checked = not (self._footprint.views or self._returned_inputs)
        places = [self._arena.bytes_view(spec.offset, storage_bytes(spec)) for spec in placed.specs if is_checked]
        for place in places:
            place.bitwise_not_()
        try:
            yield
        finally:
            for place in places:
                place.bitwise_not_()

    def pin(self, outputs: FlatOutputs, views: frozenset[int] = frozenset()) -> None:
        """Make the worker keep its last outputs, unless large. `views` are positions of outputs that may change."""
        if count_bytes(outputs.tensors) < LARGE_OUTPUT_BYTES:
            self.client.pin()
            self._pinned.append(self.keep_outputs(outputs, views))

    def keep_outputs(self, outputs: FlatOutputs, views: frozenset[int]) -> KeptOutputs:
        return self._output_places.keep(TensorRecord.of(outputs.tensors, views))

    def find_pinned_change(self) -> Change:
        return max((self.find_change(kept, pin=at) for at, kept in enumerate(self._pinned)), default=Change.NONE)

    def find_change(self, kept: KeptOutputs, *, age: int = 0, pin: int | None = None) -> Change:
        """Call only after calls with correct shapes."""
        return self._output_places.classify(kept, kept.record.list_changed(self._read_again(age, pin)))

    def _read_again(self, age: int, pin: int | None) -> list[Tensor]:
        self._bytes_of(self._footprint.output).fill_(POISON)
        self.client.store(self._footprint.output, age=age, pin=pin)
        return [self._arena.view(spec) for spec in self._footprint.output_specs]

    def paused(self) -> AbstractContextManager[None]:
        return self.client.paused()

    def server_used_s(self) -> float:
        return self.client.worker.server.used_s

    def collect_garbage(self) -> None:
        self.client.collect_garbage()

    def profile(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """The result is unchecked."""
        self.reset_state()
        placed = self._lay_out(inputs)
        self.client.write(placed)
        return self.client.profile(placed, timeout_s=PROFILED_CALLS * self.client.call_s)

    def _bytes_of(self, region: Region) -> Tensor:
        return self._arena.bytes_view(region.offset, region.size_bytes)

    def _find_inputs(self, called: Called, placed: PlacedInputs) -> dict[int, TensorSpec]:
        if len(called.specs) < len(self._returned_inputs):
            return {}
        return {position: placed.specs[at] for position, at in enumerate(self._returned_inputs)}

    def _restore_inputs(self, called: Called, placed: PlacedInputs) -> Called:
        """Give returned inputs the strides with which the evaluator placed them, whatever the worker reports."""
        inputs = self._find_inputs(called, placed)
        if not inputs:
            return called
        specs = list(called.specs)
        for at, spec in inputs.items():
            specs[at] = replace(spec, offset=specs[at].offset)
        return replace(called, specs=tuple(specs))

    def _take_outputs(self, called: Called, placed: PlacedInputs) -> FlatOutputs:
        shift = self._output.offset - self._footprint.output.offset
        specs = [replace(spec, offset=spec.offset + shift) for spec in self._footprint.output_specs]
        for at, spec in self._find_inputs(called, placed).items():
            specs[at] = spec
        views = (self._arena.view(spec) for spec in specs)
        return FlatOutputs(tree=self._footprint.tree, tensors=tuple(map(self._copy, count(), views)))

    def _copy(self, index: int, output: Tensor) -> Tensor:
        if self._sample is not None:
            return self._sample.take(index, output).to(HOST)
        if not self._keeps_on_host:
            return output.clone()
        is_dense = count_span(output.shape, output.stride()) == output.numel()
        return copy_to(output, HOST) if is_dense else output.to(HOST, copy=True)


@contextmanager
def open_session(
    start_worker: Callable[[WorkerLimits], WorkerProcess],
    device: Device,
    footprint: Footprint,
    program: Program,
    *,
    keeps_on_host: bool = False,
) -> Iterator[ModelSession]:
    opened = open_client(start_worker, device, footprint.arena_bytes, program, most_kept=footprint.most_kept)
    with (
        opened as (client, arena),
        device.open_session(client, arena, footprint, keeps_on_host=keeps_on_host) as session,
    ):
        yield session


def match_state(own: Mapping[str, TensorSpec], wanted: Mapping[str, TensorSpec]) -> dict[str, str]:
    """Map each wanted part of a state to the module's own name. Names match if equal, else in order if they end alike
    (`running_mean`, `bn_running_mean` or `running_mean_2` for `bn.running_mean`) and their number is the same.
    """
    found = {name: name for name, spec in wanted.items() if fits(own.get(name), spec)}
    missing, free = [name for name in wanted if name not in found], [name for name in own if name not in wanted]
    for ending in dict.fromkeys(map(_last_part, missing)):
        asked = [name for name in missing if _last_part(name) == ending]
        left = [name for name in free if name not in found.values()]
        offered = [name for name in left if _ends_with(name, ending)]
        if len(asked) == len(offered) and all(map(fits, map(own.get, offered), map(wanted.__getitem__, asked))):
            found.update(zip(asked, offered, strict=True))
    return found


def _ends_with(name: str, ending: str) -> bool:
    last = f"_{_last_part(name)}"
    return any(one.endswith(f"_{ending}") for one in (last, last.rstrip(string.digits).rstrip("_")))


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]


def fits(own: TensorSpec | None, spec: TensorSpec) -> bool:
    return own is not None and (own.dtype, own.shape) == (spec.dtype, spec.shape)
