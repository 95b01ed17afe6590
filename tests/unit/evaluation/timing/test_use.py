"""Memory and energy of calls."""

from types import SimpleNamespace

import pytest

from harness.domain import Timing
from harness.evaluation.results import TimingResult
from harness.evaluation.timing.replay_statistics import add_use
from harness.evaluation.timing.system_conditions import measure_energy_mj

MIB = 1 << 20
TIMED = TimingResult(
    timing=Timing(
        baseline="eager", baseline_us=2.0, candidate_us=1.0, speedup=2.0, speedup_low=1.9, speedup_high=2.1,
        verdict="faster", blocks=(), overhead_us=0.0, clock="device",
    )
)  # fmt: skip


class Counter:
    """NVML with a counter that changes at every second reading, by 70 mJ, and at first by far more."""

    class NVMLError(Exception):
        pass

    def __init__(self, *, changes=True, fails=False):
        self.readings, self.changes, self.fails = 0, changes, fails

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):  # noqa: N802
        if self.fails:
            raise self.NVMLError
        self.readings += 1
        return 5000 * min(self.readings // 2, 1) + 70 * (self.readings // 2) if self.changes else 0


def measure(counter):
    device = SimpleNamespace(open_nvml=lambda: None if counter is None else (counter, "handle"))
    return measure_energy_mj(device, lambda: 5, longest_s=0.01)


def test_energy_is_that_between_changes_of_the_counter():
    assert measure(Counter()) == pytest.approx(70 / 10)


@pytest.mark.parametrize("counter", [None, Counter(fails=True), Counter(changes=False)])
def test_without_a_counter_that_changes_the_energy_is_unknown(counter):
    assert measure(counter) is None


@pytest.mark.parametrize(
    ("baseline_bytes", "candidate_bytes", "warns"),
    [
        (100 * MIB, 200 * MIB, True),
        (100 * MIB, 199 * MIB, False),
        (2 * MIB, 21 * MIB, False),  # a segment of torch's allocator
        (0, 20 * MIB, True),
        (100 * MIB, 10 * MIB, False),
    ],
)
def test_twice_the_memory_of_the_baseline_is_a_warning(baseline_bytes, candidate_bytes, warns):
    result = add_use(TIMED, (baseline_bytes, candidate_bytes), (None, 2.5))
    assert [(one.check, one.severity) for one in result.findings] == [("memory_use", "warning")] * warns
    assert (result.timing.baseline_bytes, result.timing.candidate_bytes) == (baseline_bytes, candidate_bytes)
    assert (result.timing.baseline_mj, result.timing.candidate_mj) == (None, 2.5)
