from dataclasses import replace

import pytest

from harness.domain import NoVerdict, Work
from harness.report.export.json_records import evaluation_record
from harness.service.reward import Shaping, score_verdict
from harness.store.results import StoredEvaluation


@pytest.fixture
def verdict_of(evaluation_of):
    def make(*args, **options):
        return evaluation_record(StoredEvaluation(id=1, evaluation=evaluation_of(*args, **options)))

    return make


@pytest.mark.parametrize(
    ("speedup", "verdict", "value"),
    [(2.0, "faster", 1.9), (1.05, "tie", 1.0), (0.95, "tie", 1.0), (0.5, "slower", 0.4)],
)
def test_reward_is_the_lower_end_of_the_interval_and_1_for_ties(verdict_of, speedup, verdict, value):
    assert score_verdict(verdict_of("correct", speedup, verdict=verdict)).value == pytest.approx(value)


@pytest.mark.parametrize("verdict", ["unreliable", "unconfirmed"])
def test_a_time_without_confirmation_earns_no_more_than_a_tie(verdict_of, verdict):
    assert score_verdict(verdict_of("correct", 5.0, verdict=verdict)).value == 1.0
    assert score_verdict(verdict_of("correct", 0.5, verdict=verdict)).value == pytest.approx(0.4)


@pytest.mark.parametrize("outcome", ["no_code", "build_error", "wrong_value", "timeout", "suspect", "rejected"])
def test_a_wrong_program_earns_nothing(verdict_of, outcome):
    assert score_verdict(verdict_of(outcome)).value == 0.0


@pytest.mark.parametrize("outcome", ["problem_error", "harness_error", "not_run"])
def test_a_fault_of_the_harness_raises(verdict_of, outcome):
    with pytest.raises(NoVerdict, match=outcome):
        score_verdict(verdict_of(outcome))


def test_shaping_rewards_the_last_stage(verdict_of):
    shaping = Shaping(unbuilt=-1.0, built=0.1, loaded=0.2, suspect=-2.0, untimed=0.5, cap=3.0)
    outcomes = ("no_code", "build_error", "load_error", "wrong_value", "suspect", "rejected", "correct")
    values = [score_verdict(verdict_of(outcome), shaping).value for outcome in outcomes]
    assert values == [-1.0, -1.0, 0.1, 0.2, -2.0, -2.0, 0.5]
    assert score_verdict(verdict_of("correct", 9.0), shaping).value == 3.0


def test_metrics_hold_only_what_was_measured(verdict_of):
    work = Work(custom=0.7, torch=0.1, library=0.1, other=0.1)
    metrics = score_verdict(verdict_of("correct", 2.0, extra={"work": work})).metrics
    assert (metrics["correct"], metrics["speedup"], metrics["own_share"]) == (1.0, 2.0, 0.7)
    unchanged = replace(work, without_custom="unchanged")  # its kernels have no effect
    assert score_verdict(verdict_of("correct", 2.0, extra={"work": unchanged})).metrics["own_share"] == 0.0
    failed = score_verdict(verdict_of("load_error")).metrics
    assert failed == {"built": 1.0, "loaded": 0.0, "correct": 0.0, "suspect": 0.0}
