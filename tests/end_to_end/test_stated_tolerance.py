"""A tolerance that a problem's file states, from the file to the verdict."""

from pathlib import Path

import pytest
import torch

from harness.domain import Outcome
from harness.evaluation.case_validation import admit_cases
from harness.problems.discovery import parse_problem

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.sigmoid(x)

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
"""
CANDIDATE = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.sigmoid(x)
        HOOK
        return y
"""
MATCHED = 'TOLERANCE = {"atol": 1e-3, "rtol": 1e-2, "matched": 0.95}'
NARROW = 'TOLERANCE = {"atol": 1e-5, "rtol": 1e-3, "matched": 0.95}'
TOO_WIDE = 'TOLERANCE = {"atol": 2.0, "rtol": 0.0}'


def read(settings):
    return parse_problem(PROBLEM + settings, Path("toy.py"), "tiny")


@pytest.mark.parametrize(
    ("hook", "outcome"),
    [
        ("y[:3] = 0", Outcome.CORRECT),
        ("y[:4] = 0", Outcome.WRONG_VALUE),
        ("y[0, 0] = float('nan')", Outcome.WRONG_VALUE),
        ("y += 5e-3 * y", Outcome.CORRECT),
    ],
)
def test_the_share_of_elements_decides_and_not_a_single_one(bench, hook, outcome):
    evaluation = bench.evaluate(CANDIDATE.replace("HOOK", hook), read(MATCHED))
    assert evaluation.outcome is outcome, evaluation.message


@pytest.mark.parametrize("settings", [TOO_WIDE, 'CASES = [{"name": "wide", "tolerance": {"atol": 2.0}}]'])
def test_a_tolerance_that_zeros_would_pass_is_an_error_of_the_problem(bench, settings):
    evaluation = bench.evaluate(CANDIDATE.replace("HOOK", "y *= 0"), read(settings))
    assert evaluation.outcome is Outcome.PROBLEM_ERROR
    assert "would be within TOLERANCE if it were all zeros" in evaluation.message


def test_matched_share_is_admitted_and_too_wide_tolerance_is_not():
    (good,), (bad,) = (admit_cases(read(settings), torch.device("cpu"), 3) for settings in (NARROW, TOO_WIDE))
    assert [check.name for check in good.failed] == []
    assert "all zeros" in bad.failed[0].evidence
