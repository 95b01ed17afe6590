"""What a reference must be to measure others by it, and what is learned from running it."""

from __future__ import annotations

import random
import resource
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import count

import pytest
import torch

from harness.domain import Problem, ProblemError, ProblemTooLarge
from harness.evaluation.correctness.calls import keep_calm
from harness.evaluation.correctness.other_states import plan_state
from harness.evaluation.correctness.planned_calls import Exercises
from harness.evaluation.correctness.reference import prepare_reference
from harness.evaluation.correctness.reference_checks import contain_memory, require_memory
from harness.evaluation.correctness.truth import Expected, KeptTruths
from harness.evaluation.timing.chosen_calls import draw_seed
from harness.problems.inputs.kinds import find_kind
from harness.problems.loading import load_problem
from harness.sandbox.devices import CpuDevice

CPU = torch.device("cpu")
SOURCE = """import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        FORWARD

def get_inputs():
    return [torch.rand(300, 5) - 0.5]

def get_init_inputs():
    return []
"""


def load(forward, *, inputs="[torch.rand(300, 5) - 0.5]", **settings):
    source = SOURCE.replace("FORWARD", forward.replace("\n", "\n        ")).replace(
        "[torch.rand(300, 5) - 0.5]", inputs
    )
    return load_problem(Problem(name="toy", suite="mine", source=source, **settings), "full")


def prepare(forward, **settings):
    return prepare_reference(load(forward, **settings), CpuDevice(), 1, 2)


def test_calls_of_one_key_compute_the_truth_once():
    forward = "self.runs = getattr(self, 'runs', 0) + 1\nreturn x * self.weight"
    reference = replace(prepare(forward), truths=KeptTruths(1 << 20))
    truths = [reference.expect(reference.make_inputs(7), own_first=False, key=(7, "as_given")).truth for _ in range(2)]
    runs = reference.model.runs
    assert truths[0] is truths[1]
    again = reference.expect(reference.make_inputs(7), own_first=True, key=(7, "as_given"))
    assert (again.own.tensors[0] is truths[0].leaves[0].reference, reference.model.runs) == (True, runs)
    assert reference.expect(reference.make_inputs(8), own_first=False, key=(8, "as_given")).truth is not truths[0]


def test_no_truths_are_kept_beyond_their_memory():
    reference = replace(prepare("return x * self.weight"), truths=KeptTruths(30_000))  # of 18,000 bytes each
    for seed in (7, 8):
        assert reference.expect(reference.make_inputs(seed), own_first=False, key=(seed, "as_given")).truth
    assert [reference.truths.find((seed, "as_given")) is None for seed in (7, 8)] == [True, False]


def test_truths_after_a_state_are_not_shared():
    reference = replace(prepare("self.steps.add_(1)\nreturn x * self.steps"), truths=KeptTruths(1 << 20))
    reference.expect(reference.make_inputs(7), own_first=False, key=(7, "as_given"))
    assert reference.truths.find((7, "as_given")) is None


def test_a_late_truth_uses_the_outputs_that_the_call_was_compared_with():
    reference = prepare("self.runs = getattr(self, 'runs', 0) + 1\nreturn x * self.weight")
    runs = reference.model.runs
    expected = reference.expect(reference.make_inputs(7), own_first=True)
    assert expected.known_truth is None
    assert expected.truth.kind == "float64"
    assert expected.truth.leaves[0].reference is expected.own.tensors[0]
    assert reference.model.runs == runs + 1  # in float64 a copy runs


def test_outputs_on_another_device_are_refused():
    with pytest.raises(ProblemError, match="forward returned a tensor on meta; return it on cpu"):
        prepare("return x, torch.ones(3, device='meta')")


def test_a_reference_that_keeps_its_state_changes_none():
    reference = prepare("return x * self.weight")
    assert (reference.changes_state, reference.changing) == (False, {})
    assert set(reference.state) == {"weight", "steps"}
    assert reference.is_small


def test_state_that_a_call_changes_is_found_and_put_back():
    reference = prepare("self.steps += 1\nreturn x * self.steps")
    assert reference.changes_state
    assert {name: int(tensor) for name, tensor in reference.changing.items()} == {"steps": 0}
    assert int(reference.state["steps"]) == 0


def test_each_timed_call_starts_from_a_distinct_valid_state():
    reference = prepare("self.steps += 1\nself.weight.add_(1.0)\nreturn x * self.weight")
    seeds = [seed for seed in range(80) if plan_state(reference, seed).origin == "later"][:40]
    states = [reference.make_timed_state(seed) for seed in seeds]
    grown = [(state["weight"] - reference.changing["weight"]).mean().item() for state in states]
    calls = [int(state["steps"]) for state in states]  # as a call leaves it: integers are not mixed
    between = [one for one, count in zip(grown, calls, strict=True) if abs(one - count) > 1e-4]
    assert 10 < len(between) == len(set(between)) < 30
    assert all(count - 1 < one < count + 1e-4 for one, count in zip(grown, calls, strict=True))
    assert {*calls} == {1, *(int(state["steps"]) + 1 for state in reference.later[:-1])}
    assert len({*calls}) > 2
    assert prepare("return x * self.weight").make_timed_state(1) is None


def test_some_timed_calls_begin_with_the_initial_state():
    """A program that is recorded may leave out what only the first call does."""
    reference = prepare("self.steps += 1\nself.weight.add_(1.0)\nreturn x * self.weight")
    initial = [seed for seed in range(300) if plan_state(reference, seed).origin == "initial"]
    assert 25 < len(initial) < 75
    for state in map(reference.make_timed_state, initial):
        assert all(torch.equal(state[name], one) for name, one in reference.changing.items())


LARGEST = "self.weight.copy_(x.abs().max())\nreturn x * self.weight"


def test_some_timed_calls_begin_with_what_unusual_inputs_leave():
    reference = replace(prepare(LARGEST), timed_steps=("varied", "scaled"))
    given = [seed for seed in range(400) if reference.choose_timed_step(seed) == "as_given"]
    unusual = [seed for seed in given if plan_state(reference, seed).step != "as_given"]
    assert len(given) / 10 < len(unusual) < len(given) / 3
    assert {reference.find_timed_kind(seed).name for seed in unusual} == {"varied", "scaled"}
    left = [float(reference.make_timed_state(seed)["weight"].max()) for seed in unusual]
    assert max(left) > 1.9  # of given inputs at most 0.5
    both = [seed for seed in range(400) if plan_state(reference, seed).step == reference.choose_timed_step(seed)]
    assert any(seed not in given for seed in both)


def test_a_state_that_unusual_inputs_spoil_is_not_begun_with():
    spoiled = LARGEST.replace("x.abs().max()", "torch.where(x.abs().max() > 0.6, torch.nan, x.abs().max())")
    reference = replace(prepare(spoiled), timed_steps=("varied", "scaled"))
    assert all(bool(reference.make_timed_state(seed)["weight"].isfinite().all()) for seed in range(200))


def test_a_floating_counter_is_whole_in_half_of_the_timed_calls():
    source = "self.weight.copy_(self.weight.new_full((5,), float(self.steps)))\nself.steps += 1\nreturn x * self.weight"
    reference = prepare(source)
    counts = [float(reference.make_timed_state(seed)["weight"][0]) for seed in range(60)]
    assert 15 < sum(count.is_integer() for count in counts) < 45
    assert len({count for count in counts if count.is_integer()}) > 2


def test_the_states_of_timed_calls_lie_on_no_line():
    reference = prepare("self.weight.mul_(0.5).add_(x[0])\nreturn x * self.weight")
    moved = [reference.make_timed_state(seed)["weight"] - reference.changing["weight"] for seed in range(2)]
    angle = torch.cosine_similarity(*(each.flatten() for each in moved), dim=0)
    assert abs(float(angle)) < 0.99
    again = reference.make_timed_state(1)["weight"] - reference.changing["weight"]
    assert torch.equal(again, moved[1])  # to compare the call later


def test_a_part_of_a_large_state_differs_in_half_of_timed_calls():
    source = SOURCE.replace(
        "self.weight = nn.Parameter(torch.randn(5))", "self.weight = nn.Parameter(torch.randn(2000))"
    )
    source = source.replace("FORWARD", "self.weight[:5] += x[0]\n        return x * self.weight[:5]")
    problem = Problem(name="toy", suite="mine", source=source)
    reference = prepare_reference(load_problem(problem, "full"), CpuDevice(), 1, 2)
    kept = reference.changing["weight"][5:]
    ratios = [reference.make_timed_state(seed)["weight"][5:] / kept for seed in range(100)]
    changed = [int((one != 1).sum()) for one in ratios]
    assert 30 < sum(map(bool, changed)) < 70 and max(changed) <= 2000 // 16
    assert all(float(one.min()) >= 0.75 and float(one.max()) <= 1.25 for one in ratios)


def test_dynamic_weights_change_in_each_timed_call():
    tied = SOURCE.replace("self.register", "self.tied = self.weight\n        self.register", 1)
    source = tied.replace("FORWARD", "return x * self.weight * self.tied")
    problem = Problem(name="toy", suite="mine", source=source, dynamic_weights=True)
    reference = prepare_reference(load_problem(problem, "full"), CpuDevice(), 1, 2)
    states = [reference.make_timed_state(seed) for seed in range(20)]
    assert all(torch.equal(state["weight"], state["tied"]) and len(state) == 2 for state in states)
    assert all((state["weight"] != reference.state["weight"]).all() for state in states)
    outputs = reference.outputs_of(reference.make_inputs(1), states[0]).tensors
    assert torch.equal(outputs[1], states[0]["weight"])


@pytest.mark.parametrize(("made", "signs"), [("torch.randn(5, 20000)", {-1.0, 1.0}), ("torch.rand(5, 20000)", {1.0})])
def test_dynamic_weights_have_other_sizes_and_signs_in_some_timed_calls(made, signs):
    source = SOURCE.replace("torch.randn(5)", made).replace("FORWARD", "return x @ self.weight")
    problem = Problem(name="toy", suite="mine", source=source, dynamic_weights=True)
    reference = prepare_reference(load_problem(problem, "full"), CpuDevice(), 1, 2)
    largest = float(reference.state["weight"].abs().max())
    seeds = range(80)
    varied = [seed for seed in seeds if plan_state(reference, seed).varies_weights]
    assert 10 < len(varied) < 30
    assert {reference.find_timed_kind(seed).name for seed in varied} <= {"varied", "as_given"}
    weights = {seed: reference.make_timed_state(seed)["weight"] for seed in seeds}
    assert all((float(one.abs().max()) > 2 * largest) == (seed in varied) for seed, one in weights.items())
    assert {float(one) for one in weights[varied[0]].sign().unique()} - {0.0} == signs
    given = [seed for seed in seeds if reference.choose_timed_step(seed) == "as_given"]
    assert {seed for seed in given if reference.find_timed_kind(seed).name == "varied"} == {*varied} & {*given}


def test_dynamic_weights_with_which_the_reference_fails_do_not_occur():
    forward = "return x * torch.where(self.weight.abs().max() > 30.0, torch.nan, self.weight[:5])"
    source = SOURCE.replace("torch.randn(5)", "torch.randn(4096) + 9").replace("FORWARD", forward)
    problem = Problem(name="toy", suite="mine", source=source, dynamic_weights=True)
    reference = prepare_reference(load_problem(problem, "full"), CpuDevice(), 1, 2)
    assert all(float(reference.make_timed_state(seed)["weight"].abs().max()) < 30 for seed in range(40))


def test_dynamic_weights_have_other_zeros_and_whole_numbers_in_timed_calls():
    made = """self.weight = nn.Parameter(torch.randn(5, 5) * (torch.rand(5, 5) < 0.5))
        self.register_buffer("codes", torch.randint(-127, 128, (5,), dtype=torch.int8))
        self.register_buffer("offset", torch.full((5,), 8))"""
    source = SOURCE.replace("self.weight = nn.Parameter(torch.randn(5))", made)
    source = source.replace("FORWARD", "return x @ self.weight * self.codes + self.offset")
    problem = Problem(name="toy", suite="mine", source=source, dynamic_weights=True)
    reference = prepare_reference(load_problem(problem, "full"), CpuDevice(), 1, 2)
    states = [reference.make_timed_state(seed) for seed in range(20)]
    assert all(state.keys() == {"weight", "codes"} for state in states)
    for initial, kinds in (
        ((reference.state["weight"] == 0).tolist(), [(state["weight"] == 0).tolist() for state in states]),
        (reference.state["codes"].tolist(), [state["codes"].tolist() for state in states]),
    ):
        usual = kinds.count(initial)  # so few that the median is of weights that a program has never seen
        assert 0 < usual < 9 and len({str(one) for one in kinds}) == 21 - usual


def test_quarter_of_timed_calls_has_inputs_of_all_fit_kinds():
    reference = replace(prepare("return x * self.weight"), timed_steps=("biased", "varied"))
    source = random.Random(1)
    steps = Counter(reference.choose_timed_step(source.getrandbits(62)) for _ in range(2000))
    assert set(steps) == {"as_given", "biased", "varied"}
    assert 0.7 < steps["as_given"] / 2000 < 0.8
    assert min(steps.values()) > 200


def test_the_truth_of_a_call_begins_with_the_same_state_each_time():
    reference = prepare("self.steps += 1\nreturn x * self.steps")
    inputs = reference.make_inputs(3)
    for _ in range(2):
        truth = reference.truth_of(inputs)
        assert torch.equal(truth.leaves[0].exact, inputs[0].double())
        (*_, state) = truth.leaves
        assert (truth.kind, state.name, int(state.reference), int(state.exact)) == ("float64", "state steps", 1, 1)
    later = reference.truth_of(inputs, truth.state_after)
    assert torch.equal(later.leaves[0].reference, inputs[0] * 2)
    assert int(later.state_after["steps"]) == 2


def test_output_aliasing_the_state_has_its_value_after_the_call():
    reference = prepare("self.steps += 1\nreturn x, self.steps")
    truth = reference.truth_of(reference.make_inputs(3))
    assert [int(truth.leaves[1].reference), int(truth.leaves[1].exact)] == [1, 1]


def test_models_are_in_training_mode_where_the_problem_is_a_training_one():
    assert torch.equal(*outputs_and_inputs("return x * (2.0 if self.training else 1.0)", factor=2, training=True))
    assert torch.equal(*outputs_and_inputs("return x * (2.0 if self.training else 1.0)", factor=1))


def outputs_and_inputs(forward, factor, **settings):
    reference = prepare(forward, **settings)
    inputs = reference.make_inputs(3)
    return reference.truth_of(inputs).leaves[0].reference, inputs[0] * factor


RANDOM = "return x + 1e-6 * torch.rand(5)"


@pytest.mark.parametrize("deterministic", [False, True])
def test_difference_between_runs_within_the_tolerance_is_only_noted(deterministic):
    reference = prepare(RANDOM, deterministic=deterministic)
    assert reference.variation.elements == 1500
    assert 0 < reference.variation.largest < 2e-6
    assert not reference.requires_same_bits


def test_the_same_bits_are_required_only_where_that_is_declared():
    assert prepare("return x * 2", deterministic=True).requires_same_bits
    assert not prepare("return x * 2").requires_same_bits


def test_runs_whose_shapes_differ_are_an_error():
    forward = "self.steps += 1\nreturn x[: torch.randint(1, 299, ()).item()]"
    with pytest.raises(ProblemError, match="expected shape"):
        prepare(forward)


def test_runs_must_agree_within_the_tolerance():
    with pytest.raises(ProblemError, match=r"differ by more than its own tolerance: output: .* elements wrong"):
        prepare("return x + torch.rand(5)")


def test_runs_of_sums_that_nearly_cancel_may_differ_slightly():
    forward = "self.steps += 1\nreturn torch.where(x == x.max(), x, 1e-6 * x + 1e-7 * torch.rand(5))"
    assert prepare(forward).variation.largest < 2e-7
    with pytest.raises(ProblemError, match="differ by more than its own tolerance"):
        prepare(forward.replace("x == x.max()", "x > 99"))


def test_runs_that_differ_beside_an_infinity_are_an_error():
    with pytest.raises(ProblemError, match="differ by more than its own tolerance"):
        prepare("return torch.where(x == x.max(), float('inf'), torch.rand(300, 5))")


@pytest.mark.parametrize(
    ("forward", "inputs"),
    [
        ("return x.mul_(2)", "[torch.rand(1, 5).expand(300, 5).contiguous()]"),
        ("return x.mul_(2) + y, y", "(lambda x: [x, x])(torch.rand(300, 5))"),
        ("return x.mul_(2)", "[torch.rand(1, 5).expand(300, 5)]"),
        ("return x[:, 0] * 2", "[torch.rand(300, 5)]"),
        ("return (x * 2)[:, 0]", "[torch.rand(300, 5)[:, 0:2]]"),
        ("return x * 2", "[torch.rand(300, 5)[:, 0]]"),
    ],
)
def test_references_may_work_in_place_and_on_views(forward, inputs):
    source = load(forward, inputs=inputs).problem.source
    arguments = "self, x, y" if "x, x" in inputs else "self, x"
    problem = Problem(
        name="toy", suite="mine", source=source.replace("def forward(self, x)", f"def forward({arguments})")
    )
    reference = prepare_reference(load_problem(problem, "full"), CpuDevice(), 1, 2)
    assert reference.variation is None
    assert reference.truth_of(reference.make_inputs(3)).kind == "float64"


def test_inputs_must_be_the_same_under_the_same_seed():
    with pytest.raises(ProblemError, match="returns other values when it is seeded and called again"):
        prepare("return x", inputs="[torch.tensor([__import__('time').time_ns()])]")


def test_a_reference_that_asserts_its_dtype_is_its_own_truth():
    reference = prepare("assert x.dtype == torch.float32\nreturn x * 2")
    assert reference.truth_of(reference.make_inputs(3)).kind == "reference"


def test_infinity_and_nan_are_right_where_float64_gives_them_too():
    assert prepare("return x.log(), x / 0").footprint is not None


def test_a_reference_that_is_nan_throughout_is_an_error():
    with pytest.raises(ProblemError, match=r"mine/toy\.py: output of the reference is all NaN"):
        prepare("return x * float('nan')")


def test_a_reference_that_overflows_where_float64_does_not_is_an_error():
    with pytest.raises(ProblemError, match="elements of output of the reference are infinite or NaN where float64"):
        prepare("return (x * 400).exp().log()")


@pytest.mark.parametrize(
    "forward", ["return torch.zeros(1 << 45) + x", "return x + [torch.empty(1 << 28) for _ in range(9999)][0][0]"]
)
def test_a_reference_that_needs_more_memory_than_there_is_is_an_error(forward):
    # The second fails by the limit alone: its tensors are never written to, and the machine would let it go on.
    with pytest.raises(ProblemTooLarge, match=r"mine/toy\.py: the reference needs more memory than there is on cpu"):
        prepare(forward)


def test_more_memory_than_is_free_is_refused_before_it_is_used():
    with pytest.raises(ProblemTooLarge, match=r"takes at least 1073741824 MiB of cuda:0, 1024 MiB are free"):
        require_memory(load("return x"), 1 << 50, 1 << 30, "cuda:0")
    require_memory(load("return x"), 1 << 20, 1 << 30, "cuda:0")


def test_the_limit_on_memory_is_lifted_again_also_with_several_threads():
    before = resource.getrlimit(resource.RLIMIT_AS)

    def limit(_):
        with contain_memory(load("return x"), CPU):
            return resource.getrlimit(resource.RLIMIT_AS)[0]

    with ThreadPoolExecutor(4) as pool:
        inside = list(pool.map(limit, range(20)))
    assert all(value != before[0] for value in inside)
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_other_errors_than_a_lack_of_memory_pass_unchanged():
    with pytest.raises(ProblemError, match="forward raised ValueError: too wide"):
        prepare("raise ValueError('too wide')")


def test_memory_is_kept_for_padded_inputs_of_a_small_problem():
    padded = prepare("return x * 1").footprint
    declared_only = prepare("return x * torch.ones(5)", distributions=("as_given", "padded")).footprint
    assert padded.output.offset == declared_only.output.offset
    assert padded.output.offset > 300 * 5 * 4 + 300 * 8 * 4 - 256


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_outputs_beyond_float16_are_not_compared_for_16_bit_inputs(dtype):
    """A program may compute in float16 inside, whose range is far smaller than that of bfloat16."""
    reference = prepare("return torch.exp(8 * x)", inputs=f"[torch.rand(300, 5).to(torch.{dtype}) - 0.5]")
    for factor, grows in ((1.0, False), (3.0, dtype == "bfloat16")):
        inputs = (reference.make_inputs(7)[0] * factor,)
        expected = Expected(partial(reference.truth_of, inputs))
        calm = keep_calm(reference, expected, None, find_kind("scaled"), int(factor))
        assert (calm is None) == grows


def test_timed_inputs_of_kinds_that_fail_at_times_succeed():
    forward = "if not mask.any(dim=1).all(): raise ValueError('an empty row')\n        return (x * mask) @ self.weight"
    source = SOURCE.replace("(self, x)", "(self, x, mask)").replace("FORWARD", forward)
    mask = "(torch.rand(300, 5) < 0.4).index_fill_(1, torch.tensor([2]), True)"
    source = source.replace("- 0.5]", f"- 0.5, {mask}]")
    loaded = load_problem(Problem(name="toy", suite="mine", source=source), "full")
    exercises = Exercises(prepare_reference(loaded, CpuDevice(), 1, 2), count())
    for index in range(len(exercises.steps)):
        assert list(exercises.take(index)) is not None
    reference = exercises.add_timed_steps()
    assert reference.failing_steps == {*reference.timed_steps, *reference.untimed_steps} > {"varied", "scaled"}
    seeds = count()
    for step in reference.timed_steps:
        inputs = reference.make_timed_inputs(draw_seed(reference, seeds, step))
        assert reference.outputs_of(inputs).tensors[0].isfinite().all()
    usual = replace(reference, failing_steps=frozenset())
    fails = [seed for seed in range(0, 400, 4) if usual.choose_timed_step(seed) != reference.choose_timed_step(seed)]
    assert fails
    for seed in fails:
        assert reference.choose_timed_step(seed) == "as_given"
        with pytest.raises(ProblemError, match="an empty row"):
            reference.outputs_of(usual.make_timed_inputs(seed))
