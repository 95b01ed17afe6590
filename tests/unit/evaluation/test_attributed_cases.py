"""Every timed case on a GPU is attributed: the program may differ between cases."""

from types import SimpleNamespace

import pytest

from harness.domain import Case, Outcome, Work
from harness.evaluation import steps
from harness.evaluation.cases import CaseRun
from harness.evaluation.integrity.attribution import CustomKernels
from harness.evaluation.record import EvaluationRecord
from harness.evaluation.results import ReplayedKernels, StepResult
from harness.evaluation.steps import CaseContext, attribute_time

OWN = Work(custom=0.8, torch=0.2, library=0.0, other=0.0)


class Context(CaseContext):
    def describe_custom_kernels(self):
        return CustomKernels(names=("scale",))

    def set_worker_aside(self):
        return self.record.phase("aside")


def make_case(monkeypatch, *, replayed=None, recorded=None, requires=True, is_first=False, is_timed=True):
    run = CaseRun(case=Case(name="wide", timed=is_timed), sizes="n 4", is_first=is_first)
    problem = SimpleNamespace(requires_kernel=requires)
    reference = SimpleNamespace(
        device=SimpleNamespace(replays_calls=True, is_timed=True, name="a GPU"),
        loaded=SimpleNamespace(problem=problem),
        make_inputs=lambda seed: (),
    )
    record = EvaluationRecord(seed=1)
    tools = SimpleNamespace(
        settings=SimpleNamespace(attribute_work=True), times=lambda task: task.run.is_timed, workers=None
    )
    task = SimpleNamespace(record=record, run=run, kernels=("scale",), candidate=None)
    monkeypatch.setattr(steps, "attribute_work", lambda *given, **named: StepResult(work=OWN))
    return Context(
        tools=tools, task=task, reference=reference, seeds=iter(range(9)), exercises=None, session=None, worker=None,
        replayed_kernels=replayed, recorded_functions=recorded,
    )  # fmt: skip


DECOY = ReplayedKernels(rows=(("scale", "custom", 1.0), ("sgemm", "library", 9.0)), without_custom="unchanged")


@pytest.mark.parametrize(
    ("requires", "outcome", "severity"), [(True, Outcome.REJECTED, "fatal"), (False, None, "warning")]
)
def test_a_decoy_in_a_later_case_counts(requires, outcome, severity, monkeypatch):
    result = attribute_time(make_case(monkeypatch, replayed=DECOY, requires=requires))
    assert (result.outcome, result.work.without_custom) == (outcome, "unchanged")
    (finding,) = result.findings
    assert (finding.check, finding.severity) == ("decoy_kernel", severity)
    assert finding.message.startswith("case wide (n 4): ")


@pytest.mark.parametrize("is_first", [True, False])
def test_a_case_without_replays_is_profiled_and_its_share_is_not_verified(is_first, monkeypatch):
    result = attribute_time(make_case(monkeypatch, is_first=is_first))
    assert (result.outcome, result.work) == (None, OWN)
    assert [(one.check, one.severity) for one in result.findings] == [("unverified_share", "note")]


def test_a_case_without_custom_code_in_its_recording_has_no_share(monkeypatch):
    result = attribute_time(make_case(monkeypatch, recorded=[], requires=False))
    assert (result.work.custom, result.findings[0].check) == (0.0, "unused_kernel")
    assert attribute_time(make_case(monkeypatch, recorded=[])).outcome is Outcome.REJECTED


def test_a_case_that_is_not_timed_is_not_attributed(monkeypatch):
    assert attribute_time(make_case(monkeypatch, is_timed=False)) is steps.NOTHING
