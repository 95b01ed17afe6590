"""Measures peak bandwidth and matrix throughput. Peaks are only raised, since a busy machine measures too little."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import torch

from harness.domain import HarnessError, StoreError
from harness.evaluation.correctness.precision import float32_precision
from harness.evaluation.correctness.reference import usable_threads
from harness.sandbox.devices import Device
from harness.store.machine_cache import add_to_record, read_record

FILE_NAME = "ceilings.json"
REPEATS = 5
MEASURING_S = 0.25  # per quantity, at least two repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePeaks:
    """`bandwidth_gb_s` counts reads and writes; `tflops` is the fastest product among dtypes precise enough for
    float32.
    """

    hardware: str
    bandwidth_gb_s: float
    tflops: float
    matrix_dtype: str

    def raised_by(self, other: DevicePeaks) -> DevicePeaks:
        faster = other if other.tflops > self.tflops else self
        return DevicePeaks(
            hardware=self.hardware,
            bandwidth_gb_s=max(self.bandwidth_gb_s, other.bandwidth_gb_s),
            tflops=faster.tflops,
            matrix_dtype=faster.matrix_dtype,
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
    facts = [device.chip, usable_threads(), torch.__version__]
    return sha256(json.dumps(facts).encode()).hexdigest()[:16]


def measure_peaks(device: Device) -> DevicePeaks:
    """The device must be idle."""
    try:
        with torch.no_grad(), _all_threads():
            bandwidth = _measure_bandwidth(device)
            tflops, dtype = max(_measure_products(device))
    except torch.OutOfMemoryError as error:
        raise HarnessError(
            f"not enough memory to measure the peaks of {device.name}: {error}; end other programs that use it"
        ) from error
    return DevicePeaks(hardware=device.chip, bandwidth_gb_s=bandwidth / 1e9, tflops=tflops / 1e12, matrix_dtype=dtype)


@contextmanager
def _all_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(usable_threads())
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _measure_bandwidth(device: Device) -> float:
    """Return bytes per second: copying, reading or writing tensors larger than the cache, or reading a small one after
    a flush, which may leave some of it.
    """
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


def _measure_products(device: Device) -> list[tuple[float, str]]:
    return [(_measure_product(device, name), name) for name in device.matrix_formats]


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
