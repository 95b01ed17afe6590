"""Evidence recorded with the verdict: times against a baseline, conditions, roofline position, time attribution."""

from dataclasses import dataclass
from typing import Literal

# ncu's name, and for people a label, its unit and the factor to it from ncu's base unit.
NCU_METRICS: tuple[tuple[str, str, str, float], ...] = (
    ("gpu__time_duration.sum", "time", "us", 1e-3),
    ("launch__registers_per_thread", "registers per thread", "", 1),
    ("launch__shared_mem_per_block_static", "static shared memory per block", "bytes", 1),
    ("launch__shared_mem_per_block_dynamic", "dynamic shared memory per block", "bytes", 1),
    ("launch__waves_per_multiprocessor", "waves per multiprocessor", "", 1),
    ("sm__maximum_warps_per_active_cycle_pct", "theoretical occupancy", "%", 1),
    ("sm__warps_active.avg.pct_of_peak_sustained_active", "achieved occupancy", "%", 1),
    ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "compute throughput", "% of peak", 1),
    ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "memory throughput", "% of peak", 1),
    ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "DRAM throughput", "% of peak", 1),
    ("dram__bytes_read.sum", "DRAM read", "MB", 1e-6),
    ("dram__bytes_write.sum", "DRAM written", "MB", 1e-6),
    ("l1tex__t_sector_hit_rate.pct", "L1 hit rate", "%", 1),
    ("lts__t_sector_hit_rate.pct", "L2 hit rate", "%", 1),
    ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", "used part of loaded sectors", "%", 1),
    ("smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct", "used part of stored sectors", "%", 1),
    ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "bank conflicts of shared memory", "", 1),
    ("smsp__issue_active.avg.pct_of_peak_sustained_active", "cycles that issue an instruction", "%", 1),
    ("smsp__thread_inst_executed_per_inst_executed.ratio", "active threads per instruction", "of 32", 1),
    ("sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active", "tensor cores", "% of peak", 1),
    ("sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active", "FMA pipe", "% of peak", 1),
    ("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", "stall: global memory", "", 1),
    ("smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio", "stall: shared memory", "", 1),
    ("smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "stall: barrier", "", 1),
    ("smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio", "stall: math pipe", "", 1),
)
WithoutCustom = Literal["changed", "unchanged", "failed", "not_tried"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """`disturbed` tells why the timing is unreliable, or is "". `foreign_load`: cores that others used."""

    foreign_load: float | None = None
    clock_low_mhz: float | None = None
    clock_high_mhz: float | None = None
    temperature_c: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    disturbed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineBounds:
    """Roofline of a call.

    - `moved_bytes`: inputs, weights and outputs, each once
    - `flops`: torch's count for the reference; None if unknown
    - `bound_us`: time to move the bytes at measured bandwidth; a lower bound for any program
    - `operations_us`: time for the flops at the measured rate; better algorithms may need fewer
    - `peak_fraction`: the larger bound / the candidate's time
    """

    moved_bytes: int
    flops: int | None
    bandwidth_gb_s: float
    tflops: float
    bound_us: float
    operations_us: float | None
    peak_fraction: float | None

    def share_of_gap(self, baseline_us: float, candidate_us: float, noise_floor: float) -> float | None:
        """Return (baseline - candidate) / (baseline - larger bound), at least 0 (not faster) and at most 1 (at the
        roofline). None if there is no bound, or if the baseline's distance from it is within the noise floor.
        """
        least_us = max(self.bound_us, self.operations_us or 0.0)
        gap_us = baseline_us - least_us
        if least_us <= 0 or gap_us <= noise_floor * baseline_us:
            return None
        return min(max((baseline_us - candidate_us) / gap_us, 0.0), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedKernels:
    custom: int
    total: int
    custom_us: float
    total_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Time attribution: shares of a call; on a CPU of its time in machine code, without Python, by samples.

    - `custom`: candidate code
    - `library`: cuBLAS, cuDNN, oneDNN, ...
    - `other`: Python, launches
    - `without_custom`: effect on the outputs when extension functions do nothing
    - `launched`: None on a CPU
    - `parts`: us of a profiled call by kernel, or on a CPU by operator, the longest first
    """

    custom: float
    torch: float
    library: float
    other: float
    custom_kernels: tuple[str, ...] = ()
    without_custom: WithoutCustom = "not_tried"
    launched: LaunchedKernels | None = None
    parts: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCounters:
    """Counters of a custom kernel's longest launch, in ncu's names and base units. `launches` is per call."""

    kernel: str
    grid: str
    block: str
    launches: int
    metrics: tuple[tuple[str, float], ...]

    def describe_launch(self) -> str:
        which = f", the longest of {self.launches} launches" if self.launches > 1 else ""
        return f"grid {self.grid}, block {self.block}{which}"

    def list_facts(self) -> list[tuple[str, str]]:
        """Return (label, value with unit)."""
        known = dict(self.metrics)
        present = [row for row in NCU_METRICS if row[0] in known]
        return [(label, f"{_format(known[name] * factor)} {unit}".strip()) for name, label, unit, factor in present]


def _format(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterReport:
    """The worker runs the counted call, so this is no verdict on speed."""

    kernels: tuple[KernelCounters, ...] = ()
    note: str = ""


TimingVerdict = Literal["faster", "tie", "slower", "unreliable", "unconfirmed"]
Baseline = Literal["eager", "eager-tf32", "compile", "compile-max-autotune", "library"]
LIBRARY_CLASS = "Library"  # a problem's best library call: a subclass of its Model


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedBaseline:
    """`name` is a `Baseline`, or a module's stem and digest; `entry` is the class in `source` or the problem."""

    name: str = "eager"
    entry: str = "Model"
    source: str = ""


EAGER = (TimedBaseline(),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One timed block: equally many calls of baseline and candidate, each on fresh inputs. Times in µs per call.

    - `*_reported_us`: reported by the worker; on a GPU measured by the evaluator, until it has the outputs
    - `*_evaluator_us`: measured by the evaluator, message exchange included; on a GPU from before inputs are written
    - `baseline_loading_us`: reported for copying the state before the call (CPU), not in the reported time
    - `*_copy_us`: until the evaluator had the outputs (CPU, some blocks)
    """

    calls: int
    baseline_reported_us: float
    candidate_reported_us: float
    baseline_evaluator_us: float
    candidate_evaluator_us: float
    baseline_loading_us: float = 0.0
    baseline_copy_us: float | None = None
    candidate_copy_us: float | None = None


Clock = Literal["call", "device", "bound", "mixed"]
INEXACT = ("bound", "mixed")  # clocks whose speedups are no ratios of equal times


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Paired timing against a named baseline, in µs per call; of several cases, geometric means.

    The interval covers the scatter of the blocks, the noise floor, and time that the evaluator's clock cannot exclude.
    `attempts` counts measurements. `clock` is "device" for replays of recorded GPU work, "call" for whole calls,
    "bound" for the candidate's whole calls against replays of the baseline (a lower bound of the speedup), "mixed" if
    cases differ. `*_bytes` is device memory for weights, outputs and workspace of a replayed call (the largest of the
    cases), `*_mj` its energy. `*_call_us` are whole calls on a GPU by the evaluator's clock, whatever `clock` decides.
    """

    baseline: str
    baseline_us: float
    candidate_us: float
    speedup: float
    speedup_low: float
    speedup_high: float
    verdict: TimingVerdict
    blocks: tuple[Block, ...]
    overhead_us: float
    noise_floor: float | None = None
    resolution_us: float | None = None
    conditions: Conditions | None = None
    attempts: int = 1
    clock: Clock = "call"
    baseline_bytes: int | None = None
    candidate_bytes: int | None = None
    baseline_mj: float | None = None
    candidate_mj: float | None = None
    baseline_call_us: float | None = None
    candidate_call_us: float | None = None

    def __post_init__(self) -> None:
        if not self.baseline:
            raise ValueError("a timing must name its baseline")
        if min(self.baseline_us, self.candidate_us, self.speedup) <= 0:
            raise ValueError("times and speedups are positive")
        if not self.speedup_low <= self.speedup <= self.speedup_high:
            raise ValueError(
                f"speedup {self.speedup} lies outside its interval [{self.speedup_low}, {self.speedup_high}]"
            )

    @property
    def call_speedup(self) -> float | None:
        """Of whole calls, without an interval: it decides nothing."""
        if self.baseline_call_us is None or self.candidate_call_us is None:
            return None
        return self.baseline_call_us / self.candidate_call_us

    @property
    def ranked_speedup(self) -> float | None:
        """None without a confirmed time; 1 for a tie."""
        if self.verdict == "tie":
            return 1.0
        return None if self.is_doubtful else self.speedup

    @property
    def is_doubtful(self) -> bool:
        return self.verdict in ("unreliable", "unconfirmed")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineResult:
    """Timing against a further baseline, without blocks. `reason` says why there is none."""

    name: str
    timing: Timing | None = None
    reason: str = ""
