"""Whose fault a package is that is not installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness.domain import CandidateFailure, Outcome, Problem, ProblemError
from harness.evaluation.integrity.sandbox_causes import explaining_missing_packages

HEAD = "import torch\nfrom torch import nn\n"
PLAIN = Problem(name="add", suite="tiny", source="import torch\n")


def fail_with(message, problem=PLAIN, outcome=Outcome.LOAD_ERROR):
    with explaining_missing_packages(problem, emulated=False):
        raise CandidateFailure(outcome, message)


def missing(name):
    return f"ModuleNotFoundError: No module named {name!r}"


@pytest.mark.parametrize("outcome", [Outcome.LOAD_ERROR, Outcome.RUNTIME_ERROR])
@pytest.mark.parametrize("name", ["no_such_package", "no_such_package.layers"])
def test_missing_package_is_an_error_of_the_importing_program(outcome, name):
    with pytest.raises(CandidateFailure) as raised:
        fail_with(missing(name), outcome=outcome)
    assert raised.value.outcome is outcome
    expected = f"it imports no_such_package, which is not installed on this machine: {missing(name)}"
    assert raised.value.message == expected


@pytest.mark.parametrize(
    "imported",
    [
        "import torch, no_such_package.layers as layers\n",
        "try:\n    from no_such_package.layers import norm\nexcept ImportError:\n    pass\n",
        "def get_inputs():\n    import no_such_package\n",
    ],
)
def test_package_imported_by_the_problem_too_is_a_problem_error(imported):
    problem = Problem(name="add", suite="tiny", source=imported)
    with pytest.raises(ProblemError, match="the problem's file imports no_such_package, which is not installed"):
        fail_with(missing("no_such_package"), problem)


@pytest.mark.parametrize(
    "message", [missing("json.no_such_part"), "ImportError: cannot import name 'x' from 'torch'", "ValueError: no"]
)
def test_other_failures_stay_as_they_are(message):
    with pytest.raises(CandidateFailure, match="^" + message):
        fail_with(message)


@pytest.mark.parametrize(
    ("name", "product"),
    [("triton", "Triton"), ("helion", "Helion"), ("cutlass.cute", "CuTe DSL"), ("tilelang", "TileLang")],
)
def test_a_missing_compiler_of_a_language_is_not_run(name, product):
    code = f"""
from harness.domain import Outcome, Problem
from harness.evaluation.integrity.sandbox_causes import explaining_missing_packages
from harness.domain import CandidateFailure
try:
    with explaining_missing_packages(Problem(name="add", suite="tiny", source=""), emulated=False):
        raise CandidateFailure(Outcome.LOAD_ERROR, {missing(name)!r})
except CandidateFailure as failure:
    print(failure.outcome, failure.message)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(harness.__file__).parents[1])}
    without_packages = [sys.executable, "-S", "-P", "-c", code]
    ran = subprocess.run(without_packages, env=environment, capture_output=True, text=True, check=False)
    package = name.partition(".")[0]
    expected = f"not_run it imports {package}, which is not installed on this machine: {product} is not installed"
    assert ran.stdout.startswith(expected), ran.stdout + ran.stderr


def test_optional_package_of_a_problem_is_an_error_of_the_problem(bench):
    problem = f"""{HEAD}try:
    import no_such_package
except ImportError:
    pass
class Model(nn.Module):
    def forward(self, a):
        return a + 1
def get_inputs():
    return [torch.randn(8, 9)]
def get_init_inputs():
    return []
"""
    program = f"{HEAD}import no_such_package\nclass ModelNew(nn.Module):\n    pass\n"
    evaluation = bench.evaluate(program, problem, attribute_work=False)
    assert evaluation.outcome is Outcome.PROBLEM_ERROR
    assert "imports no_such_package, which is not installed" in evaluation.message
