"""Measures noise floors: how far from 1 the speedup of a program over itself can be.

They come from A/A pairs in fresh processes, cached per problem, machine and version (on a GPU pairs of every
measurement), and are never below `DEVICE_FLOORS`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.domain import Timing
from harness.evaluation.timing.system_conditions import calm_load
from harness.store.machine_cache import add_to_record, read_record

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
    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / "noise.json"
        self._known: dict[str, float] = {}

    def find(self, key: NoiseKey, measure_pair: Callable[[], Timing]) -> float:
        """`measure_pair` times the baseline against itself in fresh processes. A disturbed result is not cached, one
        under allowed load only in memory.
        """
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
