"""Tracks and renders the progress of requests and evaluations of a run."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from harness.analysis.prices import Price
from harness.analysis.samples import find_best
from harness.domain import Completion, Evaluation, SampleKey
from harness.report.terminal.progress import Step
from harness.report.terminal.tables import format_speedup, make_table, style_text
from harness.report.values import format_fixed, format_range
from harness.search.history import History, Turn

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.executors.executor import ExecutorStatus

Stage = Literal["waiting to ask", "asking", "evaluating", "waiting for another process"]
OTHER_PROCESS: Stage = "waiting for another process"  # which evaluates the same program
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
            return [
                f"samples {len(self._ended)}/{len(self._histories)}, turns {turns}, "
                f"time {elapsed_s // 60}:{elapsed_s % 60:02}",
                self._describe_cost(),
                ", ".join(f"{name} {self._spent_s[name]:,.0f} s" for name in ("asking", "building", "evaluating")),
                f"now {self._describe_in_flight(status)}",
            ]

    def _describe_cost(self) -> str:
        prompt, answer = self._tokens["prompt"], self._tokens["answer"]
        cost = "" if self._price is None else f", {format_fixed(self._price.compute_usd(prompt, answer), 4)} USD"
        return f"tokens {prompt:,} asked, {answer:,} answered{cost}"

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
    from rich.console import Group

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
