"""Renders a candidate's source in a terminal, its changes since an earlier turn, and the turns of one sample."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from itertools import accumulate, islice
from operator import itemgetter

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.syntax import Syntax

from harness.analysis.samples import list_best, result_of
from harness.report.terminal.tables import format_speedup, make_table, render_heading, style_outcome, style_text
from harness.report.values import count, format_range, make_printable
from harness.store.columns import ResultRow
from harness.store.completions import Spent, TurnOrigin

EXCERPT_LINES = 60
DIFF_LINES = 120
LONGEST_LINE = 400  # characters, in an excerpt


def render_source(source: str, *, marked: Collection[int] = ()) -> RenderableType:
    return Syntax(
        make_printable(source),
        "python",
        line_numbers=True,
        word_wrap=True,
        background_color="default",
        highlight_lines=set(marked),
    )


def render_excerpt(source: str, *, marked: Collection[int] = ()) -> RenderableType:
    """Show at most `EXCERPT_LINES`, with a note about the rest."""
    lines = source.splitlines()
    shown = "\n".join(line[:LONGEST_LINE] for line in lines[:EXCERPT_LINES])
    rest = len(lines) - EXCERPT_LINES
    if rest <= 0 and all(len(line) <= LONGEST_LINE for line in lines):
        return render_source(shown, marked=marked)
    more = f"({rest:,} more lines; --source shows all)" if rest > 0 else "(long lines are cut; --source shows all)"
    return Group(render_source(shown, marked=marked), style_text(more, "dim"))


def render_difference(before: str, after: str, *, turn: int) -> RenderableType:
    """Show a unified diff of at most `DIFF_LINES`."""
    lines = unified_diff(before.splitlines(), after.splitlines(), f"turn {turn}", "this turn", lineterm="", n=2)
    shown = list(islice(lines, DIFF_LINES + 1))
    if not shown:
        return style_text(f"no changes since turn {turn}")
    text = "\n".join(line[:LONGEST_LINE] for line in shown[:DIFF_LINES])
    if len(shown) > DIFF_LINES:
        text += "\n ..."
    return Syntax(make_printable(text), "diff", word_wrap=True, background_color="default")


_GUTTER = re.compile(r"\s*\d* \| ?")  # of g++; nvcc has none
_CARET = re.compile(r"[\s\d|]*[~^][\s~^|]*")
_FRAME = re.compile(r"  File \"([^\"\n]*)\"")
_INSTALLED = re.compile(r"/(?:site|dist)-packages/|/lib/python3[^/]*/|/harness/(?:worker|protocol)/|<frozen ")
_INDENTED = re.compile(r"    ")


@dataclass(frozen=True, slots=True)
class CompilerText:
    """Wraps text, but truncates a long quoted line and the carets below it alike."""

    text: str
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in fit_carets(self.text.split("\n"), options.max_width):
            yield style_text(line, self.style)


def fit_carets(lines: list[str], width: int) -> list[str]:
    fitted = list(lines)
    for at in range(1, len(lines)):
        if "^" in lines[at] and _CARET.fullmatch(lines[at]) and max(map(len, lines[at - 1 : at + 1])) > width:
            fitted[at - 1 : at + 1] = _cut_alike(lines[at - 1], lines[at], width)
    return fitted


def _cut_alike(quoted: str, carets: str, width: int) -> tuple[str, str]:
    match = _GUTTER.match(quoted)
    gutter = match.end() if match else 0
    room = width - gutter
    begin = max(min(carets.index("^") - room // 2, len(quoted) - room), gutter)
    return tuple(line[:gutter] + line[begin : begin + room] for line in (quoted, carets))  # type: ignore[return-value]


def drop_installed_frames(traceback: str) -> str:
    """Replace frames of installed packages by a note of their number. Other text stays."""
    kept, dropped, is_dropping = list[str](), 0, False
    for line in traceback.split("\n"):
        frame = _FRAME.match(line)
        if frame is not None:
            is_dropping = bool(_INSTALLED.search(frame[1]))
            dropped += is_dropping
        elif not _INDENTED.match(line):
            is_dropping = False
        if not is_dropping:
            kept += [*_note_frames(dropped), line]
            dropped = 0
    return "\n".join([*kept, *_note_frames(dropped)])


def _note_frames(dropped: int) -> Iterator[str]:
    if dropped:
        yield f"  ({count(dropped, 'frame')} of installed packages)"


LONGEST_FEEDBACK = 4_000  # characters
DEEPEST = 8  # levels of the tree that are indented


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleTurns:
    """`origins` and `spent` are by turn. The parent's source and the feedback are those of the shown turn."""

    rows: Sequence[ResultRow] = ()
    origins: Mapping[int, TurnOrigin] = field(default_factory=dict)
    spent: Mapping[int, Spent] = field(default_factory=dict)
    before: str | None = None
    fed_back: str | None = None


NO_TURNS = SampleTurns()


def render_turns(turns: SampleTurns, shown: int, source: str | None) -> Iterator[RenderableType]:
    """Yield nothing for a sample of one turn."""
    if len(turns.rows) > 1:
        yield render_heading("Turns")
        yield _render_tree(turns, shown)
    if turns.fed_back is not None:
        cut = len(turns.fed_back) > LONGEST_FEEDBACK
        yield render_heading("Fed back")
        yield style_text(turns.fed_back[:LONGEST_FEEDBACK].rstrip() + ("\n... (cut)" if cut else ""))
    parent = turns.origins.get(shown, TurnOrigin()).parent
    if turns.before is not None and source and parent is not None:
        yield render_heading(f"Changed since turn {parent}")
        yield render_difference(turns.before, source, turn=parent)


def _render_tree(turns: SampleTurns, shown: int) -> RenderableType:
    """Indent a turn below its parent. `best` and `tokens` are those up to the turn."""
    rows = turns.rows
    bests = list_best([result_of(row) for row in rows])
    tokens = list(accumulate(_count_tokens(turns.spent.get(row.turn)) for row in rows))
    table = make_table("turn", "outcome", ">speedup", ">interval", ">over", ">best", ">tokens", ">id")
    lines = zip([_trace(turns.origins, row.turn) for row in rows], rows, bests, tokens, strict=True)
    for path, row, best, spent in sorted(lines, key=itemgetter(0)):
        table.add_row(
            _name_turn(path, turns.origins.get(row.turn)), style_outcome(row.outcome), _format_speedup(row),
            format_range(row.speedup_low, row.speedup_high) or "-", _format_comparison(row),
            "-" if best is None else _format_speedup(rows[best]),
            f"{spent:,}" if spent else "-", f"{row.id}{' <' if row.turn == shown else ''}",
        )  # fmt: skip
    return table


def _trace(origins: Mapping[int, TurnOrigin], turn: int) -> tuple[int, ...]:
    path = [turn]
    while (parent := origins.get(path[0], TurnOrigin()).parent) is not None and parent < path[0]:
        path.insert(0, parent)
    return tuple(path)


def _name_turn(path: Sequence[int], origin: TurnOrigin | None) -> str:
    depth = min(len(path) - 1, DEEPEST)
    partner = f" and {origin.partner}" if origin is not None and origin.partner is not None else ""
    return f"{' ' * (depth - 1)}└{path[-1]}{partner}" if depth else str(path[-1])


def _count_tokens(spent: Spent | None) -> int:
    return 0 if spent is None else (spent.prompt_tokens or 0) + (spent.completion_tokens or 0)


def _format_speedup(row: ResultRow) -> str:
    return format_speedup(row.speedup, row.clock)


def _format_comparison(row: ResultRow) -> str:
    return "-" if row.over_rival is None else f"{row.rival_turn}: {format_speedup(row.over_rival)}"
