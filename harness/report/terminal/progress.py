"""Renders the progress of an evaluation: builds, evaluations, devices, and the time left."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from harness.domain.build import PRECOMPILING, RUNNING

if TYPE_CHECKING:
    from harness.executors.executor import DeviceStatus, Executor

REASONS_SHOWN = 2  # why builds were slow
RECENT = 8  # moments at which tasks were seen to be finished


@dataclass(slots=True, kw_only=True)
class Step:
    """Builds, evaluations, or one device: `done` of `total`; `worked` excludes cached ones. `waits` while parts are
    made that are needed once.
    """

    name: str
    total: int
    done: int = 0
    worked: int = 0
    note: str = ""
    waits: bool = False


@dataclass(slots=True, kw_only=True)
class _Pace:
    finished: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=RECENT))  # (time, tasks so far)
    left_s: float = inf


class TimeLeft:
    """Estimates by the pace between the finished tasks of late, so neither the start nor a wait for headers counts:
    there is none before the second is finished. Until another one is finished, an estimate only falls.
    """

    def __init__(self) -> None:
        self._paces: dict[str, _Pace] = {}

    def describe(self, step: Step, now_s: float | None = None) -> str:
        left_s = self._estimate_s(step, time.monotonic() if now_s is None else now_s)
        left = f"about {left_s / 60:.0f} min left" if left_s >= 90 else f"about {left_s:.0f} s left"
        return ", ".join(filter(None, (step.note, left if left_s >= 1 else "")))

    def _estimate_s(self, step: Step, now_s: float) -> float:
        if step.waits:
            self._paces.pop(step.name, None)
        if step.waits or not step.worked or step.done >= step.total:
            return 0.0
        pace = self._paces.setdefault(step.name, _Pace())
        if not pace.finished or pace.finished[-1][1] != step.worked:
            pace.finished.append((now_s, step.worked))
            pace.left_s = inf
        (first_s, before), (last_s, worked) = pace.finished[0], pace.finished[-1]
        if worked == before:
            return 0.0
        expected_s = (last_s - first_s) / (worked - before) * (step.total - step.done) - (now_s - last_s)
        pace.left_s = min(pace.left_s, max(expected_s, 0.0))
        return pace.left_s


def read_steps(executor: Executor, total: int, counts: tuple[int, int], *, builds: tuple[int, int]) -> list[Step]:
    """`counts` are the verdicts so far, and the number of correct ones; `builds` are the programs with extensions, and
    those of them without a verdict. Without any build there is no such step.
    """
    status, (done, correct), (extended, to_build) = executor.status(), counts, builds
    waits = bool(status.builds.get(PRECOMPILING))
    on_devices = sum(device.waiting + device.running for device in status.devices)
    waiting = min(max(total - done - max(on_devices - status.building, 0), 0), to_build)
    build = Step(
        name="building", total=extended, done=extended - waiting, worked=count_finished(status.builds), waits=waits,
        note=describe_builds(status.builds, max(waiting - status.builds.get(RUNNING, 0), 0)),
    )  # fmt: skip
    building = [build] if extended or status.builds else []
    notes = [f"{done} of {total}", *([f"{correct} correct"] if done else [])]
    if status.waits_for:
        notes.append(f"waiting for {status.waits_for}")
    evaluation = Step(name="evaluating", total=total, done=done, worked=done, note=", ".join(notes), waits=waits)
    if len(status.devices) < 2:
        return [*building, evaluation]
    to_come = max(total - done - on_devices, 0) / len(status.devices)
    return [*building, evaluation, *(_describe_device(device, to_come, waits) for device in status.devices)]


def _describe_device(device: DeviceStatus, to_come: float, waits: bool) -> Step:
    total = device.done + device.running + device.waiting + round(to_come)
    note = f"{device.done} done, {device.waiting} waiting{'' if device.running else ', idle'}"
    return Step(name=device.name, total=total, done=device.done, worked=device.done, note=note, waits=waits)


def count_finished(counts: dict[str, int]) -> int:
    """Count builds that were not in the cache."""
    return sum(counts.get(status, 0) for status in ("built", "failed", "timeout"))


def describe_builds(counts: dict[str, int], waiting: int) -> str:
    running = f"{counts[RUNNING]} running, " if counts.get(RUNNING) else ""
    failed = sum(counts.get(status, 0) for status in ("failed", "refused", "timeout"))
    found = (
        f"{running}{counts.get('built', 0)} built, {counts.get('cached', 0)} cached, {failed} failed, {waiting} waiting"
    )
    strategies = describe_strategies(counts)
    headers = "headers are precompiled, once per machine, in half a minute or more" if counts.get(PRECOMPILING) else ""
    return "; ".join(filter(None, (found, strategies, headers)))


def describe_strategies(counts: dict[str, int]) -> str:
    """Count builds by strategy, and the reasons against the fast one, the commonest first."""
    strategies = ", ".join(f"{number} {strategy}" for number, strategy in _count_by(counts, "strategy "))
    reasons = [f"{number}: {reason}" for number, reason in _count_by(counts, "reason ")]
    return strategies + (f" ({'; '.join(reasons[:REASONS_SHOWN])})" if reasons else "")


def _count_by(counts: dict[str, int], prefix: str) -> list[tuple[int, str]]:
    found = [(number, name.removeprefix(prefix)) for name, number in counts.items() if name.startswith(prefix)]
    return sorted(found, key=lambda entry: -entry[0])
