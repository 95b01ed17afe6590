"""Which differences of time between kinds of inputs count."""

import random
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import count

import pytest
from simulated_gpu import SPEC, SimulatedAhead, SimulatedGpu, SimulatedRecording, make_reference

from harness.domain import Block, Problem
from harness.evaluation.correctness.reference import prepare_reference
from harness.evaluation.results import TimingResult
from harness.evaluation.settings import TimingPlan
from harness.evaluation.timing import cold_replays, replay_timing
from harness.evaluation.timing.block_statistics import charge_slowest, compare_inputs, summarise_blocks
from harness.evaluation.timing.replay_timing import ReplayTimer
from harness.problems.inputs.kinds import find_kind
from harness.problems.loading import load_problem
from harness.protocol.tensor_layout import TensorSpec
from harness.sandbox.devices import CpuDevice
from harness.sandbox.gpu.recording import KeptBaseline, NotReplayable
from harness.tensors.outputs import FlatOutputs

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


@pytest.mark.parametrize(("longer", "calls"), [(0.0, 1), (1e12, 3)])
def test_a_kind_whose_time_counts_has_as_many_calls_as_variants(make_timer, monkeypatch, longer, calls):
    monkeypatch.setattr(replay_timing, "FURTHER_SHARE", 1e-9)
    monkeypatch.setattr(replay_timing, "LONGER", longer)
    timer, baseline, candidate = make_timer(), KeptBaseline(SimulatedRecording(200.0)), SimulatedRecording(200.0)
    timer.measure("eager", lambda: nullcontext(baseline), lambda: nullcontext(candidate))
    assert find_kind("varied").variants == 3 and len(timer._checked["varied"]) == calls


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
    """Keeps its results in memory or in variables of its code, and returns them again for the same inputs. One that is
    `wary` adds in order where either of them tells that replays were repeated.
    """

    def __init__(self, keeps, *, wary=False, time_us=100.0):
        super().__init__(time_us)
        self.keeps, self.wary, self.memory, self.in_order = keeps, wary, {}, 0

    def replay_in(self, process):
        super().replay_in(process)
        kept = self.memory if self.keeps == "memory" else process.variables
        here, everywhere = (one.get("count", 0) + 1 for one in (process.variables, self.memory))
        is_in_order = self.wary and here != everywhere
        process.variables["count"], self.memory["count"] = here, everywhere
        self.in_order += is_in_order
        scatter = 0.0 if is_in_order else 1e-7 * (1 + self.replays % 5)
        self.output = kept.setdefault(self.output.sum().item(), self.output * (1 + scatter))

    @contextmanager
    def restored(self):
        before = dict(self.memory)
        yield
        self.memory = before


@pytest.mark.parametrize("time_us", [100.0, 300.0])
@pytest.mark.parametrize(("keeps", "wary"), [("memory", False), ("variables", False), ("variables", True)])
def test_a_second_replay_does_not_know_what_the_first_one_gave(make_timer, keeps, wary, time_us):
    baseline = KeptBaseline(SimulatedRecording(time_us))
    candidate = AddsInAnyOrder(keeps, wary=wary, time_us=time_us)
    with pytest.raises(NotReplayable, match="replays with the same inputs differ"):
        make_timer(deterministic=True).measure("eager", lambda: nullcontext(baseline), lambda: nullcontext(candidate))
    assert (candidate.in_order > 0) == wary


@pytest.mark.parametrize(("deterministic", "time_us", "count"), [(False, 100.0, 0), (True, 100.0, 6), (True, 300.0, 2)])
def test_bits_are_compared_in_each_round_where_the_problem_asks_for_it(make_timer, deterministic, time_us, count):
    baseline, candidate = KeptBaseline(SimulatedRecording(time_us)), SimulatedRecording(time_us)
    timer, repeated = make_timer(deterministic=deterministic), []
    replay_twice = timer._replay_twice
    timer._replay_twice = lambda *given: repeated.append(given) or replay_twice(*given)
    result = timer.measure("eager", lambda: nullcontext(baseline), lambda: nullcontext(candidate))
    assert (result.timing.verdict, len(repeated)) == ("tie", count)


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_inputs_for_which_the_baselines_work_is_unknown_must_not_be_slower(make_timer, factor):
    timer = make_timer()
    candidate, baseline = SlowerForLarge(100.0), KeptBaseline(ReadsBack(100.0))
    candidate.factor = factor
    fails = pytest.raises(NotReplayable, match="slower for varied inputs") if factor > 1 else nullcontext()
    with fails:
        result = timer.measure("eager", lambda: nullcontext(baseline), lambda: nullcontext(candidate))
        assert result.timing.verdict == "tie"


COUNTING = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        return x.exp()


def get_inputs():
    return [torch.randn(8, 8)]


def get_init_inputs():
    return []
"""


class SlowerAfterCalls(SimulatedRecording):
    """A call is slower after so many calls, or one of so many is."""

    after, one_in = 0, 1

    def __init__(self, time_us):
        super().__init__(time_us)
        self.usual_us = time_us

    def write_inputs(self, inputs, state):
        super().write_inputs(inputs, state)
        (calls,) = state
        is_slow = int(calls) >= self.after and int(calls) % self.one_in == 0
        self.time_us, self.calls = 400.0 if self.after and is_slow else self.usual_us, calls + 1

    def describe_run(self, inputs):
        run = super().describe_run(inputs)
        called = replace(run.called, specs=(SPEC, COUNT), devices=("cpu", "cpu"), addresses=(0, 0))
        tree = {"dict": [["output", {"t": 0}], ["state", {"dict": [["calls", {"t": 1}]]}]]}
        return replace(run, called=called, outputs=FlatOutputs(tree=tree, tensors=(self.output, self.calls)))


COUNT = TensorSpec(dtype="int64", shape=(1,), stride=(1,))


@pytest.mark.parametrize(
    ("after", "one_in", "verdict"),
    [(0, 1, "faster"), (500, 1, "slower"), (500, 4, "faster"), (100_000, 1, "slower")],
    ids=["never", "always", "in some calls", "late"],
)
def test_the_time_in_states_after_many_calls_counts(monkeypatch, after, one_in, verdict):
    monkeypatch.setattr(cold_replays, "CLEAN_BYTES", 64)
    problem = Problem(name="p", suite="s", source=COUNTING)
    plain = prepare_reference(load_problem(problem, "full"), CpuDevice(), 1, 2)
    plan = TimingPlan(budget_s=6.0, allow_load=True)
    timer = ReplayTimer(
        reference=replace(plain, device=SimulatedGpu()), plan=plan, seeds=count(1), ahead=SimulatedAhead()
    )
    candidate, baseline = SlowerAfterCalls(20.0), KeptBaseline(SlowerAfterCalls(200.0))
    candidate.after, candidate.one_in = after, one_in
    result = timer.measure("eager", lambda: nullcontext(baseline), lambda: nullcontext(candidate))
    assert result.timing.verdict == verdict
    assert [one.check for one in result.findings] == ["slower_inputs"] * (verdict == "slower")
