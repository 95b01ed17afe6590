"""The cases of a problem file: how they are read, loaded and checked."""

from __future__ import annotations

import random
import textwrap
from pathlib import Path

import pytest
import torch

from harness.domain import Case, Problem, ProblemError, SizeRange, Tolerance
from harness.evaluation.case_validation import admit_cases
from harness.problems.discovery import parse_problem
from harness.problems.loading import load_problem
from harness.problems.workloads import complete_problem

pytestmark = pytest.mark.usefixtures("one_thread")

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns))

    def forward(self, x):
        return x * self.weight * 3.0

rows = 40
columns = 24
wide = 2 * columns

def get_inputs():
    return [torch.randn(rows, columns)]

def get_init_inputs():
    return [columns]
"""


def read(settings: str, source: str = SOURCE) -> Problem:
    return parse_problem(source + textwrap.dedent(settings), Path("toy.py"), "mine")


def load(problem: Problem, name: str, workload: str = "full"):
    case = next(case for case in problem.cases if case.name == name)
    return load_problem(problem.take_case(case, workload, random.Random(1)), workload)


def test_a_file_without_cases_has_none():
    assert read("").cases == ()


def test_a_case_overrides_sizes_of_the_file():
    problem = read('CASES = [{"name": "tall", "sizes": {"rows": 100}}, {"name": "given"}]')
    assert load(problem, "tall").describe_inputs() == (("float32", (100, 24)),)
    assert load(problem, "given").describe_inputs() == (("float32", (40, 24)),)


def test_a_case_of_the_small_workload_overrides_the_small_sizes():
    problem = read(
        'SMALL = {"rows": 3, "columns": 5}\nCASES = [{"name": "tall", "sizes": {"rows": 100}, "small": {"rows": 9}}]'
    )
    assert load(problem, "tall", "small").describe_inputs() == (("float32", (9, 5)),)


def test_small_workload_has_only_cases_with_small_or_no_sizes():
    problem = read("""
        CASES = [{"name": "given"}, {"name": "tall", "sizes": {"rows": 9}},
                 {"name": "wide", "sizes": {"columns": 9}, "small": {"columns": 7}}]
    """)
    assert [case.name for case in problem.list_cases("small")] == ["given", "wide"]
    assert [case.name for case in problem.list_cases("full")] == ["given", "tall", "wide"]
    assert problem.list_cases("reduced") == ()


def test_every_setting_of_a_case_is_read():
    problem = read("""
        CASES = [{"name": "given"},
                 {"name": "half", "dtype": "bfloat16", "distribution": "tiny", "tolerance": {"atol": 0.1, "rtol": 0.0},
                  "weight": 2, "timed": False}]
    """)
    assert problem.cases[1] == Case(
        name="half",
        dtype="bfloat16",
        distribution="tiny",
        tolerance=Tolerance(atol=0.1, rtol=0.0),
        weight=2,
        timed=False,
    )


def test_a_case_casts_inputs_and_weights_and_draws_its_distribution():
    problem = read('CASES = [{"name": "given"}, {"name": "half", "dtype": "bfloat16", "distribution": "zeros"}]')
    loaded, cpu = load(problem, "half"), torch.device("cpu")
    (inputs,) = loaded.make_inputs(3, cpu)
    assert inputs.dtype == loaded.make_model(3, cpu).weight.dtype == torch.bfloat16
    assert not inputs.any()


def test_get_cases_computes_them_from_plain_values_of_the_module():
    problem = read("""
        def get_cases():
            return [{"name": f"columns {wide * n}", "sizes": {"columns": wide * n}} for n in range(1, 4)]
    """)
    assert [dict(case.sizes) for case in problem.cases] == [{"columns": 48}, {"columns": 96}, {"columns": 144}]


def test_ranges_add_a_secret_case_beside_the_given_sizes():
    problem = read('RANGES = {"rows": (100, 200, 10)}')
    assert [case.name for case in problem.cases] == ["given", "secret"]
    assert problem.cases[1].sizes == (("rows", SizeRange(low=100, high=200, step=10)),)
    drawn = {
        dict(problem.take_case(problem.cases[1], "full", random.Random(n)).workload("full").overrides)["rows"]
        for n in range(99)
    }
    assert drawn == set(range(100, 201, 10))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('CASES = [{"sizes": {}}]', "case 0 must be a mapping with a name"),
        ('CASES = [{"name": "a", "sizes": {"depth": 4}}]', "case 'a': the file does not assign depth"),
        ('CASES = [{"name": "a", "sizes": {"rows": {"low": 9, "high": 3}}}]', "case 'a': a range needs"),
        ('CASES = [{"name": "a", "shape": 4}]', "case 'a' has unknown keys shape"),
        ('CASES = [{"name": "a", "dtype": "int8"}]', "case 'a': 'int8' is unknown"),
        ('CASES = [{"name": "a", "weight": 0}]', "positive weight"),
        ('CASES = [{"name": "a"}, {"name": "a"}]', "distinct names"),
        ('CASES = [{"name": "a", "timed": False}]', "timed and without ranges"),
        ("CASES = [{'name': 'a', 'tolerance': {'factor': 0.5}}]", "case 'a': tolerance factor"),
        (
            "CASES = [{'name': 'a', 'tolerance': {'rtoll': 0.5}}]",
            "case 'a': unknown key 'rtoll'; did you mean rtol? choose among factor",
        ),
        ("CASES = [{'name': 'a', 'tolerance': 0.5}]", "case 'a': expected a dict with factor, atol, rtol, matched"),
        (
            'CASES = [{"name": "a", "sizes": {"rows": {"lo": 9, "high": 12}}}]',
            "case 'a': unknown key 'lo'; did",
        ),
        ('CASES = [{"name": "a", "sizes": {"rows": {"high": 3}}}]', "case 'a': low missing"),
        ('CASES = [{"name": "a", "sizes": {"rows": {"low": "x", "high": 3}}}]', "low must be a number, found 'x'"),
        ('CASES = {"a": {}}', "must be a list"),
        ('RANGES = {"rows": 5}', "must be (low, high)"),
        ("def get_cases():\n    return [torch]", "get_cases() raised NameError"),
    ],
)
def test_a_wrong_case_is_named_with_what_is_wrong(settings, said):
    with pytest.raises(ProblemError) as caught:
        read(settings)
    assert said in str(caught.value)


def admit(settings: str, source: str = SOURCE) -> dict[str, list[str]]:
    """The failed checks by case."""
    found = admit_cases(read(settings, source), torch.device("cpu"), seed=7)
    return {admission.case: [f"{check.name}: {check.evidence}" for check in admission.failed] for admission in found}


def test_cases_that_the_reference_can_run_are_admitted():
    settings = """
        SMALL = {"rows": 20}
        CASES = [{"name": "given"}, {"name": "tall", "sizes": {"rows": 500000}},
                 {"name": "ragged", "sizes": {"rows": {"low": 30, "high": 50}}}]
    """
    assert admit(settings) == {"given": [], "tall": [], "ragged": []}


def test_a_case_that_the_reference_cannot_run_is_named():
    source = SOURCE.replace("x * self.weight * 3.0", "(x * self.weight * 3.0).view(-1, 8)")
    settings = 'SMALL = {"rows": 8}\nCASES = [{"name": "given"}, {"name": "odd", "sizes": {"rows": 3, "columns": 5}}]'
    failed = admit(settings, source)
    assert failed["given"] == []
    assert len(failed["odd"]) == 1 and "forward raised RuntimeError" in failed["odd"][0]


@pytest.mark.parametrize(
    "settings",
    [
        'SMALL = {"rows": 8}',
        'SMALL = {"rows": 8}\nCASES = [{"name": "given"}]',
        'SMALL = {"rows": 8}\nRANGES = {"rows": (8, 16, 8)}',
        'CASES = [{"name": "odd", "sizes": {"rows": 5}, "small": {"rows": 8}}]\nSMALL = {"rows": 8}',
    ],
)
@pytest.mark.parametrize("extra", ["", ".clone() if bool(x[0, 0] > 99) else x"], ids=["meta", "not on meta"])
def test_workload_that_runs_only_at_small_sizes_is_refused(settings, extra):
    source = SOURCE.replace("x * self.weight * 3.0", f"(x{extra}).view(-1, 8, x.shape[1]) * self.weight * 3.0")
    found = list(admit_cases(read(settings, source.replace("rows = 40", "rows = 41")), torch.device("cpu"), seed=7))
    failed = [one for one in found if not one.admitted]
    assert len(failed) == 1 and "forward raised RuntimeError: shape" in failed[0].failed[0].evidence, found


def test_reference_without_meta_support_runs_once_at_the_sizes_of_a_case():
    source = SOURCE.replace(
        "x * self.weight * 3.0", "(x * self.weight * 3.0)[torch.nonzero(x > -9)[:, 0].unique()].view(-1, 8)"
    )
    settings = """
        SMALL = {"rows": 8}
        CASES = [{"name": "given"}, {"name": "tall", "sizes": {"rows": 500}},
                 {"name": "odd", "sizes": {"rows": 3, "columns": 5}}]
    """
    found = {one.case: one for one in admit_cases(read(settings, source), torch.device("cpu"), seed=7)}
    assert found["given"].admitted
    first = found["tall"].checks[0]
    assert (first.name, first.evidence) == ("runs", "at its own sizes, on cpu")
    assert "forward raised RuntimeError" in found["odd"].failed[0].evidence


@pytest.mark.parametrize(
    ("at_full", "said"),
    [
        ("y * float('nan')", "finite: at its own sizes: 40000 elements are infinite or NaN"),
        ("y * 0", "zeros: at its own sizes: output: accepted"),
        ("y * 0 + 3", "constant: at its own sizes: output: accepted"),
        ("self.weight.expand_as(y).clone()", "stale buffer: at its own sizes: output: accepted"),
        ("x.mul_(2)", "the reference changes its inputs"),
        ("y.view(7 + 0 * int(x.sum().item()), 3)", "forward raised RuntimeError: shape '[7, 3]' is invalid"),
    ],
)
@pytest.mark.parametrize("cases", ["", 'CASES = [{"name": "given"}]'], ids=["no cases", "a case"])
def test_values_at_full_sizes_are_checked(at_full, said, cases):
    forward = f"y = x * self.weight * 3.0\n        return {at_full} if x.shape[0] > 100 else y"
    source = SOURCE.replace("return x * self.weight * 3.0", forward).replace("rows = 40", "rows = 1000")
    source = source.replace("columns = 24", "columns = 40")
    found = admit_cases(read(f'SMALL = {{"rows": 8}}\n{cases}', source), torch.device("cpu"), seed=7)
    failed = [f"{check.name}: {check.evidence}" for one in found for check in one.failed]
    assert any(said in one for one in failed), failed
    assert len(failed) == 1 or "accepted" in said, failed


@pytest.mark.parametrize("small", ["", 'SMALL = {"rows": 8}\n'])
def test_case_tolerance_that_accepts_zeros_is_refused(small):
    settings = (
        small + 'CASES = [{"name": "given"}, {"name": "loose", "sizes": {"rows": 9}, "tolerance": {"atol": 99.0}}]'
    )
    failed = admit(settings)
    assert failed["given"] == []
    assert any("within TOLERANCE if it were all zeros" in one for one in failed["loose"])


def test_both_ends_of_a_range_are_checked():
    source = SOURCE.replace("x * self.weight * 3.0", "(x * self.weight * 3.0)[:50].view(-1, 24)[:, :]")
    source = source.replace("[torch.randn(rows, columns)]", "[torch.randn(rows, columns)][: 1 if rows < 60 else 0]")
    failed = admit('CASES = [{"name": "given"}, {"name": "drawn", "sizes": {"rows": {"low": 40, "high": 60}}}]', source)
    assert failed["given"] == []
    assert any(one.startswith("runs: ") for one in failed["drawn"])


def test_a_problem_that_was_parsed_without_execution_gets_its_cases_later():
    source = SOURCE + "\ndef get_cases():\n    return [{'name': 'tall', 'sizes': {'rows': 100}, 'dtype': 'float16'}]\n"
    whole = parse_problem(source, Path("toy.py"), "mine")
    parsed = parse_problem(source, Path("toy.py"), "mine", executes=False)
    assert (parsed.cases, len(whole.cases)) == ((), 1)
    assert complete_problem(parsed, "full", "cpp") == whole
    assert complete_problem(parsed.in_precision("bf16"), "full", "cpp") == whole.in_precision("bf16")
