"""Probes a candidate after the verdict: other weights, undeclared distributions, a nearby shape.

Failures are warnings, since candidates may rely on their problem's declarations. The candidate may hang or crash, so it
is not called again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch

from harness.domain import CandidateFailure, Correctness, Finding, HarnessError, Outcome, ProblemError, Trial, Weights
from harness.evaluation.correctness.calls import CallMaker, Exercise
from harness.evaluation.correctness.checks import compare_exercise, prepared
from harness.evaluation.correctness.other_states import watch_operators
from harness.evaluation.correctness.planned_calls import NEARBY_SHAPE, OTHER_WEIGHTS, PlannedCalls, take_inputs
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.correctness.reference_checks import has_only_numbers
from harness.evaluation.correctness.variations import takes_layout
from harness.problems.inputs.kind import GIVEN
from harness.problems.inputs.kinds import DECLARED, MIXED
from harness.sandbox.model_session import ModelSession, Run
from harness.tensors.outputs import find_difference
from harness.tensors.values import list_tensors

BUDGET_S = 0.8  # for all probes of a candidate; or, if larger,
BUDGET_SHARE = 0.25  # of the duration of its correctness check
INPUTS_SHARE = 0.6  # of the budget, for other distributions; layout and shape get the rest
CALL_SHARE = 5.0  # time limit of a call relative to its usual duration, but at least
LEAST_CALL_S = 2.0

MESSAGES = {
    "weights_packed": "wrong after its weights changed: it uses those of its construction",
    "input_specialised": "wrong on input distributions that its problem does not declare",
    "layout_specialised": "wrong on non-contiguous inputs",
    "shape_specialised": "wrong on inputs of a nearby shape",
}
UNDECLARED = tuple(kind for kind in DECLARED if kind not in (GIVEN, MIXED))
REMEDIES = {"layout_specialised": ": call x.contiguous() before taking its data pointer"}


def probe_candidate(
    session: ModelSession,
    reference: Reference,
    seeds: Iterator[int],
    correctness: Correctness,
    spent_s: float,
    *,
    may_recompile: bool = False,
) -> list[Finding]:
    """`spent_s`, the duration of the correctness check, bounds the probes. With `may_recompile` a timeout is no
    failure, since the candidate may compile for the new layout or shape.
    """
    prober = _Prober(session, reference, seeds, correctness.weights, may_recompile=may_recompile)
    try:
        prober.run(max(BUDGET_S, BUDGET_SHARE * spent_s), spent_s / len(correctness.trials))
    except (CandidateFailure, HarnessError, torch.OutOfMemoryError) as error:
        prober.stopped = f"{prober.trying}: {error}" if prober.trying else str(error)
    return list(prober.describe())


class _Prober:
    """Stops if the candidate's behaviour changes."""

    def __init__(
        self,
        session: ModelSession,
        reference: Reference,
        seeds: Iterator[int],
        weights: Weights,
        *,
        may_recompile: bool,
    ) -> None:
        self._session = session
        self._may_recompile = may_recompile
        self._reference = reference
        self._maker = CallMaker(reference, seeds)
        self._has_weights = weights in ("identical", "loaded")
        self._failed: dict[str, list[tuple[str, str]]] = {}
        self._untried: list[str] = []
        self._takes_any_values = False
        self.trying = ""
        self.stopped = ""

    def run(self, budget_s: float, usual_s: float) -> None:
        """`usual_s` is the duration of a call with its checks. At least one probe must fit beside the first, ordinary
        call.
        """
        first_s = began_s = time.monotonic()
        inputs = self._reference.make_inputs(next(self._maker.seeds), GIVEN.name)
        self._takes_any_values = self._may_change_values(inputs)
        if 2 * usual_s >= budget_s:
            self._untried += [name for _, name, _ in self._list_probes()]
            return
        self._session.reset_state()
        usual = self._session.call(inputs, self._reference.device)
        self._session.client.limit_calls(max(LEAST_CALL_S, CALL_SHARE * usual.evaluator_us / 1e6))
        longest_s = time.monotonic() - began_s + 2 * self._reference.call_s  # a probe also computes a truth
        for check, name, step in self._list_probes():
            began_s = time.monotonic()
            share = INPUTS_SHARE if check == "input_specialised" else 1.0
            if began_s + longest_s - first_s > share * budget_s:
                self._untried.append(name)
                continue
            self.trying = name
            evidence = self._try(step)
            longest_s = max(longest_s, time.monotonic() - began_s)
            if evidence is None:
                continue
            self._failed.setdefault(check, []).append((name, evidence))
            if not self._does_as_before(inputs, usual):
                self.stopped = f"after {name} the candidate no longer behaved as before"
                return

    def describe(self) -> Iterator[Finding]:
        for check, failed in self._failed.items():
            names = ", ".join(name for name, _ in failed)
            evidence = "\n".join(f"{name}: {what}" for name, what in failed)
            message = f"{MESSAGES[check]} ({names}){REMEDIES.get(check, '')}"
            yield Finding(check=check, severity="warning", message=message, evidence=evidence)
        if self._untried:
            why = "what the problem does not declare could only have added a warning"
            yield _note(f"no time was left to try {', '.join(self._untried)}; {why}")
        if self.stopped:
            yield _note(f"not all probes were made: {self.stopped}")

    def _list_probes(self) -> Iterator[tuple[str, str, PlannedCalls]]:
        """Yield (check, name, calls), the least harmful first."""
        problem = self._reference.loaded.problem
        if self._has_weights and not problem.dynamic_weights:
            yield "weights_packed", "other weights", OTHER_WEIGHTS
        if self._reference.is_small:
            for kind in UNDECLARED:
                if kind.name not in problem.distributions and (self._takes_any_values or kind.changes_layout):
                    check = "layout_specialised" if kind.changes_layout else "input_specialised"
                    yield check, kind.name, take_inputs(kind)
        if not problem.dynamic_shapes:
            yield "shape_specialised", "smaller", NEARBY_SHAPE

    def _may_change_values(self, inputs: tuple[Any, ...]) -> bool:
        """Other distributions must not trigger assertions in the evaluator's GPU context."""
        if not any(tensor.is_floating_point() for tensor in list_tensors(inputs)):
            return False
        return not (self._reference.device.has_contexts and watch_operators(self._reference, inputs).limits_values)

    def _try(self, step: PlannedCalls) -> str | None:
        """Return what failed; None if it passed, or does not apply, as where the reference rejects such inputs."""
        try:
            exercises = [one for one in step.make(self._maker) if self._applies(one)]
        except ProblemError:
            return None
        return next(filter(None, map(self._call, exercises)), None)

    def _applies(self, exercise: Exercise) -> bool:
        takes = not exercise.kind.changes_layout or takes_layout(self._reference, exercise.inputs)
        return takes and has_only_numbers(exercise.expected.form.reference_outputs)

    def _call(self, exercise: Exercise) -> str | None:
        with prepared(self._session, self._reference, exercise):
            evidence = self._compare(exercise)
        if evidence is None or exercise.footprint is None:
            return evidence
        shapes = [str(tuple(tensor.shape)) for tensor in list_tensors(exercise.inputs)]
        return f"inputs of shapes {', '.join(shapes)}: {evidence}"

    def _compare(self, exercise: Exercise) -> str | None:
        try:
            run = self._session.call(exercise.inputs, self._reference.device)
            outcome, trial = compare_exercise(run, exercise, self._reference)
        except CandidateFailure as failure:
            return self._describe_failure(failure)
        return None if outcome is None else f"{outcome}: {_describe_numbers(trial)}"

    def _does_as_before(self, inputs: tuple[Any, ...], usual: Run) -> bool:
        try:
            self._session.reset_state()
            run = self._session.call(inputs, self._reference.device)
        except (CandidateFailure, OSError):  # the connection is closed after a timeout
            return False
        if run.called.specs != usual.called.specs:
            return False
        if find_difference(run.outputs.tensors, usual.outputs.tensors) is None:
            return True
        may_differ = not self._reference.requires_same_bits
        return may_differ and self._reference.is_surely_close(usual.outputs, run.outputs)

    def _describe_failure(self, failure: CandidateFailure) -> str:
        if self._may_recompile and failure.outcome is Outcome.TIMEOUT:
            raise failure
        return f"{failure.outcome}: {failure.message}"[:1000]


def _note(message: str) -> Finding:
    return Finding(check="probes", severity="note", message=message[:500])


def _describe_numbers(trial: Trial) -> str:
    if trial.worst_ratio is None:
        return trial.message
    return (
        f"{trial.message}; largest error {trial.max_abs_error:.3g} (the reference's own: "
        f"{trial.reference_max_abs_error:.3g}), {trial.worst_ratio:.3g} times the allowed error"
    )
