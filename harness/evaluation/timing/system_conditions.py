"""Samples load by other processes, clocks, temperature and throttling during timing (an unavailable fact is None), and
measures noise floors: how far from 1 the speedup of a program over itself can be.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.domain import Conditions, StoreError, Timing
from harness.domain.files import raising, read_json_record, replace_text
from harness.hardware.host import count_cores
from harness.sandbox.devices import Device

SAMPLE_EVERY_S = 0.1
# Foreign load above which a timing is disturbed: cores, or a share of them.
CALM_LOAD_CORES, CALM_LOAD_SHARE = 0.15, 0.05
SHORTEST_LOAD_S = 0.2  # Linux counts in ticks of 10 ms: shorter loads are unknown
# Of the counter, which the driver updates every 20 to 100 ms.
ENERGY_CHANGES, LEAST_ENERGY_CHANGES, LONGEST_ENERGY_S = 8, 4, 1.0
_THROTTLING = {
    0x8: "hardware slowdown", 0x20: "software thermal slowdown", 0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}  # fmt: skip
_NOTED = _THROTTLING | {0x4: "software power cap"}


class ConditionSampler:
    """`own_s`: CPU seconds of evaluator and workers; the rest is foreign load, which disturbs if `load_matters`."""

    def __init__(self, device: Device, own_s: Callable[[], float] | None = None, *, load_matters: bool) -> None:
        self._device = device
        self._cores = os.sched_getaffinity(0)
        self._gpu = device.open_nvml()
        self._clocks_mhz: list[float] = []
        self._temperatures_c: list[float] = []
        self._throttled = 0
        self._sampled_s = 0.0
        self._began_s = time.monotonic()
        self._own_s = own_s
        self._load_matters = load_matters
        self._busy_before_s = _read_busy_s(self._cores)
        self._own_before_s = 0.0 if own_s is None else own_s()

    def sample(self) -> None:
        now_s = time.monotonic()
        if now_s - self._sampled_s < SAMPLE_EVERY_S:
            return
        self._sampled_s = now_s
        self._clocks_mhz += self._device.read_core_clocks_mhz(self._cores)
        if self._gpu is not None:
            self._sample_gpu(*self._gpu)

    def _sample_gpu(self, nvml: Any, handle: Any) -> None:
        with suppress(nvml.NVMLError):  # a driver may lack one of these
            self._throttled |= int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
            self._temperatures_c.append(float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)))
            self._clocks_mhz.append(float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)))

    def conclude(self) -> Conditions:
        load = self._foreign_load()
        return Conditions(
            foreign_load=load,
            clock_low_mhz=min(self._clocks_mhz, default=None),
            clock_high_mhz=max(self._clocks_mhz, default=None),
            temperature_c=max(self._temperatures_c, default=None),
            throttle_reasons=tuple(name for bit, name in _NOTED.items() if self._throttled & bit),
            disturbed="; ".join(self._describe_disturbances(load)),
        )

    def _describe_disturbances(self, load: float | None) -> Iterator[str]:
        if self._load_matters and load is not None and load > calm_load(len(self._cores)):
            yield f"other processes used {load:.2f} cores during the measurement"
        for bit, name in _THROTTLING.items():
            if self._throttled & bit:
                yield f"the GPU was throttled: {name}"

    def _foreign_load(self) -> float | None:
        if self._own_s is None:
            return None
        spent_s = time.monotonic() - self._began_s
        busy_s = _read_busy_s(self._cores)
        if busy_s is None or self._busy_before_s is None or spent_s < SHORTEST_LOAD_S:
            return None
        own_s = self._own_s() - self._own_before_s
        return max((busy_s - self._busy_before_s - own_s) / spent_s, 0.0)


def measure_energy_mj(device: Device, replay: Callable[[], int], longest_s: float = LONGEST_ENERGY_S) -> float | None:
    """Return the energy of a replay, between changes of the driver's counter; None if it changes too seldom."""
    gpu = device.open_nvml()
    if gpu is None:
        return None
    nvml, handle = gpu
    changes: list[tuple[int, int]] = []  # replays so far, and the counter
    count, began_s = 0, time.monotonic()
    with suppress(nvml.NVMLError):  # older GPUs have no counter
        known = int(nvml.nvmlDeviceGetTotalEnergyConsumption(handle))
        while len(changes) < ENERGY_CHANGES and time.monotonic() - began_s < longest_s:
            count += replay()
            value = int(nvml.nvmlDeviceGetTotalEnergyConsumption(handle))
            if value != known:
                known = value
                changes.append((count, value))
    if len(changes) < LEAST_ENERGY_CHANGES:
        return None
    (first, before_mj), (last, after_mj) = changes[1], changes[-1]  # until the first change the GPU was idle, too
    return (after_mj - before_mj) / (last - first)


def calm_load(cores: int | None = None) -> float:
    return max(CALM_LOAD_CORES, CALM_LOAD_SHARE * (cores or count_cores()))


def _read_busy_s(cores: set[int]) -> float | None:
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdecimal() and int(name[3:]) in cores:
            user, nice, system, _idle, _waiting, interrupt, soft, stolen = map(int, fields[:8])
            total += user + nice + system + interrupt + soft + stolen
    return total / ticks


# Persistent difference between two processes with the same program (memory layout, cache mapping, wake-up): a share of
# a call plus microseconds. Measured with A/A pairs of every core problem; see docs/measurement.md.
DEVICE_FLOORS = {"cuda": (0.03, 10.0), "cpu": (0.05, 8.0)}
PAIRS = 3  # of processes
SLOW_CALL_US = 200_000.0  # longer calls are measured with one pair
MARGIN = 1.5  # a few pairs underestimate the maximum


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseKey:
    problem_digest: str
    workload: str
    baseline: str
    device_type: str
    machine: str  # hardware, torch, threads, harness

    def __str__(self) -> str:
        return json.dumps([self.problem_digest, self.workload, self.baseline, self.device_type, self.machine])


class NoiseFloors:
    """From A/A pairs in fresh processes, cached per problem, machine and version, and never below `DEVICE_FLOORS`."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / "noise.json"
        self._known: dict[str, float] = {}

    def find(self, key: NoiseKey, measure_pair: Callable[[], Timing]) -> float:
        """`measure_pair` times the baseline against itself. Disturbed results are not cached, under load in memory."""
        name = str(key)
        if name not in self._known and self._path is not None and name in (record := read_record(self._path)):
            self._known[name] = float(record[name])
        if name in self._known:
            return self._known[name]
        timings = list(_measure_pairs(measure_pair))
        floor = math.expm1(MARGIN * max(abs(math.log(timing.speedup)) for timing in timings))
        if any(timing.conditions and timing.conditions.disturbed for timing in timings):
            return floor
        self._known[name] = floor
        if self._path is not None and not any(map(_was_loaded, timings)):
            add_to_record(self._path, {name: floor})
        return floor


def _was_loaded(timing: Timing) -> bool:
    load = None if timing.conditions is None else timing.conditions.foreign_load
    return load is not None and load > calm_load()


def _measure_pairs(measure_pair: Callable[[], Timing]) -> Iterator[Timing]:
    for _ in range(PAIRS):
        timing = measure_pair()
        yield timing
        if timing.baseline_us > SLOW_CALL_US:
            return


def find_device_floor(device_type: str, call_us: float) -> float:
    share, each_us = DEVICE_FLOORS[device_type]
    return share + each_us / call_us


def read_record(path: Path) -> dict[str, Any]:
    """Return {} without a file. Raises StoreError for a damaged one."""
    return read_json_record(path, "remove it, it will be measured again") or {}


def add_to_record(path: Path, values: Mapping[str, Any]) -> None:
    with raising(StoreError, f"write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            merged = {**read_record(path), **values}
            replace_text(path, json.dumps(merged, indent=1, sort_keys=True))
