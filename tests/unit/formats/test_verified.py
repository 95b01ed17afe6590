"""Import of KernelBench-Verified."""

import pytest
import torch

from harness.domain import Problem
from harness.problems.discovery import read_problem
from harness.problems.loading import load_problem

PROBLEM = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x, rows):
        return x[rows]


def get_inputs():
    return [torch.rand(4, 2), torch.arange(4)]


def get_init_inputs():
    return []
"""


@pytest.fixture
def imported(call_harness, tmp_path):
    """Imports a checkout with these problems, and returns a function that reads one, and the messages."""
    for place in ("level1/1_Relu", "level1/90_cumprod", "level2/23_Zero"):
        path = tmp_path / "checkout" / "KernelBench" / f"{place}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PROBLEM)
    (tmp_path / "checkout" / "hidden_tests").mkdir()
    done = call_harness(["import", "checkout"])
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "reference_models" / "kernelbench_verified_level1"
    return lambda name: read_problem(folder / f"{name}.py", "kernelbench_verified_level1"), done.stderr


def test_problems_get_the_baseline_and_distributions(imported):
    problem: Problem = imported[0]("1_Relu")
    assert (problem.allow_tf32, problem.training, problem.seeded_calls) == (True, True, True)
    assert problem.distributions == ("as_given", "scale_3", "scale_0.01", "scale_-1")


def test_distributions_without_finite_outputs_are_left_out(imported):
    assert imported[0]("90_cumprod").distributions == ("as_given", "scale_0.01", "scale_-1")


def test_problem_whose_output_is_always_zero_is_left_out(imported):
    assert "level 2, 23_Zero: its output is always zero" in imported[1]


@pytest.mark.parametrize(("name", "factor"), [("scale_3", 3.0), ("scale_0.01", 0.01), ("scale_-1", -1.0)])
def test_floating_inputs_are_scaled_and_integers_kept(name, factor, imported):
    loaded = load_problem(imported[0]("1_Relu"), "full")
    given, scaled = (loaded.make_inputs(1, torch.device("cpu"), kind) for kind in ("as_given", name))
    assert torch.equal(scaled[0], given[0] * factor)
    assert torch.equal(scaled[1], given[1])
