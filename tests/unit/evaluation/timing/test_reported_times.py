import random
import statistics
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain import Block, Candidate, Comparison, Conditions, Outcome, Rival
from harness.evaluation.timing.block_statistics import (
    compare_clocks,
    confirm_reported_times,
    depends_on_clocks,
    interval_of,
    summarise_blocks,
)
from harness.evaluation.timing_steps import find_doubt, summarise_pairs

FLOOR = 0.05
EXCHANGE_US = 60.0


def measure(
    *,
    baseline_us,
    candidate_us,
    reported_share=1.0,
    hidden_us=0.0,
    copied_us=0.0,
    noise=0.01,
    seed=0,
    blocks=40,
):
    """Blocks of a candidate whose calls take `candidate_us`, of which it reports a share; `hidden_us` are not reported,
    and `copied_us` are spent when its outputs are copied."""
    source = random.Random(seed)

    def jitter(value_us):
        return value_us * (1 + noise * abs(source.gauss(0, 1))) + source.expovariate(1 / 3.0)

    def make():
        base, mine = jitter(baseline_us), jitter(candidate_us)
        return Block(
            calls=1,
            baseline_reported_us=base,
            candidate_reported_us=mine * reported_share,
            baseline_evaluator_us=base + jitter(EXCHANGE_US),
            candidate_evaluator_us=mine + hidden_us + jitter(EXCHANGE_US),
            baseline_copy_us=jitter(50.0),
            candidate_copy_us=jitter(50.0) + copied_us,
        )

    return summarise_blocks("eager", [make() for _ in range(blocks)], FLOOR)


@given(
    speedup=st.floats(0.2, 5.0),
    baseline_us=st.floats(500.0, 100_000.0),
    noise=st.floats(0.0, 0.3),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=60)
@pytest.mark.slow
def test_an_honest_candidate_is_never_suspect_however_noisy_the_machine(speedup, baseline_us, noise, seed):
    timing = measure(baseline_us=baseline_us, candidate_us=baseline_us / speedup, noise=noise, seed=seed)
    assert confirm_reported_times(timing).outcome is None


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.05])
@pytest.mark.parametrize(("reported_us", "hidden_us"), [(200.0, 1000.0), (1000.0, 1000.0), (2000.0, 1000.0)])
def test_a_hidden_millisecond_is_suspect(reported_us, hidden_us, noise):
    timing = measure(baseline_us=reported_us + hidden_us, candidate_us=reported_us, hidden_us=hidden_us, noise=noise)
    result = confirm_reported_times(timing)
    assert result.outcome is Outcome.SUSPECT
    assert result.findings[0].check == "clock"
    assert "reported time" in result.message


@pytest.mark.parametrize("reported_us", [10.0, 500.0, 5000.0])
def test_work_put_off_until_the_outputs_are_copied_is_suspect(reported_us):
    timing = measure(baseline_us=8000.0, candidate_us=reported_us, copied_us=8000.0)
    assert confirm_reported_times(timing).outcome is Outcome.SUSPECT


def read_copies(blocks, *readings_us):
    """The blocks with the second clock read in the first ones only, where it finds so much more for the candidate."""
    read = [
        replace(block, baseline_copy_us=50.0, candidate_copy_us=50.0 + more_us)
        for block, more_us in zip(blocks, readings_us, strict=False)
    ]
    rest = [replace(block, baseline_copy_us=None, candidate_copy_us=None) for block in blocks[len(read) :]]
    return summarise_blocks("eager", [*read, *rest], FLOOR)


@pytest.mark.parametrize("readings_us", [(400.0,), (400.0, 40.0)])
def test_a_clock_that_was_hardly_read_accuses_no_candidate(readings_us):
    blocks = [
        replace(block, candidate_reported_us=900.0) for block in measure(baseline_us=1e3, candidate_us=1e3).blocks
    ]
    blocks = [replace(block, candidate_evaluator_us=900.0 + EXCHANGE_US) for block in blocks]
    assert confirm_reported_times(read_copies(blocks, *readings_us)).outcome is None


def test_a_clock_that_was_read_often_accuses():
    blocks = measure(baseline_us=1000.0, candidate_us=1000.0).blocks
    assert confirm_reported_times(read_copies(blocks, *[400.0] * 40)).outcome is Outcome.SUSPECT


def hide_in_turn(blocks, hidden_us, places):
    """The same blocks, whose candidate reports so much less and hides it in one of these places, another each time."""
    hidden = []
    for index, block in enumerate(blocks):
        place = places[index % len(places)]
        if place == "candidate_copy_us" and index % 3:  # not asked for its outputs, who puts it off need not do it
            hidden.append(replace(block, candidate_copy_us=None, baseline_copy_us=None))
        else:
            hidden.append(replace(block, **{place: getattr(block, place) + hidden_us}))
    return summarise_blocks("eager", hidden, FLOOR)


@pytest.mark.parametrize("seed", range(5))
def test_work_hidden_in_another_place_each_time_is_found(seed):
    blocks = measure(baseline_us=2000.0, candidate_us=1200.0, blocks=80, seed=seed).blocks
    hidden = hide_in_turn(blocks, 800.0, ("candidate_evaluator_us", "candidate_copy_us"))
    assert confirm_reported_times(hidden).outcome is Outcome.SUSPECT
    assert confirm_reported_times(summarise_blocks("eager", blocks, FLOOR)).timing.verdict == "faster"


def test_on_a_disturbed_machine_only_a_gross_contradiction_is_suspect():
    disturbed = Conditions(disturbed="others were busy")
    small = replace(measure(baseline_us=1000.0, candidate_us=500.0, hidden_us=500.0), conditions=disturbed)
    gross = replace(measure(baseline_us=1000.0, candidate_us=500.0, hidden_us=9000.0), conditions=disturbed)
    assert confirm_reported_times(small).outcome is None
    assert confirm_reported_times(gross).outcome is Outcome.SUSPECT


@pytest.mark.parametrize(("most_us", "outcome"), [(8000.0, None), (7000.0, Outcome.SUSPECT)])
def test_unaccounted_time_that_scatters_as_much_as_it_exceeds_is_not_suspect(most_us, outcome):
    source = random.Random(1)
    blocks = [
        replace(
            block, candidate_evaluator_us=block.candidate_evaluator_us + source.uniform(10_000.0 - most_us, most_us)
        )
        for block in measure(baseline_us=200.0, candidate_us=120.0, blocks=24).blocks
    ]
    assert confirm_reported_times(summarise_blocks("eager", blocks, FLOOR)).outcome is outcome


HIDDEN = st.floats(0.0, 90.0)


@given(hidden_us=HIDDEN, copied_us=HIDDEN, seed=st.integers(0, 10_000))
@settings(max_examples=60)
def test_hidden_time_never_makes_a_candidate_faster(hidden_us, copied_us, seed):
    """Whatever it hides and wherever: a program that takes as long as the baseline is not called faster."""
    reported_us = 300.0 - hidden_us - copied_us
    timing = measure(
        baseline_us=300.0, candidate_us=reported_us, hidden_us=hidden_us, copied_us=copied_us, noise=0.01, seed=seed
    )
    result = confirm_reported_times(timing)
    assert result.outcome is Outcome.SUSPECT or result.timing.verdict != "faster"


def test_gain_within_the_time_of_copying_state_is_none():
    timing = measure(baseline_us=1000.0, candidate_us=800.0, noise=0.001)
    assert confirm_reported_times(timing).timing.verdict == "faster"
    copying = replace(timing, blocks=tuple(replace(block, baseline_loading_us=200.0) for block in timing.blocks))
    assert confirm_reported_times(copying).timing.verdict == "tie"


def test_an_honest_gain_of_a_short_call_is_still_seen():
    result = confirm_reported_times(measure(baseline_us=400.0, candidate_us=200.0, noise=0.002))
    assert (result.outcome, result.timing.verdict) == (None, "faster")


def test_further_blocks_are_timed_only_if_clocks_prevent_a_gain():
    def asks(candidate_us, copied_us=0.0, blocks=20):
        timing = measure(baseline_us=400.0, candidate_us=candidate_us, copied_us=copied_us, noise=0.002, blocks=blocks)
        low = interval_of(timing.blocks, roughly=True)[1] / (1 + FLOOR)
        return depends_on_clocks(low, timing.candidate_us, compare_clocks(timing.blocks))

    assert not asks(400.0)  # a tie whatever the clocks say
    assert not asks(200.0)  # faster whatever they say
    assert asks(350.0, copied_us=40.0)
    assert not asks(450.0, copied_us=40.0)


def test_a_reported_time_shorter_than_the_clock_resolves_is_not_ranked():
    timing = measure(baseline_us=50.0, candidate_us=8.0)
    result = confirm_reported_times(timing)
    assert result.outcome is None
    assert result.timing.verdict in ("unconfirmed", "unreliable")


def test_clocks_that_scatter_make_a_time_unreliable_and_not_suspect():
    blocks = measure(baseline_us=1000.0, candidate_us=800.0).blocks
    source = random.Random(1)
    scattered = [replace(block, candidate_evaluator_us=900.0 + source.uniform(0.0, 6000.0)) for block in blocks]
    result = confirm_reported_times(summarise_blocks("eager", scattered, FLOOR))
    assert result.outcome is None
    assert result.timing.verdict == "unreliable"


def test_the_gap_between_the_clocks_is_found_to_a_few_microseconds():
    timing = measure(baseline_us=3000.0, candidate_us=3000.0, hidden_us=400.0, noise=0.001)
    gaps = compare_clocks(timing.blocks)
    during, after = gaps.places
    (whole,) = gaps.wholes
    assert whole.missing_us == pytest.approx(400.0, abs=25.0)
    assert during.missing_us == pytest.approx(400.0, abs=20.0)
    assert after.missing_us == pytest.approx(0.0, abs=20.0)


def test_underreporting_by_a_fifth_gains_nothing():
    timing = measure(baseline_us=10_000.0, candidate_us=10_000.0, reported_share=0.81, noise=0.002)
    result = confirm_reported_times(timing)
    assert result.outcome is Outcome.SUSPECT or result.timing.speedup == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("candidate_us", "verdict"), [(500.0, "faster"), (990.0, "tie"), (1010.0, "tie"), (2000.0, "slower")]
)
def test_the_verdict_follows_the_interval_beyond_the_noise_floor(candidate_us, verdict):
    assert measure(baseline_us=1000.0, candidate_us=candidate_us).verdict == verdict


@given(st.lists(st.tuples(st.floats(1, 1e7), st.floats(1, 1e7)), min_size=5, max_size=60))
@settings(max_examples=50)
def test_a_summary_of_any_blocks_is_consistent(times):
    blocks = [
        Block(
            calls=1, baseline_reported_us=base, candidate_reported_us=mine, baseline_evaluator_us=base + 50,
            candidate_evaluator_us=mine + 50, baseline_copy_us=1.0, candidate_copy_us=1.0,
        )
        for base, mine in times
    ]  # fmt: skip
    timing = summarise_blocks("eager", blocks, FLOOR)
    assert timing.speedup_low <= timing.speedup <= timing.speedup_high
    assert timing.candidate_us == statistics.median(mine for _, mine in times)
    confirm_reported_times(timing)


RIVAL = Rival(turn=3, candidate=Candidate(source="x", language="cpp", rule="file"), speedup_lows={})


def test_pairs_with_a_rival_gain_only_beyond_the_noise_floor():
    equal, faster = (
        summarise_pairs(RIVAL, confirm_reported_times(measure(baseline_us=5000.0, candidate_us=candidate_us)))
        for candidate_us in (4900.0, 4000.0)
    )
    assert (equal.turn, faster.turn) == (3, 3)
    assert equal.speedup_low < 1 < equal.speedup_high
    assert 1.1 < faster.speedup_low < faster.speedup < faster.speedup_high


def test_possibly_hidden_time_does_not_prevent_a_gain_over_a_rival():
    """As for short calls, whose speedup over the baseline is bounded by what a hostile program may hide."""
    result = confirm_reported_times(measure(baseline_us=120.0, candidate_us=90.0, noise=0.05))
    assert summarise_pairs(RIVAL, result).speedup_low > max(result.timing.speedup_low, 1.0)


def test_pairs_that_contradict_the_clock_or_are_not_confirmed_say_nothing():
    hiding = confirm_reported_times(measure(baseline_us=5000.0, candidate_us=4000.0, hidden_us=4000.0))
    assert hiding.outcome is Outcome.SUSPECT
    fine = confirm_reported_times(measure(baseline_us=5000.0, candidate_us=4000.0))
    for verdict in ("unreliable", "unconfirmed"):
        doubtful = replace(fine, timing=replace(fine.timing, verdict=verdict))
        assert verdict in find_doubt(doubtful)
        assert summarise_pairs(RIVAL, doubtful) == summarise_pairs(RIVAL, hiding) == Comparison(turn=3)
