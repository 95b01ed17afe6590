"""Problems that keep state: the state after a call is evaluated, and the next call starts from it."""

from pathlib import Path

import pytest
from small_problem import read, write

from harness.domain import Outcome
from harness.problems.discovery import parse_problem

MEAN = 'self.register_buffer("mean", torch.zeros(columns))'
REFERENCE = "self.mean.mul_(0.75).add_(0.25 * x.mean(0))\nreturn x - self.mean"
DRAWN = "torch.randn(rows, columns) + torch.randn(columns)"
HONEST = "self.mean.lerp_(x.mean(0), 0.25); return x - self.mean"
STATELESS = "self.mean.copy_(0.25 * x.mean(0)); return x - self.mean"
UNWRITTEN = "return x - self.mean.lerp(x.mean(0), 0.25)"
PRIVATE = "self.own.lerp_(x.mean(0), 0.25); self.mean.copy_(self.own); return x - self.own"
# Knows the state that calls usually start from, and takes it whenever its buffer was written.
PRIVATE_UNTIL_WRITTEN = "\n".join(
    (
        "if self.mean._version != self.version: self.own.zero_()",
        "self.own.lerp_(x.mean(0), 0.25); self.mean.copy_(self.own)",
        "self.version = self.mean._version",
        "return x - self.own",
    )
)
CACHE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, query, key, cache):
        cache = torch.cat([cache, key])
        return torch.softmax(query @ cache.t(), -1) @ cache, cache

def get_inputs():
    return [torch.randn(4, 8), torch.randn(1, 8), torch.randn(20, 8)]

def get_init_inputs():
    return []
"""
OWN_CACHE = CACHE.replace("class Model(", "class ModelNew(").replace(
    "cache = torch.cat([cache, key])",
    "kept = getattr(self, 'kept', cache); cache = torch.cat([kept, key]); self.kept = cache[1:]",
)


def evaluate(bench, forward):
    candidate = write(forward, init=f"{MEAN}\nself.own, self.version = torch.zeros(columns), None")
    return bench.evaluate(candidate, read(REFERENCE, init=MEAN, drawn=DRAWN))


def test_a_candidate_that_keeps_the_state_as_the_reference_does_is_correct(bench):
    evaluation = evaluate(bench, HONEST)
    assert evaluation.outcome is Outcome.CORRECT, evaluation.message
    assert {"second_in_a_row", "given_state"} <= {trial.distribution for trial in evaluation.correctness.trials}


@pytest.mark.parametrize(
    "body",
    [STATELESS, UNWRITTEN, PRIVATE, PRIVATE_UNTIL_WRITTEN],
    ids=["stateless", "unwritten", "private", "private until written"],
)
def test_a_candidate_that_ignores_the_state_it_was_given_is_wrong(bench, body):
    assert evaluate(bench, body).outcome is Outcome.WRONG_VALUE


def test_a_candidate_that_exits_while_its_state_is_looked_up_fails(bench):
    exits = write(HONEST, init=f"{MEAN}\nimport os\nself.get_submodule = lambda path: os._exit(3)")
    evaluation = bench.evaluate(exits, read(REFERENCE, init=MEAN, drawn=DRAWN))
    assert (evaluation.outcome, "exited with code 3" in evaluation.message) == (Outcome.RUNTIME_ERROR, True)


def test_unseen_state_reveals_a_candidate_that_hardcodes_the_usual_one(bench):
    trials = evaluate(bench, PRIVATE_UNTIL_WRITTEN).correctness.trials
    assert [trial.distribution for trial in trials if not trial.passed] == ["given_state"]


def test_a_candidate_that_returns_a_cache_of_its_own_is_wrong(bench):
    problem = parse_problem(CACHE, Path("toy.py"), "tiny")
    honest = bench.evaluate(CACHE.replace("class Model(", "class ModelNew("), problem)
    assert (honest.outcome, bench.evaluate(OWN_CACHE, problem).outcome) == (Outcome.CORRECT, Outcome.WRONG_VALUE)
