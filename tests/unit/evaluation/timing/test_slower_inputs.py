"""Which differences of time between kinds of inputs count."""

import random
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import count

import pytest
from simulated_gpu import SimulatedAhead, SimulatedRecording, make_reference

from harness.domain import Block
from harness.evaluation.results import TimingResult
from harness.evaluation.settings import TimingPlan
from harness.evaluation.timing import cold_replays, replay_timing
from harness.evaluation.timing.block_statistics import charge_slowest, compare_inputs, summarise_blocks
from harness.evaluation.timing.replay_timing import ReplayTimer
from harness.sandbox.gpu.recording import KeptBaseline, NotReplayable

BASELINE_US, SCATTER_US = 1000.0, 15.0


def make_pairs(candidate_us, count=9, baseline_us=BASELINE_US, seed=1):
    source = random.Random(f"{candidate_us} {baseline_us} {seed}")

    def draw(usual_us):
        return usual_us + abs(source.gauss(0, SCATTER_US))

    return [
        Block(
            calls=1,
            baseline_reported_us=draw(baseline_us),
            candidate_reported_us=draw(candidate_us),
            baseline_evaluator_us=baseline_us + 300,
            candidate_evaluator_us=candidate_us + 300,
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_inputs_with_which_only_the_candidate_is_slower_are_found(seed):
    given = make_pairs(500.0, seed=seed)
    found = compare_inputs("biased", make_pairs(1100.0, seed=seed), given)
    assert found.factor == pytest.approx(2.2, rel=0.05)
    assert compare_inputs("varied", make_pairs(505.0, seed=seed + 1), given) is None
    assert compare_inputs("general", make_pairs(1000.0, baseline_us=2 * BASELINE_US, seed=seed), given) is None


def test_few_pairs_decide_nothing():
    assert compare_inputs("biased", make_pairs(1100.0, 2), make_pairs(500.0)) is None


def test_pairs_that_scatter_as_much_as_they_differ_show_nothing():
    slow, fast = make_pairs(900.0, 5), make_pairs(500.0, 4)
    assert compare_inputs("varied", [*slow, *fast], make_pairs(500.0) + slow[:4]) is None


def test_a_share_of_a_short_call_is_noise():
    """20 us at least."""
    given, slower = make_pairs(30.0, 5, baseline_us=60.0), make_pairs(45.0, 5, baseline_us=60.0)
    assert compare_inputs("varied", slower, given) is None


def test_the_slowest_kind_of_inputs_counts():
    slower = [compare_inputs(f"kind{us}", make_pairs(us), make_pairs(500.0)) for us in (1600.0, 1200.0)]
    result = TimingResult(timing=summarise_blocks("eager", make_pairs(500.0), 0.03))
    assert charge_slowest(result, ()) == result
    charged = charge_slowest(result, slower)
    assert charged.timing.verdict == "slower"
    assert charged.timing.candidate_us == pytest.approx(1600, rel=0.05)
    assert charged.timing.speedup == pytest.approx(1000 / 1600, rel=0.05)
    assert charged.timing.speedup_low < charged.timing.speedup < charged.timing.speedup_high < 0.7
    assert [finding.check for finding in charged.findings] == ["slower_inputs"]
    assert "kind1600" in charged.findings[0].message


class SlowerForLarge(SimulatedRecording):
    factor = 1.0

    def write_inputs(self, inputs, state):
        super().write_inputs(inputs, state)
        self.time_us = 100.0 * (self.factor if inputs[0].abs().max() > 3.7 else 1.0)


class ReadsBack(SimulatedRecording):
    reads_back = True


@pytest.fixture
def make_timer(monkeypatch):
    monkeypatch.setattr(cold_replays, "CLEAN_BYTES", 64)

    def make(**settings):
        reference = replace(make_reference(**settings), timed_steps=("varied",))
        plan = TimingPlan(budget_s=0.5, allow_load=True)
        return ReplayTimer(reference=reference, plan=plan, seeds=count(1), ahead=SimulatedAhead())

    return make


@pytest.mark.parametrize(("factor", "checks"), [(1.0, []), (4.0, ["slower_inputs"])])
def test_the_time_of_calls_that_are_only_checked_counts(make_timer, monkeypatch, factor, checks):
    monkeypatch.setattr(replay_timing, "CHANGED_SHARE", 0.0)
    candidate, baseline = SlowerForLarge(100.0), KeptBaseline(SimulatedRecording(200.0))
    candidate.factor = factor
    result = make_timer().measure("eager", lambda: nullcontext(baseline), lambda: nullcontext(candidate))
    assert [finding.check for finding in result.findings] == checks
    assert result.timing.verdict == ("faster" if factor == 1.0 else "slower")


@pytest.mark.parametrize(("one_in", "checks"), [(4, ["slower_inputs"]), (20, [])])
def test_a_kind_of_which_a_part_is_slower_counts(make_timer, one_in, checks):
    class SometimesSlower(SlowerForLarge):
        number = 0

        def write_inputs(self, inputs, state):
            super().write_inputs(inputs, state)
            self.number += self.time_us > 100.0
            self.time_us = 100.0 if self.number % one_in else self.time_us

    candidate, baseline = SometimesSlower(100.0), KeptBaseline(SimulatedRecording(200.0))
    candidate.factor = 4.0
    result = make_timer().measure("eager", lambda: nullcontext(baseline), lambda: nullcontext(candidate))
    assert [finding.check for finding in result.findings] == checks
    assert result.timing.verdict == ("slower" if checks else "faster")


class AddsInAnyOrder(SimulatedRecording):
    """Keeps its results in memory or in variables of its code, and returns them again for the same inputs."""

    def __init__(self, keeps):
        super().__init__(100.0)
        self.keeps, self.memory = keeps, {}

    def write_inputs(self, inputs, state):
        super().write_inputs(inputs, state)
        kept = getattr(self, self.keeps)
        self.output = kept.setdefault(inputs[0].sum().item(), self.output * (1 + 1e-7 * (self.replays % 5)))

    @contextmanager
    def restored(self):
        before = dict(self.memory)
        yield
        self.memory = before


@pytest.mark.parametrize("keeps", ["memory", "variables"])
def test_a_second_replay_does_not_know_what_the_first_one_gave(make_timer, keeps):
    baseline = KeptBaseline(SimulatedRecording(100.0))
    with pytest.raises(NotReplayable, match="replays with the same inputs differ"):
        make_timer(deterministic=True).measure(
            "eager", lambda: nullcontext(baseline), lambda: nullcontext(AddsInAnyOrder(keeps))
        )


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_inputs_for_which_the_baselines_work_is_unknown_must_not_be_slower(make_timer, factor):
    timer = make_timer()
    candidate, baseline = SlowerForLarge(100.0), KeptBaseline(ReadsBack(100.0))
    candidate.factor = factor
    fails = pytest.raises(NotReplayable, match="slower for varied inputs") if factor > 1 else nullcontext()
    with fails:
        result = timer.measure("eager", lambda: nullcontext(baseline), lambda: nullcontext(candidate))
        assert result.timing.verdict == "tie"
