"""Which calls a candidate's correctness is evaluated by."""

import random
from itertools import count

import pytest

from harness.evaluation.correctness.calls import CallMaker
from harness.evaluation.correctness.planned_calls import plan_calls
from harness.evaluation.memory_plan import TRIALS
from harness.problems.discovery import read_problem
from harness.problems.inputs.kinds import DERIVED
from harness.protocol import KEPT_CALLS

FRESH_INPUTS = "as_given"


@pytest.fixture
def make_problem(tmp_path):
    def make(declaration: str):
        path = tmp_path / "problem.py"
        path.write_text(
            "from torch import nn\n"
            "class Model(nn.Module): ...\n"
            "def get_inputs(): return []\n"
            f"def get_init_inputs(): return []\n{declaration}\n"
        )
        return read_problem(path, "plans")

    return make


def list_names(problem, **settings):
    return [step.name for step in plan_calls(problem, changes_state=False, **settings)]


@pytest.mark.parametrize("declaration", ["", "DISTRIBUTIONS = ['normal']", "DYNAMIC_SHAPES = True"])
def test_outputs_written_into_places_in_turn_are_overwritten_with_others(make_problem, declaration):
    problem = make_problem(declaration)
    for seed in range(50):
        steps = list_names(problem, is_small=True, reordered=2, source=random.Random(seed))
        assert steps[:TRIALS] == [FRESH_INPUTS] * TRIALS  # of which the last is never repeated
        usual = [step for step in steps if step != "nearby_shape"]
        assert len(usual) >= TRIALS + KEPT_CALLS - 1


def test_large_problem_is_called_once_per_input_kind(make_problem):
    steps = list_names(make_problem(""), is_small=False, source=random.Random(1))
    assert steps == [*[FRESH_INPUTS] * TRIALS, "rerun"]


@pytest.mark.parametrize("kind", DERIVED, ids=[kind.name for kind in DERIVED])
def test_each_variant_of_a_kind_is_used_before_one_is_repeated(kind):
    orders = []
    for first in range(0, 5000, 1000):
        maker = CallMaker(None, count(first))
        seeds = [maker.draw_seed(kind) for _ in range(2 * kind.variants)]
        assert kind.changes_all(seeds[0])
        orders.append([kind.find_variant(seed) for seed in seeds])
        for begin in (0, kind.variants):
            assert sorted(orders[-1][begin : begin + kind.variants]) == list(range(kind.variants))
    assert orders[0] != orders[1] or orders[0] != orders[2]
