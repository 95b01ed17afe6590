"""What each strategy goes on from, and when it stops."""

import re
from pathlib import Path

import pytest

from harness.domain import Plausibility, UsageError
from harness.search.beam import BEAM
from harness.search.best_of_n import BEST_OF_N
from harness.search.history import History
from harness.search.optimise import OPTIMISE
from harness.search.repair import REPAIR
from harness.search.strategies import find_strategy
from harness.search.strategy import Ask, Limits, Stop, decide

MANY = Limits(turns=100)


def test_every_strategy_asks_for_the_problem_first():
    assert {decide(one, History(), MANY) for one in (REPAIR, OPTIMISE, BEST_OF_N, BEAM)} == {Ask(parent=None)}


def test_repair_goes_on_from_the_last_turn_until_one_is_correct(turn_of, history_of):
    failed = history_of(turn_of(0, "wrong_value"), turn_of(1, "build_error"))
    assert decide(REPAIR, failed, MANY) == Ask(parent=1)
    assert decide(REPAIR, history_of(*failed.turns, turn_of(2)), MANY) == Stop(reason="turn 2 is correct")


def test_repair_does_not_end_with_a_copy_of_the_reference(turn_of, history_of):
    assert decide(REPAIR, history_of(turn_of(0, is_copy=True)), MANY) == Ask(parent=0)


def test_optimise_repairs_first_and_then_goes_on_from_the_best(turn_of, history_of):
    failed = turn_of(0, "wrong_value")
    assert decide(OPTIMISE, history_of(failed), MANY) == Ask(parent=0)
    history = history_of(failed, turn_of(1, "correct", 2.0), turn_of(2, "correct", 1.0))
    assert decide(OPTIMISE, history, MANY) == Ask(parent=1)


def test_optimise_stops_at_the_roofline(turn_of, history_of):
    roofline = Plausibility(
        moved_bytes=1, flops=1, bandwidth_gb_s=1.0, tflops=1.0, bound_us=1.0, operations_us=1.0, peak_fraction=0.96
    )
    history = history_of(turn_of(0, "correct", 2.0, plausibility=roofline))
    assert decide(OPTIMISE, history, MANY) == Stop(reason="turn 0 is at 96% of the roofline")


def test_a_tie_is_no_gain(turn_of, history_of):
    first, within, beyond = turn_of(0, "correct", 2.0), turn_of(1, "correct", 2.08), turn_of(2, "correct", 2.15)
    assert history_of(first, within).best == first
    assert history_of(first, within, beyond).best == beyond


def test_a_time_that_is_not_confirmed_never_beats_a_confirmed_one(turn_of, history_of):
    timed, untimed = turn_of(0, "correct", 2.0), turn_of(1, "correct")
    assert history_of(timed, untimed).best == timed
    assert history_of(untimed, turn_of(1, "correct", 1.5)).best.number == 1


def test_patience_counts_turns_without_a_gain(turn_of, history_of):
    history = history_of(
        turn_of(0, "build_error"), turn_of(1, "wrong_value"), turn_of(2, "timeout"), turn_of(3, "timeout")
    )
    assert history.turns_without_gain == 2
    assert decide(REPAIR, history, Limits(turns=9, patience=2)) == Stop(reason="2 turns without a gain")
    assert decide(REPAIR, history, Limits(turns=9, patience=3)) == Ask(parent=3)


def test_best_of_n_has_no_patience_unless_asked(turn_of, history_of):
    history = history_of(*(turn_of(number, "timeout") for number in range(8)))
    assert decide(BEST_OF_N, history, MANY) == Ask(parent=None)
    assert decide(BEST_OF_N, history, Limits(turns=100, patience=5)) == Stop(reason="5 turns without a gain")


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(turns=1), "all 1 turns are used"),
        (Limits(turns=9, budget_tokens=100), "the budget of 100 tokens is spent"),
        (Limits(turns=9, target=1.9), "the target of 1.9x is reached"),
    ],
)
def test_limits_stop_every_strategy(limits, reason, turn_of, history_of):
    assert decide(OPTIMISE, history_of(turn_of(0, "correct", 2.0, tokens=100)), limits) == Stop(reason=reason)


def test_a_budget_of_zero_asks_nothing():
    assert decide(REPAIR, History(), Limits(turns=4, budget_tokens=0)) == Stop(reason="the budget of 0 tokens is spent")


def test_without_a_verdict_nothing_more_is_asked(turn_of, history_of):
    assert decide(REPAIR, history_of(turn_of(0, "not_run")), MANY) == Stop(reason="turn 0 has no verdict: not_run")


def test_beam_expands_the_best_programs_alternately(turn_of, history_of):
    starts = [turn_of(0, "correct", 2.0), turn_of(1, "correct", 3.0, parent=-1)]
    assert decide(BEAM, history_of(starts[0]), MANY) == Ask(parent=None)
    assert decide(BEAM, history_of(*starts), MANY) == Ask(parent=1)
    third = turn_of(2, "timeout", parent=1)
    assert decide(BEAM, history_of(*starts, third), MANY) == Ask(parent=0)


def test_auto_optimises_where_time_is_measured_and_repairs_elsewhere():
    assert find_strategy("auto", is_timed=True) is OPTIMISE
    assert find_strategy("auto", is_timed=False) is REPAIR


def test_a_strategy_that_needs_timing_says_so_where_there_is_none():
    with pytest.raises(UsageError, match=r"optimise needs timing.*--strategy repair"):
        find_strategy("optimise", is_timed=False)


@pytest.mark.parametrize(
    ("text", "message"), [("x = 1", "must define STRATEGY"), ("1 / 0", "failed: ZeroDivisionError")]
)
def test_a_bad_strategy_file_is_explained(text, message, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        find_strategy(str(path), is_timed=False)


def test_a_misspelt_strategy_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean repair"):
        find_strategy("repare", is_timed=False)


def test_the_documented_strategy_works(tmp_path, turn_of, history_of):
    page = (Path(__file__).resolve().parents[3] / "docs" / "turns.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(code.splitlines()) < 40
    path = tmp_path / "mine.py"
    path.write_text(code)
    strategy = find_strategy(str(path), is_timed=False)
    first, second = turn_of(0, "wrong_value"), turn_of(1, "build_error")
    assert decide(strategy, history_of(first), MANY) == Ask(parent=None)
    assert decide(strategy, history_of(first, second), MANY) == Ask(parent=0)
    assert decide(strategy, history_of(first, second, turn_of(2)), MANY) == Stop(reason="turn 2 is correct")
