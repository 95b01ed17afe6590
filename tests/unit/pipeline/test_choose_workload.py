"""Which workload is evaluated where nothing was said, and when a stored verdict is made again."""

import pytest

from harness.domain import CounterReport, Problem, Workload
from harness.pipeline.evaluate import choose_workload
from harness.pipeline.evaluations import _still_holds
from harness.pipeline.options import EvaluateOptions
from harness.problems.workloads import provide_workload

SOURCE = """
import torch
from torch import nn

rows = 4096


class Model(nn.Module):
    def forward(self, a):
        return a + 1


def get_inputs():
    return [torch.randn(rows, rows)]


def get_init_inputs():
    return []
"""
PLAIN = Problem(name="p", suite="s", source=SOURCE)
SMALL = Workload(name="small", overrides=(("rows", 33),))
WITH_SMALL = Problem(name="p", suite="s", source=SOURCE, workloads=(Workload(name="full"), SMALL))


@pytest.mark.parametrize(
    ("problem", "device", "asked", "chosen"),
    [
        (PLAIN, "cpu", None, "full"),
        (WITH_SMALL, "cuda:0", None, "full"),
        (WITH_SMALL, "emulated", None, "small"),
        (PLAIN, "emulated", None, "reduced"),
        (WITH_SMALL, "emulated", "full", "full"),
        (WITH_SMALL, "cpu", "reduced", "reduced"),
    ],
)
def test_the_emulated_device_takes_what_it_can_do_unless_asked_otherwise(problem, device, asked, chosen):
    assert choose_workload(problem, device, EvaluateOptions(workload=asked)) == chosen


@pytest.mark.slow
def test_problem_without_a_small_workload_is_shrunk_and_keeps_its_identity():
    reduced = provide_workload(PLAIN, "reduced", "cuda")
    assert reduced.digest == PLAIN.digest
    assert dict(reduced.workload("reduced").overrides)["rows"] < 4096
    assert provide_workload(PLAIN, "small", "cuda") is None


@pytest.mark.parametrize(("gpu", "holds"), [("A100", True), ("H100", False), ("", False)])
def test_a_verdict_about_another_emulated_gpu_is_another_verdict(evaluation_of, gpu, holds):
    stored = evaluation_of("correct", device="emulated", extra={"environment": (("emulated_gpu", "A100"),)})
    assert _still_holds(stored, gpu, EvaluateOptions()) is holds


def test_a_verdict_of_a_device_that_is_there_holds(evaluation_of):
    assert _still_holds(evaluation_of("correct"), "", EvaluateOptions())
    for outcome in ("problem_error", "harness_error"):
        assert not _still_holds(evaluation_of(outcome), "", EvaluateOptions())


@pytest.mark.parametrize(("stored", "wanted", "holds"), [("quick", "full", False), ("quick", "correctness", True)])
def test_a_correct_candidate_is_evaluated_again_to_measure_more(evaluation_of, stored, wanted, holds):
    extra = {"environment": (("fidelity", stored),)}
    options = EvaluateOptions(fidelity=wanted)
    assert _still_holds(evaluation_of("correct", extra=extra), "", options) is holds
    assert _still_holds(evaluation_of("wrong_value", extra=extra), "", options)


@pytest.mark.parametrize(
    ("device", "counters", "holds"),
    [("cuda:0", None, False), ("cuda:0", CounterReport(note="no permission"), True), ("cpu", None, True)],
)
def test_a_correct_candidate_is_evaluated_again_once_to_read_counters(evaluation_of, device, counters, holds):
    stored = evaluation_of("correct", device=device, extra={"counters": counters})
    assert _still_holds(stored, "", EvaluateOptions(profile=True)) is holds
    assert _still_holds(stored, "", EvaluateOptions())
