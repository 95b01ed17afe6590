"""Progress of an evaluation on stderr: bars in a terminal, else a line every ten seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console

REASONS_SHOWN = 2  # of falling back to the standard build
LINE_EVERY_S = 10.0


@dataclass(slots=True, kw_only=True)
class Step:
    """Building or evaluating: `done` of `total`; `worked` excludes cached ones."""

    total: int
    done: int = 0
    worked: int = 0
    note: str = ""
    began_s: float = field(default_factory=time.monotonic)
    advanced_s: float = field(default_factory=time.monotonic)

    def advance(self, *, done: int, worked: int, note: str) -> None:
        self.done, self.worked, self.note, self.advanced_s = done, worked, note, time.monotonic()

    def estimate_s(self) -> float | None:
        """None before the first finished item."""
        if not self.worked or self.done >= self.total:
            return None
        return (time.monotonic() - self.began_s) / self.worked * (self.total - self.done)

    def describe_rest(self) -> str:
        left_s = self.estimate_s()
        if left_s is None:
            return ""
        return f"about {left_s / 60:.0f} min left" if left_s >= 90 else f"about {left_s:.0f} s left"


def count_finished(counts: dict[str, int]) -> int:
    """Builds that were not cached."""
    return sum(counts.get(status, 0) for status in ("built", "failed", "timeout"))


def describe_builds(counts: dict[str, int], waiting: int) -> str:
    failed = sum(counts.get(status, 0) for status in ("failed", "refused", "timeout"))
    found = f"{counts.get('built', 0)} built, {counts.get('cached', 0)} cached, {failed} failed, {waiting} waiting"
    strategies = describe_strategies(counts)
    return f"{found}; {strategies}" if strategies else found


def describe_strategies(counts: dict[str, int]) -> str:
    strategies = ", ".join(f"{number} {name}" for number, name in _count_by(counts, "lane "))
    reasons = [f"{number}: {reason}" for number, reason in _count_by(counts, "reason ")]
    return strategies + (f" ({'; '.join(reasons[:REASONS_SHOWN])})" if reasons else "")


def _count_by(counts: dict[str, int], prefix: str) -> list[tuple[int, str]]:
    """(count, name) for a prefix, the largest count first."""
    found = [(number, name.removeprefix(prefix)) for name, number in counts.items() if name.startswith(prefix)]
    return sorted(found, key=lambda entry: -entry[0])


ShownSteps = tuple[Callable[[], None], Callable[[str], None]]


@contextmanager
def show_steps(build: Step, evaluate: Step, *, line_every_s: float = LINE_EVERY_S) -> Iterator[ShownSteps]:
    """Yields (refresh after progress, print a line)."""
    from rich.console import Console

    console = Console(stderr=True)
    shown = _show_bars(build, evaluate, console) if console.is_terminal else _print_lines(build, evaluate, line_every_s)
    with shown as steps:
        yield steps


@contextmanager
def _show_bars(build: Step, evaluate: Step, console: Console) -> Iterator[ShownSteps]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<8}"), BarColumn(bar_width=8), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[note]}"), console=console) as progress:
        bars = [(progress.add_task(name, total=step.total, note=""), step) for name, step in _name(build, evaluate)]

        def refresh() -> None:
            for bar, step in bars:
                notes = filter(None, (step.note, step.describe_rest()))
                progress.update(bar, completed=step.done, note=", ".join(notes))

        refresh()
        yield refresh, lambda line: progress.console.print(line, soft_wrap=True, markup=False)


@contextmanager
def _print_lines(build: Step, evaluate: Step, every_s: float) -> Iterator[ShownSteps]:
    ended = threading.Event()

    def print_line() -> None:
        parts = []
        for name, step in _name(build, evaluate):
            rest = step.describe_rest()
            parts.append(f"{name}: {step.note}{f', {rest}' if rest else ''}")
        typer.echo("; ".join(parts), err=True)

    def repeat() -> None:
        while not ended.wait(every_s):
            print_line()

    thread = threading.Thread(target=repeat, name="progress", daemon=True)
    thread.start()
    try:
        yield lambda: None, lambda line: typer.echo(line, err=True)
    finally:
        ended.set()
        thread.join()
        print_line()


def _name(build: Step, evaluate: Step) -> tuple[tuple[str, Step], tuple[str, Step]]:
    return ("building", build), ("evaluating", evaluate)
