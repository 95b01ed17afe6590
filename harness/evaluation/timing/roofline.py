"""Compares a time with the device's measured peaks (roofline check).

Faster than moving the needed data is `suspect`, after the peaks are measured again. Fewer operations than the
reference's is a warning: the algorithm may be better.
"""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from harness.domain import Finding, HarnessError, Outcome, ProblemError, RooflineBounds, StoreError, Timing
from harness.evaluation.correctness.comparison import compare_outputs
from harness.evaluation.correctness.precision import float32_precision
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.correctness.truth import run_reference, trust_outputs, write_state
from harness.evaluation.results import StepResult
from harness.evaluation.timing.system_conditions import add_to_record, read_record
from harness.hardware.host import count_cores
from harness.problems.operator_costs import OperatorCosts
from harness.protocol import count_span
from harness.sandbox.devices import Device
from harness.tensors.outputs import FlatOutputs, are_far_apart
from harness.tensors.values import list_memory, list_tensors

FILE_NAME = "peaks.json"
REPEATS = 5
MEASURING_S = 0.25  # per quantity, at least two repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePeaks:
    """`bandwidth_gb_s` counts reads and writes; `tflops_by_dtype` is the rate of matrix products."""

    hardware: str
    bandwidth_gb_s: float
    tflops_by_dtype: dict[str, float]

    @property
    def matrix_dtype(self) -> str:
        return max(self.tflops_by_dtype, key=self.tflops_by_dtype.__getitem__)

    @property
    def tflops(self) -> float:
        return max(self.tflops_by_dtype.values())

    def raised_by(self, other: DevicePeaks) -> DevicePeaks:
        return DevicePeaks(
            hardware=self.hardware,
            bandwidth_gb_s=max(self.bandwidth_gb_s, other.bandwidth_gb_s),
            tflops_by_dtype={
                name: max(rate, other.tflops_by_dtype[name]) for name, rate in self.tflops_by_dtype.items()
            },
        )


class PeakStore:
    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / FILE_NAME
        self._known: dict[str, DevicePeaks] = {}

    def find(self, device: Device) -> DevicePeaks:
        return self.look_up(device) or self.measure(device)

    def look_up(self, device: Device) -> DevicePeaks | None:
        """Raises StoreError for a damaged file."""
        key = name_device(device)
        if key not in self._known and self._path is not None:
            record = read_record(self._path).get(key)
            if record is not None:
                self._known[key] = _decode(record, self._path)
        return self._known.get(key)

    def measure(self, device: Device) -> DevicePeaks:
        """Takes 1 to 2 s; only raises the cached peaks."""
        known, measured = self.look_up(device), measure_peaks(device)
        peaks = known.raised_by(measured) if known else measured
        key = name_device(device)
        self._known[key] = peaks
        if self._path is not None and peaks != known:
            add_to_record(self._path, {key: asdict(peaks)})
        return peaks


def name_device(device: Device) -> str:
    facts = [device.chip, count_cores(), torch.__version__]
    return sha256(json.dumps(facts).encode()).hexdigest()[:16]


def measure_peaks(device: Device) -> DevicePeaks:
    """The device must be idle."""
    try:
        with torch.no_grad(), _all_threads():
            bandwidth = _measure_bandwidth(device)
            rates = {name: _measure_product(device, name) / 1e12 for name in device.matrix_formats}
    except torch.OutOfMemoryError as error:
        raise HarnessError(
            f"not enough memory to measure the peaks of {device.name}: {error}; end other programs that use it"
        ) from error
    return DevicePeaks(hardware=device.chip, bandwidth_gb_s=bandwidth / 1e9, tflops_by_dtype=rates)


@contextmanager
def _all_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count_cores())
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _measure_bandwidth(device: Device) -> float:
    """Return bytes per second: copy, read or write beyond the cache, or read a small tensor after a flush."""
    size = max(device.peak_tensor_bytes, 4 * device.cache_bytes())
    source = torch.ones(size // 4, device=device.torch_device)
    target = torch.ones_like(source)
    small = source[: device.cache_bytes() // 8]
    rates = (
        2 * size / _best_s(device, lambda: target.copy_(source)),
        size / _best_s(device, source.sum),
        size / _best_s(device, lambda: target.fill_(2.0)),
        small.nbytes / _best_s(device, small.sum, before=device.flush_cache),
    )
    return max(rates)


def _measure_product(device: Device, name: str) -> float:
    size, dtype = device.matrix_size, torch.float32 if name == "tf32" else getattr(torch, name)
    left, right = (torch.ones(size, size, dtype=dtype, device=device.torch_device) for _ in range(2))
    out = torch.empty_like(left)
    with float32_precision(name == "tf32"):
        return 2 * size**3 / _best_s(device, lambda: torch.mm(left, right, out=out))


def _best_s(device: Device, work: Callable[[], object], before: Callable[[], object] | None = None) -> float:
    times: list[float] = []
    began_s = time.perf_counter()
    work()
    while len(times) < 2 or (len(times) < REPEATS and time.perf_counter() - began_s < MEASURING_S):
        if before is not None:
            before()
        device.synchronize()
        start_s = time.perf_counter()
        work()
        device.synchronize()
        times.append(time.perf_counter() - start_s)
    return min(times)


def _decode(record: object, path: Path) -> DevicePeaks:
    try:
        return DevicePeaks(**record)  # type: ignore[arg-type]
    except TypeError as error:
        raise StoreError(f"{path} is damaged: {error}; remove it to measure again") from error


MARGIN = 0.7  # of a bound: reads overlap with writes, caches keep data, and the baseline's rate is not the highest
REFINING_S = 10.0  # for reference calls, before a time is called impossible
MAX_SAMPLES = 24  # per input
SAMPLE_BYTES = 64  # a cache line
SCALES = (1e3, 1e9)  # times the largest value; the second for outputs that sum very many values
DOUBT = 0.01  # probability that the bound is too high


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """`bound_bytes` is what every program must move; `refined` excludes data that outputs do not depend on."""

    moved_bytes: int
    flops: int | None
    bound_bytes: int
    refined: bool = False


class Roofline:
    def __init__(self, peaks: PeakStore) -> None:
        self.peaks = peaks
        self._traffic: dict[tuple[str, ...], Traffic] = {}
        self._is_checked = False

    def examine(self, timing: Timing, reference: Reference, seed: int) -> StepResult:
        """Call while nothing else runs."""
        problem = reference.loaded.problem
        key = (problem.digest, str(problem.workload(reference.loaded.workload)), problem.dtype, problem.draws)
        if key not in self._traffic:
            self._traffic[key] = count_traffic(reference, seed)
        roofline = self._assess(timing, reference, self._traffic[key])
        if not self._traffic[key].refined and _is_too_fast(timing, roofline):
            self._traffic[key] = refine_traffic(self._traffic[key], reference, seed)
            roofline = self._assess(timing, reference, self._traffic[key])
        if not self._is_checked and (_is_too_fast(timing, roofline) or _needs_fewer_operations(timing, roofline)):
            self._is_checked = True
            self.peaks.measure(reference.device)
            roofline = self._assess(timing, reference, self._traffic[key])
        return conclude(timing, roofline)

    def _assess(self, timing: Timing, reference: Reference, traffic: Traffic) -> RooflineBounds:
        return assess(timing, traffic, self.peaks.find(reference.device))


def assess(timing: Timing, traffic: Traffic, peaks: DevicePeaks) -> RooflineBounds:
    """The baseline's own rates raise the peaks, which a busy machine measures too low."""
    shown_gb_s = traffic.bound_bytes / timing.baseline_us / 1e3 if traffic.refined else 0.0
    bandwidth_gb_s = max(peaks.bandwidth_gb_s, shown_gb_s)
    tflops = max(peaks.tflops, (traffic.flops or 0) / timing.baseline_us / 1e6)
    bound_us = traffic.bound_bytes / bandwidth_gb_s / 1e3
    operations_us = None if traffic.flops is None else traffic.flops / tflops / 1e6
    return RooflineBounds(
        moved_bytes=traffic.moved_bytes,
        flops=traffic.flops,
        bandwidth_gb_s=bandwidth_gb_s,
        tflops=tflops,
        bound_us=bound_us,
        operations_us=operations_us,
        peak_fraction=max(bound_us, operations_us or 0.0) / timing.candidate_us,
    )


def conclude(timing: Timing, roofline: RooflineBounds) -> StepResult:
    call_time = f"{timing.candidate_us:.0f} us a call"
    if _is_too_fast(timing, roofline):
        message = (
            f"{call_time} is impossible: moving the required data takes {roofline.bound_us:.0f} us at the "
            f"{roofline.bandwidth_gb_s:.0f} GB/s that this device reaches"
        )
        finding = Finding(check="roofline", severity="fatal", message=message)
        return StepResult(roofline=roofline, findings=(finding,), outcome=Outcome.SUSPECT, message=message)
    if _needs_fewer_operations(timing, roofline):
        message = (
            f"{call_time} is less than the {roofline.operations_us:.0f} us of the reference's operations at the "
            f"{roofline.tflops:.3g} TFLOP/s that this device reaches: it computes less; check its algorithm"
        )
        finding = Finding(check="operations", severity="warning", message=message)
        return StepResult(roofline=roofline, findings=(finding,))
    return StepResult(roofline=roofline)


def _is_too_fast(timing: Timing, roofline: RooflineBounds) -> bool:
    return timing.candidate_us < MARGIN * roofline.bound_us


def _needs_fewer_operations(timing: Timing, roofline: RooflineBounds) -> bool:
    return roofline.operations_us is not None and timing.candidate_us < MARGIN * roofline.operations_us


def count_traffic(reference: Reference, seed: int) -> Traffic:
    """Count inputs, weights and outputs once. Outputs that fit into the cache need not have been moved."""
    inputs = reference.make_device_inputs(seed)
    read = count_distinct_bytes(list_tensors((inputs, reference.state)))
    with OperatorCosts() as costs:
        outputs = _run(reference, inputs)
    write_state(reference.model, reference.changing)
    written = count_distinct_bytes(outputs.tensors)
    return Traffic(
        moved_bytes=read + written,
        flops=costs.flops or None,
        bound_bytes=read + max(written - reference.device.cache_bytes(), 0),
    )


def count_distinct_bytes(tensors: Iterable[Tensor]) -> int:
    by_storage: dict[int, int] = defaultdict(int)
    sizes: dict[int, int] = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        steps = zip(tensor.shape, tensor.stride(), strict=True)
        by_storage[storage.data_ptr()] += prod(size for size, step in steps if step) * tensor.element_size()
    return sum(min(sizes[address], held) for address, held in by_storage.items() if sizes[address])


def refine_traffic(traffic: Traffic, reference: Reference, seed: int) -> Traffic:
    """Keep the part of the floating inputs that outputs depend on, and outputs without repetitions. Weights count 0,
    since they can be folded; so does everything if memory is short, or if outputs vary or share memory with inputs.
    """
    if not reference.plan.roofline:
        return replace(traffic, bound_bytes=0, refined=True)
    inputs = reference.make_device_inputs(seed)
    expected = _run(reference, inputs)
    repeats = not _differs(reference, expected, _run(reference, inputs))
    shares_memory = bool(list_memory(expected.tensors) & list_memory(inputs))
    if not repeats or shares_memory:
        return replace(traffic, bound_bytes=0, refined=True)
    written = sum(_count_without_repeats(tensor) for tensor in expected.tensors)
    floating = [tensor for tensor in list_tensors(inputs) if tensor.is_floating_point() and tensor.numel()]
    sampler = _Sampler(reference, inputs, expected, random.Random(seed))
    each_s = REFINING_S / max(len(floating), 1)
    read = sum(sampler.find_needed_share(tensor, each_s) * count_distinct_bytes((tensor,)) for tensor in floating)
    beyond_cache = max(written - reference.device.cache_bytes(), 0)
    write_state(reference.model, reference.changing)
    return replace(traffic, bound_bytes=int(read) + beyond_cache, refined=True)


class _Sampler:
    """Overwrites random cache lines of an input with large finite values and compares the outputs."""

    def __init__(
        self, reference: Reference, inputs: Sequence[Any], expected: FlatOutputs, source: random.Random
    ) -> None:
        self._reference = reference
        self._inputs = inputs
        self._expected = expected
        self._source = source

    def find_needed_share(self, tensor: Tensor, budget_s: float) -> float:
        flat = tensor.as_strided((count_span(tensor.shape, tensor.stride()),), (1,))
        deadline_s = time.monotonic() + budget_s
        found: list[bool] = []
        while len(found) < MAX_SAMPLES and time.monotonic() < deadline_s:
            found.append(self._matters(flat))
        hits = sum(found)
        from scipy.special import betaincinv

        return float(betaincinv(hits, len(found) - hits + 1, DOUBT)) if hits else 0.0

    def _matters(self, flat: Tensor) -> bool:
        length = SAMPLE_BYTES // flat.element_size()
        start = self._source.randrange(max(flat.numel() // length, 1)) * length
        place = flat[start : start + length]
        kept = place.clone()
        largest, most = 1.0 + float(flat.abs().max()), torch.finfo(flat.dtype).max / 4
        values = [sign * min(scale * largest, most) for scale in SCALES for sign in (1.0, -1.0)]
        try:
            return any(self._changes_outputs(place, value) for value in values)
        finally:
            place.copy_(kept)

    def _changes_outputs(self, place: Tensor, value: float) -> bool:
        place.fill_(value)
        try:
            return _differs(self._reference, self._expected, _run(self._reference, self._inputs))
        except ProblemError:
            return False  # the reference rejects such a value


def _run(reference: Reference, inputs: Sequence[Any]) -> FlatOutputs:
    write_state(reference.model, reference.changing)
    return run_reference(reference.loaded, reference.model, inputs)


def _differs(reference: Reference, expected: FlatOutputs, found: FlatOutputs) -> bool:
    if are_far_apart(expected.tensors, found.tensors):
        return True
    tolerance = reference.loaded.problem.tolerance
    return compare_outputs(trust_outputs(expected), found, tolerance, "roofline")[0] is not None


def _count_without_repeats(tensor: Tensor) -> int:
    """Dimensions along which an output is constant could have stride 0."""
    count = tensor.numel()
    for dimension, size in enumerate(tensor.shape):
        if size > 1 and bool((tensor == tensor.narrow(dimension, 0, 1)).all()):
            count //= size
    return count * tensor.element_size()
