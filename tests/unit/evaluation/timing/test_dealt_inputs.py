"""Which timed calls have inputs that are not as given."""

import random
from collections import Counter
from dataclasses import replace
from itertools import islice

import pytest

from harness.domain import Problem
from harness.evaluation.correctness.reference import prepare_reference
from harness.evaluation.timing.chosen_calls import SHARED_SEEDS, TimedSeeds, draw_seed
from harness.evaluation.timing.paired import _deal_steps
from harness.problems.loading import load_problem
from harness.sandbox.devices import CpuDevice

SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.exp()


def get_inputs():
    return [torch.randn(30, 20)]


def get_init_inputs():
    return []
"""
STEPS = ("biased", "varied", "general")


@pytest.fixture(scope="module")
def plain():
    return prepare_reference(load_problem(Problem(name="p", suite="s", source=SOURCE), "full"), CpuDevice(), 1, 2)


@pytest.fixture(scope="module")
def reference(plain):
    return replace(plain, timed_steps=STEPS)


def test_quarter_of_cpu_blocks_has_inputs_of_every_step(reference):
    for seed in range(10):
        dealt = Counter(islice(_deal_steps(reference, random.Random(seed)), 20))
        assert dealt["as_given"] == 15
        assert all(dealt[step] >= 1 for step in STEPS)


def test_seeds_are_drawn_until_they_give_such_inputs(reference, plain):
    source = random.Random(1)
    seeds = iter(lambda: source.getrandbits(62), None)
    for step in (*STEPS, "as_given"):
        assert reference.choose_timed_step(draw_seed(reference, seeds, step)) == step
    assert plain.choose_timed_step(draw_seed(plain, seeds, "as_given")) == "as_given"
    assert set(islice(_deal_steps(plain, source), 20)) == {"as_given"}


def test_replays_also_have_kinds_that_only_the_problem_declares(reference):
    problem = replace(reference.loaded.problem, distributions=("as_given", "normal", "scale_3", "padded"))
    declaring = replace(reference, loaded=replace(reference.loaded, problem=problem))
    assert set(declaring.changed_steps) == {"mixed", *STEPS}
    assert set(declaring.replayed_steps) == {"mixed", *STEPS, "normal", "scale_3"}
    dealt = Counter(islice(_deal_steps(declaring, random.Random(1)), 24))
    assert (dealt["as_given"], dealt["normal"], dealt["scale_3"]) == (15, 2, 2)
    source = random.Random(1)
    seeds = TimedSeeds(declaring, iter(lambda: source.getrandbits(62), None), source)
    assert declaring.choose_timed_step(seeds.draw_fresh("scale_3")) == "scale_3"


def draw_all(reference, step, *, seed):
    """Return the shared and the fresh seeds of many calls."""
    source = random.Random(seed)
    seeds = TimedSeeds(reference, iter(lambda: source.getrandbits(62), None), source)
    drawn = [seeds.draw(step) for _ in range(200)]
    assert len(set(drawn)) == 200 and {reference.choose_timed_step(one) for one in drawn} == {step}
    shared = [one for one in drawn if seeds.is_shared(one)]
    return shared, set(drawn) - set(shared)


@pytest.mark.parametrize(("step", "count"), [("biased", SHARED_SEEDS[0]), ("as_given", SHARED_SEEDS[1])])
def test_candidates_share_some_seeds_in_another_order(reference, step, count):
    (one, fresh), (other, others) = (draw_all(reference, step, seed=seed) for seed in (1, 2))
    assert one != other and sorted(one) == sorted(other) and len(one) == count
    assert not fresh & others
