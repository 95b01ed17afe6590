"""Checks calls with fresh secret inputs: outputs, unchanged inputs, aliasing, repeatability, state."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Literal

from harness.domain import CandidateFailure, Correctness, Finding, Outcome, ProblemError, Trial, Weights
from harness.evaluation.correctness.calls import (
    REUSES_OUTPUT,
    AliasCheck,
    Exercise,
    describe_change,
    find_worst_allowed,
)
from harness.evaluation.correctness.comparison import describe_tree
from harness.evaluation.correctness.planned_calls import FRESH, Exercises, PlannedCalls
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.correctness.refinement import compare_refined, refine_truth
from harness.evaluation.correctness.truth import Expected, Truth, TruthLeaf, list_state, trust_outputs
from harness.evaluation.model_construction import describe_unmatched
from harness.evaluation.results import StepResult
from harness.problems.inputs.kind import GIVEN, InputKind
from harness.problems.inputs.traits import InputTraits
from harness.protocol import TensorSpec, have_same_nesting
from harness.sandbox.model_session import ModelSession, Run
from harness.sandbox.worker_client import describe
from harness.tensors.outputs import Change, Difference, FlatOutputs, TensorRecord, find_difference
from harness.tensors.overlaps import share_much
from harness.tensors.values import has_same_bits


@dataclass(frozen=True, slots=True)
class _Failure:
    outcome: Outcome
    message: str
    check: str = "correctness"


@dataclass(frozen=True, slots=True)
class _Kept:
    """A correct call to be repeated. `exercise` None is made again from the seed. `specs` describe the outputs in the
    worker.
    """

    seed: int
    exercise: Exercise | None
    outputs: TensorRecord
    tree: dict[str, Any]
    specs: tuple[TensorSpec, ...]


def check_correctness(
    session: ModelSession, exercises: Exercises, weights: Weights, *, is_timed: bool = False
) -> StepResult:
    """`correctness` ends with the first failed trial. If calls are also timed, where their outputs are compared, too,
    slow ones are not repeated here.
    """
    checker = _Checker(session, exercises, weights, spares_slow=is_timed)
    failure = checker.run()
    correctness = Correctness(trials=tuple(checker.trials), weights=weights, truth=checker.truth_kind)
    found = StepResult(correctness=correctness, findings=tuple(checker.findings))
    if failure is None:
        return found
    if failure.outcome is Outcome.WRONG_VALUE and weights == "unmatched":
        why = describe_unmatched(session, exercises.reference)
        failure = replace(failure, message=f"{failure.message}; {why}")
    fatal = Finding(check=failure.check, severity="fatal", message=failure.message)
    return replace(found, outcome=failure.outcome, message=failure.message, findings=(*found.findings, fatal))


SLOW_CALLS, SLOW_S, SLOWER = 2, 0.1, 3.0  # so many calls, each of that time and so many times the reference's
SLOW_TOTAL_S = 10.0  # of all calls: after that, slow candidates skip further kinds of inputs
# Further calls with little data, if one takes less than `CHEAP_S`.
FURTHER_S, LEAST_FURTHER, MOST_FURTHER, CHEAP_S = 0.4, 4, 48, 0.1
HELD_ATTEMPTS = 3  # until outputs are read while streams are held back
NOT_JOINED = "the current stream does not wait for work that the call left to another stream"


@contextmanager
def prepared(session: ModelSession, reference: Reference, exercise: Exercise) -> Iterator[None]:
    """Write the weights or the state with which a call begins. Usual weights are written again after it."""
    if exercise.weights is not None:  # with the initial state of the call
        session.write_weights(exercise.weights)
    elif not exercise.continues:
        session.reset_state(exercise.state)
    with nullcontext() if exercise.footprint is None else session.expecting(exercise.footprint):
        yield
    if exercise.weights is not None:
        session.write_weights({**reference.state, **reference.changing})


class _Checker:
    def __init__(
        self, session: ModelSession, exercises: Exercises, weights: Weights, *, spares_slow: bool = False
    ) -> None:
        self._session = session
        self._reference = reference = exercises.reference
        self._exercises = exercises
        self._weights = weights
        self._source = exercises.source
        self._aliases = AliasCheck(session, views=reference.views, kept_calls=reference.footprint.kept_calls)
        self._kept: list[_Kept] = []
        self._last_seed: int | None = None
        self._spares_slow = spares_slow
        self._times_s: list[float] = []
        self._held_steps = self._choose_held_steps() if reference.device.replays_calls else ()
        self.trials: list[Trial] = []
        self.findings: list[Finding] = []
        self.truth_kind: Literal["float64", "reference"] = "float64"

    def run(self) -> _Failure | None:
        if self._reference.changes_state:
            self._session.hold_state(self._reference.changing)
        taken: set[str] = set()
        for index, step in enumerate(self._exercises.steps):
            if index not in self._held_steps and self._may_skip(step, taken):
                continue
            taken.add(step.name)
            failure = self._take(index, step)
            if failure is not None:
                return failure
        failure = self._try_further() or self._weigh_change(self._session.find_pinned_change(), "until the last call")
        if failure is not None:
            return failure
        return self._check_weights_kept() if self._weights in ("identical", "loaded") else None

    def _try_further(self) -> _Failure | None:
        """Use fresh inputs of each kind, one after the other."""
        ends_s = time.monotonic() + FURTHER_S
        is_cheap = self._reference.has_small_data and min(self._times_s, default=CHEAP_S) < CHEAP_S
        for count, step in enumerate(islice(self._exercises.list_further(), MOST_FURTHER) if is_cheap else ()):
            if count >= LEAST_FURTHER and time.monotonic() > ends_s:
                break
            failure = next(filter(None, map(self._try, step.make(self._exercises))), None)
            if failure is not None:
                return failure
        return None

    def _take(self, index: int, step: PlannedCalls) -> _Failure | None:
        if step.repeats:
            return self._call_again()
        if index in self._held_steps:
            return self._take_ahead_of_streams(index)
        if step.changes_weights and self._weights not in ("identical", "loaded"):
            return None
        return next(filter(None, map(self._try, self._exercises.take(index))), None)

    def _may_skip(self, step: PlannedCalls, taken: Collection[str]) -> bool:
        is_known = self._spares_slow and len(self._times_s) >= SLOW_CALLS
        is_slow = is_known and min(self._times_s) > max(SLOW_S, SLOWER * self._reference.call_s)
        return is_slow and (step.name in taken or (step.varies_inputs and sum(self._times_s) > SLOW_TOTAL_S))

    def _choose_held_steps(self) -> Sequence[int]:
        places = [at for at, step in enumerate(self._exercises.steps) if at and step is FRESH]
        return self._source.sample(places, self._source.randint(1, len(places))) if places else ()

    def _take_ahead_of_streams(self, index: int) -> _Failure | None:
        """Hold back torch's other streams. The inputs are new, so results of earlier calls are wrong."""
        for _ in range(1 if self._exercises.are_made_ahead else HELD_ATTEMPTS):
            (exercise,) = self._exercises.take(index)
            failure = self._try(exercise, hold_streams=True)
            if failure is not None:
                return self._try_joined(exercise, failure)
            if not self._session.outlasted_hold:
                break
        return None

    def _try_joined(self, exercise: Exercise, failure: _Failure) -> _Failure:
        """Add the cause to `failure` if the same call is right without holding back streams."""
        self._aliases.forget()  # what was left to another stream may have been written since
        if self._try(exercise) is not None:
            return failure
        return replace(failure, message=f"{NOT_JOINED} ({failure.message})", check="stream_order")

    def _try(self, exercise: Exercise, *, hold_streams: bool = False) -> _Failure | None:
        with prepared(self._session, self._reference, exercise):
            if exercise.footprint is None:
                return self._check_call(exercise, hold_streams=hold_streams)
            self._aliases.forget()
            failure = self._check_call(exercise, hold_streams=hold_streams)
            self._aliases.forget()
            return failure

    def _check_call(self, exercise: Exercise, *, hold_streams: bool) -> _Failure | None:
        inputs, expected = exercise.inputs, exercise.expected
        self._session.place(inputs)
        self._aliases.check_inputs_apart()
        run = self._session.call(inputs, self._reference.device, hold_streams=hold_streams)
        self._times_s.append(run.evaluator_us / 1e6)
        outcome, trial = compare_exercise(run, exercise, self._reference)
        if expected.known_truth is not None and expected.known_truth.kind == "reference":
            self.truth_kind = "reference"
        self.trials.append(trial)
        self._last_seed = exercise.seed
        self.findings += _note_form(run, expected.form, self._reference, self.findings)
        if outcome is not None:
            traits = self._reference.traits
            said = (_say_where(trial), _name_numbers(traits, inputs), exercise.kind.explain(traits, inputs))
            return _Failure(outcome, "; ".join(filter(None, said)), exercise.check)
        failure = self._weigh_change(*self._aliases.find_change(run))
        if failure is not None:
            return replace(failure, check=exercise.check)
        if exercise.is_repeatable:
            self._keep(exercise, run)
        return None

    def _weigh_change(self, change: Change, when: str) -> _Failure | None:
        if change > find_worst_allowed(self._reference.loaded.problem):
            return _Failure(Outcome.WRONG_VALUE, describe_change(change, when))
        if change is Change.REUSED and REUSES_OUTPUT not in self.findings:
            self.findings.append(REUSES_OUTPUT)
        return None

    def _keep(self, exercise: Exercise, run: Run) -> None:
        """Keep two calls of a small problem, else one: repeated inputs are never the latest."""
        if len(self._kept) < (2 if self._reference.is_small else 1):
            kept = _Kept(
                seed=exercise.seed,
                exercise=None if self._reference.computes_on is None else exercise,
                outputs=TensorRecord.of(run.outputs.tensors),
                tree=run.outputs.tree,
                specs=run.called.specs,
            )
            self._kept.append(kept)

    def _call_again(self) -> _Failure | None:
        """Repeat an earlier call; require identical bits if the problem is deterministic, else a correct result."""
        kept = self._source.choice([kept for kept in self._kept if kept.seed != self._last_seed])
        inputs = self._reference.make_inputs(kept.seed) if kept.exercise is None else kept.exercise.inputs
        expected = self._find_expected(kept, inputs)
        self._session.reset_state()
        self._session.place(inputs)
        self._aliases.check_inputs_apart()
        run = self._session.call(inputs, self._reference.device)
        self._last_seed = kept.seed
        refine = partial(refine_truth, self._reference, inputs=inputs)
        outcome, trial = compare_expected(run, expected, self._reference, "again", accepted=kept.specs, refine=refine)
        if outcome not in (None, Outcome.WRONG_VALUE) or _has_changed_inputs(run, self._reference):
            self.trials.append(trial)
            return _Failure(outcome or Outcome.WRONG_VALUE, trial.message)
        failure = self._weigh_change(*self._aliases.find_change(run))
        if failure is not None:
            return failure
        difference = kept.outputs.find_difference(run.outputs.tensors)
        if difference is None:
            return None
        if kept.outputs.tensors and not self._reference.requires_same_bits:  # so far compared with those
            truth = self._reference.truth_of(inputs) if kept.exercise is None else kept.exercise.expected.truth
            outcome, trial = compare_run(run, truth, self._reference, "again", refine=refine)
        return self._weigh_difference(difference, outcome, trial)

    def _find_expected(self, kept: _Kept, inputs: tuple[Any, ...]) -> Expected:
        if kept.outputs.tensors:
            outputs = FlatOutputs(tree=kept.tree, tensors=kept.outputs.tensors)
            return Expected(partial(trust_outputs, outputs, compared_on=self._reference.computes_on))
        return self._exercises.expect(inputs, GIVEN, kept.seed) if kept.exercise is None else kept.exercise.expected

    def _weigh_difference(self, difference: Difference, outcome: Outcome | None, trial: Trial) -> _Failure | None:
        message = f"two calls on the same inputs differ: {difference}"
        if self._reference.requires_same_bits:
            message += "; the problem declares DETERMINISTIC = True"
            self.trials.append(replace(trial, passed=False, mismatched=difference.differing or 0, message=message))
            return _Failure(Outcome.WRONG_VALUE, message, "nondeterministic")
        self.trials.append(trial)
        if outcome is not None:
            return _Failure(outcome, _say_where(trial), "nondeterministic")
        if not any(finding.check == "nondeterministic" for finding in self.findings):
            self.findings.append(Finding(check="nondeterministic", severity="note", message=message))
        return None

    def _check_weights_kept(self) -> _Failure | None:
        kept = {name: tensor for name, tensor in self._reference.state.items() if name not in self._reference.changing}
        try:
            found = self._session.read_state(kept)
        except CandidateFailure as failure:
            if not any(finding.check in ("exception", "state") for finding in failure.findings):
                raise
            message = f"the weights cannot be read after the calls: {failure.message}"
            self.findings.append(Finding(check="state", severity="warning", message=message[:500]))
            return None
        for (name, expected), now in zip(kept.items(), found, strict=True):
            difference = find_difference([now], [expected])
            if difference is not None:
                _refuse_late_change(self._reference, name)
                message = f"calls changed the weight {name}, which the reference does not change: {difference}"
                return _Failure(Outcome.WRONG_VALUE, message, "state")
        return None


def _name_numbers(traits: InputTraits, inputs: Sequence[Any]) -> str:
    """Return the values of arguments that are no tensors."""
    numbers = (pair for pair in traits.pair(inputs) if type(pair[0]) in (int, float) and pair[1].argument)
    text = ", ".join(f"{contract.argument} = {number}" for number, contract in numbers)
    return f"called with {text}" if text else ""


def compare_expected(
    run: Run,
    expected: Expected,
    reference: Reference,
    label: str,
    *,
    kind: InputKind = GIVEN,
    accepted: Sequence[TensorSpec] = (),
    refine: Callable[[Truth], Iterable[Truth]] | None = None,
) -> tuple[Outcome | None, Trial]:
    """`accepted` are layouts that passed before. `refine` adds conditioning to the truth, more and more."""
    if expected.own is not None and _is_surely_right(run, expected.own, reference, kind):
        elements = sum(tensor.numel() for tensor in run.outputs.tensors)
        return None, Trial(distribution=label, passed=True, elements=elements)
    return compare_run(run, expected.truth, reference, label, kind=kind, accepted=accepted, refine=refine)


def compare_exercise(run: Run, exercise: Exercise, reference: Reference) -> tuple[Outcome | None, Trial]:
    refine = partial(refine_truth, reference, inputs=exercise.inputs, state=exercise.state, kind=exercise.kind)
    return compare_expected(
        run,
        exercise.expected,
        reference,
        exercise.label,
        kind=exercise.kind,
        refine=refine if exercise.can_refine else None,
    )


def _say_where(trial: Trial) -> str:
    return trial.message if trial.distribution == GIVEN.name else f"{trial.message} (on {trial.distribution} inputs)"


def compare_run(
    run: Run,
    truth: Truth,
    reference: Reference,
    label: str,
    *,
    kind: InputKind = GIVEN,
    accepted: Sequence[TensorSpec] = (),
    refine: Callable[[Truth], Iterable[Truth]] | None = None,
) -> tuple[Outcome | None, Trial]:
    outcome, trial = compare_refined(reference, truth, run.outputs, label, kind=kind, refine=refine)
    misfit = None if outcome is not None else _find_misfit(run, truth, reference, accepted)
    if misfit is not None:
        return misfit[0], Trial(distribution=label, passed=False, message=misfit[1])
    return outcome, trial


def _is_surely_right(run: Run, own: FlatOutputs, reference: Reference, kind: InputKind) -> bool:
    """A fast sufficient test against the reference's outputs `own`. False means unknown."""
    if not reference.is_surely_close(own, run.outputs, kind):
        return False
    return _find_misfit(run, trust_outputs(own), reference) is None


def _share_elements(run: Run, reference: Reference) -> bool:
    """Look at outputs that must lie apart; all of one call may be in a larger piece of memory."""
    footprint, called = reference.footprint, run.called
    made = len(called.specs) - len(reference.changing)
    apart = [at for at in range(made) if at not in footprint.views | footprint.alike]
    return share_much([called.addresses[at] for at in apart], [called.specs[at] for at in apart])


def _find_misfit(
    run: Run, truth: Truth, reference: Reference, accepted: Sequence[TensorSpec] = ()
) -> tuple[Outcome, str] | None:
    device = reference.device
    wrong_device = next((name for name in run.called.devices if name.split(":")[0] != device.seen_type), None)
    if wrong_device is not None:
        return Outcome.WRONG_DTYPE, f"an output lies on {wrong_device}, expected {device.seen_name}"
    if _has_changed_inputs(run, reference):
        return Outcome.WRONG_VALUE, "the inputs were changed by the call"
    for leaf, spec in _pair_made(run, truth, reference):
        overlaps = spec.shares_memory and spec not in accepted
        if overlaps and not describe(leaf.reference).shares_memory:
            return (
                Outcome.WRONG_SHAPE,
                f"elements of {leaf.name} share memory (strides {spec.stride}); return a contiguous tensor",
            )
    if _share_elements(run, reference):
        return Outcome.WRONG_VALUE, "outputs share memory with each other, and the reference's do not"
    if run.memory_sample is not None and run.memory_sample.missing:
        message = "when the worker reported the end of the call, its outputs were not at the reported addresses"
        return Outcome.SUSPECT, f"{message} ({run.memory_sample.missing})"
    return None


def _pair_made(run: Run, truth: Truth, reference: Reference) -> Iterator[tuple[TruthLeaf, TensorSpec]]:
    """Skip returned inputs, whose strides the evaluator chose."""
    given = len(reference.loaded.returned_inputs)
    return zip(truth.leaves[given:], run.called.specs[given:], strict=False)


def _has_changed_inputs(run: Run, reference: Reference) -> bool:
    return not run.inputs_unchanged and not reference.changes_inputs


def _note_form(run: Run, truth: Truth, reference: Reference, so_far: Sequence[Finding]) -> list[Finding]:
    noted = {finding.check for finding in so_far}
    found = {"strides": _find_other_strides(run, truth, reference), "containers": _find_other_containers(run, truth)}
    notes = {check: message for check, message in found.items() if message and check not in noted}
    return [Finding(check=check, severity="note", message=message) for check, message in notes.items()]


def _find_other_strides(run: Run, truth: Truth, reference: Reference) -> str:
    for leaf, spec in _pair_made(run, truth, reference):
        expected = tuple(leaf.reference.stride())
        if spec.stride != expected and leaf.reference.numel() > 1:
            return f"{leaf.name} has strides {spec.stride}, the reference's has {expected}"
    return ""


def _find_other_containers(run: Run, truth: Truth) -> str:
    found = run.called.tree
    if found == truth.tree or not have_same_nesting(found, truth.tree):
        return ""
    return f"returns {describe_tree(found)}, the reference {describe_tree(truth.tree)}"[:500]


def _refuse_late_change(reference: Reference, name: str) -> None:
    """Raises ProblemError if a call changed this weight after the reference was prepared."""
    made = reference.loaded.make_model(reference.seed, reference.device.torch_device)
    if not has_same_bits(list_state(made)[name], list_state(reference.model)[name]):
        problem = reference.loaded.problem
        raise ProblemError(
            f"{problem.suite}/{problem.name}.py: few calls change {name}, and the first ones do not, so it cannot be "
            "compared; write get_inputs() so that most calls change it"
        )
