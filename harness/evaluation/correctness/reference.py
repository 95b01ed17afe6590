"""The evaluator's own instance of a problem on a device."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from harness.domain import Outcome, ProblemTooLarge, Trial
from harness.evaluation.correctness.call_graphs import LEAST_CALL_S, CallGraphs
from harness.evaluation.correctness.comparison import are_surely_close, can_be_surely_close, compare_outputs
from harness.evaluation.correctness.input_plan import count_further_calls, find_terms, learn_traits
from harness.evaluation.correctness.other_states import (
    find_later_changes,
    has_given_state,
    list_dynamic,
    make_given_state,
    make_later_states,
    plan_state,
)
from harness.evaluation.correctness.reference_checks import (
    INPUT_SHAPES,
    compare_runs,
    contain_memory,
    does_succeed,
    find_format_bits,
    find_largest_output,
    has_only_numbers,
    have_changed,
    list_shapes,
    list_versions,
    may_share_memory,
    measure_inputs,
    refuse_varying,
    require_device,
    require_dtype_applies,
    require_finite,
    require_memory,
    require_narrow,
    require_repeatable,
    require_usable_inputs,
    require_weights_known,
    run_again,
)
from harness.evaluation.correctness.truth import (
    Expected,
    KeptTruths,
    Truth,
    TruthKey,
    compute_truth,
    copy_tensors,
    detach_tensors,
    estimate_float64_bytes,
    keep_on_host,
    list_state,
    run_and_compare_state,
    run_with_state,
    write_state,
)
from harness.evaluation.memory_plan import (
    LARGE_BYTES,
    ROOMY,
    SMALL_BYTES,
    MemoryNeed,
    MemoryPlan,
    Thrift,
    choose_plan,
    count_host_bytes,
    plan_in_full,
    plan_smallest,
)
from harness.problems.far_states import FarStates
from harness.problems.inputs.declared import pad_rows
from harness.problems.inputs.kind import GIVEN, DerivedKind, InputKind
from harness.problems.inputs.kinds import MIXED, find_kind, list_declared, list_derived
from harness.problems.inputs.traits import InputTraits
from harness.problems.loading import LoadedProblem
from harness.problems.operators import OperatorUse, Terms
from harness.protocol import count_kept_calls
from harness.sandbox.arena_layout import Footprint
from harness.sandbox.devices import Device
from harness.sandbox.gpu.recording import KeptBaseline, NotReplayable
from harness.sandbox.memory_limits import Room
from harness.tensors.outputs import Difference, FlatOutputs
from harness.tensors.values import (
    HOST,
    copy_all_to_host,
    copy_to,
    count_bytes,
    have_advanced,
    list_memory,
    list_tensors,
    read_generators,
    seed_call,
)

ENTRY = "Model"
SMALL_CALL_S = 0.05
CHANGED_ONE_IN = 4  # timed calls
ROW_STEPS = 4  # calls in a row
TRUTHS_SHARE = 1 / 32  # of the free memory, for truths that candidates share
MOST_GROWTH = 1 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """`state` are the weights made with `seed`, shared by reference, baseline and candidate; `changing` is the part
    that calls change. With `is_small` many calls are affordable. `variation` is the difference between two runs on the
    same inputs. `views` are positions of outputs that share memory with inputs or state. Formats narrower than
    `format_bits` (32, 16, or 0 if 8-bit values are given) are not allowed. `call_s` is the duration of a call.
    Outputs as given are at most `largest_output`. `baselines` maps names to baselines, or to the reason why one cannot
    be replayed. `terms` narrow the tolerance for inputs of usual sizes; others may be such that honest errors add up.
    Workers know `seed`, and nothing of `secret`.
    """

    loaded: LoadedProblem
    device: Device
    seed: int
    secret: int
    model: nn.Module
    state: dict[str, Tensor]
    input_shapes: list[torch.Size]
    footprint: Footprint
    changing: dict[str, Tensor]
    call_s: float
    is_small: bool
    changes_inputs: bool
    variation: Difference | None
    draws_numbers: bool
    views: frozenset[int]
    format_bits: int
    traits: InputTraits
    derived_kinds: tuple[DerivedKind, ...]
    need: MemoryNeed
    plan: MemoryPlan
    largest_output: float = math.inf
    terms: Terms | None = None
    timed_steps: tuple[str, ...] = ()
    untimed_steps: tuple[str, ...] = ()
    failing_steps: frozenset[str] = frozenset()  # of these: the reference may fail on some of their inputs
    later: tuple[dict[str, Tensor], ...] = ()  # states, see `make_later_states`
    far: FarStates | None = None
    dynamic: tuple[str, ...] = ()  # of `changing`: dynamic weights, and what depends on the seed
    baselines: dict[str, KeptBaseline | NotReplayable] = field(default_factory=dict)
    truths: KeptTruths = field(default_factory=KeptTruths)
    operators: list[OperatorUse] = field(default_factory=list)  # once a call was watched
    graphs: CallGraphs | None = None

    def close(self) -> None:
        self.truths.clear()
        if self.graphs is not None:
            self.graphs.clear()
        while self.baselines:
            kept = self.baselines.popitem()[1]
            if isinstance(kept, KeptBaseline):
                kept.close()

    @property
    def has_full_plan(self) -> bool:
        return self.plan == plan_in_full(self.need)

    @property
    def compares_own_first(self) -> bool:
        """True if a call is compared with the reference's outputs first, since computing the truth takes long."""
        takes_long = self.need.outputs_bytes >= LARGE_BYTES or self.call_s > SMALL_CALL_S
        is_possible = self.computes_on is None and self.plan.own_first
        return takes_long and is_possible and can_be_surely_close(self.loaded.problem.tolerance)

    @property
    def computes_on(self) -> torch.device | None:
        return self.device.torch_device if self.plan.holds == "host" else None

    @property
    def float64_limit(self) -> int:
        return sys.maxsize if self.plan.float64 else 0

    @property
    def has_small_data(self) -> bool:
        return self.need.inputs_bytes + self.need.weights_bytes + self.need.outputs_bytes <= SMALL_BYTES

    @property
    def changes_state(self) -> bool:
        return bool(self.changing)

    @property
    def requires_same_bits(self) -> bool:
        """True if the problem declares bitwise repeatability, and the reference has it here."""
        return self.loaded.problem.deterministic and self.variation is None

    def make_inputs(self, seed: int, distribution: str = GIVEN.name) -> tuple[Any, ...]:
        inputs = self.make_device_inputs(seed, distribution)
        return inputs if self.computes_on is None else copy_all_to_host(inputs)

    def make_device_inputs(self, seed: int, distribution: str = GIVEN.name) -> tuple[Any, ...]:
        inputs = self.loaded.make_inputs(seed, self.device.torch_device, distribution, traits=self.traits)
        if list_shapes(inputs) != self.input_shapes:
            refuse_varying(self.loaded, INPUT_SHAPES)
        return seed_call(inputs, seed) if self.draws_numbers else inputs

    @property
    def changed_steps(self) -> tuple[str, ...]:
        """Return kinds of changed inputs in timed calls, against programs that detect timing."""
        mixed = (MIXED.name,) if MIXED in list_declared(self.loaded.problem) else ()
        return mixed + self.timed_steps if self.plan.stress else ()

    @property
    def compared_steps(self) -> tuple[str, ...]:
        """Return the other kinds that the problem declares: of such timed calls only the outputs count."""
        declared = (kind.name for kind in list_declared(self.loaded.problem) if not kind.changes_layout)
        return tuple(name for name in declared if self.plan.stress and name not in self.changed_steps)

    @property
    def replayed_steps(self) -> tuple[str, ...]:
        """Return all: a recorded call need not do what other calls do."""
        return self.changed_steps + self.compared_steps + self.untimed_steps if self.plan.stress else ()

    def choose_timed_step(self, seed: int) -> str:
        steps = () if seed % CHANGED_ONE_IN else self.replayed_steps
        step = steps[seed // CHANGED_ONE_IN % len(steps)] if steps else GIVEN.name
        return step if step not in self.failing_steps or does_succeed(self, seed, step) else GIVEN.name

    def make_timed_inputs(self, seed: int) -> tuple[Any, ...]:
        make = self.make_device_inputs if self.plan.inputs_on_device else self.make_inputs
        return make(seed, self.choose_timed_step(seed))

    def find_timed_kind(self, seed: int) -> InputKind:
        """Return how outputs of a timed call are compared: after a state of unusual inputs as with these."""
        step = self.choose_timed_step(seed)
        is_usual = step == GIVEN.name and has_given_state(self)
        return find_kind(plan_state(self, seed).compared_as if is_usual else step)

    def make_timed_state(self, seed: int) -> dict[str, Tensor] | None:
        """Return a state that is new to the candidate; None means the usual state. Call before making the seed's
        inputs, since both need their memory.
        """
        return make_given_state(self, seed) if has_given_state(self) else None

    def outputs_of(self, inputs: Sequence[Any], state: dict[str, Tensor] | None = None) -> FlatOutputs:
        is_read_only = self.computes_on is None and not self.changes_inputs
        used = detach_tensors(inputs) if is_read_only else copy_tensors(inputs, self.computes_on)
        return self.run_on(used, state)

    def run_on(self, inputs: Sequence[Any], state: dict[str, Tensor] | None = None) -> FlatOutputs:
        """The call may change `inputs`, which are on the device. Raises ProblemError."""
        with torch.no_grad():
            write_state(self.model, self.changing if state is None else state)
            on_host = self.computes_on is not None
            return run_with_state(self.loaded, self.model, inputs, self.changing, on_host=on_host, graphs=self.graphs)

    def truth_of(
        self, inputs: Sequence[Any], state: dict[str, Tensor] | None = None, own: FlatOutputs | None = None
    ) -> Truth:
        """`own` are the `outputs_of` these inputs and state. Raises ProblemError."""
        return compute_truth(
            self.loaded,
            self.model,
            inputs,
            self.float64_limit,
            state=self.changing if state is None else state,
            device=self.computes_on,
            own=own,
            graphs=self.graphs,
        )

    def expect(
        self,
        inputs: Sequence[Any],
        state: dict[str, Tensor] | None = None,
        *,
        own_first: bool,
        key: TruthKey | None = None,
    ) -> Expected:
        """Calls of the same `key` share their truth, unless it depends on a state."""
        key = None if state or self.changing else key
        known = self.truths.find(key)
        if known is not None:
            return Expected(lambda: known, known.reference_outputs if own_first else None)
        own = self.outputs_of(inputs, state) if own_first else None
        return Expected(partial(self.truths.compute, key, partial(self.truth_of, inputs, state, own)), own)

    def compare(
        self, truth: Truth, outputs: FlatOutputs, label: str, kind: InputKind = GIVEN
    ) -> tuple[Outcome | None, Trial]:
        return compare_outputs(
            truth,
            outputs,
            self.loaded.problem.tolerance,
            label,
            exact=kind.is_exact,
            by_peak=kind.by_peak,
            copied=self.truths.copied,
            terms=self._find_terms(kind),
        )

    def is_surely_close(self, own: FlatOutputs, outputs: FlatOutputs, kind: InputKind = GIVEN) -> bool:
        """A fast sufficient test for `compare` against the reference's outputs `own`. False means unknown."""
        terms, tolerance = self._find_terms(kind), self.loaded.problem.tolerance
        keeps_all = self.traits.keeps_all and not tolerance.is_fixed
        return are_surely_close(own, outputs, tolerance, self.truths.copied, terms, keeps_all=keeps_all)

    def _find_terms(self, kind: InputKind) -> Terms | None:
        if self.terms is None:
            return None
        terms = replace(self.terms, are_usual=kind.has_usual_sizes, are_alike=kind.makes_terms_alike)
        return replace(terms, truncated=max(terms.added, terms.truncated)) if kind.biases_sums else terms

    def grow(self, outputs: FlatOutputs) -> bool:
        """Return True if outputs are so much larger than those for given inputs that a legitimate program that computes
        in float16, of inputs no wider than that, may exceed its range.
        """
        return self.format_bits == 16 and find_largest_output(outputs) > MOST_GROWTH * self.largest_output

    def keep(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        if self.computes_on is None:
            return state
        return {name: copy_to(tensor, HOST) for name, tensor in state.items()}


def prepare_reference(
    loaded: LoadedProblem, device: Device, seed: int, input_seed: int, *, thrift: Thrift = "planned"
) -> Reference:
    """Construct the reference, run it twice to learn the form of its outputs and its effect on its state, and plan
    memory.

    Raises ProblemError if it fails, returns non-finite outputs or varies beyond its tolerance; ProblemTooLarge if no
    plan fits.
    """
    require_memory(loaded, measure_inputs(loaded), device.measure_room().device_bytes, device.name)
    with contain_memory(loaded, device.torch_device), torch.no_grad():
        reference = _prepare(loaded, device, seed, input_seed, on_host=thrift != "planned")
        if reference.changing and thrift == "planned":
            source = random.Random(f"later states {input_seed}")
            found = make_later_states(reference, source)
            reference = replace(reference, later=found.states, far=found.far)
        room = device.measure_room()
    plan = choose_plan(reference.need, room, thrift)
    if plan is None:
        least = plan_smallest(reference.need)
        require_memory(loaded, least.device_bytes, room.device_bytes, device.name)
        host_bytes = count_host_bytes(least, reference.need)
        require_memory(loaded, host_bytes + room.is_shared * least.device_bytes, room.host_bytes, "the host")
        raise ProblemTooLarge(f"{loaded.problem.name}: no memory plan fits {room}")
    if not (device.replays_calls or plan.timed_outputs):
        plan = replace(plan, baseline_beside=False)
    footprint = reference.footprint
    if plan.kept_calls < reference.need.kept_calls:
        footprint = replace(footprint, most_kept=plan.kept_calls)
    is_kept = device.keeps_references and plan == plan_in_full(reference.need)
    truths = KeptTruths(int(room.device_bytes * TRUTHS_SHARE) if is_kept else 0)
    graphs = CallGraphs() if is_kept and _may_replay(reference, room) else None
    return replace(reference, plan=plan, footprint=footprint, truths=truths, graphs=graphs)


def _may_replay(reference: Reference, room: Room) -> bool:
    """Return True if calls take long enough for CUDA graphs of them, which their memory permits."""
    has_effects = reference.changing or reference.changes_inputs or reference.draws_numbers or reference.views
    needed_bytes = reference.need.float64_bytes + reference.need.work_bytes
    return reference.call_s > LEAST_CALL_S and not has_effects and ROOMY * needed_bytes < room.device_bytes


def _prepare(loaded: LoadedProblem, device: Device, seed: int, input_seed: int, *, on_host: bool) -> Reference:
    model = loaded.make_model(seed, device.torch_device)
    inputs = loaded.make_inputs(input_seed, device.torch_device)
    require_usable_inputs(loaded, inputs)
    state = list_state(model)
    require_dtype_applies(loaded, [*list_tensors(inputs), *state.values()])
    generators = read_generators(device.torch_device)
    on_host |= ROOMY * count_bytes(list_tensors(inputs)) > device.measure_room().device_bytes
    if on_host:
        inputs = copy_all_to_host(inputs)
    used = loaded.make_inputs(input_seed, device.torch_device)
    require_repeatable(loaded, list_tensors(inputs), list_tensors(used))
    if not on_host:
        loaded.kept = frozenset(list_memory(inputs) & list_memory(used))
    if may_share_memory(inputs, used):
        used = copy_tensors(used)
    versions = list_versions(used)
    is_large = count_bytes([*list_tensors(inputs), *state.values()]) > SMALL_BYTES
    outputs, changing = run_and_compare_state(loaded, model, used)
    require_device(loaded, outputs, device.torch_device)
    changes_inputs = loaded.problem.in_place or list_versions(used) != versions or have_changed(inputs, used)
    del used
    require_weights_known(loaded, model, state)
    draws_numbers = loaded.problem.seeded_calls and have_advanced(generators, device.torch_device)
    later = () if is_large else find_later_changes(loaded, model, changing)
    dynamic = list_dynamic(loaded, model, state, input_seed, device) if loaded.problem.dynamic_weights else ()
    later = (*later, *(name for name in dynamic if name not in changing))
    if draws_numbers or later:
        del outputs
        inputs = seed_call(inputs, input_seed) if draws_numbers else inputs
        outputs, changing = run_and_compare_state(
            loaded, model, copy_tensors(inputs, device.torch_device), others={*later, *changing}
        )
    if on_host or ROOMY * count_bytes(outputs.tensors) > device.measure_room().device_bytes:
        outputs = keep_on_host(outputs)
    again = run_again(loaded, model, inputs, device, changing)
    computes_on = device.torch_device if on_host else None
    find_truth = partial(compute_truth, loaded, model, inputs, state=changing, device=computes_on)
    variation = compare_runs(loaded, outputs, again.outputs, find_truth)
    write_state(model, changing)
    require_narrow(loaded, outputs)
    if not has_only_numbers(outputs):
        require_finite(loaded, find_truth())
    sizes = [count_bytes(tensors) for tensors in (list_tensors(inputs), state.values(), outputs.tensors)]
    is_small = sum(sizes) <= SMALL_BYTES and again.call_s <= SMALL_CALL_S
    own = outputs.tensors[: len(outputs.tensors) - len(changing)]
    traits = learn_traits(loaded, model, inputs, own, changing=changing, device=device.torch_device)
    declared, derived = list_declared(loaded.problem), list_derived(traits, inputs)
    wider = pad_rows(inputs) if is_small or any(kind.changes_layout for kind in declared) else ()
    slack_bytes = device.input_slack_bytes
    footprint = Footprint.measure(
        inputs, outputs, state, wider, changing=changing, slack_bytes=slack_bytes, views=again.views, alike=again.alike
    )
    need = MemoryNeed(
        inputs_bytes=sizes[0] + 2 * count_bytes(changing.values()),  # the state of a call, and packed
        weights_bytes=sizes[1], outputs_bytes=sizes[2], arena_bytes=footprint.arena_bytes,
        work_bytes=again.work_bytes or 0,
        mixing_bytes=max((kind.count_bytes(inputs) for kind in (*declared, *derived)), default=0),
        float64_bytes=estimate_float64_bytes(model, inputs, outputs.tensors, again.work_bytes),
        slice_bytes=device.slice_bytes, context_bytes=device.context_bytes, kept_calls=count_kept_calls(sizes[2]),
        row_steps=ROW_STEPS if changing else 0,
        further_steps=count_further_calls(loaded.problem, derived, is_small=is_small),
    )  # fmt: skip
    return Reference(
        loaded=loaded, device=device, seed=seed, secret=input_seed, model=model, state=state,
        input_shapes=list_shapes(inputs), footprint=footprint, changing=changing,
        call_s=again.call_s, is_small=is_small, changes_inputs=changes_inputs, variation=variation,
        draws_numbers=draws_numbers, views=again.views, traits=traits, derived_kinds=derived,
        terms=find_terms(traits, inputs),
        format_bits=find_format_bits([*list_tensors(inputs), *state.values()], allow_tf32=loaded.problem.allow_tf32),
        need=need, plan=plan_in_full(need), largest_output=find_largest_output(outputs), dynamic=dynamic,
    )  # fmt: skip
