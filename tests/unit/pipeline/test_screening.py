"""What a cheap evaluation before the full one decides."""

import asyncio
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from harness.domain import Candidate
from harness.executors.executor import DeviceFacts, Origin, make_task
from harness.pipeline.evaluations import Screening
from harness.pipeline.options import EvaluateOptions
from harness.problems.discovery import parse_problem

SOURCE = """import torch

rows = 4096
SMALL = {"rows": 16}


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.rand(rows)]


def get_init_inputs():
    return []
"""
PROBLEM = parse_problem(SOURCE, Path("add.py"), "tiny")
CANDIDATE = Candidate(source="class ModelNew: pass\n", language="cuda", rule="file")


class Emulated:
    """An executor that answers each task with an outcome, and keeps the tasks."""

    def __init__(self, evaluation):
        self.tasks, self._evaluation = [], evaluation

    def devices(self, language):
        return (DeviceFacts(name="emulated", chip="CPU", emulated_gpu="A100"),)

    def submit(self, task):
        self.tasks.append(task)
        done = Future()
        done.set_result(replace(self._evaluation, subject=task.subject))
        return done


@pytest.fixture
def screen(evaluation_of):
    def run(outcome):
        executor = Emulated(evaluation_of(outcome, extra={"environment": (("emulated_gpu", "A100"), ("cpu", "x"))}))
        task = make_task(PROBLEM, CANDIDATE, Origin(run="r", model="m"), language="cuda").on_device("cuda:0")
        screening = Screening("emulated", EvaluateOptions(), executor)
        return task, executor.tasks, asyncio.run(screening.find_failure(task))

    return run


def test_a_failure_is_the_verdict_of_the_full_evaluation_with_a_note(screen):
    task, tried, failure = screen("wrong_value")
    assert (tried[0].subject.device, tried[0].subject.workload) == ("emulated", "small")
    assert (failure.subject, failure.outcome) == (task.subject, "wrong_value")
    assert failure.findings[-1].message == "evaluated at small sizes on emulated only (--screen emulated)"
    assert failure.environment == (("cpu", "x"),), "else it would be taken for one of the emulated device"


@pytest.mark.parametrize("outcome", ["correct", "not_run", "harness_error"])
def test_only_what_counts_against_the_model_ends_the_evaluation(screen, outcome):
    assert screen(outcome)[2] is None


@pytest.mark.parametrize("outcome", ["timeout", "out_of_memory"])
def test_time_and_memory_of_the_emulated_device_say_nothing_about_a_gpu(screen, outcome):
    assert screen(outcome)[2] is None
