import random
import statistics
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain import Block, Conditions, Outcome
from harness.judge.clocks import compare_clocks, confirm_claims, depends_on_clocks, interval_of, summarise_blocks

FLOOR = 0.05
EXCHANGE_US = 60.0


def measure(
    *,
    baseline_us,
    candidate_us,
    claimed=1.0,
    hidden_us=0.0,
    copied_us=0.0,
    ahead_us=0.0,
    woken_us=0.0,
    noise=0.01,
    seed=0,
    blocks=40,
):
    """Blocks on a GPU of a candidate whose calls take `candidate_us`, of which it claims a share; `hidden_us` are not
    claimed at all, `copied_us` are spent when its outputs are copied, `ahead_us` before it is told to go, and
    `woken_us` by its threads while it is woken."""
    source = random.Random(seed)

    def jitter(value_us):
        return value_us * (1 + noise * abs(source.gauss(0, 1))) + source.expovariate(1 / 3.0)

    def make(index):
        watched = index % 4 == 0
        awake_us = 90.0 if watched else 150.0
        base, mine = jitter(baseline_us), jitter(candidate_us)
        return Block(
            calls=1,
            baseline_claim_us=base,
            candidate_claim_us=mine * claimed,
            baseline_judge_us=base + jitter(EXCHANGE_US),
            candidate_judge_us=mine + hidden_us + jitter(EXCHANGE_US),
            baseline_copy_us=jitter(50.0),
            candidate_copy_us=jitter(50.0) + copied_us,
            baseline_awake_us=jitter(awake_us),
            candidate_awake_us=jitter(awake_us) + woken_us,
            baseline_busy_us=jitter(300.0) if watched else None,
            candidate_busy_us=jitter(300.0) + ahead_us if watched else None,
        )

    return summarise_blocks("eager", [make(index) for index in range(blocks)], FLOOR)


@given(
    speedup=st.floats(0.2, 5.0),
    baseline_us=st.floats(500.0, 100_000.0),
    noise=st.floats(0.0, 0.3),
    seed=st.integers(0, 10_000),
)
@settings(deadline=None, max_examples=60)
def test_an_honest_candidate_is_never_suspect_however_noisy_the_machine(speedup, baseline_us, noise, seed):
    timing = measure(baseline_us=baseline_us, candidate_us=baseline_us / speedup, noise=noise, seed=seed)
    assert confirm_claims(timing).outcome is None


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.05])
@pytest.mark.parametrize(("claim_us", "hidden_us"), [(200.0, 1000.0), (1000.0, 1000.0), (2000.0, 1000.0)])
def test_a_hidden_millisecond_is_suspect(claim_us, hidden_us, noise):
    timing = measure(baseline_us=claim_us + hidden_us, candidate_us=claim_us, hidden_us=hidden_us, noise=noise)
    result = confirm_claims(timing)
    assert result.outcome is Outcome.SUSPECT
    assert result.findings[0].check == "clock"
    assert "claims" in result.message


@pytest.mark.parametrize("claim_us", [10.0, 500.0, 5000.0])
def test_work_put_off_until_the_outputs_are_copied_is_suspect(claim_us):
    timing = measure(baseline_us=8000.0, candidate_us=claim_us, copied_us=8000.0)
    assert confirm_claims(timing).outcome is Outcome.SUSPECT


@pytest.mark.parametrize("claim_us", [10.0, 500.0])
def test_work_done_before_it_was_asked_for_is_suspect(claim_us):
    timing = measure(baseline_us=2000.0, candidate_us=claim_us, ahead_us=2000.0)
    result = confirm_claims(timing)
    assert result.outcome is Outcome.SUSPECT
    assert "before it was told to go" in result.message


def test_work_that_threads_do_while_it_is_woken_is_suspect():
    result = confirm_claims(measure(baseline_us=2000.0, candidate_us=1000.0, woken_us=1000.0))
    assert result.outcome is Outcome.SUSPECT
    assert "while it was woken" in result.message


def test_work_done_while_it_is_woken_is_found_where_only_its_fast_calls_have_it():
    slow, fast = (measure(baseline_us=500.0, candidate_us=us, blocks=40).blocks for us in (500.0, 250.0))
    ahead = [replace(block, candidate_awake_us=block.candidate_awake_us + 250.0) for block in fast]
    timing = summarise_blocks("eager", [*slow[:15], *ahead[:25]], FLOOR)
    result = confirm_claims(timing)
    assert timing.speedup > 1.5
    assert result.outcome is Outcome.SUSPECT


def watch(blocks, *readings_us):
    """The blocks with what the judge read of the candidate before its calls in the first ones only."""
    unread = {"baseline_busy_us": None, "candidate_busy_us": None}
    read = [
        replace(block, **unread | {"baseline_busy_us": 300.0, "candidate_busy_us": 300.0 + more_us})
        for block, more_us in zip(blocks, readings_us, strict=False)
    ]
    rest = [replace(block, **unread) for block in blocks[len(read) :]]
    return summarise_blocks("eager", [*read, *rest], FLOOR)


@pytest.mark.parametrize("readings_us", [(400.0,), (400.0, 40.0), (400.0, 400.0, 40.0), (40.0, 400.0, 400.0, 400.0)])
def test_a_clock_that_was_hardly_read_accuses_nobody_unless_its_readings_agree(readings_us):
    blocks = measure(baseline_us=1000.0, candidate_us=1000.0).blocks
    assert confirm_claims(watch(blocks, *readings_us)).outcome is None
    agreed = watch(blocks, *([400.0] * len(readings_us)))
    assert (confirm_claims(agreed).outcome is Outcome.SUSPECT) == (len(readings_us) > 1)


def hide_in_turn(blocks, hidden_us, places):
    """The same blocks, whose candidate claims so much less and hides it in one of these places, another each time."""
    hidden = []
    for index, block in enumerate(blocks):
        place = places[index % len(places)]
        if place == "candidate_copy_us" and index % 3:  # not asked for its outputs, who puts it off need not do it
            hidden.append(replace(block, candidate_copy_us=None, baseline_copy_us=None))
        else:
            hidden.append(replace(block, **{place: getattr(block, place) + hidden_us}))
    return summarise_blocks("eager", hidden, FLOOR)


PLACES = ("candidate_judge_us", "candidate_awake_us", "candidate_copy_us")


@pytest.mark.parametrize("places", [PLACES[:2], PLACES[1:], PLACES[::2], PLACES])
@pytest.mark.parametrize("seed", range(5))
def test_who_hides_in_another_place_each_time_is_found(places, seed):
    blocks = measure(baseline_us=2000.0, candidate_us=1200.0, blocks=80, seed=seed).blocks
    result = confirm_claims(hide_in_turn(blocks, 800.0, places))
    assert result.outcome is Outcome.SUSPECT
    assert confirm_claims(summarise_blocks("eager", blocks, FLOOR)).timing.verdict == "faster"


def as_on_a_cpu(timing):
    """The same blocks of a worker that is awake with the signal to go."""
    unread = dict.fromkeys(f"{side}_{clock}_us" for side in ("baseline", "candidate") for clock in ("awake", "busy"))
    return [replace(block, **unread) for block in timing.blocks]


@pytest.mark.parametrize("seed", range(5))
def test_on_a_cpu_there_are_two_places_to_hide_in(seed):
    blocks = as_on_a_cpu(measure(baseline_us=2000.0, candidate_us=1200.0, blocks=80, seed=seed))
    hidden = hide_in_turn(blocks, 800.0, PLACES[::2])
    assert confirm_claims(hidden).outcome is Outcome.SUSPECT
    assert confirm_claims(summarise_blocks("eager", blocks, FLOOR)).timing.verdict == "faster"


def test_being_woken_after_decoys_counts_as_well():
    blocks = measure(baseline_us=2000.0, candidate_us=1200.0, blocks=80).blocks
    ahead = [
        replace(block, candidate_awake_us=block.candidate_awake_us + 800.0)
        if block.candidate_busy_us is not None
        else replace(block, candidate_judge_us=block.candidate_judge_us + 800.0)
        for block in blocks
    ]
    assert confirm_claims(summarise_blocks("eager", ahead, FLOOR)).outcome is Outcome.SUSPECT


def test_on_a_disturbed_machine_only_a_gross_contradiction_is_suspect():
    disturbed = Conditions(disturbed="others were busy")
    small = replace(measure(baseline_us=1000.0, candidate_us=500.0, hidden_us=500.0), conditions=disturbed)
    gross = replace(measure(baseline_us=1000.0, candidate_us=500.0, hidden_us=9000.0), conditions=disturbed)
    assert confirm_claims(small).outcome is None
    assert confirm_claims(gross).outcome is Outcome.SUSPECT


HIDDEN = st.floats(0.0, 90.0)


@given(hidden_us=HIDDEN, ahead_us=HIDDEN, woken_us=HIDDEN, seed=st.integers(0, 10_000))
@settings(deadline=None, max_examples=60)
def test_hidden_time_never_makes_a_candidate_faster(hidden_us, ahead_us, woken_us, seed):
    """Whatever it hides and wherever: a program that takes as long as the baseline is not called faster."""
    claim_us = 300.0 - hidden_us - ahead_us - woken_us
    hidden = {"hidden_us": hidden_us, "ahead_us": ahead_us, "woken_us": woken_us}
    timing = measure(baseline_us=300.0, candidate_us=claim_us, **hidden, noise=0.01, seed=seed)
    result = confirm_claims(timing)
    assert result.outcome is Outcome.SUSPECT or result.timing.verdict != "faster"


def test_an_honest_gain_of_a_short_call_is_still_seen():
    result = confirm_claims(measure(baseline_us=400.0, candidate_us=200.0, noise=0.002))
    assert (result.outcome, result.timing.verdict) == (None, "faster")


def test_more_blocks_are_worth_it_only_where_the_clocks_alone_stand_against_a_gain():
    def asks(candidate_us, woken_us=0.0, blocks=20):
        timing = measure(baseline_us=400.0, candidate_us=candidate_us, woken_us=woken_us, noise=0.002, blocks=blocks)
        low = interval_of(timing.blocks, roughly=True)[1] / (1 + FLOOR)
        return depends_on_clocks(low, timing.candidate_us, compare_clocks(timing.blocks))

    assert not asks(400.0)  # a tie whatever the clocks say
    assert not asks(200.0)  # faster whatever they say
    assert asks(350.0, woken_us=40.0)
    assert not asks(450.0, woken_us=40.0)


def test_a_claim_shorter_than_the_clock_resolves_is_not_ranked():
    timing = measure(baseline_us=50.0, candidate_us=8.0)
    result = confirm_claims(timing)
    assert result.outcome is None
    assert result.timing.verdict in ("unconfirmed", "unreliable")


def test_clocks_that_scatter_make_a_time_unreliable_and_not_suspect():
    blocks = measure(baseline_us=1000.0, candidate_us=800.0).blocks
    source = random.Random(1)
    scattered = [replace(block, candidate_judge_us=900.0 + source.uniform(0.0, 6000.0)) for block in blocks]
    result = confirm_claims(summarise_blocks("eager", scattered, FLOOR))
    assert result.outcome is None
    assert result.timing.verdict == "unreliable"


def test_the_gap_between_the_clocks_is_found_to_a_few_microseconds():
    timing = measure(baseline_us=3000.0, candidate_us=3000.0, hidden_us=400.0, noise=0.001)
    gaps = compare_clocks(timing.blocks)
    during, after, woken = gaps.places
    (before,), (called,), (whole,) = gaps.ahead, gaps.calls, gaps.wholes
    assert called.missing_us == pytest.approx(400.0, abs=25.0)
    assert whole.missing_us == pytest.approx(400.0, abs=25.0)
    assert during.missing_us == pytest.approx(400.0, abs=20.0)
    assert after.missing_us == pytest.approx(0.0, abs=20.0)
    assert woken.missing_us == pytest.approx(0.0, abs=20.0)
    assert before.missing_us == pytest.approx(0.0, abs=20.0)


def test_a_candidate_that_claims_four_fifths_of_its_time_is_no_faster_for_it():
    timing = measure(baseline_us=10_000.0, candidate_us=10_000.0, claimed=0.81, noise=0.002)
    result = confirm_claims(timing)
    assert result.outcome is Outcome.SUSPECT or result.timing.speedup == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("candidate_us", "verdict"), [(500.0, "faster"), (990.0, "tie"), (1010.0, "tie"), (2000.0, "slower")]
)
def test_the_verdict_follows_the_interval_beyond_the_noise_floor(candidate_us, verdict):
    assert measure(baseline_us=1000.0, candidate_us=candidate_us).verdict == verdict


@given(st.lists(st.tuples(st.floats(1, 1e7), st.floats(1, 1e7)), min_size=5, max_size=60))
@settings(deadline=None, max_examples=50)
def test_a_summary_of_any_blocks_is_consistent(times):
    blocks = [
        Block(
            calls=1, baseline_claim_us=base, candidate_claim_us=mine, baseline_judge_us=base + 50,
            candidate_judge_us=mine + 50, baseline_copy_us=1.0, candidate_copy_us=1.0,
        )
        for base, mine in times
    ]  # fmt: skip
    timing = summarise_blocks("eager", blocks, FLOOR)
    assert timing.speedup_low <= timing.speedup <= timing.speedup_high
    assert timing.candidate_us == statistics.median(mine for _, mine in times)
    confirm_claims(timing)
