"""In which order candidates are evaluated."""

from dataclasses import replace

import pytest

from harness.domain import Candidate, Problem
from harness.executors.executor import Origin, make_task
from harness.pipeline.evaluate import open_executor
from harness.pipeline.evaluations import order_by_duration
from harness.pipeline.options import EvaluateOptions
from harness.store.results import ResultStore


@pytest.fixture
def task_of():
    def make(problem, sample=0):
        candidate = Candidate(source=f"# {problem} {sample}", language="cuda", rule="file")
        found = Problem(name=problem, suite="core", source=problem)
        return make_task(found, candidate, Origin(run="r", model="m", sample=sample), language="cuda")

    return make


def name(task):
    return f"{task.subject.problem}/{task.subject.sample}"


def test_longest_tasks_start_first_after_unknown_ones(task_of, evaluation_of, tmp_path):
    tasks = [task_of("short"), task_of("new"), task_of("mixed", 0), task_of("long"), task_of("mixed", 1), task_of("b")]
    known = {"short/0": 2.0, "mixed/0": 30.0, "mixed/2": 9.0, "long/0": 20.0}
    with ResultStore.open(tmp_path) as store:
        for task in [*tasks, task_of("mixed", 2)]:
            if name(task) in known:
                evaluation = evaluation_of(extra={"duration_s": known[name(task)]})
                store.record(replace(evaluation, subject=task.subject), None)
        ordered = [name(task) for task in order_by_duration(tasks, store)]
    assert ordered == ["new/0", "b/0", "mixed/0", "mixed/1", "long/0", "short/0"]


def test_without_results_the_order_is_the_given_one_by_problem(task_of, tmp_path):
    tasks = [task_of(problem, sample) for sample in range(2) for problem in "bda"]
    with ResultStore.open(tmp_path) as store:
        ordered = [name(task) for task in order_by_duration(iter(tasks), store)]
    assert ordered == ["b/0", "b/1", "d/0", "d/1", "a/0", "a/1"]


@pytest.mark.parametrize(("sources", "expected"), [("B", False), ("BB", True), ("RB", True), ("RR", False)])
def test_programs_are_built_ahead_unless_they_are_alone(task_of, tmp_path, sources, expected):
    texts = {"B": "from torch.utils import cpp_extension", "R": "import triton"}
    tasks = [
        replace(task_of("p", sample), candidate=Candidate(source=texts[one], language="cuda", rule="file"))
        for sample, one in enumerate(sources)
    ]
    with open_executor(EvaluateOptions(cache=tmp_path), tasks) as executor:
        assert executor._builds_ahead is expected
