"""One model in one worker: its shared memory, its weights, and single calls whose outputs the judge has in hand.

The same for candidate and baseline: whatever is measured between the two is measured through the same program.
"""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal

import torch
from torch import Tensor

from harness.domain import Finding, HarnessError, Outcome
from harness.protocol import KEPT_CALLS, Region, TensorSpec
from harness.protocol.tensor_layout import ALIGNMENT_BYTES, LARGE_OUTPUT_BYTES
from harness.sandbox.arena_layout import OUTPUT_PLACES, Footprint, outline
from harness.sandbox.devices import JudgeDevice, SharedArena
from harness.sandbox.failure import CandidateFailure
from harness.sandbox.memory_probe import Past, Place, Sight, choose_places, judge_sight, remember
from harness.sandbox.tensors.host_copies import HOST
from harness.sandbox.tensors.output_samples import Sample, choose_sample
from harness.sandbox.tensors.outputs import FlatOutputs, has_same_bits
from harness.sandbox.worker_client import Called, PlacedInputs, WorkerClient, describe
from harness.sandbox.worker_process import Stopped

PROFILED_CALLS = 5  # as long as so many may take: slow ones are fewer, see `harness.worker.instrumentation`
MAX_PINS = 6  # outputs that a worker keeps for good
LOOKED_BEFORE = 4  # calls before a timed one whose outputs are looked at, of those that the worker still has
POISON = 0xFF  # NaN in every floating format, -1 in every signed integer
Weights = Literal["identical", "loaded", "unmatched", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimits:
    """Seconds that a worker may take for each step; building is not counted."""

    start_s: float = 120.0
    construct_s: float = 120.0
    call_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTimes:
    """Parts of a window, in microseconds: until WAKE was obeyed; from GO to the answer; copying the outputs."""

    wake_us: float
    go_us: float
    snapshot_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One call: what the judge found in the poisoned output buffers right after the answer, and both clocks.

    `judge_us` is the judge's own time, the exchange included: from letting the worker go on with everything that it
    needs until its answer was there; on a GPU the window without waking (`gpu.window`). `taken`: the outputs
    were asked for. `copy_us` is how long after the answer they lay there; None where they were not asked for, or the
    judge looked into the worker's own memory in between, which takes longer than that. `sight` is what it saw there.
    With a `sample` the outputs are those parts of the whole ones.
    """

    outputs: FlatOutputs
    called: Called
    judge_us: float = math.nan  # of a timed call known only when it is complete
    taken: bool = False
    copy_us: float | None = None
    inputs_unchanged: bool = True
    sight: Sight | None = None
    sample: Sample | None = None
    times: WindowTimes | None = None  # on a GPU


class ModelSession:
    """A constructed module in a worker. Get one from `harness.sandbox.opening.open_session`."""

    def __init__(
        self,
        client: WorkerClient,
        arena: SharedArena,
        footprint: Footprint,
        limits: TimeLimits,
        *,
        keeps_on_host: bool = False,
    ) -> None:
        """`keeps_on_host`: outputs are copied into host memory."""
        self._keeps_on_host = keeps_on_host
        self.saw_new_memory = False  # in the last call, on a GPU: its window was longer for that
        self._is_sampling = False
        self._sample: Sample | None = None  # of the outputs of the last call
        self._client = client
        self._arena = arena
        self._footprint = footprint
        self._limits = limits
        self._random = random.Random(secrets.randbits(62))
        self._output = footprint.output
        self._calls = 0
        self._past: list[Past] = []  # of calls whose outputs the worker still has
        self.state: dict[str, TensorSpec] = {}
        self._held: dict[str, Tensor] = {}
        self._used_ns = 0
        self._armed: PlacedInputs | None = None  # what it waits for
        self._rest: Callable[[], Stopped] | None = None  # waits until the worker has been stopped after a call
        self._looks = False
        self._pinned: list[tuple[Tensor, ...]] = []
        self._resumed_ns = 0  # when it was let go on for its last call; 0 until it was stopped again

    def construct(
        self, seed: int, init_inputs: Sequence[Any], *, compiled: bool = False, training: bool = False
    ) -> None:
        self.state = self._client.construct(
            seed, init_inputs, compiled=compiled, training=training, timeout_s=self._limits.construct_s
        )

    def match_weights(self, reference: dict[str, Tensor]) -> Weights:
        """Makes the module's weights those of the reference, where names, shapes and dtypes allow it."""
        if not reference:
            return "none"
        if not all(self._has(name, describe(tensor)) for name, tensor in reference.items()):
            return "unmatched"
        own = self.read_state(reference)
        if all(torch.equal(mine, theirs) for mine, theirs in zip(own, reference.values(), strict=True)):
            return "identical"
        self.write_state(reference)
        return "loaded"

    def hold_state(self, state: dict[str, Tensor]) -> None:
        """What `reset_state` writes: the values, before each call, of the state that calls change. Raises
        CandidateFailure (wrong_value) if the module lacks some of it."""
        missing = [name for name, tensor in state.items() if not self._has(name, describe(tensor))]
        if missing:
            message = f"calls of the reference change {', '.join(missing)}; the candidate has no such state"
            finding = Finding(check="state", severity="fatal", message=message)
            raise CandidateFailure(Outcome.WRONG_VALUE, message, (finding,))
        self._held = dict(state)

    def reset_state(self) -> None:
        """Call before each call that is judged or timed: every one begins with the same state. Does nothing where
        calls change none."""
        if self._held:
            self._client.write_state(self._held, only_copies=True, timeout_s=self._limits.call_s)

    def write_state(self, state: dict[str, Tensor]) -> None:
        """Loads these as a user would load weights."""
        self._client.write_state(state, only_copies=False, timeout_s=self._limits.call_s)

    def read_state(self, like: dict[str, Tensor]) -> list[Tensor]:
        """Views of the module's state as it is now, of the names, shapes and dtypes given: copy what is to be kept."""
        specs = [describe(tensor) for tensor in like.values()]
        return self._client.read_state(list(like), specs, timeout_s=self._limits.call_s)

    def take_samples(self) -> None:
        """From now on only samples of large outputs are copied, each of other places."""
        self._is_sampling = True

    def _choose_sample(self) -> None:
        self._sample = choose_sample(self._footprint.output_specs, self._random) if self._is_sampling else None

    def limit_calls(self, call_s: float) -> None:
        """Sets the time limit of the calls from now on."""
        self._limits = replace(self._limits, call_s=call_s)

    @contextmanager
    def expecting(self, footprint: Footprint) -> Iterator[None]:
        """Calls inside return outputs of another form, in the same memory (see `Footprint.with_outputs`)."""
        usual, self._footprint = self._footprint, footprint
        try:
            yield
        finally:
            self._footprint = usual

    def _has(self, name: str, spec: TensorSpec) -> bool:
        own = self.state.get(name)
        return own is not None and (own.dtype, own.shape) == (spec.dtype, spec.shape)

    def place(self, inputs: Sequence[Any]) -> None:
        """Writes the arguments of the next call ahead of it."""
        self._client.place(inputs)

    def call(self, inputs: Sequence[Any], device: JudgeDevice, *, look: bool = True) -> Run:
        """One call that is not timed, whose outputs are taken away at once. `look`: into the worker's memory, too."""
        placed = self._client.lay_out(inputs)
        self._client.arm(placed, timeout_s=self._limits.call_s)
        self._write(placed)
        device.synchronize()
        began_ns = self._client.tell_go(timeout_s=self._limits.call_s)
        run = self._take(placed, looked_before=KEPT_CALLS if look else None, take=True)
        return replace(run, judge_us=(run.called.at_ns - began_ns) / 1e3)

    def get_ready(self, like: Sequence[Any]) -> None:
        """Makes the state what a call begins with, arms the worker for inputs of this form, and stops it, with all that
        it started, until `call_timed` or `stand_down`."""
        self._begin_rest(self._client.lay_out(like))
        self.await_rest()

    def _begin_rest(self, like: PlacedInputs) -> None:
        self.reset_state()
        self._client.arm(like, timeout_s=self._limits.call_s)
        self._armed = like
        self._rest = self._client.begin_pause()

    def await_rest(self) -> None:
        """Returns when the worker has been stopped."""
        if self._rest is not None:
            rest, self._rest = self._rest, None
            self._used_ns = self._note_stop(rest()).used_ns

    def stand_down(self) -> None:
        """Takes `get_ready` back."""
        self._client.resume()
        self._client.disarm(timeout_s=self._limits.call_s)

    @property
    def used_s(self) -> float:
        """Processor time that the worker, with all that it started, had used when it was last got ready."""
        return self._used_ns / 1e9

    def stage(self, inputs: Sequence[Any], *, look: bool = False) -> None:
        """Writes the inputs of the next timed call, while nothing of the worker runs: it was got ready. They may lie
        there for a while, for nobody runs who could see them. `look`: into the worker's memory too, right after the
        call."""
        self.await_rest()
        self._looks = look
        if look:
            self._client.find_processes()
        placed = self._client.lay_out(inputs)
        self._arm_again(placed)
        self._write(placed)

    def call_timed(self, *, take: bool = True, keep: bool = False) -> Run:
        """The call with the inputs that were staged, after a flush of the cache. Then the worker gets ready for the
        next one, and is stopped, which `complete` waits for.

        The worker goes on with the signal to go before it: the judge's clock begins with the first moment in which
        anything can be done with the inputs.

        `take`: the outputs; without, they are only described, which the worker cannot know before it is done. `keep`:
        what was taken is pinned, if the first outputs were and not too many have been since.
        """
        placed = self._armed
        if placed is None:
            raise HarnessError("a call was to be timed of a worker that had not been got ready")
        self._client.tell_go(timeout_s=self._limits.call_s)
        self._resumed_ns = 0
        self._client.resume()
        run = self._take(placed, looked_before=LOOKED_BEFORE if self._looks else None, take=take)
        if keep and run.taken and self._footprint.has_form(run.called) and 0 < len(self._pinned) < MAX_PINS:
            self.pin(run.outputs)
        self._begin_rest(placed)
        return run

    def complete(self, run: Run) -> Run:
        """The last timed run, with what is known only when the worker has been stopped again: waits for that."""
        self.await_rest()
        return replace(run, judge_us=(run.called.at_ns - self._resumed_ns) / 1e3)

    def _arm_again(self, placed: PlacedInputs) -> None:
        """Where these inputs do not have the form, or the seed, that the stopped worker was armed for."""
        armed = self._armed
        if armed and (placed.tree, placed.specs, placed.seed) == (armed.tree, armed.specs, armed.seed):
            self._armed = placed
            return
        self.stand_down()
        self._begin_rest(placed)
        self.await_rest()

    def _pause(self, places: Sequence[Place] = ()) -> Stopped:
        return self._note_stop(self._client.pause(places))

    def _note_stop(self, stopped: Stopped) -> Stopped:
        self._resumed_ns = self._resumed_ns or stopped.resumed_ns
        return stopped

    def _write(self, placed: PlacedInputs) -> None:
        """Writes the inputs, and poisons the place where the outputs will go: one that nobody can guess, so that who
        has its outputs there already must have written them as often as there are such places."""
        self._client.write(placed)
        shift = self._random.randrange(OUTPUT_PLACES) * ALIGNMENT_BYTES
        self._output = replace(self._footprint.output, offset=self._footprint.output.offset + shift)
        self._bytes_of(self._output).fill_(POISON)

    def _take(self, placed: PlacedInputs, *, looked_before: int | None, take: bool) -> Run:
        """Waits for the end of a call, and takes its outputs if these are asked for. `looked_before` None: the judge
        does not look into the worker's memory."""
        looks = looked_before is not None
        try:
            called = self._client.await_called(timeout_s=self._limits.call_s, stop=looks)
        except CandidateFailure:
            self._client.let_go()
            raise
        has_form = self._footprint.has_form(called)
        self._forget_past(has_form=has_form)
        if not take and has_form:  # nor is it looked at then
            return Run(outputs=outline(called), called=called)
        places, seen, overwritten = [], None, ""
        if looks and has_form:
            places = choose_places(called.specs, called.addresses, self._random)
            seen, overwritten = self._look(places, looked_before or 0)
        elif looks:
            self._client.let_go()
        stored_ns = self._client.store(self._output, timeout_s=self._limits.call_s)
        self._choose_sample()
        outputs = self._take_outputs() if has_form else outline(called)
        run = Run(
            outputs=outputs,
            called=called,
            taken=True,
            copy_us=None if looks else (stored_ns - called.at_ns) / 1e3,
            inputs_unchanged=self._client.inputs_unchanged(placed),
            sight=None if seen is None else judge_sight(places, seen, outputs.tensors, overwritten),
            sample=self._sample,
        )
        if has_form and self._sample is None:
            places = places or choose_places(called.specs, called.addresses, self._random)
            self._past.append(remember(self._calls, places, outputs.tensors))
        return run

    def _forget_past(self, *, has_form: bool) -> None:
        """Counts a call, and leaves the past calls whose outputs the worker still has after it."""
        self._calls += 1
        kept = self._footprint.kept_calls if has_form else 0
        self._past = [past for past in self._past if self._calls - past.call < kept]

    def _look(self, places: list[Place], looked_before: int) -> tuple[Sequence[bytes | None], str]:
        """Stops the worker and reads elements of these outputs, and of so many of the calls before that it still has:
        what was there, and which of those before have changed."""
        before = self._random.sample(self._past, min(len(self._past), looked_before))
        seen = self._pause([*places, *(place for past in before for place in past.places)]).seen
        self._client.resume()
        rest, changed = iter(seen[len(places) :]), []
        for past in before:
            count = past.count_changed([next(rest) for _ in past.places])
            if count:
                changed.append(
                    f"{count} of {len(past.places)} elements looked at, of {self._calls - past.call} calls ago"
                )
        return seen[: len(places)], "; ".join(changed)

    def pin(self, outputs: FlatOutputs) -> None:
        """Has the worker keep what it returned last, `outputs`, for `has_lost_pinned`. What is large is not kept."""
        if sum(tensor.numel() * tensor.element_size() for tensor in outputs.tensors) < LARGE_OUTPUT_BYTES:
            self._client.pin(timeout_s=self._limits.call_s)
            self._pinned.append(outputs.tensors)

    def has_lost_pinned(self) -> bool:
        """Whether outputs that were pinned, if any were, are no longer what they were."""
        return not all(self.still_has(outputs, pin=index) for index, outputs in enumerate(self._pinned))

    def still_has(self, outputs: Sequence[Tensor], *, age: int = 0, pin: int | None = None) -> bool:
        """Whether the last outputs, those of the call that was `age` calls before, or one of those that were pinned,
        are these; only after calls with right shapes."""
        self._bytes_of(self._footprint.output).fill_(POISON)
        self._client.recopy(self._footprint.output, age=age, pin=pin, timeout_s=self._limits.call_s)
        found = (self._arena.view(spec) for spec in self._footprint.output_specs)
        return all(has_same_bits(now, before) for now, before in zip(found, outputs, strict=True))

    def paused(self) -> AbstractContextManager[None]:
        """Nothing of the worker runs meanwhile, nor of what it started."""
        return self._client.paused()

    def uses_own_code(self, inputs: Sequence[Any]) -> bool | None:
        """Whether a call runs machine code that the candidate brought along, as the kernel has it; None: unknown. It is
        a call like those that are timed."""
        self.get_ready(inputs)
        used_bytes = None
        if self._client.forget_use():
            self.stage(inputs)
            self.call_timed()
            used_bytes = self._client.count_used_bytes()
        self.stand_down()
        return None if used_bytes is None else used_bytes > 0

    def server_used_s(self) -> float:
        """Processor time that the parent of all workers has used so far."""
        return self._client.server_used_s()

    def collect_garbage(self) -> None:
        self._client.collect_garbage(timeout_s=self._limits.call_s)

    def profile(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """What a worker opened in mode "profile" says of a few calls, unchecked."""
        return self._client.profile(inputs, timeout_s=PROFILED_CALLS * self._limits.call_s)

    def has_ablated_everything(self) -> bool:
        """Whether a worker opened in mode "ablate" took its effect from all of the candidate's own code."""
        return self._client.has_ablated_everything(timeout_s=self._limits.call_s)

    def check_kernels(self, **settings: str | float) -> None:
        """On an emulated device: how kernels are run from now on (order, seed, threads, time_limit_s). Calls work on
        copies of their inputs, so what they do to them, or share with them, is not seen any more."""
        self._client.check_kernels(settings, timeout_s=self._limits.call_s)

    def take_kernel_findings(self) -> object:
        """On an emulated device: what was noticed in kernels since the last time, unchecked; see
        `harness.evaluation.emulated.findings`."""
        return self._client.take_kernel_findings(timeout_s=self._limits.call_s)

    def _bytes_of(self, region: Region) -> Tensor:
        return self._arena.bytes_view(region.offset, region.size_bytes)

    def _take_outputs(self) -> FlatOutputs:
        """Copies of what lies where the outputs were to go."""
        shift = self._output.offset - self._footprint.output.offset
        specs = (replace(spec, offset=spec.offset + shift) for spec in self._footprint.output_specs)
        views = (self._arena.view(spec) for spec in specs)
        return FlatOutputs(tree=self._footprint.tree, tensors=tuple(map(self._copy, count(), views)))

    def _copy(self, index: int, output: Tensor) -> Tensor:
        """The `index`-th output as it is to be kept, or a sample of it."""
        if self._sample is not None:
            return self._sample.take(index, output)
        return output.to(HOST, copy=True) if self._keeps_on_host else output.clone()
