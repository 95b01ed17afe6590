"""Renders the progress of an evaluation: builds, evaluations, devices, and the time left."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from harness.domain.build import PRECOMPILING, RUNNING

if TYPE_CHECKING:
    from harness.executors.executor import DeviceStatus, Executor

REASONS_SHOWN = 2  # why builds were slow


@dataclass(slots=True, kw_only=True)
class Step:
    """Builds, evaluations, or one device: `done` of `total`; `worked` excludes cached ones."""

    name: str
    total: int
    done: int = 0
    worked: int = 0
    note: str = ""
    began_s: float = field(default_factory=time.monotonic)


@dataclass(slots=True, kw_only=True)
class _Pace:
    worked: int
    at_s: float
    each_s: float
    left_s: float = inf


class TimeLeft:
    """Estimates by the pace of finished tasks. Until the first is finished, an estimate only falls."""

    def __init__(self) -> None:
        self._paces: dict[str, _Pace] = {}

    def describe(self, step: Step) -> str:
        left_s = self._estimate_s(step, time.monotonic())
        left = f"about {left_s / 60:.0f} min left" if left_s >= 90 else f"about {left_s:.0f} s left"
        return ", ".join(filter(None, (step.note, left if left_s >= 1 else "")))

    def _estimate_s(self, step: Step, now_s: float) -> float:
        if not step.worked or step.done >= step.total:
            return 0.0
        pace = self._paces.get(step.name)
        if pace is None or pace.worked != step.worked:
            each_s = (now_s - step.began_s) / step.worked
            pace = self._paces[step.name] = _Pace(worked=step.worked, at_s=now_s, each_s=each_s)
        expected_s = pace.each_s * (step.total - step.done) - (now_s - pace.at_s)
        pace.left_s = min(pace.left_s, max(expected_s, 0.0))
        return pace.left_s


def read_steps(
    executor: Executor, total: int, counts: tuple[int, int], began_s: float, *, builds: tuple[int, int]
) -> list[Step]:
    """`counts` are the verdicts so far, and the number of correct ones; `builds` are the programs with extensions, and
    those of them without a verdict. Without any build there is no such step.
    """
    status, (done, correct), (extended, to_build) = executor.status(), counts, builds
    on_devices = sum(device.waiting + device.running for device in status.devices)
    waiting = min(max(total - done - max(on_devices - status.building, 0), 0), to_build)
    build = Step(
        name="building", total=extended, done=extended - waiting, worked=count_finished(status.builds), began_s=began_s,
        note=describe_builds(status.builds, max(waiting - status.builds.get(RUNNING, 0), 0)),
    )  # fmt: skip
    building = [build] if extended or status.builds else []
    notes = [f"{done} of {total}", *([f"{correct} correct"] if done else [])]
    if status.waits_for:
        notes.append(f"waiting for {status.waits_for}")
    evaluation = Step(
        name="evaluating", total=total, done=done, worked=done, began_s=began_s, note=", ".join(notes)
    )  # fmt: skip
    if len(status.devices) < 2:
        return [*building, evaluation]
    to_come = max(total - done - on_devices, 0) / len(status.devices)
    return [*building, evaluation, *(_describe_device(device, to_come, began_s) for device in status.devices)]


def _describe_device(device: DeviceStatus, to_come: float, began_s: float) -> Step:
    total = device.done + device.running + device.waiting + round(to_come)
    note = f"{device.done} done, {device.waiting} waiting{'' if device.running else ', idle'}"
    return Step(name=device.name, total=total, done=device.done, worked=device.done, note=note, began_s=began_s)


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
    headers = "headers are precompiled, once per machine" if counts.get(PRECOMPILING) else ""
    return "; ".join(filter(None, (found, strategies, headers)))


def describe_strategies(counts: dict[str, int]) -> str:
    """Count builds by strategy, and the reasons against the fast one, the commonest first."""
    strategies = ", ".join(f"{number} {strategy}" for number, strategy in _count_by(counts, "strategy "))
    reasons = [f"{number}: {reason}" for number, reason in _count_by(counts, "reason ")]
    return strategies + (f" ({'; '.join(reasons[:REASONS_SHOWN])})" if reasons else "")


def _count_by(counts: dict[str, int], prefix: str) -> list[tuple[int, str]]:
    found = [(number, name.removeprefix(prefix)) for name, number in counts.items() if name.startswith(prefix)]
    return sorted(found, key=lambda entry: -entry[0])
