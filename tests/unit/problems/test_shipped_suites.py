"""The shipped suites."""

from __future__ import annotations

import inspect
import math
import random
from pathlib import Path

import pytest
import torch

from harness.cli.main import run_command
from harness.domain import Case
from harness.evaluation.correctness.reference_checks import find_violations
from harness.evaluation.correctness.truth import run_reference
from harness.problems.discovery import find_suite
from harness.problems.loading import load_problem

SUITES = Path(__file__).parents[3] / "reference_models"
MOST_INPUT_BYTES = 2e9
LEAST_PROBLEMS = {"llm": 25, "fused": 30, "scientific": 10}
CPU = torch.device("cpu")
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
TOO_NEW = {"fp8_gemm"} if TORCH < (2, 13) else set()  # no scale per row on a CPU before

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # of torch 2.11
@pytest.mark.parametrize("suite", LEAST_PROBLEMS)
def test_every_problem_runs_its_small_workload_on_a_cpu(suite):
    problems = find_suite(SUITES / suite)
    assert len(problems) >= LEAST_PROBLEMS[suite]
    for problem in problems:
        if problem.name in TOO_NEW:
            continue
        loaded = load_problem(problem, "small")
        with torch.no_grad():
            outputs = run_reference(loaded, loaded.make_model(3, CPU), loaded.make_inputs(3, CPU))
        assert all(bool(tensor.isfinite().all()) for tensor in outputs.tensors), problem.name
        assert problem.summary, problem.name
        assert problem.tags, problem.name
        assert problem.requires_kernel, problem.name


@pytest.mark.quick(2)
@pytest.mark.parametrize("suite", ["core", *LEAST_PROBLEMS])
def test_every_problem_states_what_its_inputs_may_be(suite):
    for problem in find_suite(SUITES / suite):
        loaded = load_problem(problem, "small")
        arguments = [*inspect.signature(loaded.module.Model.forward).parameters][1:]
        assert [one.argument for one in problem.inputs] == arguments, problem.name
        for kind in ("as_given", *problem.distributions, "general"):
            assert not find_violations(loaded, loaded.make_inputs(5, CPU, kind)), (problem.name, kind)


@pytest.mark.parametrize("suite", ["core", *LEAST_PROBLEMS])
def test_every_problem_has_three_known_cases_and_a_secret_one(suite):
    for problem in find_suite(SUITES / suite):
        known = [case for case in problem.cases if not case.is_secret]
        assert len(known) >= 3, problem.name
        assert any(_has_odd_size(case) for case in known), problem.name
        assert len(known) < len(problem.cases), problem.name


def _has_odd_size(case: Case) -> bool:
    return any(type(value) is int and value > 16 and value % 2 for _, value in case.sizes)


@pytest.mark.parametrize("suite", LEAST_PROBLEMS)
@pytest.mark.quick(1)
def test_the_inputs_of_every_case_fit_a_gpu_of_80_gb_easily(suite):
    for problem in find_suite(SUITES / suite):
        for case in problem.cases:
            inputs = load_problem(problem.take_case(case, "full", random.Random(3)), "full").describe_inputs()
            sizes = [getattr(torch, dtype).itemsize * math.prod(shape) for dtype, shape in inputs]
            assert 0 < sum(sizes) < MOST_INPUT_BYTES, (problem.name, case.name)


@pytest.mark.slow
@pytest.mark.parametrize("suite", LEAST_PROBLEMS)
def test_every_problem_passes_the_check_of_problems(suite, capsys):
    if TOO_NEW & {problem.name for problem in find_suite(SUITES / suite)}:
        pytest.skip("on a CPU fp8_gemm needs torch 2.13")
    assert run_command(["problems", "check", "--suite", suite, "--problems-dir", str(SUITES)]) == 0, capsys.readouterr()
