"""Several judged calls with fresh secret inputs, and what else must hold of them: inputs left alone, nothing shared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from harness.domain import Correctness, Finding, Outcome, Trial
from harness.judge.client import CandidateFailure
from harness.judge.compare import judge_outputs
from harness.judge.reference import Reference
from harness.judge.session import ModelSession, Run, Weights
from harness.judge.truth import Truth, compute_truth, map_tensors
from harness.problems.load import LoadedProblem
from harness.wire import flatten_value

AS_GIVEN_TRIALS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """`outcome` None: every trial passed. `correctness` holds the trials up to the first that failed."""

    outcome: Outcome | None
    message: str
    correctness: Correctness
    findings: tuple[Finding, ...]


def plan_trials(loaded: LoadedProblem) -> tuple[str, ...]:
    """The distributions to try: the problem's own inputs several times, then each other one once."""
    others = [name for name in loaded.problem.distributions if name != "as_given"]
    return ("as_given",) * AS_GIVEN_TRIALS + tuple(others)


def check_correctness(
    session: ModelSession, reference: Reference, seeds: Iterator[int], weights: Weights
) -> CheckResult:
    """Runs the planned trials; stops at the first that fails."""
    loaded, device = reference.loaded, reference.device
    trials: list[Trial] = []
    findings: list[Finding] = []
    truth_kind: Literal["float64", "reference"] = "float64"
    outcome: Outcome | None = None
    trial_message = ""
    aliases = AliasCheck(session, reference.model)
    for distribution in plan_trials(loaded):
        inputs = loaded.make_inputs(next(seeds), device.torch_device, distribution)
        truth = compute_truth(loaded, reference.model, copy_tensors(inputs))
        truth_kind = truth.kind if truth.kind == "reference" else truth_kind
        session.place(inputs)
        aliases.check_inputs_apart()
        run = session.call(inputs, device)
        outcome, trial = judge_run(run, truth, reference, distribution)
        trials.append(trial)
        findings += _note_strides(run, truth, findings)
        if outcome is None:
            outcome, trial_message = aliases.check_outputs_kept(run, inputs)
        else:
            trial_message = _say_where(trial)
        if outcome is not None:
            findings.append(Finding(check="correctness", severity="fatal", message=trial_message))
            break
    correctness = Correctness(trials=tuple(trials), weights=weights, truth=truth_kind)
    return CheckResult(outcome=outcome, message=trial_message, correctness=correctness, findings=tuple(findings))


def _say_where(trial: Trial) -> str:
    return trial.message if trial.distribution == "as_given" else f"{trial.message} (on {trial.distribution} inputs)"


def judge_run(run: Run, truth: Truth, reference: Reference, distribution: str) -> tuple[Outcome | None, Trial]:
    """Compares one call with the truth, and sees that its inputs were left alone."""
    outcome, trial = judge_outputs(truth, run.outputs, reference.loaded.problem.tolerance, distribution)
    device = reference.device
    wrong_device = next((name for name in run.returned.devices if name.split(":")[0] != device.torch_device.type), None)
    if outcome is None and wrong_device is not None:
        message = f"an output lies on {wrong_device}, expected {device.name}"
        return Outcome.WRONG_DTYPE, Trial(distribution=distribution, passed=False, message=message)
    if outcome is None and not run.inputs_unchanged:
        message = "the inputs were changed by the call"
        return Outcome.WRONG_VALUE, Trial(distribution=distribution, passed=False, message=message)
    return outcome, trial


class AliasCheck:
    """Whether outputs share memory with inputs or with later outputs, found by what happens to them.

    After new inputs were written the last outputs must be as they were, and so they must after the next call. Where
    the reference itself returns a view of its inputs, the first is not asked for.
    """

    def __init__(self, session: ModelSession, model: nn.Module) -> None:
        self._session = session
        self._model = model
        self._last: tuple[Tensor, ...] | None = None
        self._may_view_inputs = False

    def check_inputs_apart(self) -> None:
        """Call after the next inputs were placed. Raises CandidateFailure (wrong_value)."""
        if self._last is None or self._may_view_inputs:
            return
        if not _all_equal(self._session.copy_again(earlier=False), self._last):
            _fail("an output shares memory with the inputs: it changed when new inputs were written", "alias_input")

    def check_outputs_kept(self, run: Run, inputs: Sequence[Any]) -> tuple[Outcome | None, str]:
        """Call after each passed call: whether the outputs of the call before it are still what they were."""
        before, self._last = self._last, run.outputs.tensors
        if before is None:
            self._may_view_inputs = returns_view_of_inputs(self._model, inputs)
            return None, ""
        if self._may_view_inputs or _all_equal(self._session.copy_again(earlier=True), before):
            return None, ""
        return Outcome.WRONG_VALUE, "an output of an earlier call changed when the model was called again"


def returns_view_of_inputs(model: nn.Module, inputs: Sequence[Any]) -> bool:
    """Whether the reference's outputs share storage with its inputs."""
    with torch.no_grad():
        outputs = model(*inputs)
    return bool(_storages(outputs) & _storages(tuple(inputs)))


def _storages(value: Any) -> set[int]:
    tensors = flatten_value(value, torch.is_tensor)[1]
    return {tensor.untyped_storage().data_ptr() for tensor in tensors}


def _fail(message: str, check: str) -> None:
    finding = Finding(check=check, severity="fatal", message=message)
    raise CandidateFailure(Outcome.WRONG_VALUE, message, (finding,))


def _all_equal(now: Sequence[Tensor], before: Sequence[Tensor]) -> bool:
    return all(_same_bits(a, b) for a, b in zip(now, before, strict=True))


def _same_bits(a: Tensor, b: Tensor) -> bool:
    return torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))


def copy_tensors(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Copies with the same strides, so that a reference that works in place does not change what is placed."""
    return tuple(map_tensors(tuple(inputs), lambda tensor: tensor.detach().clone()))


def _note_strides(run: Run, truth: Truth, so_far: Sequence[Finding]) -> list[Finding]:
    """A note where an output's layout in memory differs from the reference's: right, but another layout."""
    if any(finding.check == "strides" for finding in so_far):
        return []
    for leaf, strides in zip(truth.leaves, run.returned.strides, strict=False):
        expected = tuple(leaf.reference.stride())
        if strides != expected and leaf.reference.numel() > 1:
            message = f"{leaf.name} has strides {strides}, the reference's has {expected}"
            return [Finding(check="strides", severity="note", message=message)]
    return []
