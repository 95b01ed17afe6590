"""What each strategy goes on from, and when it stops."""

import re
from pathlib import Path

import pytest

from harness.domain import Candidate, Comparison, RooflineBounds, UsageError
from harness.search.history import History
from harness.search.strategy import (
    BEST_OF_N,
    OPTIMISE,
    REPAIR,
    Ask,
    SearchOptions,
    Stop,
    Target,
    decide,
    find_strategy,
    make_beam,
    make_evolve,
)

MANY = SearchOptions(turns=100)
BEAM = make_beam()
EVOLVE = make_evolve()


def test_every_strategy_asks_for_the_problem_first():
    assert {decide(one, History(), MANY) for one in (REPAIR, OPTIMISE, BEST_OF_N, BEAM, EVOLVE)} == {Ask(parent=None)}


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


def test_a_search_stops_at_the_roofline(turn_of, history_of):
    roofline = RooflineBounds(
        moved_bytes=1, flops=1, bandwidth_gb_s=1.0, tflops=1.0, bound_us=1.0, operations_us=1.0, peak_fraction=0.96
    )
    history = history_of(turn_of(0, "correct", 2.0, roofline=roofline))
    for strategy in (OPTIMISE, BEAM, EVOLVE, BEST_OF_N):
        assert decide(strategy, history, MANY) == Stop(reason="turn 0 is at 96% of the roofline")
    assert decide(OPTIMISE, history, SearchOptions(turns=100, target=Target(roofline=0.97))) == Ask(parent=0)


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
    assert decide(REPAIR, history, SearchOptions(turns=9, patience=2)) == Stop(reason="2 turns without a gain")
    assert decide(REPAIR, history, SearchOptions(turns=9, patience=3)) == Ask(parent=3)


def test_best_of_n_has_no_patience_unless_asked(turn_of, history_of):
    history = history_of(*(turn_of(number, "timeout") for number in range(8)))
    assert decide(BEST_OF_N, history, MANY) == Ask(parent=None)
    assert decide(BEST_OF_N, history, SearchOptions(turns=100, patience=5)) == Stop(reason="5 turns without a gain")


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (SearchOptions(turns=1), "all 1 turns are used"),
        (SearchOptions(turns=9, budget_tokens=100), "the budget of 100 tokens is spent"),
        (SearchOptions(turns=9, budget_usd=0.5), "the budget of 0.5 US dollars is spent"),
        (SearchOptions(turns=9, target=Target(speedup=1.9)), "the target of 1.9x is reached"),
    ],
)
def test_limits_stop_every_strategy(limits, reason, turn_of, history_of):
    assert decide(OPTIMISE, history_of(turn_of(0, "correct", 2.0, tokens=100, usd=0.5)), limits) == Stop(reason=reason)


def test_a_given_program_is_no_answer(turn_of, history_of):
    given, answer = turn_of(0, "wrong_value"), turn_of(1, "wrong_value", parent=0)
    limits = SearchOptions(turns=1, start=Candidate(source="", language="cuda", rule="file"))
    assert decide(REPAIR, history_of(given), limits) == Ask(parent=0)
    assert decide(REPAIR, history_of(given, answer), limits) == Stop(reason="all 1 turns are used")


def test_a_budget_of_zero_asks_nothing():
    assert decide(REPAIR, History(), SearchOptions(turns=4, budget_tokens=0)) == Stop(
        reason="the budget of 0 tokens is spent"
    )
    assert isinstance(decide(REPAIR, History(), SearchOptions(turns=4, budget_usd=0.0)), Stop)


def test_without_a_verdict_nothing_more_is_asked(turn_of, history_of):
    assert decide(REPAIR, history_of(turn_of(0, "not_run")), MANY) == Stop(reason="turn 0 has no verdict: not_run")


def test_beam_expands_the_best_programs_alternately(turn_of, history_of):
    starts = [turn_of(0, "correct", 2.0), turn_of(1, "correct", 3.0, parent=-1)]
    assert decide(BEAM, history_of(starts[0]), MANY) == Ask(parent=None)
    assert decide(BEAM, history_of(*starts), MANY) == Ask(parent=1)
    third = turn_of(2, "timeout", parent=1)
    assert decide(BEAM, history_of(*starts, third), MANY) == Ask(parent=0)


def test_a_wider_beam_expands_more_programs(turn_of, history_of):
    history = history_of(*(turn_of(number, "correct", 2.0 + number, parent=-1) for number in range(3)))
    beam = find_strategy("beam", is_timed=True, width=3)
    assert decide(beam, history_of(*history.turns[:2]), MANY) == Ask(parent=None)
    asked = []
    for number in range(3, 6):
        asked.append(decide(beam, history, MANY).parent)
        history = history_of(*history.turns, turn_of(number, "timeout", parent=asked[-1]))
    assert asked == [2, 1, 0]


def test_a_width_is_refused_where_there_is_none():
    with pytest.raises(UsageError, match="--width is for the strategies beam and evolve"):
        find_strategy("optimise", is_timed=True, width=3)


def test_the_islands_of_evolve_take_turns_and_start_apart(turn_of, history_of):
    first = turn_of(0, "correct", 2.0)
    assert decide(EVOLVE, history_of(first), MANY) == Ask(parent=None)
    second = turn_of(1, "wrong_value", parent=-1)
    assert decide(EVOLVE, history_of(first, second), MANY) == Ask(parent=0)
    third = turn_of(2, "timeout", parent=0)
    assert decide(EVOLVE, history_of(first, second, third), MANY) == Ask(parent=1)


def test_evolve_improves_the_best_of_an_island_and_combines_islands(turn_of, history_of):
    speedups = [2.0, 3.0, 4.0, 2.5, 3.0, 2.0]
    turns = [turn_of(number, "correct", speedup, parent=-1) for number, speedup in enumerate(speedups)]
    assert decide(EVOLVE, history_of(*turns[:4]), MANY) == Ask(parent=2)
    assert decide(EVOLVE, history_of(*turns[:5]), MANY) == Ask(parent=1)
    assert decide(EVOLVE, history_of(*turns), MANY) == Ask(parent=2, partner=1)
    failed = [*turns[:3], turn_of(3, "timeout"), turns[4], turn_of(5, "timeout")]
    assert decide(EVOLVE, history_of(failed[0], turn_of(1, "timeout"), *failed[2:]), MANY) == Ask(parent=4)


def test_pairs_with_the_best_program_decide_whether_another_is_better(turn_of, history_of):
    def compared(number, low, rival=0, speedup=2.0):
        comparison = Comparison(turn=rival, speedup=low + 0.05, speedup_low=low, speedup_high=low + 0.1)
        return turn_of(number, "correct", speedup, comparison=comparison)

    first = turn_of(0, "correct", 2.0)
    disturbed = turn_of(1, "correct", 9.0, comparison=Comparison(turn=0))
    assert history_of(first, disturbed).best.number == 0
    assert history_of(first, compared(1, 1.01)).best.number == 1
    assert history_of(first, compared(1, 0.99, speedup=3.0)).best.number == 0
    assert history_of(first, compared(1, 1.01), compared(2, 1.2, rival=0)).best.number == 1, "of another program"
    assert history_of(first, compared(1, 1.01), compared(2, 1.2, rival=1)).best.number == 2


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
    code, _ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(code.splitlines()) < 40
    path = tmp_path / "mine.py"
    path.write_text(code)
    strategy = find_strategy(str(path), is_timed=False)
    first, second = turn_of(0, "wrong_value"), turn_of(1, "build_error")
    assert decide(strategy, history_of(first), MANY) == Ask(parent=None)
    assert decide(strategy, history_of(first, second), MANY) == Ask(parent=0)
    assert decide(strategy, history_of(first, second, turn_of(2)), MANY) == Stop(reason="turn 2 is correct")
