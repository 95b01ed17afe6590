"""What a time means beside the limits of the device; and nobody is accused for what honest work can skip."""

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.domain import Problem, Timing
from harness.evaluation.correctness.reference import prepare_reference
from harness.evaluation.timing.roofline import (
    DevicePeaks,
    Roofline,
    Traffic,
    assess,
    conclude,
    count_distinct_bytes,
    count_traffic,
    refine_traffic,
)
from harness.problems.loading import load_problem
from harness.sandbox.devices import CpuDevice

PEAKS = DevicePeaks(hardware="a chip", bandwidth_gb_s=10.0, tflops_by_dtype={"float32": 1.0})
SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {names}):
        {body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
X = "torch.randn(64, 512)"
X_BYTES = 64 * 512 * 4


class OnePeakStore:
    """A store of peaks that counts how often it is asked to measure."""

    def __init__(self, peaks=PEAKS, measured=PEAKS):
        self.peaks, self._measured = peaks, measured
        self.measurements = 0

    def find(self, _):
        return self.peaks

    def measure(self, _):
        self.measurements += 1
        self.peaks = self.peaks.raised_by(self._measured)
        return self.peaks


def make_reference(body, names="x", inputs=X, init="pass"):
    source = SOURCE.format(body=body, names=names, inputs=inputs, init=init)
    return prepare_reference(load_problem(Problem(name="p", suite="s", source=source), "full"), CpuDevice(), 1, 2)


def make_timing(candidate_us, baseline_us=1000.0):
    speedup = baseline_us / candidate_us
    return Timing(
        baseline="eager", baseline_us=baseline_us, candidate_us=candidate_us, speedup=speedup, speedup_low=speedup,
        speedup_high=speedup, verdict="faster", blocks=(), overhead_us=1.0,
    )  # fmt: skip


def make_traffic(bound_bytes=1_000_000, flops=None, **fields):
    return Traffic(moved_bytes=2_000_000, flops=flops, bound_bytes=bound_bytes, **fields)


def examine(candidate_us, traffic, baseline_us=1000.0):
    timing = make_timing(candidate_us, baseline_us)
    return conclude(timing, assess(timing, traffic, PEAKS))


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_distinct_bytes_never_exceed_what_was_allocated(shape, source: random.Random):
    whole = torch.zeros(shape)
    views = [whole, whole.t() if whole.dim() == 2 else whole, whole.unsqueeze(0).expand(3, *shape), whole[:1]]
    assert count_distinct_bytes(source.choices(views, k=3)) <= whole.numel() * 4


def test_expanded_tensor_counts_once_and_a_view_its_elements():
    row = torch.zeros(1, 100)
    assert count_distinct_bytes([row.expand(50, 100)]) == 400
    assert count_distinct_bytes([torch.zeros(10, 100)[:, :7]]) == 280
    assert count_distinct_bytes([row, row]) == 400
    assert count_distinct_bytes([torch.zeros(0)]) == 0


def test_a_product_is_counted_with_its_inputs_outputs_and_operations():
    reference = make_reference("return a @ b", "a, b", "torch.randn(30, 40), torch.randn(40, 50)")
    traffic = count_traffic(reference, 3)
    assert traffic.flops == 2 * 30 * 40 * 50
    assert traffic.moved_bytes == 4 * (30 * 40 + 40 * 50 + 30 * 50)
    assert traffic.bound_bytes == 4 * (30 * 40 + 40 * 50)  # the output may stay in the cache


def test_weights_are_counted_and_unknown_operations_give_none():
    reference = make_reference("return self.norm(x)", init="self.norm = nn.LayerNorm(512)")
    traffic = count_traffic(reference, 3)
    assert traffic.moved_bytes == 2 * X_BYTES + 2 * 512 * 4
    assert traffic.flops is None


NEEDED = {
    "sum": "return x + 1",
    "maximum": "return nn.functional.max_pool2d(x[None], 2)",
    "order": "return x.sort(dim=-1).values",
    "threshold": "return torch.relu(x)",
    "distant": "return x.cumsum(0)",
    "largest": "return x.argmax(dim=0)",
}
NOT_NEEDED = {
    "cropped": ("return x[:, :16] + 1", "x", X),
    "difference_with_itself": ("return x - x", "x", X),
    "times_zero": ("return x * 0.0", "x", X),
    "one_value": ("return x[0, 0] + torch.zeros(64, 512)", "x", X),
    "few_rows_of_a_table": ("return x[i]", "x, i", f"{X}, torch.randint(0, 64, (4,))"),
    "masked": ("return torch.where(keep, x, 0.0)", "x, keep", f"{X}, torch.arange(512) < 8"),
    "a_view": ("return x.t()", "x", X),
    "integers": ("return i + 1", "i", "torch.randint(0, 9, (64, 512))"),
    "expanded": ("return x + 1", "x", "torch.randn(1, 512).expand(64, 512)"),
}


@pytest.mark.parametrize("name", NEEDED)
def test_data_that_outputs_depend_on_is_counted(name):
    reference = make_reference(NEEDED[name])
    refined = refine_traffic(count_traffic(reference, 3), reference, 4)
    assert 0.8 * X_BYTES < refined.bound_bytes <= X_BYTES


@pytest.mark.parametrize("name", NOT_NEEDED)
@pytest.mark.quick(4)
def test_data_that_outputs_do_not_depend_on_is_excluded(name):
    body, names, inputs = NOT_NEEDED[name]
    reference = make_reference(body, names, inputs)
    refined = refine_traffic(count_traffic(reference, 3), reference, 4)
    assert refined.bound_bytes < 0.25 * X_BYTES


def test_weights_may_be_folded_away():
    reference = make_reference("return self.linear(x)", init="self.linear = nn.Linear(512, 900)")
    traffic = count_traffic(reference, 3)
    assert traffic.bound_bytes > 900 * 512 * 4
    assert refine_traffic(traffic, reference, 4).bound_bytes <= X_BYTES


def test_refining_leaves_the_reference_as_it_was():
    reference = make_reference("return self.norm(x)", init="self.norm = nn.LayerNorm(512)")
    before = {name: tensor.clone() for name, tensor in reference.model.state_dict().items()}
    refine_traffic(count_traffic(reference, 3), reference, 4)
    assert all(torch.equal(tensor, before[name]) for name, tensor in reference.model.state_dict().items())


def test_faster_than_memory_is_suspect_and_says_by_how_much():
    examined = examine(50.0, make_traffic(bound_bytes=1_000_000))  # which takes 100 us
    assert examined.outcome == "suspect"
    assert "50 us a call is impossible" in examined.message
    assert "takes 100 us at the 10 GB/s" in examined.message
    (finding,) = examined.findings
    assert (finding.check, finding.severity) == ("roofline", "fatal")


def test_a_little_faster_than_measured_memory_is_possible():
    assert examine(71.0, make_traffic(bound_bytes=1_000_000)).outcome is None


def test_fewer_operations_than_the_reference_are_a_warning_only():
    examined = examine(200.0, make_traffic(flops=10**9))  # which take 1000 us
    assert examined.outcome is None
    (finding,) = examined.findings
    assert (finding.check, finding.severity) == ("operations", "warning")


def test_rates_of_the_baseline_raise_the_peaks():
    assert examine(60.0, make_traffic(1000, flops=10**9), baseline_us=50.0).findings == ()
    assert (
        examine(40.0, make_traffic(1000, flops=10**9), baseline_us=50.0).findings == ()
    )  # nor is it the device's peak
    assert examine(60.0, make_traffic(refined=True), baseline_us=50.0).outcome is None


def test_the_peak_fraction_is_that_of_the_nearer_limit():
    assert examine(400.0, make_traffic()).roofline.peak_fraction == pytest.approx(0.25)
    assert examine(2000.0, make_traffic(flops=10**9)).roofline.peak_fraction == pytest.approx(0.5)


def test_suspect_requires_a_refined_count_and_remeasured_peaks():
    reference = make_reference("return x + 1")
    faster = DevicePeaks(hardware="a chip", bandwidth_gb_s=1000.0, tflops_by_dtype={"float32": 1.0})
    store = OnePeakStore(measured=faster)
    examined = Roofline(store).examine(make_timing(2.0), reference, 3)  # 13 us at the remembered peak
    assert examined.outcome is None
    assert store.measurements == 1


def test_an_impossible_time_stays_impossible():
    reference = make_reference("return x + 1")
    store = OnePeakStore()
    roofline = Roofline(store)
    assert [roofline.examine(make_timing(2.0), reference, 3).outcome for _ in range(2)] == ["suspect", "suspect"]
    assert store.measurements == 1


def test_a_gain_by_skipping_what_cancels_is_accepted():
    reference = make_reference("return x - x")
    assert Roofline(OnePeakStore()).examine(make_timing(0.5), reference, 3).outcome is None
