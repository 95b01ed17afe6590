"""The engine behind all commands that evaluate: what is stored, submitted and recorded."""

from concurrent.futures import Future
from dataclasses import replace

import pytest

from harness.domain import Candidate, DeviceError, Problem
from harness.executors.executor import DeviceFacts, ExecutorStatus, Origin, make_task
from harness.pipeline.evaluations import Evaluations, open_results
from harness.pipeline.options import EvaluateOptions


class FakeExecutor:
    """Answers at once; `broken`: the samples whose evaluation raises."""

    capacity = 1

    def __init__(self, evaluation, broken=(), lost=()):
        self.submitted, self._evaluation, self._broken, self._lost = [], evaluation, broken, lost

    def devices(self, language):
        return (DeviceFacts(name="cpu", chip="CPU"),)

    def submit(self, task):
        sample, done = task.subject.sample, Future()
        self.submitted.append(sample)
        if sample in self._broken:
            done.set_exception(DeviceError(f"sample {sample} broke the device"))
        else:
            done.set_result(replace(self._evaluation, subject=task.subject))
        return done

    def status(self):
        return ExecutorStatus(building=0, builds={}, devices=(), lost=self._lost)


@pytest.fixture
def evaluate(tmp_path, evaluation_of):
    """Evaluates samples with a new engine on one folder of results; returns executor and engine."""

    def run(*samples, broken=(), lost=(), **options):
        chosen = EvaluateOptions(results_dir=tmp_path / "results", generated_dir=tmp_path, **options)
        executor = FakeExecutor(evaluation_of("correct", extra={"environment": ()}), broken, lost)
        problem = Problem(name="add", suite="tiny", source="class Model: ...\n")
        tasks = [
            make_task(
                problem,
                Candidate(source=f"class ModelNew: n = {sample}\n", language="cpp", rule="file"),
                Origin(run="r", model="m", sample=sample),
                language="cpp",
            )
            for sample in samples
        ]
        with open_results(chosen) as opened:
            evaluations = Evaluations(chosen, executor, opened)
            try:
                evaluations.evaluate_all(tasks)
            finally:
                run.has_csv_before_end = (tmp_path / "results" / "evaluations.csv").exists()
        run.ranking = opened.ranking
        return executor, evaluations.report

    return run


def test_a_stored_verdict_is_used_again_with_its_evaluation_and_source(evaluate):
    evaluate(0)
    executor, report = evaluate(0, 1)
    assert executor.submitted == [1]
    assert [one.evaluation.subject.sample for one in report.skipped] == [0]
    assert report.sources[report.skipped[0].evaluation.subject.candidate_digest] == "class ModelNew: n = 0\n"
    assert [one.id for one in report.all] == [1, 2]


def test_again_evaluates_what_is_stored(evaluate):
    evaluate(0)
    assert evaluate(0, again=True)[0].submitted == [0]


def test_csv_files_and_ranking_are_made_once_at_the_end(evaluate, tmp_path):
    evaluate(0)
    assert not evaluate.has_csv_before_end
    assert (tmp_path / "results" / "evaluations.csv").read_text().count("\n") == 2
    assert [row.group.model for row in evaluate.ranking] == ["m"]


def test_after_an_error_nothing_is_submitted_and_recorded_results_stay(evaluate):
    with pytest.raises(DeviceError, match="sample 1 broke"):
        evaluate(0, 1, 2, broken=(1,))
    executor, report = evaluate(0, 1, 2)
    assert executor.submitted == [1, 2]
    assert len(report.skipped) == 1


def test_a_lost_device_is_an_error_after_all_evaluations(evaluate):
    with pytest.raises(DeviceError, match=r"cuda:1 fell off\. The other devices completed all 2 evaluations"):
        evaluate(0, 1, lost=("cuda:1 fell off",))
    assert evaluate(0, 1)[0].submitted == []
