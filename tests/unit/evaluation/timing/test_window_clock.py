"""From windows to a verdict: simulated windows of honest and dishonest candidates."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain import Block
from harness.evaluation.timing.window_clock import (
    READ_START_US,
    Windows,
    confirm_windows,
    is_precise_enough,
    is_worth_repeating,
)

PUBLISH_US, WAKE_US, PROGRAM_US, UNREAD_US, SNAPSHOT_US, FLOOR = 110.0, 150.0, 10.0, 5.0, 30.0, 0.02


def measure(
    *,
    baseline_us,
    candidate_us,
    reported=1.0,
    slowed=1.0,
    longer_snapshot_us=0.0,
    longer_publish_us=0.0,
    later_read_us=0.0,
    drift_us=0.0,
    hump_us=0.0,
    shorter_wake_us=0.0,
    noise_us=4.0,
    pairs=100,
    seed=0,
):
    """A measurement in which the candidate takes `candidate_us` a call and reports a share of that. Beside it the
    baseline is slower by a factor, its snapshots are longer, publishing takes longer for both, and the candidate's
    outputs are read later. From then on every snapshot is longer by `drift_us`, and by `hump_us` until the candidate
    has ended."""
    source = random.Random(seed)

    def scatter(value_us):
        return value_us + abs(source.gauss(0, noise_us))

    def pair(
        theirs_us,
        mine_us,
        share=1.0,
        longer_us=0.0,
        publish_us=PUBLISH_US,
        shorter_us=0.0,
        later_us=0.0,
        drift_us=drift_us,
    ):
        base, mine = scatter(theirs_us), scatter(mine_us)
        base_go_us, mine_go_us = base + scatter(PROGRAM_US), mine + scatter(PROGRAM_US)
        base_snapshot_us = SNAPSHOT_US + drift_us + longer_us
        mine_snapshot_us = SNAPSHOT_US + drift_us + later_us
        return Block(
            calls=1,
            baseline_claim_us=base,
            candidate_claim_us=mine * share,
            baseline_judge_us=scatter(publish_us) + base_go_us + base_snapshot_us,
            candidate_judge_us=scatter(publish_us) + mine_go_us + mine_snapshot_us,
            baseline_wake_us=scatter(WAKE_US),
            candidate_wake_us=scatter(WAKE_US - shorter_us),
            baseline_go_us=base_go_us,
            candidate_go_us=mine_go_us,
            baseline_unread_us=UNREAD_US,
            candidate_unread_us=UNREAD_US + later_us,
            baseline_snapshot_us=base_snapshot_us,
            candidate_snapshot_us=mine_snapshot_us,
        )

    def equals(drift_us):
        return tuple(pair(baseline_us, baseline_us, drift_us=drift_us) for _ in range(20))

    longer = {"longer_us": longer_snapshot_us, "publish_us": PUBLISH_US + longer_publish_us}
    drifted = {"shorter_us": shorter_wake_us, "later_us": later_read_us, "drift_us": drift_us + hump_us}
    blocks = tuple(pair(baseline_us * slowed, candidate_us, reported, **longer, **drifted) for _ in range(pairs))
    return Windows(blocks=blocks, before=equals(0.0), after=equals(drift_us))


def conclude(**measurement):
    return confirm_windows("eager", measure(**measurement), FLOOR)


@pytest.mark.parametrize("speedup", [1.0, 1.05, 1.2, 2.0])
@pytest.mark.parametrize("baseline_us", [200.0, 1000.0, 50_000.0])
def test_an_honest_speedup_is_recovered(baseline_us, speedup):
    timing = conclude(baseline_us=baseline_us, candidate_us=baseline_us / speedup).timing
    assert timing.speedup == pytest.approx(speedup, rel=0.02)


@given(baseline_us=st.floats(100.0, 50_000.0), noise_us=st.floats(0.0, 30.0), seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_equal_programs_are_never_called_faster(baseline_us, noise_us, seed):
    result = conclude(baseline_us=baseline_us, candidate_us=baseline_us, noise_us=noise_us, seed=seed)
    assert result.timing.verdict != "faster"
    assert result.outcome is None


@given(reported=st.floats(0.05, 0.99), baseline_us=st.floats(100.0, 20_000.0), seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_a_smaller_reported_time_gains_nothing(reported, baseline_us, seed):
    """Whatever it reports, a program that takes as long as the baseline is not faster."""
    timing = conclude(baseline_us=baseline_us, candidate_us=baseline_us, reported=reported, seed=seed).timing
    assert timing.verdict != "faster"


def test_what_the_window_shows_beyond_a_reported_time_is_added_and_told():
    result = conclude(baseline_us=2000.0, candidate_us=2000.0, reported=0.5)
    assert result.timing.candidate_us == pytest.approx(2000.0, rel=0.03)
    assert result.timing.speedup == pytest.approx(1.0, abs=0.03)
    assert [finding.check for finding in result.findings] == ["reported_time"]


@given(slowed=st.floats(1.1, 3.0), seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_a_candidate_that_slows_its_opponent_down_gains_nothing(slowed, seed):
    result = conclude(baseline_us=1000.0, candidate_us=1000.0, slowed=slowed, seed=seed)
    assert result.timing.verdict != "faster"
    assert result.timing.speedup == pytest.approx(1.0, abs=0.03)
    assert "opponent_slowed" in [finding.check for finding in result.findings]


def test_an_honest_opponent_that_is_as_slow_as_alone_is_not_corrected():
    assert not conclude(baseline_us=1000.0, candidate_us=500.0).findings


@given(longer_us=st.floats(0.0, 2000.0), reported=st.floats(0.2, 0.9), seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_prolonging_the_exchange_of_the_opponent_hides_no_work(longer_us, reported, seed):
    measurement = {"baseline_us": 1000.0, "candidate_us": 1000.0, "reported": reported, "seed": seed}
    assert conclude(**measurement, longer_snapshot_us=longer_us).timing.verdict != "faster"


@given(hump_us=st.floats(0.0, 60.0), seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_a_longer_snapshot_of_both_sides_beside_the_candidate_is_not_charged_but_may_hide_work(hump_us, seed):
    result = conclude(baseline_us=1000.0, candidate_us=1000.0, hump_us=hump_us, seed=seed)
    assert result.timing.speedup == pytest.approx(1.0, abs=0.01)
    assert result.timing.speedup_low < 1000.0 / (1000.0 + hump_us)


@given(longer_us=st.floats(160.0, 2000.0), seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_publishing_that_takes_longer_beside_the_candidate_may_hide_work(longer_us, seed):
    result = conclude(baseline_us=1000.0, candidate_us=1000.0, longer_publish_us=longer_us, seed=seed)
    assert result.timing.speedup_low < 1000.0 / (1000.0 + longer_us)


@given(later_us=st.floats(0.0, 500.0), seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_work_may_be_hidden_until_the_outputs_are_read(later_us, seed):
    timing = conclude(baseline_us=1000.0, candidate_us=600.0, later_read_us=later_us, seed=seed).timing
    assert timing.speedup_low < 1000.0 / (600.0 + later_us)


@given(reported=st.floats(0.001, 1.0), candidate_us=st.floats(50.0, 2000.0), seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_the_lower_end_of_the_speedup_does_not_depend_on_reported_times(reported, candidate_us, seed):
    timing = conclude(baseline_us=1000.0, candidate_us=candidate_us, reported=reported, seed=seed).timing
    assert timing.speedup_low < 1000.0 / candidate_us * 1.02 / (1 + FLOOR)


@pytest.mark.parametrize(
    ("candidate_us", "hump_us", "expected"), [(900, 100, True), (900, 0, False), (999, 100, False)]
)
def test_a_measurement_is_repeated_where_only_the_exchange_prevents_faster(candidate_us, hump_us, expected):
    windows = measure(baseline_us=1000.0, candidate_us=float(candidate_us), hump_us=float(hump_us))
    assert is_worth_repeating("eager", windows, FLOOR) is expected


@pytest.mark.parametrize(("candidate_us", "expected"), [(1500.0, True), (5000.0, False)])
def test_a_slower_baseline_beside_a_far_slower_candidate_is_not_measured_again(candidate_us, expected):
    windows = measure(baseline_us=1000.0, candidate_us=candidate_us, slowed=1.3)
    assert windows.find_slowing() > 1
    assert is_worth_repeating("eager", windows, FLOOR) is expected


@given(drift_us=st.floats(-100.0, 200.0), seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_an_exchange_that_drifts_is_not_charged(drift_us, seed):
    timing = conclude(baseline_us=1000.0, candidate_us=1000.0, drift_us=drift_us, seed=seed).timing
    assert timing.speedup == pytest.approx(1.0, abs=0.03)


@given(shorter_us=st.floats(0.0, 150.0), baseline_us=st.floats(150.0, 2000.0), seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_work_that_is_hidden_by_not_waking_the_device_gains_nothing(shorter_us, baseline_us, seed):
    """It answers the signal to wake at once, and reports less by as much as that saves."""
    reported = max(1 - shorter_us / baseline_us, 0.05)
    measurement = {"baseline_us": baseline_us, "candidate_us": baseline_us, "reported": reported, "seed": seed}
    assert conclude(**measurement, shorter_wake_us=shorter_us).timing.verdict != "faster"


@pytest.mark.parametrize("fast_share", [0.2, 0.3, 0.4])
@pytest.mark.parametrize("seed", range(4))
def test_a_few_truly_fast_calls_do_not_carry_a_small_reported_time(fast_share, seed):
    """A bimodal program against itself, which reports the fast time in some of the slow calls, too."""
    honest = measure(baseline_us=6250.0, candidate_us=6250.0, pairs=40, seed=seed)
    source = random.Random(seed)

    def slow(block, side):
        times = {f"{side}_{name}_us": getattr(block, f"{side}_{name}_us") + 6250.0 for name in ("claim", "go", "judge")}
        return replace(block, **times)

    def lie(block):
        return replace(block, candidate_claim_us=6250.0) if source.random() < 0.5 else block

    theirs = [slow(block, "baseline") if source.random() > fast_share else block for block in honest.blocks]
    blocks = tuple(lie(slow(block, "candidate")) if source.random() > fast_share else block for block in theirs)
    timing = confirm_windows("eager", replace(honest, blocks=blocks), FLOOR).timing
    assert timing.verdict != "faster" or timing.speedup < 1.1


def test_outputs_that_are_copied_by_a_shorter_way_than_the_baselines_are_no_gain():
    def copy_slowly(block, *sides):
        names = [f"{side}_{name}_us" for side in sides for name in ("snapshot", "judge")]
        return replace(block, **{name: getattr(block, name) + 150.0 for name in names})

    usual = measure(baseline_us=1000.0, candidate_us=1000.0, reported=0.85)
    blocks = tuple(copy_slowly(block, "baseline") for block in usual.blocks)
    equals = tuple(copy_slowly(block, "baseline", "candidate") for block in usual.before)
    windows = replace(usual, blocks=blocks, before=equals, after=equals)
    assert confirm_windows("eager", windows, FLOOR).timing.verdict != "faster"


def lengthen(block, side, **us):
    names = {f"{side}_{name}_us": added for name, added in us.items()}
    return replace(block, **{name: (getattr(block, name) or 0.0) + added for name, added in names.items()})


@pytest.mark.parametrize("phases", [("wake", "judge"), ("judge", "settling"), ("wake", "judge", "settling")])
@pytest.mark.parametrize("seed", range(3))
def test_work_hidden_in_a_different_phase_of_each_call_gains_nothing(phases, seed):
    """Half of each call runs before WAKE is answered, while inputs are published, or when outputs have been read; no
    phase holds it in most calls."""
    usual = measure(baseline_us=1000.0, candidate_us=1000.0, seed=seed)

    def hide(block, phase):
        earlier = dict.fromkeys(("claim", "go", "judge"), -500.0)
        return lengthen(lengthen(block, "candidate", **earlier), "candidate", **{phase: 500.0})

    source, shares = random.Random(seed), [0.8 / len(phases)] * len(phases) + [0.2]
    chosen = source.choices((*phases, None), shares, k=len(usual.blocks))
    blocks = tuple(hide(block, phase) if phase else block for block, phase in zip(usual.blocks, chosen, strict=True))
    timing = confirm_windows("eager", replace(usual, blocks=blocks), FLOOR).timing
    assert timing.verdict != "faster"


@pytest.mark.parametrize("slowed_share", [0.6, 0.65, 0.7])
@pytest.mark.parametrize("seed", range(3))
def test_slowing_most_calls_of_an_opponent_gains_nothing(slowed_share, seed):
    usual, source = measure(baseline_us=1000.0, candidate_us=1000.0, seed=seed), random.Random(seed)
    slower = dict.fromkeys(("claim", "go", "judge"), 500.0)
    blocks = tuple(
        lengthen(block, "baseline", **slower) if source.random() < slowed_share else block for block in usual.blocks
    )
    assert confirm_windows("eager", replace(usual, blocks=blocks), FLOOR).timing.verdict != "faster"


def test_publishing_that_drifts_for_both_sides_is_not_charged():
    """It takes 1 ms, and from the candidate's first call on a tenth more."""

    def publish(blocks, time_us):
        both = (lengthen(block, "baseline", judge=time_us) for block in blocks)
        return tuple(lengthen(block, "candidate", judge=time_us) for block in both)

    usual = measure(baseline_us=1000.0, candidate_us=900.0)
    windows = Windows(
        blocks=publish(usual.blocks, 1000.0), before=publish(usual.before, 900.0), after=publish(usual.after, 1000.0)
    )
    assert confirm_windows("eager", windows, FLOOR).timing.verdict == "faster"


def test_a_gain_within_what_a_leaner_program_could_save_is_a_tie():
    lean_us = PROGRAM_US + UNREAD_US + READ_START_US
    assert conclude(baseline_us=100.0, candidate_us=100.0 - lean_us / 2, noise_us=1.0).timing.verdict == "tie"
    assert conclude(baseline_us=400.0, candidate_us=200.0, noise_us=1.0).timing.verdict == "faster"


def test_a_call_shorter_than_the_window_resolves_is_unconfirmed():
    result = conclude(baseline_us=40.0, candidate_us=4.0)
    assert result.timing.verdict == "unconfirmed"
    assert [finding.check for finding in result.findings] == ["clock"]


def test_more_pairs_are_asked_for_only_until_the_interval_is_narrow():
    calm = measure(baseline_us=1000.0, candidate_us=900.0, noise_us=1.0)
    noisy = measure(baseline_us=1000.0, candidate_us=900.0, noise_us=400.0, pairs=20)
    assert is_precise_enough(calm.blocks, 0.01, FLOOR)
    assert not is_precise_enough(noisy.blocks, 0.01, FLOOR)


@pytest.mark.parametrize(("candidate_us", "noise_us", "enough"), [(5000.0, 0.6, True), (4500.0, 0.6, False)])
def test_a_certain_tie_needs_no_precise_windows(candidate_us, noise_us, enough):
    """Their snapshots scatter by a hundred times more than the calls."""
    pairs = measure(baseline_us=5000.0, candidate_us=candidate_us, noise_us=noise_us, pairs=20).blocks
    source = random.Random(1)
    rough = [replace(block, candidate_snapshot_us=SNAPSHOT_US + source.gauss(0, 800.0)) for block in pairs]
    assert is_precise_enough(rough, 0.01, FLOOR) == enough


def test_times_without_sense_are_no_error():
    blocks = measure(baseline_us=1000.0, candidate_us=900.0).blocks
    pairs = [replace(block, candidate_claim_us=1e-3) for block in blocks]
    is_precise_enough(pairs, 0.01, FLOOR)
    is_precise_enough([replace(block, candidate_claim_us=1e12) for block in pairs], 0.01, FLOOR)
