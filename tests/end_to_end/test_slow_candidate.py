"""How often a slow program is called to check its correctness."""

from collections import Counter

from harness.evaluation.correctness import checks
from harness.evaluation.memory_plan import TRIALS
from harness.evaluation.settings import TimingPlan

PLAN = TimingPlan(budget_s=0.3, min_blocks=5, max_blocks=8, attempts=1, allow_load=True)
ROWS = (3, 5)  # calls that follow each other: reordered slices, or two arguments that are changed twice
SLEEPING = """
import time
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        time.sleep(0.025)
        return a + b
"""


def test_a_slow_program_is_called_once_with_each_kind_of_inputs(bench, monkeypatch):
    monkeypatch.setattr(checks, "SLOW_S", 0.02)
    monkeypatch.setattr(checks, "CHEAP_S", 0.02)
    timed, untimed = (bench.evaluate(SLEEPING, time=time, plan=PLAN, seed=5) for time in (True, False))
    assert (timed.outcome, untimed.outcome) == ("correct", "correct"), (timed.message, untimed.message)
    assert timed.timing is not None
    few, all_calls = (Counter(trial.distribution for trial in one.correctness.trials) for one in (timed, untimed))
    assert few.keys() == all_calls.keys()
    assert few.pop("as_given") + few.pop("altered") - checks.SLOW_CALLS in ROWS
    assert set(few.values()) == {1}
    assert all_calls["as_given"] >= TRIALS
    assert all_calls.total() > few.total() + checks.SLOW_CALLS


def test_a_slow_program_skips_kinds_of_inputs_after_its_total_time(bench, monkeypatch):
    monkeypatch.setattr(checks, "SLOW_S", 0.02)
    monkeypatch.setattr(checks, "CHEAP_S", 0.02)
    monkeypatch.setattr(checks, "SLOW_TOTAL_S", 0.09)  # after four calls or fewer
    timed = bench.evaluate(SLEEPING, time=True, plan=PLAN, seed=5)
    assert timed.outcome == "correct", timed.message
    calls = [trial.distribution for trial in timed.correctness.trials]
    assert calls[: checks.SLOW_CALLS] == ["as_given"] * checks.SLOW_CALLS
    assert checks.SLOW_CALLS < len(calls) < 4 + max(ROWS)
