"""The steps of the method that measure time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

from harness.domain import BaselineResult, Comparison, Finding, Outcome, Rival, TimedBaseline, Timing
from harness.evaluation.cases import CaseRun
from harness.evaluation.model_workers import BaselineFailure, sparing_memory
from harness.evaluation.record import EvaluationRecord
from harness.evaluation.results import StepResult, TimingResult
from harness.evaluation.steps import NOTHING, CaseContext
from harness.evaluation.timing.clocks import interval_of
from harness.evaluation.timing.replay_timing import record_call
from harness.sandbox.gpu.recording import NotReplayable

DOUBTFUL = ("unreliable", "unconfirmed")  # times


def time_whole_calls(case: CaseContext) -> StepResult:
    """The time is shown beside device time and decides nothing; a wrong output does."""
    if not (case.is_timed and case.is_replayed and case.reference.has_full_plan):
        return NOTHING
    with case.quiet(), case.record.phase("timing"):
        timed = case.timer.time_calls(case.session)
    case.call_us = timed.median_us
    if not timed.wrong:
        return NOTHING
    finding = Finding(check="timed_call", severity="fatal", message=timed.wrong)
    return StepResult(findings=(finding,), outcome=Outcome.SUSPECT, message=timed.wrong)


def record_gpu_work(case: CaseContext) -> StepResult:
    """The recorded call is valid while the worker lives."""
    if case.is_timed and case.is_replayed:
        try:
            with case.record.phase("recording"):
                opened = record_call(lambda: nullcontext(case.session), case.reference, case.seeds)
                case.recorded = case.worker.enter_context(opened)
        except NotReplayable as reason:
            case.recorded = reason
    return NOTHING


def measure_time(case: CaseContext) -> StepResult:
    if not case.is_timed:
        return NOTHING
    try:
        with case.quiet():
            timed = _time(case)
    except BaselineFailure as failure:
        return StepResult(findings=(case.task.run.name_finding(failure.describe(case.task.baselines[0])),))
    with case.record.phase("roofline"), case.set_worker_aside():
        examined = case.tools.roofline.examine(timed.timing, case.reference, next(case.seeds))
    failed = next((one for one in (timed, examined) if one.outcome is not None), timed)
    return StepResult(
        findings=tuple(map(case.task.run.name_finding, (*timed.findings, *examined.findings))),
        outcome=failed.outcome,
        message=failed.message,
        timing=timed.timing,
        roofline=examined.roofline,
    )


def _time(case: CaseContext) -> TimingResult:
    record, baseline = case.record, case.task.baselines[0]
    if case.keeps_worker:
        with record.phase("timing"):
            return case.timer.time_session(case.session, baseline)
    reason: NotReplayable | None = None
    if case.recorded is not None:
        with record.phase("timing"):
            custom = case.describe_custom_kernels() if case.is_attributed else None
            replayed = case.timer.replay(case.recorded, baseline, case.call_us, custom)
        if isinstance(replayed, TimingResult):
            case.replayed_kernels = replayed.kernels
            return replayed
        reason = replayed
    with case.set_worker_aside(), record.phase("timing"):
        return case.timer.time_in_fresh_workers(baseline, reason)


def time_further_baselines(case: CaseContext) -> StepResult:
    """Each in a measurement of its own. Their failures are only findings; outputs of the candidate count as before."""
    findings: list[Finding] = []
    further: list[BaselineResult] = []
    for baseline in case.task.baselines[1:] if case.is_timed else ():
        try:
            timed = _time_further(case, baseline)
        except BaselineFailure as failure:
            findings.append(case.task.run.name_finding(failure.describe(baseline)))
            further.append(BaselineResult(name=baseline.name, reason=str(failure)))
            continue
        if timed.outcome is not None:
            return StepResult(findings=timed.findings, outcome=timed.outcome, message=timed.message)
        further.append(BaselineResult(name=baseline.name, timing=replace(timed.timing, blocks=())))
    return StepResult(findings=tuple(findings), further=tuple(further))


@sparing_memory()
def _time_further(case: CaseContext, baseline: TimedBaseline) -> TimingResult:
    session = case.session if case.keeps_worker else None
    floor = (case.record.timing and case.record.timing.noise_floor) or 0.0
    aside = nullcontext() if case.keeps_worker else case.set_worker_aside()
    with case.quiet(), aside, case.record.phase("baselines"):
        return case.timer.time_further(session, baseline, floor=floor, call_us=case.call_us)


def compare_rival(case: CaseContext) -> StepResult:
    """Compare with the best earlier program of a search, which is untrusted, so this never changes the outcome."""
    rival, timing = case.task.rival, case.record.timing
    if rival is None or timing is None:
        return NOTHING

    def measure() -> TimingResult:
        if case.keeps_worker:
            return case.timer.compare_session(case.session, rival.candidate, timing)
        return case.timer.compare_in_fresh_workers(rival.candidate)

    with case.quiet(), nullcontext() if case.keeps_worker else case.set_worker_aside():
        compare_with_rival(case.record, case.task.run, rival, measure)
    return NOTHING


def compare_with_rival(
    record: EvaluationRecord, run: CaseRun, rival: Rival, measure: Callable[[], TimingResult]
) -> None:
    """Measure a gain again, since equal programs may differ for the lifetime of their processes. Add None if the
    candidate is certainly slower in a case, its time is not confirmed, or a program failed.
    """
    if record.timing is None or run.is_secret:
        return
    comparison, doubt = None, ""
    if _may_gain(record.timing, rival, run) and all(one is not None for _, one in record.comparisons):
        try:
            with record.phase("comparison"):
                comparison, doubt = _measure_pairs(rival, measure)
                if comparison.is_gain:
                    again, doubt = _measure_pairs(rival, measure)
                    comparison = again if (again.speedup_low or 0.0) < (comparison.speedup_low or 0.0) else comparison
        except Exception as error:  # noqa: BLE001 - a hostile rival may cause any
            comparison, doubt = None, str(error)
    if doubt:
        note = Finding(check="comparison", severity="note", message=f"not compared with turn {rival.turn}: {doubt}")
        record.findings.append(run.name_finding(note))
    record.comparisons.append((run.weight, comparison))


def _measure_pairs(rival: Rival, measure: Callable[[], TimingResult]) -> tuple[Comparison, str]:
    result = measure()
    return summarise_pairs(rival, result), find_doubt(result)


def _may_gain(timing: Timing, rival: Rival, run: CaseRun) -> bool:
    return timing.verdict not in DOUBTFUL and timing.speedup_high > rival.speedup_lows.get(run.name, 0.0)


def find_doubt(result: TimingResult) -> str:
    if result.outcome is None and result.timing.verdict not in DOUBTFUL:
        return ""
    return result.message or f"the time in these pairs is {result.timing.verdict}"


def summarise_pairs(rival: Rival, result: TimingResult) -> Comparison:
    """The rival takes the baseline's place. Omit values if the pairs are not meaningful."""
    timing = result.timing
    if find_doubt(result):
        return Comparison(turn=rival.turn)
    ratio, low, high = interval_of(timing.blocks)
    share, widened = timing.speedup / ratio, 1 + (timing.noise_floor or 0.0)
    return Comparison(
        turn=rival.turn, speedup=timing.speedup, speedup_low=low * share / widened, speedup_high=high * share * widened
    )
