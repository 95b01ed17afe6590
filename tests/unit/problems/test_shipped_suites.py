"""The suites that are shipped beside `core`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from harness.cli.main import run_command
from harness.evaluation.correctness.truth import run_reference
from harness.problems.discovery import find_suite
from harness.problems.loading import load_problem

SUITES = Path(__file__).parents[3] / "reference_models"
LEAST_PROBLEMS = {"llm": 25, "fused": 30, "scientific": 10}
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other in a spin take minutes where other tests run beside these."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("suite", LEAST_PROBLEMS)
def test_every_problem_runs_its_small_workload_on_a_cpu(suite):
    problems = find_suite(SUITES / suite)
    assert len(problems) >= LEAST_PROBLEMS[suite]
    for problem in problems:
        loaded = load_problem(problem, "small")
        with torch.no_grad():
            outputs = run_reference(loaded, loaded.make_model(3, CPU), loaded.make_inputs(3, CPU))
        assert all(bool(tensor.isfinite().all()) for tensor in outputs.tensors), problem.name
        assert problem.summary, problem.name
        assert problem.tags, problem.name
        assert problem.requires_kernel, problem.name


@pytest.mark.slow
@pytest.mark.parametrize("suite", LEAST_PROBLEMS)
def test_every_problem_passes_the_check_of_problems(suite, capsys):
    assert run_command(["problems", "check", "--suite", suite, "--problems-dir", str(SUITES)]) == 0, capsys.readouterr()
