"""Makes the inputs and expected outputs of the calls that check correctness, and detects outputs that share memory with
inputs or other outputs.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from harness.domain import CandidateFailure, Finding, Outcome, Problem, ProblemError
from harness.evaluation.correctness.comparison import compare_leaves
from harness.evaluation.correctness.leaf_comparison import LeafVerdict
from harness.evaluation.correctness.precision import ReversedTies
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.correctness.reference_checks import OUTPUT_FORM, has_only_numbers, refuse_varying
from harness.evaluation.correctness.truth import (
    Expected,
    TruthLeaf,
    copy_tensors,
    keep_on_host,
)
from harness.problems.inputs.kind import GIVEN, DerivedKind, InputKind
from harness.problems.inputs.tensors import PATTERNS, perturb
from harness.sandbox.arena_layout import Footprint
from harness.sandbox.model_session import ModelSession, Run
from harness.tensors.outputs import Change, FlatOutputs, KeptOutputs

MOST_FAILED = 4  # calls of a kind of timed inputs for which the reference fails, per call for which it does not
DRAWS, FEW_DRAWS = 4, 2  # at most, until outputs for inputs of a derived kind do not depend on roundings
# Largest share of the allowed error that one rounding of the inputs may cause. In 16-bit formats the roundings of
# inputs and outputs are half of what is allowed.
CALM, CALM_IN_16_BITS = 0.5, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exercise:
    """One call. Before it the evaluator writes `weights`, or `state` (None: the usual state) unless the call
    `continues` from the one before. `footprint` is the arena layout for outputs of another shape.
    """

    label: str
    seed: int
    inputs: tuple[Any, ...]
    expected: Expected
    kind: InputKind = GIVEN
    state: dict[str, Tensor] | None = None
    continues: bool = False
    weights: dict[str, Tensor] | None = None
    footprint: Footprint | None = None
    check: str = "correctness"

    @property
    def can_refine(self) -> bool:
        return self.weights is None and not self.continues

    @property
    def is_repeatable(self) -> bool:
        return self.label == GIVEN.name


class CallMaker:
    """Makes fresh inputs from `seeds`; `source` makes all other choices."""

    def __init__(self, reference: Reference, seeds: Iterator[int]) -> None:
        self.reference = reference
        self.seeds = seeds
        self.source = random.Random(next(seeds))
        self._has_made_one = False
        self._variants: dict[DerivedKind, list[int]] = {}  # that were not used yet
        self._fit = Counter[DerivedKind]()  # calls of a kind
        self._failed = Counter[DerivedKind]()  # those for which the reference failed

    def add_timed_steps(self) -> Reference:
        """Return the reference with kinds for timed calls. Call after all calls were made. What one kind reveals, such
        as a mask without marks, others may have, too.
        """
        usable = {kind for kind, calls in self._fit.items() if MOST_FAILED * calls >= self._failed[kind]}
        fit = [kind for kind in self.reference.derived_kinds if kind in usable]
        timed, untimed = (tuple(kind.name for kind in fit if kind.is_timed is wanted) for wanted in (True, False))
        failing = frozenset((*timed, *untimed) if self._failed else ())
        return replace(self.reference, timed_steps=timed, untimed_steps=untimed, failing_steps=failing)

    def make(self, kind: InputKind) -> tuple[Exercise, ...]:
        return self._make_derived(kind) if isinstance(kind, DerivedKind) else (self.make_declared(kind),)

    def make_declared(self, kind: InputKind) -> Exercise:
        seed = next(self.seeds)
        inputs = self.reference.make_inputs(seed, kind.name)
        expected = self.expect(inputs, kind, seed)
        return Exercise(label=kind.name, seed=seed, inputs=inputs, expected=expected, kind=kind)

    def expect(self, inputs: tuple[Any, ...], kind: InputKind, seed: int) -> Expected:
        """Compare the first call with the truth itself, so that its errors are known."""
        is_first, self._has_made_one = not self._has_made_one, True
        own_first = self.reference.compares_own_first and not is_first and not kind.is_exact
        expected = self.reference.expect(inputs, own_first=own_first, key=(seed, kind.name))
        if not self.reference.footprint.expects(expected.form.reference_outputs):
            refuse_varying(self.reference.loaded, OUTPUT_FORM)
        return expected

    def _make_derived(self, kind: DerivedKind) -> tuple[Exercise, ...]:
        """Return no call if the reference fails, or if all its outputs depend on roundings. For a small problem, prefer
        inputs for which all outputs are compared.
        """
        exercise = None
        try:
            for _ in range(DRAWS if self.reference.is_small else FEW_DRAWS):
                made = self._make_if_fit(kind, self.draw_seed(kind))
                if made is not None and (exercise is None or made.expected.is_calm):
                    exercise = made
                if exercise is not None and (exercise.expected.is_calm or not self.reference.is_small):
                    break
        except ProblemError:
            self._failed[kind] += 1
        if exercise is None:
            return ()
        self._fit[kind] += 1
        if self.reference.compares_own_first:
            need = self.reference.need.count_worker_bytes(self.reference.footprint.kept_calls)
            self.reference.device.release_allocator_cache(needed_bytes=need)  # the worker may need it for the call
        return (exercise,)

    def draw_seed(self, kind: DerivedKind) -> int:
        """Use all variants of a kind before one is used again. The first inputs are changed as a whole."""
        if kind not in self._variants:
            whole = self.source.randrange(0, kind.variants, kind.whole_one_in)
            others = [one for one in range(kind.variants) if one != whole]
            self._variants[kind] = [*self.source.sample(others, len(others)), whole]
        left = self._variants[kind]
        wanted = left.pop()
        left += [] if left else self.source.sample(range(kind.variants), kind.variants)
        return next(seed for seed in self.seeds if kind.find_variant(seed) == wanted)

    def _make_if_fit(self, kind: DerivedKind, seed: int) -> Exercise | None:
        made = self.reference.make_inputs(seed, kind.name) if self.reference.has_full_plan else None
        perturbed = compute_perturbed(self.reference, seed, kind, made)
        inputs = made or self.reference.make_inputs(seed, kind.name)
        expected = keep_calm(self.reference, self.expect(inputs, kind, seed), perturbed, kind, seed)
        if expected is None:
            return None
        return Exercise(label=kind.name, seed=seed, inputs=inputs, expected=expected, kind=kind.take_variant(seed))


def select_calm(
    reference: Reference,
    expected: Expected,
    seed: int,
    kind: InputKind,
    *,
    inputs: Sequence[Any] | None = None,
    state: Mapping[str, Tensor] | None = None,
) -> Expected | None:
    """See `keep_calm`. All outputs are calm for inputs that the problem declares. `inputs` are by default those of the
    kind, which a state may have instead.
    """
    if not isinstance(kind, DerivedKind):
        return expected
    perturbed = compute_perturbed(reference, seed, kind, inputs, state=state)
    return keep_calm(reference, expected, perturbed, kind, seed)


def compute_perturbed(
    reference: Reference,
    seed: int,
    kind: DerivedKind,
    made: Sequence[Any] | None = None,
    *,
    state: Mapping[str, Tensor] | None = None,
) -> FlatOutputs | None:
    """Run the reference from `state` on inputs moved by one rounding, or with equal ones ordered the other way; return
    None if the kind does not need it, or if the calm outputs are known. Copy the inputs if they are `made` already.
    Raises ProblemError.

    The outputs are in host memory if the memory plan has no space for them.
    """
    if not kind.scales_values(reference.traits) or (seed, kind.name) in reference.truths.calm:
        return None
    # a host takes long to draw gigabytes of roundings
    inputs = copy_tensors(made) if made else reference.make_device_inputs(seed, kind.name)
    given = None if state is None else dict(state)
    if kind.take_variant(seed).has_ties:
        with ReversedTies():
            outputs = replace(reference, graphs=None).run_on(inputs, given)
    else:
        perturb(inputs, seed)
        outputs = reference.run_on(inputs, given)
    is_kept = reference.compares_own_first or reference.computes_on is not None
    return outputs if is_kept else keep_on_host(outputs)


def keep_calm(
    reference: Reference, expected: Expected, perturbed: FlatOutputs | None, kind: InputKind, seed: int
) -> Expected | None:
    """Select outputs that depend so little on roundings of the inputs that every legitimate program is near them."""
    key, known = (seed, kind.name), reference.truths.calm
    calm = known[key] = known.get(key) or _find_calm(reference, expected, perturbed, kind)
    if all(calm):
        return expected
    leaves = tuple(replace(leaf, is_calm=one) for leaf, one in zip(expected.truth.leaves, calm, strict=True))
    is_useful = any(leaf.is_calm and leaf.reference.dtype in PATTERNS for leaf in leaves)
    return Expected(lambda: replace(expected.truth, leaves=leaves)) if is_useful else None


def _find_calm(
    reference: Reference, expected: Expected, perturbed: FlatOutputs | None, kind: InputKind
) -> tuple[bool, ...]:
    form, tolerance = expected.form.reference_outputs, reference.loaded.problem.tolerance
    none, every = (False,) * len(form.tensors), (True,) * len(form.tensors)
    if reference.grow(form):
        return none
    if not has_only_numbers(form) or not (perturbed is None or perturbed.has_form_of(form)):
        return none
    own = expected.own
    if perturbed is None or (own is not None and reference.is_surely_close(own, perturbed, kind)):
        return every  # within a fifth of the limit, and an eighth for the reference's own error
    # A moved input moves what copies it, which says nothing of programs: no output counts as copied.
    verdicts = compare_leaves(expected.truth, perturbed, tolerance, by_peak=kind.by_peak, copied=())
    return tuple(_is_calm(leaf, verdict) for leaf, verdict in zip(expected.truth.leaves, verdicts, strict=True))


def _is_calm(leaf: TruthLeaf, verdict: LeafVerdict) -> bool:
    return verdict.worst_ratio <= (CALM_IN_16_BITS if leaf.is_16_bit else CALM)


REUSES_OUTPUT = Finding(
    check="reuses_output",
    severity="note",
    message="a later call uses the memory of an earlier output again: use each output before the next call",
)
_CHANGED = "an output of an earlier call changed"
_CAUSES = {
    Change.REUSED: "a later call uses its memory; the problem declares FRESH_OUTPUTS = True: return new memory "
    "from each call",
    Change.OVERWRITTEN: "no later output lies in its memory; do not write to an output once it is returned",
}


def find_worst_allowed(problem: Problem) -> Change:
    return Change.NONE if problem.fresh_outputs else Change.REUSED


def describe_change(change: Change, when: str) -> str:
    return f"{_CHANGED} {when}, and {_CAUSES[change]}"


class AliasCheck:
    """`views` are positions of outputs that are views of inputs or state in the reference; they may share memory. The
    worker keeps the outputs of `kept_calls` calls.
    """

    def __init__(self, session: ModelSession, *, views: frozenset[int], kept_calls: int) -> None:
        self._session = session
        self._views = views
        self._kept_calls = kept_calls
        self._last: deque[KeptOutputs] = deque()  # the newest first
        self._has_pinned = False

    def forget(self) -> None:
        """Call after the form of the outputs changes."""
        self._last.clear()

    def check_inputs_apart(self) -> None:
        """Call after placing the next inputs. Raises CandidateFailure (wrong_value)."""
        if not self._last:
            return
        if self._session.find_change(self._last[0]) is not Change.NONE:
            message = "an output shares memory with the inputs: it changed when new inputs were written"
            raise CandidateFailure.of_check(Outcome.WRONG_VALUE, "alias_input", message)

    def find_change(self, run: Run) -> tuple[Change, str]:
        """Call after each correct call. Return the worst change of earlier outputs, and its time."""
        if not self._has_pinned:
            self._session.pin(run.outputs, self._views)
            self._has_pinned = True
        change, seen = self._compare(run)
        self._last.appendleft(self._session.keep_outputs(run.outputs, self._views))
        while len(self._last) > self._count_compared(run):
            self._last.pop()
        return change, f"when the model was called again{seen and f' ({seen})'}"

    def _compare(self, run: Run) -> tuple[Change, str]:
        sample = None if self._views else run.memory_sample
        sampled, seen = (Change.NONE, "") if sample is None else (sample.change, sample.changed)
        kept = list(self._last)[: self._kept_calls - 1]
        changes = (self._session.find_change(outputs, age=age) for age, outputs in enumerate(kept, start=1))
        return max([sampled, *changes]), seen

    def _count_compared(self, run: Run) -> int:
        return 1 if run.memory_sample is not None else max(self._kept_calls - 1, 1)
