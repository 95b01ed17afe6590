"""Shows progress on stderr: bars or a table in a terminal, changes every ten seconds elsewhere, and a line a minute."""

import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from harness.report.terminal.search_progress import ProblemProgress, SearchProgress, Step, TimeLeft, render_search

LINE_EVERY_S, BARS_EVERY_S = 10.0, 0.5
SAME_LINE_EVERY = 6  # times a changed one's interval
STEPS_EVERY_S = 1.0
COLUMNS = 80
FRAMES_PER_S = 2
LINES_BESIDE = 9  # of the table: heads, totals, a line of the shell


@contextmanager
def show_steps(read: Callable[[], Sequence[Step]], *, line_every_s: float = LINE_EVERY_S) -> Iterator[None]:
    """Show the steps from `read` until the end of the block."""
    console = Console(stderr=True)
    with _show_bars(read, console) if console.is_terminal else _print_steps(read, line_every_s):
        yield


@contextmanager
def _show_bars(read: Callable[[], Sequence[Step]], console: Console) -> Iterator[None]:
    time_left = TimeLeft()
    columns = (TextColumn("{task.description:<8}"), BarColumn(bar_width=8), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[note]}"), console=console) as progress:
        bars: dict[str, TaskID] = {}

        def refresh() -> None:
            for step in read():
                if step.name not in bars:
                    bars[step.name] = progress.add_task(step.name, total=step.total, note="")
                progress.update(bars[step.name], total=step.total, completed=step.done, note=time_left.describe(step))

        with _repeat(refresh, BARS_EVERY_S):
            yield


@contextmanager
def _print_steps(read: Callable[[], Sequence[Step]], every_s: float) -> Iterator[None]:
    time_left, printed, at_s = TimeLeft(), "", 0.0

    def print_line() -> None:
        nonlocal printed, at_s
        line = "; ".join(f"{step.name}: {time_left.describe(step)}" for step in read())
        if line != printed or time.monotonic() - at_s >= SAME_LINE_EVERY * every_s:
            printed, at_s = line, time.monotonic()
            typer.echo(line, err=True)

    with _repeat(print_line, every_s):
        yield


@contextmanager
def show_slow_steps(
    doing: str, read: Callable[[], Sequence[tuple[str, float, float]]], *, line_every_s: float = LINE_EVERY_S
) -> Iterator[None]:
    """Print a line for each `line_every_s` that a problem file's step runs. `read` returns name, limit and deadline."""
    printed: dict[tuple[str, float], int] = {}

    def print_lines() -> None:
        for name, limit_s, deadline_s in read():
            lines = int((time.monotonic() - deadline_s + limit_s) / line_every_s)
            if lines > printed.get((name, deadline_s), 0):
                printed[name, deadline_s] = lines
                where, _, call = name.rpartition(".py: ")
                took = f"{lines * line_every_s:g} s (limit {limit_s:g} s, --reference-timeout)"
                typer.echo(wrap(f"{doing} {Path(where).name}: {call}, {took}"), err=True)

    with _repeat(print_lines, min(STEPS_EVERY_S, line_every_s)):
        yield


@contextmanager
def show_completions(progress: SearchProgress) -> Iterator[None]:
    _print_head(progress)
    with show_steps(lambda: [progress.count_answers()]):
        yield


@contextmanager
def show_search(progress: SearchProgress, *, line_every_s: float = LINE_EVERY_S) -> Iterator[None]:
    console = _print_head(progress)
    with _show_table(progress, console) if console.is_terminal else _print_problems(progress, line_every_s):
        yield


def _print_head(progress: SearchProgress) -> Console:
    console = Console(stderr=True, highlight=False)
    console.print(progress.head, soft_wrap=True, markup=False)
    return console


@contextmanager
def _show_table(progress: SearchProgress, console: Console) -> Iterator[None]:
    def render() -> RenderableType:
        return render_search(progress, most_problems=max(console.height - LINES_BESIDE, 1))

    with Live(get_renderable=render, console=console, refresh_per_second=FRAMES_PER_S):
        yield


@contextmanager
def _print_problems(progress: SearchProgress, every_s: float) -> Iterator[None]:
    printed: dict[str, ProblemProgress] = {}

    def print_lines() -> None:
        typer.echo(wrap("; ".join(progress.describe_totals())), err=True)
        for one in progress.list_problems():
            before = printed.get(one.name)
            if one.turns and (before is None or (before.turns, before.ended) != (one.turns, one.ended)):
                counts = f"samples {one.ended}/{one.samples}, turns {one.turns}"
                typer.echo(wrap(f"{one.name}: {counts}, best {one.describe_best()}"), err=True)
            printed[one.name] = one

    with _repeat(print_lines, every_s):
        yield


def wrap(line: str) -> str:
    return textwrap.fill(line, COLUMNS, subsequent_indent="  ", break_on_hyphens=False)


@contextmanager
def _repeat(show: Callable[[], None], every_s: float) -> Iterator[None]:
    """Call `show` periodically in a thread, and at the end."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(every_s):
            show()

    thread = threading.Thread(target=run, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        show()
