"""Problems whose calls change inputs, from the file to the verdict."""

from pathlib import Path

import pytest
import torch

from harness.domain import Outcome, ProblemError
from harness.evaluation.case_validation import admit_cases
from harness.evaluation.problem_validation import admit_problem
from harness.problems.discovery import parse_problem
from harness.problems.loading import load_problem

PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, cache, entries, where):
        cache[where] = torch.tanh(entries)

rows, columns = 64, 48

def get_inputs():
    return [torch.randn(rows, columns), torch.randn(16, columns), torch.randperm(rows)[:16]]

def get_init_inputs():
    return []

IN_PLACE = True
"""
CANDIDATE = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def forward(self, cache, entries, where):
        BODY
"""
RIGHT = "cache.index_copy_(0, where, entries.tanh())"


def read(text=PROBLEM):
    return parse_problem(text, Path("toy.py"), "tiny")


def write(body=RIGHT):
    return CANDIDATE.replace("BODY", body)


def test_all_inputs_are_compared_with_what_the_reference_makes_of_them(bench):
    evaluation = bench.evaluate(write(), read())
    assert evaluation.outcome is Outcome.CORRECT, evaluation.message
    assert evaluation.correctness.trials[0].elements == 64 * 48 + 16 * 48 + 16
    assert evaluation.correctness.truth == "float64"
    assert bench.evaluate(write(f"{RIGHT}; entries.zero_()"), read()).outcome is Outcome.WRONG_VALUE


@pytest.mark.parametrize("result", ["cache", "entries, 3", "'done'"])
@pytest.mark.quick(1)
def test_return_value_is_ignored_if_the_reference_returns_none(bench, result):
    evaluation = bench.evaluate(write(f"{RIGHT}; return {result}"), read())
    assert evaluation.outcome is Outcome.CORRECT, evaluation.message
    assert bench.evaluate(write(f"return {result}"), read()).outcome is Outcome.WRONG_VALUE


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "cache.index_copy_(0, where, entries)",
        "cache.clone().index_copy_(0, where, entries.tanh())",
        "cache.zero_().index_copy_(0, where, entries.tanh())",
        "cache.index_copy_(0, where[:-1], entries[:-1].tanh())",
    ],
    ids=["nothing", "other values", "a copy", "cleared", "all but one row"],
)
def test_inputs_that_are_left_as_given_or_changed_otherwise_are_wrong_values(bench, body):
    evaluation = bench.evaluate(write(body), read())
    assert evaluation.outcome is Outcome.WRONG_VALUE, evaluation.message


OTHERS = {  # reference, inputs, candidate
    "other memory": ("x.copy_(y)", "torch.randn(9, 9), torch.randn(9, 9)", "x.set_(y)"),
    "other strides": ("x.copy_(x.t().clone())", "torch.randn(9, 9), torch.randn(9, 9)", "x.t_()"),
    "other data": ("x.add_(y)", "torch.randn(9, 9), torch.randn(9, 9)", "x.data = x + y"),
    "other entries": ("x['k'].add_(y)", "{'k': torch.randn(9, 9)}, torch.randn(9, 9)", "x['k'] = x['k'] + y"),
    "rare changes": (
        "x.add_((y[0] > 0).long()); y.mul_(0.5)", "torch.zeros(3, dtype=torch.int64), torch.randn(3)", "y.mul_(0.5)"
    ),
}  # fmt: skip


def read_other(forward, inputs):
    body = f"def forward(self, x, y):\n        {forward}\n\n"
    text = PROBLEM.partition("    def forward")[0] + "    " + body + PROBLEM.partition("rows, columns = 64, 48\n")[2]
    start = text.index("    return [torch.randn(rows")
    return read(text.replace(text[start : text.index("def get_init")], f"    return [{inputs}]\n\n"))


def write_other(forward):
    return write(forward).replace("cache, entries, where", "x, y")


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.quick(1)
def test_the_memory_of_the_inputs_is_compared_whatever_their_names_stand_for(bench, name):
    forward, inputs, cheat = OTHERS[name]
    problem = read_other(forward, inputs)
    assert bench.evaluate(write_other(forward), problem).outcome is Outcome.CORRECT
    evaluation = bench.evaluate(write_other(cheat), problem)
    assert evaluation.outcome is Outcome.WRONG_VALUE, evaluation.message


@pytest.mark.parametrize(
    ("forward", "inputs"),
    [
        ("x.add_(y)", "torch.randn(9, 9), torch.randint(0, 2, ())"),
        ("x.relu_(); return y * 2", "torch.rand(9, 9) - 0.001, torch.randn(9)"),
        ("x.add_(y)", "torch.randn(9, 9), torch.randn(1, 9).expand(9, 9)"),
    ],
    ids=["half of the calls", "other distributions", "an expanded input"],
)
@pytest.mark.quick(1)
def test_a_right_program_is_right_whichever_calls_change_their_inputs(bench, forward, inputs):
    for seed in range(2):
        evaluation = bench.evaluate(write_other(forward), read_other(forward, inputs), seed=seed, language="torch")
        assert evaluation.outcome is Outcome.CORRECT, evaluation.message
        assert [finding for finding in evaluation.findings if finding.severity != "note"] == []


def test_a_candidate_may_take_inputs_out_of_their_containers(bench):
    forward, inputs, _ = OTHERS["other entries"]
    program = write_other("k = x.pop('k'); k += y")
    assert bench.evaluate(program, read_other(forward, inputs)).outcome is Outcome.CORRECT


@pytest.mark.parametrize("forward", ["x['k'] = x['k'] + y; y.zero_()", "y.set_(y + 1)"])
def test_a_reference_that_replaces_inputs_is_refused(bench, forward):
    problem = read_other(forward, "{'k': torch.randn(9, 9)}, torch.randn(9, 9)")
    evaluation = bench.evaluate(write_other(forward), problem)
    assert evaluation.outcome is Outcome.PROBLEM_ERROR
    assert "forward replaces entries or memory of its inputs" in evaluation.message


@pytest.mark.slow
def test_a_timed_call_that_changes_little_of_its_inputs_is_not_suspect(bench):
    text = PROBLEM.replace("torch.randn(rows, columns), torch", "torch.zeros(rows, columns), torch")
    text = text.replace("rows, columns = 64, 48", "rows, columns = 2048, 64")
    evaluation = bench.evaluate(write(), read(text), time=True)
    assert evaluation.outcome is Outcome.CORRECT, evaluation.message


def test_cases_of_a_problem_whose_calls_change_inputs_are_checked():
    problem = read(PROBLEM + "CASES = [{'name': 'wide', 'sizes': {'columns': 96}}]\n")
    admissions = list(admit_cases(problem, torch.device("cpu"), 1))
    assert admissions and all(one.admitted for one in admissions), admissions


def test_return_value_of_an_in_place_reference_is_compared(bench):
    body = "first = cache.sum(0)\n        cache[where] = torch.tanh(entries)\n        return first"
    problem = read(PROBLEM.replace("cache[where] = torch.tanh(entries)", body))
    right = f"first = cache.sum(0); {RIGHT}; return first"
    assert bench.evaluate(write(right), problem).outcome is Outcome.CORRECT
    evaluation = bench.evaluate(write(f"{RIGHT}; return cache.sum(0)"), problem)
    assert evaluation.outcome is Outcome.WRONG_VALUE
    assert evaluation.message.startswith("output returned")
    assert bench.evaluate(write(), problem).outcome is Outcome.WRONG_SHAPE


def test_a_problem_whose_calls_change_inputs_is_admitted():
    admission = admit_problem(load_problem(read(), "full"), torch.device("cpu"), 1)
    assert admission.admitted, admission.failed


def test_a_problem_whose_calls_change_no_input_is_refused(bench):
    problem = read(PROBLEM.replace("cache[where] = torch.tanh(entries)", "return cache + 1"))
    evaluation = bench.evaluate(write("return cache + 1"), problem)
    assert evaluation.outcome is Outcome.PROBLEM_ERROR
    assert "IN_PLACE = True, but forward changes no input" in evaluation.message


def test_a_call_is_in_place_or_forward_and_backward():
    with pytest.raises(ProblemError, match="both BACKWARD and IN_PLACE"):
        read(PROBLEM + "BACKWARD = True\n")
