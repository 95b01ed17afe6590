"""Evaluations on a device with little memory: the checks that are left still catch what is wrong, the record says what
was reduced, and nothing stays on the device afterwards."""

import gc

import pytest
import torch

from harness.domain import Problem
from harness.evaluation.settings import TimingPlan
from harness.sandbox.devices import CpuDevice

MIB = 1 << 20
PROBLEM = """
import torch
from torch import nn

rows, columns = {rows}, 1024


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns))

    def forward(self, x):
        return x * self.weight


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
"""
LARGE = PROBLEM.format(rows=2048)  # 8 MiB in, 8 MiB out
COUNTED = PROBLEM.format(rows=64)  # its tensors are large enough for `count_large_tensors`
HONEST = "return x * self.weight"
BUDGETS = {"two outputs": 29 * MIB, "earlier outputs": 98 * MIB, "float64": 150 * MIB}


def candidate(forward, init="pass"):
    body = "\n".join(f"        {line}" for line in forward.splitlines())
    return f"""
import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1024))
        {init}

    def forward(self, x):
{body}
"""


@pytest.fixture(scope="module")
def bench_with(open_bench):
    """A bench whose device has so many free bytes, or all (None)."""
    opened = {}

    def choose(memory_bytes=None, device=None):
        device = device or CpuDevice(memory_bytes=memory_bytes)
        if "bench" not in opened:
            opened["bench"] = open_bench(isolation="auto", device=device, call_s=20.0)
        opened["bench"].use(device)
        return opened["bench"]

    return choose


@pytest.fixture
def least_bench(bench_with):
    return bench_with(BUDGETS["two outputs"])


def reductions(evaluation):
    return " ".join(one.message for one in evaluation.findings if one.check == "memory_plan")


@pytest.fixture(scope="module")
def honest(bench_with):
    """What an honest candidate gets with each budget."""
    return {
        name: bench_with(size).evaluate(candidate(HONEST), LARGE, attribute_work=False)
        for name, size in BUDGETS.items()
    }


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.slow
def test_an_honest_candidate_is_right_and_the_record_says_what_was_reduced(honest, budget):
    evaluation = honest[budget]
    assert evaluation.outcome == "correct", evaluation.message
    assert reductions(evaluation)
    assert ("own dtype" in reductions(evaluation)) == (evaluation.correctness.truth == "reference")


@pytest.mark.slow
def test_budgets_differ_in_what_they_leave_room_for(honest):
    told = {name: reductions(evaluation) for name, evaluation in honest.items()}
    assert "compared again for 0 of" in told["two outputs"]
    assert "compared again for 0 of" not in told["earlier outputs"]
    assert "own dtype" in told["earlier outputs"]
    assert "own dtype" not in told["float64"]
    assert [name for name in BUDGETS if "kept in host memory" in told[name]] == ["two outputs"]


WRONG = {
    "late": ("self.calls += 1\nreturn x * self.weight + (self.calls > 2)", "self.calls = 0"),
    "inputs as outputs": ("return x.mul_(self.weight)", "pass"),
    "a row too few": ("y = x * self.weight\ny[-1] = 0\nreturn y", "pass"),
    "changed inputs": ("y = x * self.weight\nx[7, 7] = 3.0\nreturn y", "pass"),
    "stale": ("if self.y is None: self.y = x * self.weight\nreturn self.y", "self.y = None"),
    "bfloat16": ("return (x.bfloat16() * self.weight.bfloat16()).float()", "pass"),
    "changed weights": ("y = x * self.weight\nself.weight.add_(1e-3)\nreturn y", "pass"),
}


def list_wrong():
    """Quick: each with one budget, another one for the next."""
    for number, name in enumerate(WRONG):
        for turn, budget in enumerate(BUDGETS):
            marks = () if number % len(BUDGETS) == turn else pytest.mark.slow
            yield pytest.param(name, budget, marks=marks)


@pytest.mark.parametrize(("name", "budget"), [*list_wrong()])
@pytest.mark.quick(3)
def test_wrong_candidates_are_caught_with_little_memory(bench_with, name, budget):
    evaluation = bench_with(BUDGETS[budget]).evaluate(candidate(*WRONG[name]), LARGE, attribute_work=False)
    assert evaluation.outcome == "wrong_value", evaluation.message


def test_output_overwritten_later_is_caught_if_earlier_ones_are_kept(bench_with):
    bench = bench_with(BUDGETS["earlier outputs"])
    last = "last, self.y = self.y, x * self.weight\nif last is not None: last.zero_()\nreturn self.y"
    evaluation = bench.evaluate(candidate(last, "self.y = None"), LARGE, attribute_work=False)
    assert (evaluation.outcome, "earlier call changed" in evaluation.message) == ("wrong_value", True)


@pytest.mark.slow
def test_an_output_buffer_is_noted_where_only_digests_of_outputs_are_kept(bench_with):
    bench = bench_with(BUDGETS["earlier outputs"])
    reused = candidate("return torch.mul(x, self.weight, out=self.y)", "self.y = torch.empty(2048, 1024)")
    evaluation = bench.evaluate(reused, LARGE, attribute_work=False)
    assert evaluation.outcome == "correct", evaluation.message
    assert any(finding.check == "reuses_output" for finding in evaluation.findings)


@pytest.mark.slow
def test_a_baseline_that_does_not_fit_beside_the_candidate_is_timed_apart(least_bench):
    slower = candidate("for _ in range(6): y = x * self.weight\nreturn y")
    plan = TimingPlan(budget_s=1.0, allow_load=True)
    evaluation = least_bench.evaluate(slower, LARGE, time=True, plan=plan)
    assert evaluation.outcome == "correct", evaluation.message
    assert "baseline timed separately" in reductions(evaluation)
    assert evaluation.timing.speedup < 1


@pytest.mark.slow
def test_wrong_timed_call_is_found_in_output_samples(least_bench):
    lazy = candidate("self.calls += 1\nreturn x * self.weight if self.calls < 18 else x * 1.0", "self.calls = 0")
    evaluation = least_bench.evaluate(lazy, LARGE, time=True, plan=TimingPlan(budget_s=2.0, allow_load=True))
    assert (evaluation.outcome, "timed call" in evaluation.message) == ("suspect", True), evaluation.message


@pytest.mark.slow
def test_declared_inputs_in_a_row_are_tried_where_there_is_room(bench_with):
    declared = Problem(name="add", suite="tiny", source=LARGE, distributions=("as_given", "large"))
    told = bench_with(150 * MIB).evaluate(candidate(HONEST), declared)
    assert told.outcome == "correct", told.message
    assert {trial.distribution for trial in told.correctness.trials} >= {"as_given", "large", "mixed"}


@pytest.mark.slow
def test_running_statistics_are_evaluated_with_little_memory(bench_with):
    source = PROBLEM.format(rows=2048).replace(
        "self.weight = nn.Parameter(torch.randn(columns))", "self.n = nn.BatchNorm1d(columns)"
    )
    problem = Problem(name="norm", suite="tiny", source=source.replace("x * self.weight", "self.n(x)"), training=True)
    bench = bench_with(40 * MIB)
    mine = problem.source.replace("class Model(", "class ModelNew(")
    assert bench.evaluate(mine, problem).outcome == "correct"
    forgets = mine.replace("return self.n(x)", "self.n.track_running_stats = False\n        return self.n(x)")
    evaluation = bench.evaluate(forgets, problem)
    assert evaluation.outcome == "wrong_value", evaluation.message
    assert "state" in evaluation.message


def test_too_large_problem_is_not_run_and_names_the_memory_needed(bench_with):
    evaluation = bench_with(10 * MIB).evaluate(candidate(HONEST), LARGE)
    assert evaluation.outcome == "not_run", evaluation.message
    assert "takes at least" in evaluation.message
    assert "10 MiB are free" in evaluation.message


def test_memory_excess_of_a_worker_counts_only_after_a_retry(bench_with):
    hungry = candidate("kept = torch.ones(1 << 45)\nreturn x * self.weight")
    evaluation = bench_with().evaluate(hungry, LARGE)
    assert evaluation.outcome == "out_of_memory", evaluation.message
    assert any(one.check == "memory" and "less memory" in one.message for one in evaluation.findings)


class LeakyDevice(CpuDevice):
    """Allocations of the evaluator fail on it; `held_bytes` are another process's."""

    held_bytes = 0
    failures = 0

    def allocate(self, size_bytes):
        self.failures -= 1
        if self.failures >= 0:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return super().allocate(size_bytes)


class FullDevice(CpuDevice):
    """Once a worker is there, it holds nearly all of the device, and no allocation succeeds any more."""

    held_bytes = 0

    def count_used_bytes(self):
        return self.held_bytes

    def synchronize(self):
        if self.held_bytes:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 16.00 MiB")


def test_an_allocation_that_fails_once_costs_a_repetition_and_no_verdict(bench_with):
    device = LeakyDevice()
    device.failures = 1
    evaluation = bench_with(device=device).evaluate(candidate(HONEST), LARGE)
    assert evaluation.outcome == "correct", evaluation.message
    assert "baseline timed separately" in reductions(evaluation)


def test_repeated_allocation_failure_of_the_evaluator_is_not_charged_to_the_candidate(bench_with):
    device = LeakyDevice()
    device.failures = 2
    evaluation = bench_with(device=device).evaluate(candidate(HONEST), LARGE)
    assert evaluation.outcome == "not_run", evaluation.message
    assert "the evaluator ran out of device memory" in evaluation.message


@pytest.mark.parametrize(("held_gib", "outcome"), [(60, "out_of_memory"), (1, "not_run")])
def test_who_holds_the_memory_is_charged_with_a_failed_allocation(held_gib, outcome):
    from harness.domain import CandidateFailure
    from harness.evaluation.model_workers import MemoryCharge

    device = FullDevice()
    charge = MemoryCharge(device, planned_bytes=4 << 30, shared_bytes=1 << 30)
    device.held_bytes = (held_gib + 1) << 30
    expected = CandidateFailure if outcome == "out_of_memory" else torch.OutOfMemoryError
    with pytest.raises(expected) as caught, charge.attributing_failures():
        device.synchronize()
    if outcome == "out_of_memory":
        assert f"holds {held_gib << 10} MiB of the device; 4096 were planned" in str(caught.value)


def count_large_tensors():
    """Tensors of 4096 elements or more that live, in whatever cycle."""
    tensors = [one for one in gc.get_objects() if issubclass(type(one), torch.Tensor)]
    return sum(one.layout is torch.strided and one.numel() >= 4096 for one in tensors)


ENDS = {
    "correct": candidate(HONEST),
    "wrong_value": candidate("return x * 2"),
    "wrong_shape": candidate("return x[:5]"),
    "out_of_memory": candidate("return torch.ones(1 << 45)"),
    "runtime_error": candidate("import os\nos._exit(3)"),
    "timeout": candidate("while True: pass"),
    "load_error": "raise ValueError",
}


@pytest.fixture(scope="module")
def warm_bench(bench_with):
    """It has evaluated a candidate, so that what is kept for good is there."""
    bench = bench_with()
    bench.evaluate(candidate(HONEST), COUNTED)
    return bench


FEW_PAIRS = TimingPlan(budget_s=0.2, min_blocks=4, min_blocks_when_slow=2, warmup_calls=1, allow_load=True)
QUICK_ENDS = ("correct", "wrong_value", "runtime_error", "load_error")


@pytest.mark.parametrize(
    "outcome", [name if name in QUICK_ENDS else pytest.param(name, marks=pytest.mark.slow) for name in ENDS]
)
def test_nothing_of_an_evaluation_is_kept_whatever_its_end(warm_bench, bench_with, outcome):
    bench = bench_with()
    gc.collect()
    gc.disable()
    try:
        before = count_large_tensors()
        evaluation = bench.evaluate(ENDS[outcome], COUNTED, time=outcome == "correct", plan=FEW_PAIRS, call_s=4.0)
        assert evaluation.outcome == outcome, evaluation.message
        assert count_large_tensors() == before
    finally:
        gc.enable()


def test_nothing_is_kept_of_a_problem_whose_reference_fails(bench_with):
    bench = bench_with()
    failing = COUNTED.replace("return x * self.weight", "return (x * self.weight).reshape(7, 7)")
    gc.collect()
    gc.disable()
    try:
        before = count_large_tensors()
        assert bench.evaluate(candidate(HONEST), failing).outcome == "problem_error"
        assert count_large_tensors() == before
    finally:
        gc.enable()
