"""Slow candidates are not called for probes that cannot fit into their time."""

from itertools import count
from types import SimpleNamespace

import pytest
import torch

from harness.domain import Correctness, Trial
from harness.evaluation.correctness.robustness import probe_candidate

TRIALS = tuple(Trial(distribution="as_given", passed=True) for _ in range(8))


class Called(Exception):
    """The candidate was called."""


def call(*arguments):
    raise Called


@pytest.fixture
def probe():
    """Probes a candidate whose correctness check took so many seconds."""
    problem = SimpleNamespace(dynamic_weights=False, dynamic_shapes=False, distributions=())
    reference = SimpleNamespace(
        make_inputs=lambda seed, distribution: (torch.ones(3, dtype=torch.int64),),
        loaded=SimpleNamespace(problem=problem),
        is_small=False,
        device=None,
    )
    session = SimpleNamespace(call=call, reset_state=lambda: None)
    correctness = Correctness(trials=TRIALS, weights="none")
    return lambda spent_s: probe_candidate(session, reference, count(), correctness, spent_s)


def test_a_slow_candidate_is_not_called(probe):
    (finding,) = probe(9.0)
    assert finding.message.startswith("no time was left to try smaller; what the problem does not declare")


def test_others_are(probe):
    with pytest.raises(Called):
        probe(1.0)
