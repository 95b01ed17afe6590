"""What happens between two timed calls, and in which order. The sessions only write down what is asked of them."""

import itertools
import math
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from harness.evaluation.settings import TimingPlan
from harness.evaluation.timing.paired import PairedTimer
from harness.sandbox.model_session import Run
from harness.sandbox.worker_client import Called
from harness.tensors.outputs import FlatOutputs

PAIRS = 6


class NotedSession:
    used_s = 0.0

    def __init__(self, name, events):
        self.name, self.events = name, events

    def prepare_call(self, like):
        self.events.append(("ready", self.name))

    def stage(self, inputs, state, *, look):
        self.events.append(("stage", self.name))

    def call_timed(self, *, take, keep):
        self.events.append(("call", self.name))
        outputs = FlatOutputs(tree={"t": 0}, tensors=(torch.zeros(1),))
        called = Called(reported_us=100.0, at_ns=0, tree={"t": 0}, specs=(), devices=(), addresses=())
        return Run(outputs=outputs, called=called)

    def complete(self, run):
        assert math.isnan(run.evaluator_us)
        self.events.append(("complete", self.name))
        return replace(run, evaluator_us=150.0)

    def disarm(self):
        self.events.append(("end", self.name))

    def server_used_s(self):
        return 0.0


def measure(plan=TimingPlan(min_blocks=PAIRS, max_blocks=PAIRS)):  # noqa: B008
    events, seeds = [], itertools.count()

    def make_inputs(seed):
        events.append(("make", seed))
        return (torch.zeros(1),)

    device = SimpleNamespace(
        evaluator_cores={0},
        torch_device=torch.device("cpu"),
        read_core_clocks_mhz=lambda cores: [],
        open_nvml=lambda: None,
        flush_cache=lambda once=False: events.append(("flush", "once" if once else "all")),
    )
    loaded = SimpleNamespace(problem=SimpleNamespace(tolerance=None))
    timer = PairedTimer(
        baseline=NotedSession("baseline", events),
        candidate=NotedSession("candidate", events),
        reference=SimpleNamespace(
            device=device,
            loaded=loaded,
            make_timed_inputs=make_inputs,
            make_timed_state=lambda seed: None,
            changed_steps=(),
            compared_steps=(),
            choose_timed_step=lambda seed: "as_given",
        ),
        plan=plan,
        seed=1,
    )
    timer._measure_once(seeds, baseline_us=100.0)
    return events


@pytest.fixture(autouse=True)
def stay_where_we_are(monkeypatch):
    monkeypatch.setattr("harness.evaluation.timing.paired.pin_to_cores", lambda cores: nullcontext())


def split_into_pairs(events):
    """What came with each pair, from its first inputs being written to both being complete."""
    places = [at for at, event in enumerate(events) if event[0] == "stage"][::2]
    return [events[begin:end] for begin, end in itertools.pairwise([*places, len(events)])]


def test_cpu_caches_are_flushed_before_both_calls_of_a_block():
    orders = set()
    for pair in split_into_pairs(measure()):
        first, second = pair[0][1], pair[1][1]
        orders.add(first)
        assert {first, second} == {"baseline", "candidate"}
        assert pair[:6] == [
            ("stage", first), ("stage", second),
            ("flush", "all"), ("call", first),
            ("flush", "once"), ("call", second),
        ]  # fmt: skip
        assert {event for event in pair if event[0] == "complete"} == {("complete", first), ("complete", second)}
    assert orders == {"baseline", "candidate"}


def test_a_program_in_the_baselines_place_cannot_sleep_through_all_planned_pairs():
    patient = TimingPlan(min_blocks=10 * PAIRS, min_blocks_when_slow=PAIRS, budget_s=0.0)
    assert len(split_into_pairs(measure(patient))) == PAIRS


def test_the_next_inputs_are_made_while_the_second_side_is_being_stopped():
    events = measure()
    made = [seed for kind, seed in events if kind == "make"]
    assert made == list(range(PAIRS + 2))  # those to get ready with, and those of a pair that never came
    for pair in split_into_pairs(events):
        kinds = [kind for kind, _ in pair]
        assert kinds.index("complete") > kinds.index("make") > kinds.index("call")
