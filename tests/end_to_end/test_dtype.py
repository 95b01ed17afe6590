"""A dtype that is chosen for all problems, from the command to the leaderboard."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import small_problem

from harness.domain import Outcome
from harness.pipeline.evaluate import sample_tasks
from harness.pipeline.options import EvaluateOptions
from harness.problems.discovery import parse_problem
from harness.service.preparation import find_submitted_problem
from harness.service.queue import Submission

SCALED = "return x * self.weight"
ROUNDED = "x = x.bfloat16().to(x.dtype)"


def read(forward=SCALED, **options):
    return small_problem.read(forward, **options)


def write(forward=SCALED, hook="pass"):
    return small_problem.write(f"{hook}\n{forward}")


@pytest.mark.parametrize(("dtype", "name"), [("bf16", "bfloat16"), ("fp16", "float16"), ("fp32", "float32")])
@pytest.mark.quick(1)
def test_inputs_and_weights_have_the_chosen_dtype_in_every_case(bench, dtype, name):
    problem = read(settings='CASES = [{"name": "given"}, {"name": "exact", "dtype": "float64"}]')
    expects = f"assert {{x.dtype, self.weight.dtype}} == {{torch.{name}}}"
    evaluation = bench.evaluate(write(hook=expects), problem.in_precision(dtype))
    assert evaluation.outcome is Outcome.CORRECT, evaluation.message


def test_correct_rounding_in_a_coarse_dtype_is_wrong_in_a_finer(bench):
    evaluated = [bench.evaluate(write(hook=ROUNDED), read().in_precision(dtype)) for dtype in ("bf16", "fp32")]
    assert [one.outcome for one in evaluated] == [Outcome.CORRECT, Outcome.WRONG_VALUE]


def test_declared_tolerance_does_not_apply_to_a_chosen_dtype(bench):
    problem = read(settings='TOLERANCE = {"atol": 0.1, "rtol": 0.1}')
    evaluated = [bench.evaluate(write(hook=ROUNDED), one) for one in (problem, problem.in_precision("fp32"))]
    assert [one.outcome for one in evaluated] == [Outcome.CORRECT, Outcome.WRONG_VALUE]


@pytest.mark.parametrize(
    ("dtype", "problem", "reason"),
    [
        ("fp8", read("return torch.softmax(x, dim=-1)"), "not implemented for 'Float8_e4m3fn'"),
        ("tf32", read(), "cpu has no TF32 units"),
        ("bf16", read(drawn="torch.arange(1000.0).repeat(8, 1)[:, -columns:]"), "that bfloat16 would round"),
    ],
)
def test_unsupported_dtype_is_not_run_with_the_reason(bench, dtype, problem, reason):
    evaluation = bench.evaluate(write(), problem.in_precision(dtype))
    assert evaluation.outcome is Outcome.NOT_RUN, evaluation.message
    assert reason in evaluation.message


def test_a_problem_without_floating_values_is_not_run(bench):
    source = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + x
def get_inputs():
    return [torch.randint(9, (8,))]
def get_init_inputs():
    return []
"""
    evaluation = bench.evaluate(write(), parse_problem(source, Path("p.py"), "tiny").in_precision("bf16"))
    assert evaluation.outcome is Outcome.NOT_RUN
    assert "no floating-point inputs or weights" in evaluation.message


def test_a_reference_that_torch_can_run_in_fp8_is_evaluated_in_fp8(bench):
    problem, programs = read().in_precision("fp8"), (SCALED, "return torch.zeros_like(x)")
    outcomes = [bench.evaluate(write(program), problem).outcome for program in programs]
    assert outcomes == [Outcome.CORRECT, Outcome.WRONG_VALUE]


@pytest.mark.slow
def test_verdicts_in_different_dtypes_are_stored_apart_and_never_ranked_together(tiny_suite, write_run, call_harness):
    adds = "import torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, a, b):\n        return a + b\n"
    write_run("r", [adds])
    common = ["evaluate", "r", "--problems-dir", tiny_suite.parent, "--no-time", "--jobs", "1"]
    made = [call_harness([*common, *given]) for given in ((), ("--dtype", "bf16"))]
    assert all("1 already evaluated" not in one.stdout for one in made), made
    assert "1 already evaluated" in call_harness([*common, "--dtype", "bf16"]).stdout
    listed = call_harness(["results", "--json"]).stdout.splitlines()
    assert sorted(json.loads(line)["dtype"] for line in listed) == ["", "bf16"]
    assert "full workload in bf16" in call_harness(["show", "2"]).stdout
    ranked = list(csv.DictReader(call_harness(["leaderboard", "--csv"]).stdout.splitlines()))
    assert sorted((row["dtype"], row["samples"]) for row in ranked) == [("", "1"), ("bf16", "1")]


def test_a_prompt_names_the_chosen_dtype(call_harness):
    common = ["generate", "--problem", "softmax", "--dry-run", "--language", "cpp"]
    assert "cast to bfloat16" in call_harness([*common, "--dtype", "bf16"]).stdout
    assert "cast to" not in call_harness(common).stdout


def test_a_run_that_was_generated_for_a_dtype_is_evaluated_in_it(call_harness, tmp_path):
    asked = ["--provider", "recorded", "--language", "cpp", "--problem", "softmax", "--run", "half", "--dtype", "fp16"]
    generated = tmp_path / "runs"
    call_harness(["generate", *asked, "--generated-dir", generated])
    (task, *_) = sample_tasks(["half"], EvaluateOptions(generated_dir=generated))
    assert (task.subject.dtype, task.problem.dtype) == ("fp16", "float16")
    (other, *_) = sample_tasks(["half"], EvaluateOptions(generated_dir=generated, dtype="fp32"))
    assert (other.subject.dtype, other.problem.dtype) == ("fp32", "float32")


def test_service_request_chooses_a_dtype_or_keeps_that_of_the_problem():
    asked = Submission(problem="softmax", dtype="bf16")
    assert find_submitted_problem(asked, None).precision == "bf16"
    assert Submission.decode(asked.encode()) == asked
    assert "dtype" not in Submission(problem="softmax").encode()
