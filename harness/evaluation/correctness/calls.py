"""Inputs and expected outputs of the correctness calls, made on demand, or in advance in host memory where the device
has too little."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import Tensor

from harness.domain import BIASED, SPARSE, ProblemError
from harness.evaluation.correctness.comparison import are_surely_close, compare_leaves
from harness.evaluation.correctness.leaf_comparison import LeafVerdict
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.correctness.reference_checks import OUTPUT_FORM, has_only_numbers, refuse_varying
from harness.evaluation.correctness.steps import plan_few_steps, plan_steps, reduce_steps
from harness.evaluation.correctness.truth import Expected, TruthLeaf, copy_tensors, keep_on_host
from harness.evaluation.correctness.variations import find_nearby, make_later_states, make_other_weights
from harness.problems.own_values import OWN_KINDS, PATTERNS, changes_all, perturb
from harness.sandbox.arena_layout import Footprint
from harness.tensors.outputs import FlatOutputs

MOST_CALLS = 128  # before a state that is new to the candidate
DRAWS, FEW_DRAWS = 4, 2  # at most, until outputs for inputs of an own step do not depend on roundings
# Largest share of the allowed error that one rounding of the inputs may cause. In 16-bit formats the roundings of
# inputs and outputs are half of what is allowed.
CALM, CALM_IN_16_BITS = 0.5, 1.0
EXACT = ("integers",)  # steps whose outputs must equal the truth if they are countable


@dataclass(frozen=True, slots=True, kw_only=True)
class Exercise:
    """`seed`: of the inputs; `state`: to write before the call; `footprint`: arena layout for outputs of
    another shape."""

    step: str
    seed: int
    inputs: tuple[Any, ...]
    expected: Expected
    state: dict[str, Tensor] | None = None
    footprint: Footprint | None = None


class Exercises:
    """The planned steps; `source` is their random source. `fully`: all of them."""

    def __init__(self, reference: Reference, seeds: Iterator[int], *, fully: bool = True) -> None:
        self.reference = reference
        self._seeds = seeds
        self.source = random.Random(next(seeds))
        problem, changes_state = reference.loaded.problem, reference.changes_state
        if fully:
            steps = plan_steps(
                problem,
                is_small=reference.is_small,
                changes_state=changes_state,
                source=self.source,
                own=reference.own_steps,
                hides_weights=reference.hides_weights,
            )
        else:
            steps = plan_few_steps(problem, changes_state=changes_state, source=self.source, own=reference.own_steps)
        self.steps = reduce_steps(steps, reference.plan) if fully or not reference.plan.stress else steps
        self._ahead: dict[int, tuple[Exercise, ...]] = {}
        self._has_made_one = False
        self._tried: set[str] = set()  # own steps
        self._fit: set[str] = set()  # of these, at least once
        self._failed = {SPARSE}  # on which the reference failed at least once; `SPARSE` needs another comparison

    def make_ahead(self) -> None:
        self._ahead = {index: tuple(self._make(step)) for index, step in enumerate(self.steps)}

    @property
    def are_made_ahead(self) -> bool:
        return bool(self._ahead)

    def take(self, index: int) -> Iterable[Exercise]:
        """The calls of a step, unless they are made ahead new ones each time; empty if it repeats earlier ones or does
        not apply."""
        return self._ahead.pop(index) if self._ahead else self._make(self.steps[index])

    def list_timed_steps(self) -> tuple[str, ...]:
        """Own steps for timed calls. Call when all calls have been made."""
        return tuple(step for step in self.reference.own_steps if step in self._fit - self._failed)

    def _make(self, step: str) -> Iterable[Exercise]:
        if step == "rerun":
            return ()
        if step == "calls_in_a_row":
            return self._make_row()
        if step == "other_weights":
            return self._make_with_other_weights()
        if step == "nearby_shape":
            return self._make_nearby()
        if step in OWN_KINDS:
            return self._make_own(step)
        return (self._make_declared(step),)

    def _make_declared(self, step: str) -> Exercise:
        seed = next(self._seeds)
        inputs = self.reference.make_inputs(seed, step)
        return Exercise(step=step, seed=seed, inputs=inputs, expected=self.expect(inputs, step))

    def expect(self, inputs: tuple[Any, ...], step: str) -> Expected:
        """The first call is compared with the truth itself, so that its errors are known."""
        is_first, self._has_made_one = not self._has_made_one, True
        own_first = self.reference.compares_own_first and not is_first and step not in EXACT
        expected = self.reference.expect(inputs, own_first=own_first)
        if not self.reference.footprint.expects(expected.form.reference_outputs):
            refuse_varying(self.reference.loaded, OUTPUT_FORM)
        return expected

    def _make_own(self, step: str) -> tuple[Exercise, ...]:
        """Nothing where the reference fails, or all its outputs depend on roundings of all inputs that were drawn. Of a
        small problem preferably inputs for which all outputs are compared."""
        exercise = None
        try:
            for _ in range(DRAWS if self.reference.is_small else FEW_DRAWS):
                made = self._make_if_fit(step, self._draw_seed(step))
                if made is not None and (exercise is None or made.expected.is_calm):
                    exercise = made
                if exercise is not None and (exercise.expected.is_calm or not self.reference.is_small):
                    break
        except ProblemError:
            self._failed.add(step)
        if exercise is None:
            return ()
        (self._fit if exercise.expected.is_calm else self._failed).add(step)
        if self.reference.compares_own_first:
            self.reference.device.release_cache()  # the worker may need it for the call
        return (exercise,)

    def _draw_seed(self, step: str) -> int:
        """The first inputs of a kind are changed in whole."""
        if step in self._tried:
            return next(self._seeds)
        self._tried.add(step)
        return next(seed for seed in self._seeds if changes_all(step, seed))

    def _make_if_fit(self, step: str, seed: int) -> Exercise | None:
        reference = self.reference
        perturbed = compute_perturbed(reference, seed, step)
        inputs = reference.make_inputs(seed, step)
        expected = find_calm(reference, self.expect(inputs, step), perturbed, step)
        if expected is None:
            return None
        return Exercise(step=step, seed=seed, inputs=inputs, expected=expected)

    def _make_row(self) -> Iterator[Exercise]:
        """The second call starts from the state that the first left, the others from states that are new to the
        candidate. One exists at a time."""
        made = [self._make_declared("as_given")]
        left = made[0].expected.truth.state_after
        yield made.pop()
        yield self._make_from(left, "second_in_a_row")
        few = self.source.randint(1, MOST_CALLS)
        for given in make_later_states(self.reference, next(self._seeds), few, MOST_CALLS) or (None, None):
            yield self._make_from(given or self._find_new_state(), "given_state")

    def _find_new_state(self) -> dict[str, Tensor]:
        """After one call that only the reference makes."""
        return self.reference.truth_of(self.reference.make_inputs(next(self._seeds))).state_after

    def _make_from(self, given: dict[str, Tensor], step: str) -> Exercise:
        seed = next(self._seeds)
        inputs = self.reference.make_inputs(seed)
        expected, state = Expected(partial(self.reference.truth_of, inputs, given)), self.reference.keep(given)
        return Exercise(step=step, seed=seed, inputs=inputs, expected=expected, state=state)

    def _make_with_other_weights(self) -> tuple[Exercise, ...]:
        other = make_other_weights(self.reference, next(self._seeds))
        if other is None:
            return ()
        seed = next(self._seeds)
        inputs = self.reference.make_inputs(seed)
        expected = Expected(partial(other.truth_of, self.reference, inputs))
        state = self.reference.keep(other.state)
        return (Exercise(step="other_weights", seed=seed, inputs=inputs, expected=expected, state=state),)

    def _make_nearby(self) -> tuple[Exercise, ...]:
        seed = next(self._seeds)
        nearby = find_nearby(self.reference, self.reference.make_inputs(seed), self.source)
        if nearby is None:
            return ()
        inputs, expected, footprint = nearby.inputs, nearby.expected, nearby.footprint
        return (Exercise(step="nearby_shape", seed=seed, inputs=inputs, expected=expected, footprint=footprint),)


def compute_perturbed(reference: Reference, seed: int, step: str) -> FlatOutputs | None:
    """In host memory where the memory plan has no place for them. None for `BIASED`, whose values are near the given
    ones. Raises ProblemError."""
    if step == BIASED:
        return None
    inputs = reference.make_device_inputs(seed, step)  # a host takes long to draw gigabytes of roundings
    perturb(inputs, seed)
    outputs = reference.run_on(copy_tensors(inputs) if reference.changes_inputs else inputs)
    is_kept = reference.compares_own_first or reference.computes_on is not None
    return outputs if is_kept else keep_on_host(outputs)


def find_calm(reference: Reference, expected: Expected, perturbed: FlatOutputs | None, step: str) -> Expected | None:
    """Compares only outputs that depend so little on roundings of the inputs that every legitimate program is near
    them. None: no floating-point ones."""
    form, tolerance = expected.form.reference_outputs, reference.loaded.problem.tolerance
    if not has_only_numbers(form) or not (perturbed is None or perturbed.has_form_of(form)):
        return None
    if perturbed is None or (expected.own is not None and are_surely_close(expected.own, perturbed, tolerance)):
        return expected  # within a fifth of the limit, and an eighth for the reference's own error
    truth = expected.truth
    verdicts = compare_leaves(truth, perturbed, tolerance, by_peak=step == SPARSE)
    leaves = tuple(
        replace(leaf, is_calm=_is_calm(leaf, verdict)) for leaf, verdict in zip(truth.leaves, verdicts, strict=True)
    )
    if all(leaf.is_calm for leaf in leaves):
        return expected
    is_useful = any(leaf.is_calm and leaf.reference.dtype in PATTERNS for leaf in leaves)
    return Expected(lambda: replace(truth, leaves=leaves)) if is_useful else None


def _is_calm(leaf: TruthLeaf, verdict: LeafVerdict) -> bool:
    return verdict.worst_ratio <= (CALM_IN_16_BITS if leaf.reference.element_size() == 2 else CALM)
