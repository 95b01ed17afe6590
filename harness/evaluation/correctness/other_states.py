"""What calls begin with that is new to the candidate: states that calls of the reference lead to, and other weights,
scaled by random factors near 1, so that they stay usable, and outputs show them.
"""

from __future__ import annotations

import copy
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from harness.domain import ProblemError
from harness.evaluation.correctness.reference_checks import has_only_numbers
from harness.evaluation.correctness.truth import copy_tensors, list_state, read_state, run_reference, write_state
from harness.evaluation.memory_plan import ROOMY, SMALL_BYTES
from harness.problems.far_states import FEW, FarStates, State, find_far_states
from harness.problems.inputs.kind import GIVEN
from harness.problems.inputs.tensors import exchange_few, split_parts, without_repeats
from harness.problems.loading import LoadedProblem
from harness.problems.operators import INDEXING, OperatorCalls, OperatorUse
from harness.problems.watched_process import limit_reference
from harness.sandbox.devices import Device
from harness.tensors.outputs import FlatOutputs
from harness.tensors.values import HOST, count_bytes, has_same_bits, list_tensors

if TYPE_CHECKING:
    from harness.evaluation.correctness.reference import Reference

# Of calls before each state: one after the other, for what calls do in turn; some of all that follow, which are more
# where states are small, and of all that come late; and most.
IN_TURN, CHOSEN, MOST_CHOSEN, MOST_CALLS = 3, 3, 12, 1024
EARLY = (43, 85, 127, 128)  # calls, from the states after which those after many more are extrapolated; others are late
MOST_KEPT, SMALL_STATE = 8, 8  # states that are kept for what the next call changes; elements whose growth counts
LATER_S, LONGEST_S = 0.5, 8.0  # for all calls; for those one after the other
LATER_CALLS, LATER_CALLS_S = 32, 0.1  # at most, to find the state that only some calls change
MOST_BYTES = 512 << 20  # of inputs and weights: larger problems are not run on the CPU
HOST_CALL_S = 0.01  # of the longest call on a GPU that is repeated on the CPU if the problem is not small
LEAST, MOST = 0.75, 1.25  # factors
PARTS = (16, 64, 256, 1024, 4096)  # of which one is scaled
INITIAL_SHARE, FAR_SHARE = 1 / 6, 1 / 3
UNUSUAL_SHARE = 0.25  # of states that a call with another kind of inputs leaves
OTHER_SHARE = 0.8  # of timed calls that begin with weights of another seed: those with known ones do not count
VARIED_SHARE = 0.25  # of those with dynamic weights, some of which are much larger, or have the other sign
SCALED_SHARE, LARGE = 0.5, 1024  # of other timed states, in elements
MIXABLE = (torch.float64, torch.float32, torch.bfloat16, torch.float16)  # states
VARIED = "varied"
VARIED_ONE_IN, LARGER = 64, (4.0, 16.0)  # elements of varied weights, and how much larger some are, 16 bits the less

Changes = Literal["all", "parts", "one"]


@dataclass(frozen=True, slots=True)
class LaterStates:
    """States after several calls: some in turn, some of all that follow, and the last."""

    states: tuple[State, ...] = ()
    far: FarStates | None = None


@torch.no_grad()
def make_later_states(reference: Reference, source: random.Random) -> LaterStates:
    """Find states after several calls, the last after as many as possible, so that caches become full: one more call
    succeeds from the last, and two from the others. Most that are chosen are such that the next call changes the state
    as few others do. There are none if weights alone change, not two calls succeed in `LONGEST_S`, or the device has
    too little memory.
    """
    inputs = reference.make_inputs(source.getrandbits(62))
    device = _choose_device(reference, inputs)
    kept, most = (MOST_KEPT, MOST_CHOSEN) if count_bytes(reference.changing.values()) <= SMALL_BYTES else (0, CHOSEN)
    if device is None or not _has_room(reference, IN_TURN + most + len(EARLY) + 2 * kept + CHOSEN + 3):
        return LaterStates()
    began_s, chosen, late = time.monotonic(), _ChosenStates(source, kept, most), _ChosenStates(source, kept, CHOSEN)
    in_turn, early = list[tuple[int, State]](), list[tuple[int, State]]()
    state = last = (0, reference.changing)
    model = copy.deepcopy(reference.model).to(device)

    def call_from(state: State) -> tuple[FlatOutputs, State] | None:
        """Return outputs and the state after a call; None if it fails."""
        write_state(model, state)
        with suppress(ProblemError):
            outputs = run_reference(reference.loaded, model, copy_tensors(inputs, device))
            after = read_state(model, state)
            return (outputs, after) if all(map(has_finite_values, after.values())) else None
        return None

    for made in range(MOST_CALLS + 1):
        called = call_from(state[1])
        if called is None or time.monotonic() - began_s > (LONGEST_S if len(in_turn) < IN_TURN else LATER_S):
            break
        after = called[1]
        if made == 0 and reference.dynamic and not _differ(state[1], after):
            return LaterStates()  # only weights
        if 1 < made <= IN_TURN + 1:
            in_turn.append(last)
        elif made > IN_TURN + 1:
            (chosen if made <= EARLY[-1] else late).offer(*last, state[1])
        early += [last] * (last[0] in EARLY)
        last, state, inputs = state, (made + 1, after), reference.make_inputs(source.getrandbits(62))
    if last[1] is reference.changing:
        return LaterStates()
    found = [*in_turn, *chosen.choose(), *late.choose(), last]
    far, is_exact = None, reference.variation is None
    if len(in_turn) == IN_TURN:
        history = [*in_turn, *early] if len(early) == len(EARLY) else [*found, state]
        far = find_far_states(history, source, partial(_keep_finite, call_from), repeats_bits=is_exact)
    moved = tuple(_move(one, reference.changing) for _, one in found)
    return LaterStates(moved, far and far.move_to(reference.changing))


class _ChosenStates:
    """Keeps one of the states that calls change in the same way, of `most_kept` ways."""

    def __init__(self, source: random.Random, most_kept: int, most: int) -> None:
        self._source, self._most_kept, self._most = source, most_kept, most
        self._kept: dict[tuple[float, ...], tuple[int, State]] = {}  # by the changes, with the number of calls before
        self._counts = Counter[tuple[float, ...]]()
        self._any: list[tuple[int, State]] = []

    def offer(self, calls: int, state: State, after: State) -> None:
        changes = describe_change(state, after) if self._most_kept else ()
        self._counts[changes] += 1
        may_keep = changes in self._kept or len(self._kept) < self._most_kept
        if may_keep and self._source.randrange(self._counts[changes]) == 0:
            self._kept[changes] = calls, state
        slot = len(self._any) if len(self._any) < self._most else self._source.randrange(self._counts.total())
        self._any[slot : slot + 1] = [(calls, state)] * (slot < self._most)

    def choose(self) -> list[tuple[int, State]]:
        """Return the rarest, and any others, in the order of their calls."""
        rare = [changes for changes in self._kept if FEW * self._counts[changes] <= self._counts.total()]
        found = [self._kept[changes] for changes in sorted(rare, key=self._counts.__getitem__)[:CHOSEN]]
        known = {calls for calls, _ in found}
        found += [one for one in self._any if one[0] not in known][: self._most - len(found)]
        return sorted(found, key=itemgetter(0))


def describe_change(before: State, after: State) -> tuple[float, ...]:
    """Return which tensors change, and whether small ones grow."""

    def describe(one: Tensor, other: Tensor) -> float:
        if has_same_bits(one, other):
            return 0.0
        is_small = one.numel() <= SMALL_STATE and not one.is_complex()
        return float((other.double() - one.double()).sum().sign()) if is_small else math.inf

    return tuple(describe(one, after[name]) for name, one in before.items())


def _keep_finite(
    call: Callable[[State], tuple[FlatOutputs, State] | None], state: State
) -> tuple[FlatOutputs, State] | None:
    called = call(state)
    return called if called is not None and all(map(has_finite_values, called[0].tensors)) else None


def find_later_changes(loaded: LoadedProblem, model: nn.Module, changing: Collection[str]) -> tuple[str, ...]:
    """Return buffers that only later calls change, for example every second one. The calls run on the CPU, since they
    may index beyond a state.
    """
    buffers = {name for name, _ in model.named_buffers()}
    names = buffers & list_state(model).keys() - set(changing)
    if not names:
        return ()
    copied = copy.deepcopy(model).to(HOST)
    before = {name: tensor.clone() for name, tensor in list_state(copied).items() if name in names}
    began_s = time.monotonic()
    with suppress(ProblemError):
        for seed in range(LATER_CALLS):
            run_reference(loaded, copied, copy_tensors(loaded.make_inputs(seed, HOST)))
            if time.monotonic() - began_s > LATER_CALLS_S:
                break
    now = list_state(copied)  # modules may replace their buffers
    return tuple(name for name, tensor in before.items() if not has_same_bits(tensor, now[name]))


def watch_operators(reference: Reference, inputs: Sequence[Any]) -> OperatorUse:
    """Watch the first such call only."""
    if reference.operators:
        return reference.operators[0]
    watch, problem = OperatorCalls(), reference.loaded.problem
    with torch.no_grad(), watch, limit_reference(f"{problem.suite}/{problem.name}.py", "forward"):
        reference.model(*copy_tensors(inputs, reference.computes_on))
    write_state(reference.model, reference.changing)
    reference.operators.append(watch.use)
    return watch.use


def may_index(reference: Reference, inputs: Sequence[Any]) -> bool:
    """Return whether a call with values other than these may index beyond a tensor: on a GPU that breaks this process's
    context.
    """
    if not all(tensor.is_floating_point() or tensor.is_complex() for tensor in list_tensors(inputs)):
        return True
    use = watch_operators(reference, inputs)
    has_counters = not all(map(torch.is_floating_point, reference.changing.values()))
    return use.limits_values or (has_counters and use.has(INDEXING))


def _choose_device(reference: Reference, inputs: Sequence[Any]) -> torch.device | None:
    """Choose the CPU if a call may index beyond its state. None if calls take too long there."""
    if reference.call_s > LATER_S / 4:
        return None
    if not (reference.device.has_contexts and may_index(reference, inputs)):
        return reference.device.torch_device
    needed_bytes = reference.need.inputs_bytes + reference.need.weights_bytes
    is_short = reference.call_s <= HOST_CALL_S and needed_bytes <= MOST_BYTES
    return HOST if needed_bytes <= SMALL_BYTES or is_short else None


def _has_room(reference: Reference, count: int) -> bool:
    needed_bytes = count * count_bytes(reference.changing.values()) + reference.need.weights_bytes
    return ROOMY * needed_bytes <= reference.device.measure_room().device_bytes


def _differ(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> bool:
    return not all(has_same_bits(before[name].to(tensor.device), tensor) for name, tensor in after.items())


def _move(state: Mapping[str, Tensor], like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.to(like[name].device) for name, tensor in state.items()}


def has_finite_values(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() or bool(tensor.isfinite().all())


def can_scale(weights: Tensor) -> bool:
    return weights.is_floating_point() and weights.element_size() > 1


def list_scalable(model: nn.Module) -> list[str]:
    """Return the names of parameters, all of tied ones."""
    return [name for name, weights in model.named_parameters(remove_duplicate=False) if can_scale(weights)]


def scale(weights: Tensor, generator: torch.Generator) -> None:
    """In place."""
    for part in split_parts(without_repeats(weights)):
        factors = torch.rand(part.shape, generator=generator, device=part.device).mul_(MOST - LEAST).add_(LEAST)
        part.copy_(part * factors.to(part.dtype))


def scale_state(
    model: nn.Module, state: Mapping[str, Tensor], source: random.Random, changes: Changes = "all"
) -> dict[str, Tensor]:
    """Return the model's `state` with all weights scaled. `changes`: a part of each, which samples may miss, or one
    tensor alone, in which few slices change places half of the time. Tied ones stay tied.
    """
    own, scaled, parts = list_state(model), dict[int, Tensor](), 1 if changes == "all" else source.choice(PARTS)
    chosen = {own[name].data_ptr(): weights for name, weights in state.items() if can_scale(weights)}
    is_exchanged = False
    if changes == "one" and any(one.numel() for one in chosen.values()):
        (place,) = source.choices(list(chosen), [math.sqrt(one.numel()) for one in chosen.values()])
        chosen, parts = {place: chosen[place]}, source.choice((1, parts))
        is_exchanged = chosen[place].dim() > 1 and source.random() < 0.5
    for place, weights in chosen.items():
        generator = torch.Generator(weights.device).manual_seed(source.getrandbits(62))
        if is_exchanged:
            dim = source.randrange(weights.dim())
            scaled[place] = exchange_few(weights.movedim(dim, -1), generator).movedim(-1, dim).contiguous()
        else:
            scaled[place] = _scale_part(weights, parts, source, generator)
    return {name: scaled.get(own[name].data_ptr(), weights) for name, weights in state.items()}


def _scale_part(weights: Tensor, parts: int, source: random.Random, generator: torch.Generator) -> Tensor:
    scaled = weights.clone(memory_format=torch.contiguous_format)
    length = max(weights.numel() // parts, 1)
    begin = source.randrange(weights.numel() - length + 1) if weights.numel() else 0
    scale(scaled.view(-1)[begin : begin + length], generator)
    return scaled


def vary_weights(model: nn.Module, state: Mapping[str, Tensor], source: random.Random) -> dict[str, Tensor]:
    """Return the model's `state`, where scattered elements of parameters are larger, or have the other sign if both
    signs occur. Tied ones stay tied.
    """
    own, varied, names = list_state(model), dict[int, Tensor](), set(list_scalable(model))
    factor = source.choice(LARGER)
    for name in (one for one in state if one in names):
        place = own[name].data_ptr()
        if place not in varied:
            one = varied[place] = state[name].clone(memory_format=torch.contiguous_format)
            generator = torch.Generator(one.device).manual_seed(source.getrandbits(62))
            other_sign = 0.5 if bool((one < 0).any()) and bool((one > 0).any()) else 0.0
            larger = factor if one.element_size() > 2 else LARGER[0]
            for part in split_parts(without_repeats(one)):
                drawn = torch.rand(part.shape, generator=generator, device=part.device) * VARIED_ONE_IN
                part.copy_(torch.where(drawn < 1, torch.where(drawn < other_sign, -part, part * larger), part))
    return {name: varied.get(own[name].data_ptr(), one) if name in names else one for name, one in state.items()}


def list_dynamic(
    loaded: LoadedProblem, model: nn.Module, state: dict[str, Tensor], other_seed: int, device: Device
) -> tuple[str, ...]:
    """Return the names of parameters that can be scaled and of all state that depends on the seed."""
    drawn = list_state(loaded.make_model(other_seed, device.torch_device))
    scalable = set(list_scalable(model))
    return tuple(name for name, one in state.items() if name in scalable or not has_same_bits(one, drawn[name]))


def draw_other_weights(reference: Reference, seed: int) -> dict[str, Tensor]:
    """Return dynamic weights of another seed; none if memory is short."""
    if ROOMY * reference.need.weights_bytes > reference.device.measure_room().device_bytes:
        return {}
    drawn = list_state(reference.loaded.make_model(seed, reference.device.torch_device))
    return {name: drawn[name] for name in reference.dynamic}


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenState:
    """How the state of a timed call comes about. `step` is the kind of inputs of the call before, `calls` a number of
    calls that are skipped.
    """

    origin: Literal["initial", "later", "far"]
    step: str = GIVEN.name
    calls: int = 0
    varies_weights: bool = False

    @property
    def compared_as(self) -> str:
        """Return the kind of inputs whose errors are as large."""
        return VARIED if self.varies_weights and self.step == GIVEN.name else self.step


def has_given_state(reference: Reference) -> bool:
    return bool(reference.changing) and reference.plan.stress and reference.computes_on is None


def plan_state(reference: Reference, seed: int) -> GivenState:
    """Both calls have the same kind of inputs, or one of them has the given kind."""
    source = random.Random(f"origin {seed}")
    place, is_unusual = source.random(), source.random() < UNUSUAL_SHARE
    varies = reference.loaded.problem.dynamic_weights and source.random() < VARIED_SHARE
    if reference.dynamic and not reference.later:  # calls change no state
        return GivenState(origin="later", varies_weights=varies)
    if place < INITIAL_SHARE:
        return GivenState(origin="initial", varies_weights=varies)
    step, steps = reference.choose_timed_step(seed), (*reference.timed_steps, *reference.untimed_steps)
    if step == GIVEN.name and is_unusual and steps:
        step = source.choice(steps)
    elif step != GIVEN.name and source.random() < 1 / 2:
        step = GIVEN.name
    if reference.far is None or place > INITIAL_SHARE + FAR_SHARE:
        return GivenState(origin="later", step=step, varies_weights=varies)
    return GivenState(origin="far", step=step, calls=reference.far.draw(source), varies_weights=varies)


def name_state(reference: Reference, seed: int) -> str:
    """Return the group of states, for given inputs, whose time is compared with that of others; "" for usual ones."""
    if reference.far is None or not has_given_state(reference):
        return ""
    planned, step = plan_state(reference, seed), reference.choose_timed_step(seed)
    begin = reference.far.find_group(planned.calls) if planned.origin == "far" and step == GIVEN.name else 0
    return f"{step} (in states after {begin} calls)" if begin else ""


def is_usual_state(reference: Reference, seed: int) -> bool:
    """Return whether few calls lead to the state, and at least one, so that all parts of a call have an effect."""
    return not has_given_state(reference) or plan_state(reference, seed).origin == "later"


def make_given_state(reference: Reference, seed: int) -> dict[str, Tensor]:
    planned, source = plan_state(reference, seed), random.Random(f"state {seed}")
    given = source.choice((reference.changing, *reference.later[:-1]))
    if planned.origin == "initial":
        given = reference.changing
    elif planned.origin == "far" and reference.far is not None:
        given = reference.far.at(planned.calls)
    if reference.dynamic and source.random() < OTHER_SHARE:
        given = given | draw_other_weights(reference, source.getrandbits(62))
    state = given if planned.origin == "initial" else _call(reference, given, planned.step, source)
    if reference.loaded.problem.dynamic_weights:
        state = scale_state(reference.model, state, source)
        return _vary_weights(reference, state, source) if planned.varies_weights else state
    if planned.origin != "initial" and source.random() < SCALED_SHARE:  # a call may leave most of a state as it was
        return scale_large_parts(reference, state, source) or state
    return state


def scale_large_parts(
    reference: Reference, state: dict[str, Tensor], source: random.Random
) -> dict[str, Tensor] | None:
    """Return the state with a part of each large tensor scaled; None without such tensors."""
    large = {name: one for name, one in state.items() if one.numel() >= LARGE and can_scale(one)}
    return state | scale_state(reference.model, large, source, "parts") if large else None


def _call(reference: Reference, given: dict[str, Tensor], step: str, source: random.Random) -> dict[str, Tensor]:
    """Return the state that a call leaves, or one between that and `given`."""
    seed = source.getrandbits(62)
    after = _find_usable(reference, given, seed, step) if step != GIVEN.name else None
    after = after or find_after(reference, given, seed, GIVEN.name)
    share = source.choice((1.0, source.random()))  # floating numbers that count calls are whole only at an end
    return {
        name: before.lerp(after[name], share) if before.dtype in MIXABLE else after[name]
        for name, before in given.items()
    }


def find_after(reference: Reference, given: dict[str, Tensor], seed: int, step: str) -> dict[str, Tensor]:
    """Return the state after a call. Raises ProblemError."""
    outputs = reference.outputs_of(reference.make_inputs(seed, step), given)
    return dict(zip(given, outputs.tensors[len(outputs.tensors) - len(given) :], strict=True))


def _find_usable(reference: Reference, given: dict[str, Tensor], seed: int, step: str) -> dict[str, Tensor] | None:
    """Return the state after a call with another kind of inputs; None if that or the next call fails."""
    with suppress(ProblemError):
        after = find_after(reference, given, seed, step)
        is_finite = all(map(has_finite_values, after.values()))
        return after if is_finite and _is_usable(reference, after, seed) else None
    return None


def _is_usable(reference: Reference, state: dict[str, Tensor], seed: int) -> bool:
    """Raises ProblemError."""
    outputs = reference.outputs_of(reference.make_device_inputs(seed + 1), state)
    return has_only_numbers(outputs) and not reference.grow(outputs)


def _vary_weights(reference: Reference, state: dict[str, Tensor], source: random.Random) -> dict[str, Tensor]:
    varied = vary_weights(reference.model, state, source)
    with suppress(ProblemError):
        return varied if _is_usable(reference, varied, source.getrandbits(61)) else state
    return state
