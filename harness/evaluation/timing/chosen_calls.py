"""Selects timed calls for later verification: random ones, and those whose outputs differ from the baseline's."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count, cycle
from typing import Any

from torch import Tensor

from harness.domain import Block, CandidateFailure, Outcome, Trial
from harness.evaluation.correctness.calls import select_calm
from harness.evaluation.correctness.checks import compare_expected
from harness.evaluation.correctness.other_states import is_usual_state, name_state
from harness.evaluation.correctness.reference import SMALL_CALL_S, Reference
from harness.evaluation.correctness.refinement import compare_refined, refine_truth
from harness.evaluation.correctness.truth import Expected, Truth, TruthLeaf, trust_outputs
from harness.evaluation.results import WrongCall
from harness.evaluation.settings import Choice
from harness.problems.inputs.kind import GIVEN, InputKind
from harness.sandbox.model_session import Run
from harness.tensors.outputs import FlatOutputs, Sample, choose_sample

SHARED_SEEDS, SHARED_SHARE = (4, 8), 0.15  # of changed and given inputs; of the calls with given ones
FEWER = 4  # times, where computing the truth takes long


def require_form(run: Run) -> Run:
    """Raises CandidateFailure (suspect) for outputs of another form."""
    if run.taken and not any(tensor.is_meta for tensor in run.outputs.tensors):
        return run
    message = "a timed call returned outputs of another form than untimed calls"
    raise CandidateFailure.of_check(Outcome.SUSPECT, "timed_call", message)


def draw_seed(reference: Reference, seeds: Iterator[int], step: str) -> int:
    """Draw the seed of a timed call with inputs of kind `step`."""
    return next(seed for seed in seeds if step == reference.choose_timed_step(seed))


class TimedSeeds:
    """Draws seeds of timed calls. A few of each kind are shared by all candidates, whose truths are computed once."""

    def __init__(self, reference: Reference, fresh: Iterator[int], source: random.Random) -> None:
        self._reference, self._fresh, self._source = reference, fresh, source
        self._left = {step: self._list_shared(step) for step in (GIVEN.name, *reference.replayed_steps)}
        self._shared = frozenset(seed for seeds in self._left.values() for seed in seeds)

    def draw(self, step: str) -> int:
        is_shared = step != GIVEN.name or self._source.random() < SHARED_SHARE
        return self.draw_shared(step) if is_shared else self.draw_fresh(step)

    def draw_in_state(self, name: str) -> int:
        """Draw the seed of a call with given inputs in a state of a group, see `name_state`."""
        return next(seed for seed in self._fresh if name_state(self._reference, seed) == name)

    def draw_usual(self, step: str) -> int:
        return next(
            seed for seed in iter(partial(self.draw_fresh, step), None) if is_usual_state(self._reference, seed)
        )

    def draw_shared(self, step: str) -> int:
        """Return a fresh one if all were drawn."""
        left = self._left[step]
        return left.pop() if left else self.draw_fresh(step)

    def draw_fresh(self, step: str) -> int:
        return draw_seed(self._reference, self._fresh, step)

    def is_shared(self, seed: int) -> bool:
        return seed in self._shared

    def _list_shared(self, step: str) -> list[int]:
        numbers, most = random.Random(f"timed {step} {self._reference.secret}"), SHARED_SEEDS[step == GIVEN.name]
        if self._reference.call_s > SMALL_CALL_S:
            most //= FEWER
        seeds = (numbers.getrandbits(62) for _ in count())
        return self._source.sample([draw_seed(self._reference, seeds, step) for _ in range(most)], most)


def deal_changed_steps(reference: Reference, source: random.Random) -> Iterator[str]:
    """Yield changed kinds of inputs in endless rotation; the given kind if timed calls have no other."""
    steps = reference.changed_steps
    return cycle(source.sample(steps, len(steps)) or [GIVEN.name])


def make_block(baseline: Run, candidate: Run) -> Block:
    """Use only the evaluator's clock on a GPU."""
    return Block(
        calls=1,
        baseline_reported_us=baseline.called.reported_us if baseline.call_us is None else baseline.call_us,
        candidate_reported_us=candidate.called.reported_us if candidate.call_us is None else candidate.call_us,
        baseline_evaluator_us=baseline.evaluator_us,
        candidate_evaluator_us=candidate.evaluator_us,
        baseline_loading_us=baseline.called.loading_us,
        baseline_copy_us=baseline.copy_us,
        candidate_copy_us=candidate.copy_us,
    )


MOST_DIFFERENT, MOST_OF_A_KIND = 6, 3  # calls that differ from the baseline's
WHOLE_SHARE = 0.25  # of calls with given inputs whose whole outputs are compared with the baseline's
COMPARED_SAMPLES = 2  # times as many calls, where only samples of their outputs are kept


class Reservoir:
    def __init__(self, source: random.Random) -> None:
        self.calls: list[tuple[int, Run]] = []
        self._source = source
        self._offered = 0

    def offer(self, seed: int, run: Run, most: int) -> None:
        self._offered += 1
        if len(self.calls) < most:
            self.calls.append((seed, run))
        elif (slot := self._source.randrange(self._offered)) < most:
            self.calls[slot] = (seed, run)

    def drop_one(self) -> None:
        self.calls.pop(self._source.randrange(len(self.calls)))


class ChosenCalls:
    def __init__(self, reference: Reference, choice: Choice, source: random.Random) -> None:
        self._reference = reference
        self._choice = choice
        self._source = source
        self._kept = Reservoir(source)
        self._different: dict[str, Reservoir] = {}  # from the baseline, by the kind of inputs
        self._overlapping: list[tuple[int, Run]] = []  # elements of an output share memory; one call is enough

    def note(self, seed: int, candidate: Run, baseline: Run | None = None) -> None:
        compared_calls = self._choice.compared_calls * (1 if candidate.sample is None else COMPARED_SAMPLES)
        self._kept.offer(seed, candidate, compared_calls)
        if not self._overlapping and any(spec.shares_memory for spec in candidate.called.specs):
            self._overlapping.append((seed, candidate))
        screened_share = 1.0 if self.is_changed(seed) else self._choice.screened_share
        if baseline is not None and self._source.random() < screened_share:
            self._screen(seed, baseline, candidate)

    def find_wrong(self) -> WrongCall | None:
        different = itertools.chain.from_iterable(kind.calls for kind in self._different.values())
        for seed, run in (*self._overlapping, *different, *self._kept.calls):
            if not run.inputs_unchanged and not self._reference.changes_inputs:
                return WrongCall("a timed call changed its inputs, untimed ones did not")
            state = self._reference.make_timed_state(seed)
            inputs = self._reference.make_timed_inputs(seed)
            step = self._reference.choose_timed_step(seed)
            expected = self._reference.expect(inputs, state, own_first=True, key=(seed, step))
            kind = self._reference.find_timed_kind(seed)
            refine = partial(refine_truth, self._reference, inputs=inputs, state=state, kind=kind)
            outcome, trial = self._compare(run, expected, kind, refine)
            calm = expected if outcome is None else self._select_calm(expected, seed, kind, state)
            if calm is not None and calm is not expected:
                outcome, trial = self._compare(run, calm, kind, refine)
            if calm is not None and outcome is not None:
                return WrongCall(trial.message, seed)
        return None

    def _select_calm(
        self, expected: Expected, seed: int, kind: InputKind, state: dict[str, Tensor] | None
    ) -> Expected | None:
        inputs = None if state is None else self._reference.make_timed_inputs(seed)
        return select_calm(self._reference, expected, seed, kind, inputs=inputs, state=state)

    def _compare(
        self, run: Run, expected: Expected, kind: InputKind, refine: Callable[[Truth], Iterable[Truth]]
    ) -> tuple[Outcome | None, Trial]:
        if run.sample is None:
            return compare_expected(run, expected, self._reference, "timed", kind=kind, refine=refine)
        return self._compare_sample(run, run.sample, expected, kind, refine)

    def _compare_sample(
        self, run: Run, sample: Sample, expected: Expected, kind: InputKind, refine: Callable[[Truth], Iterable[Truth]]
    ) -> tuple[Outcome | None, Trial]:
        own, found = map(self._move_to_device, (sample.take_all(expected.form.reference_outputs), run.outputs))
        if self._reference.is_surely_close(own, found, kind):
            return None, Trial(distribution="timed", passed=True)
        return compare_refined(
            self._reference,
            _sample_truth(expected.truth, sample),
            run.outputs,
            "timed",
            kind=kind,
            refine=lambda _: (_sample_truth(one, sample) for one in refine(expected.truth)),
        )

    def _screen(self, seed: int, baseline: Run, candidate: Run) -> None:
        theirs, mine = baseline.outputs, candidate.outputs
        if baseline.sample != candidate.sample or not mine.has_form_of(theirs):
            self._keep_different(seed, candidate)
            return
        if candidate.sample is not None:  # in host memory, where comparing is slow
            theirs, mine = map(self._move_to_device, (theirs, mine))
        elif not self.is_changed(seed) and self._source.random() >= WHOLE_SHARE:
            sample = choose_sample(candidate.called.specs, self._source)
            theirs, mine = (sample.take_all(outputs) if sample else outputs for outputs in (theirs, mine))
        kind = self._reference.find_timed_kind(seed)
        if self._reference.is_surely_close(theirs, mine, kind):
            return
        outcome, _ = self._reference.compare(trust_outputs(theirs), mine, "timed", kind)
        if outcome is not None:
            self._keep_different(seed, candidate)

    def _keep_different(self, seed: int, run: Run) -> None:
        of_its_kind = self._different.setdefault(self._reference.choose_timed_step(seed), Reservoir(self._source))
        of_its_kind.offer(seed, run, MOST_OF_A_KIND)
        kinds = self._different.values()
        if sum(len(kind.calls) for kind in kinds) > MOST_DIFFERENT:
            max(kinds, key=lambda kind: len(kind.calls)).drop_one()

    def is_changed(self, seed: int) -> bool:
        return self._reference.choose_timed_step(seed) != "as_given"

    def _move_to_device(self, outputs: FlatOutputs) -> FlatOutputs:
        device = self._reference.device.torch_device
        return replace(outputs, tensors=tuple(tensor.to(device) for tensor in outputs.tensors))


def find_wrong_call(reference: Reference, seed: int, run: Run, source: random.Random) -> WrongCall | None:
    chosen = ChosenCalls(reference, Choice(compared_calls=1, screened_share=0.0), source)
    chosen.note(seed, run)
    return chosen.find_wrong()


def _sample_truth(truth: Truth, sample: Sample) -> Truth:
    return replace(truth, leaves=tuple(_sample_leaf(leaf, index, sample) for index, leaf in enumerate(truth.leaves)))


def _sample_leaf(leaf: TruthLeaf, index: int, sample: Sample) -> TruthLeaf:
    known = ((name, value) for name, value in vars(leaf).items() if isinstance(value, Tensor))
    sampled: dict[str, Any] = {name: sample.take(index, tensor) for name, tensor in known}
    return replace(leaf, **sampled)
