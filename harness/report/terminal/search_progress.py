"""Tracks and renders the progress of builds, evaluations and requests of a run."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Literal

from rich.console import Group, RenderableType

from harness.analysis.metrics import Price
from harness.analysis.samples import find_best
from harness.domain import Completion, Evaluation, SampleKey
from harness.domain.build import PRECOMPILING, RUNNING
from harness.report.terminal.tables import format_speedup, make_table, style_text
from harness.report.values import format_fixed, format_range
from harness.search.history import History, Turn

if TYPE_CHECKING:
    from harness.executors.executor import DeviceStatus, Executor, ExecutorStatus

REASONS_SHOWN = 2  # why builds were slow
RECENT = 8  # moments at which tasks were seen to be finished


@dataclass(slots=True, kw_only=True)
class Step:
    """Builds, evaluations, or a device: `done` of `total`; `worked` excludes cached ones; `waits` for shared parts."""

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
    """Estimates by the pace of recently finished tasks, without start and headers. Between them it only falls."""

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
    """`counts`: verdicts and correct ones; `builds`: programs with extensions, and those without a verdict."""
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
    elif not done and on_devices and not any(device.running for device in status.devices):
        notes.append("starting PyTorch")
    evaluation = Step(name="evaluating", total=total, done=done, worked=done, note=", ".join(notes), waits=waits)
    if len(status.devices) < 2:
        return [*building, evaluation]
    to_come = max(total - done - on_devices, 0) / len(status.devices)
    return [*building, evaluation, *(_describe_device(device, to_come, waits) for device in status.devices)]


def _describe_device(device: DeviceStatus, to_come: float, waits: bool) -> Step:
    total = device.done + device.running + device.waiting + round(to_come)
    note = f"{device.done} done, {device.waiting} waiting{'' if device.running or device.waiting else ', idle'}"
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


Stage = Literal["waiting to ask", "asking", "evaluating", "waiting for another process"]
OTHER_PROCESS: Stage = "waiting for another process"  # which evaluates the same program
SPENT = ("asking", "building", "evaluating")  # totals of what has ended
_BUILDING = ("build", "load")  # phases; a build within the load is part of both


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemProgress:
    """`best` is the best correct sample and its turn."""

    name: str
    samples: int
    ended: int
    turns: int
    in_flight: int
    best: tuple[int, Turn] | None

    def describe_best(self) -> str:
        if self.best is None:
            return "-"
        sample, turn = self.best
        result, where = turn.result, f"sample {sample}, turn {turn.number}"
        if result.speedup is None or result.speedup_low is None or result.speedup_high is None:
            timing = turn.evaluation.timing
            return f"correct{'' if timing is None else f', time {timing.verdict}'} ({where})"
        interval = format_range(result.speedup_low, result.speedup_high)
        return f"{format_speedup(result.speedup, result.clock)} {interval} ({where})"


class SearchProgress:
    """Counts include stored turns. The event loop writes them, the thread of the display reads them."""

    def __init__(
        self,
        keys: Sequence[SampleKey],
        *,
        head: str = "",
        price: Price | None = None,
        read_status: Callable[[], ExecutorStatus | None] = lambda: None,
    ) -> None:
        self.head = head
        self._price, self._read_status = price, read_status
        self._lock = threading.Lock()
        self._histories = {key: History() for key in keys}
        self._ended: set[SampleKey] = set()
        self._in_flight: dict[SampleKey, tuple[Stage, float]] = {}
        self._tokens = Counter[str]()
        self._spent_s = defaultdict[str, float](float)
        self._began_s = time.monotonic()

    @contextmanager
    def at(self, key: SampleKey, stage: Stage) -> Iterator[None]:
        """Stages may be nested: the inner one is shown."""
        with self._lock:
            outer = self._in_flight.get(key)
            self._in_flight[key] = (stage, time.monotonic())
        try:
            yield
        finally:
            with self._lock:
                del self._in_flight[key]
                self._in_flight |= {} if outer is None else {key: outer}

    def add_answer(self, completion: Completion | None, tokens: tuple[int, int]) -> None:
        """`tokens` are those of the prompt and of the answer."""
        with self._lock:
            self._tokens.update(prompt=tokens[0], answer=tokens[1])
            if completion is not None and completion.latency_s is not None:
                self._spent_s["asking"] += completion.latency_s

    def add_verdict(self, evaluation: Evaluation) -> None:
        phases = dict(evaluation.phases_s)
        building_s = max(phases.pop(name, 0.0) for name in _BUILDING)
        with self._lock:
            self._spent_s["building"] += building_s
            self._spent_s["evaluating"] += sum(phases.values())

    def update(self, key: SampleKey, history: History) -> None:
        with self._lock:
            self._histories[key] = history

    def end(self, key: SampleKey) -> None:
        with self._lock:
            self._ended.add(key)

    def count_answers(self) -> Step:
        """Samples of one turn."""
        ended, total = len(self._ended), len(self._histories)
        note = f"{ended} of {total}"
        return Step(name="asking", total=total, done=ended, worked=ended, note=note)

    def list_problems(self) -> list[ProblemProgress]:
        keys: dict[str, list[SampleKey]] = {}
        with self._lock:
            for key in self._histories:
                keys.setdefault(key.problem, []).append(key)
            return [self._describe_problem(name, members) for name, members in keys.items()]

    def _describe_problem(self, name: str, keys: Sequence[SampleKey]) -> ProblemProgress:
        bests = [(key.sample, best) for key in keys if (best := self._histories[key].best) is not None]
        index = find_best([turn.result.alone for _, turn in bests])
        return ProblemProgress(
            name=name,
            samples=len(keys),
            ended=sum(key in self._ended for key in keys),
            turns=sum(len(self._histories[key].turns) for key in keys),
            in_flight=sum(key in self._in_flight for key in keys),
            best=None if index is None else bests[index],
        )

    def describe_totals(self) -> list[str]:
        status = self._read_status()
        with self._lock:
            turns = sum(len(history.turns) for history in self._histories.values())
            elapsed_s = round(time.monotonic() - self._began_s)
            prompt, answer = self._tokens["prompt"], self._tokens["answer"]
            cost = "" if self._price is None else f", {format_fixed(self._price.compute_usd(prompt, answer), 4)} USD"
            spent = [f"{name} {self._spent_s[name]:,.0f} s" for name in SPENT if self._spent_s[name] >= 1]
            return [
                f"samples {len(self._ended)}/{len(self._histories)}, turns {turns}, "
                f"time {elapsed_s // 60}:{elapsed_s % 60:02}",
                f"tokens {prompt:,} asked, {answer:,} answered{cost}",
                *([", ".join(spent)] if spent else []),
                f"now {self._describe_in_flight(status)}",
            ]

    def _describe_in_flight(self, status: ExecutorStatus | None) -> str:
        stages = Counter(stage for stage, _ in self._in_flight.values())
        counts = [("waiting to ask", stages["waiting to ask"]), (self._describe_asking(), stages["asking"])]
        evaluating, building = stages["evaluating"], 0 if status is None else status.building
        running = 0 if status is None else sum(device.running for device in status.devices)
        counts += [("building", building), ("on a device", running)]
        counts.append(("waiting for a device", max(evaluating - building - running, 0)))
        counts.append((OTHER_PROCESS, stages[OTHER_PROCESS]))
        shown = [f"{count} {name}" for name, count in counts if count]
        if status is not None and status.waits_for:
            shown.append(f"waiting for {status.waits_for}")
        return ", ".join(shown) or "idle"

    def _describe_asking(self) -> str:
        began_s = min((since_s for stage, since_s in self._in_flight.values() if stage == "asking"), default=0.0)
        return f"asking (longest {time.monotonic() - began_s:.0f} s)"


def render_search(progress: SearchProgress, *, most_problems: int) -> RenderableType:
    """Show problems in work first if not all fit."""
    problems = progress.list_problems()
    shown, table = problems, make_table("problem", ">samples", ">turns", "=best", least=4)
    if len(problems) > most_problems:
        shown = sorted(problems, key=lambda one: not one.in_flight)[:most_problems]
    for one in shown:
        table.add_row(
            style_text(one.name), f"{one.ended}/{one.samples}", str(one.turns), style_text(one.describe_best())
        )
    rest = len(problems) - len(shown)
    more = [style_text(f"and {rest} more problems", "dim")] if rest else []
    return Group(table, *more, *map(style_text, progress.describe_totals()))
