"""Which of several results of a sample is the best."""

from harness.analysis.samples import TurnResult, find_best


def result_of(low: float, speedup: float, high: float) -> TurnResult:
    return TurnResult(is_correct=True, speedup=speedup, speedup_low=low, speedup_high=high)


def test_program_beyond_the_best_interval_is_better_despite_overlap():
    """Sums of rows on an H200: 132 us a call, then 76 us."""
    assert find_best([result_of(0.522, 0.749, 0.845), result_of(0.687, 1.000, 1.247)]) == 1


def test_a_program_of_equal_speed_is_not_better():
    assert find_best([result_of(0.637, 0.797, 0.852), result_of(0.654, 0.803, 0.859)]) == 0


def test_a_shorter_time_that_may_hide_more_is_not_better():
    assert find_best([result_of(1.4, 1.5, 1.6), result_of(1.3, 1.7, 1.9)]) == 0


def test_results_without_a_confirmed_time_never_replace_one():
    assert find_best([result_of(0.9, 1.0, 1.1), TurnResult(is_correct=True)]) == 0
    assert find_best([TurnResult(is_correct=False), TurnResult(is_correct=True), result_of(0.4, 0.5, 0.6)]) == 2


def test_the_best_of_several_samples_has_no_pairs_with_the_others():
    fast = result_of(9.0, 10.0, 11.0)._replace(turn=1)
    slow = result_of(1.9, 2.0, 2.1)._replace(turn=3, rival=1, over_rival_low=1.2)
    assert find_best([fast.alone, slow.alone]) == 0
    faster = result_of(19.0, 20.0, 21.0)._replace(turn=3, rival=1, over_rival_low=0.9)
    assert find_best([fast.alone, faster.alone]) == 1
