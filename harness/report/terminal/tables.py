"""Renders evaluations and leaderboards as tables for terminals of 80 columns or more, and as Markdown.

Colours only repeat the words.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from textwrap import shorten
from types import MappingProxyType

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.analysis.leaderboard import LeaderboardRow, describe_unequal_problems
from harness.analysis.metrics import describe_clocks
from harness.analysis.ranking import RankedFile
from harness.analysis.samples import GroupKey, Section
from harness.domain import EMULATED, NO_DEVICE, Evaluation, Outcome
from harness.report.values import format_fixed, format_range, format_rate, format_table, make_printable
from harness.store.columns import COLUMNS, ResultRow, make_row

DEFAULT_COLUMNS = ("id", "problem", "model", "device", "workload", "outcome", "speedup")
WIDE_COLUMNS = (
    "id", "run", "problem", "sample", "model", "device", "workload", "outcome", "speedup", "baseline", "verdict",
    "own_share",
)  # fmt: skip
WIDEST_COLUMNS = (
    "id", "run", "problem", "sample", "turn", "model", "prompt", "device", "workload", "outcome", "speedup",
    "gap_closed", "baseline", "verdict", "own_share", "message",
)  # fmt: skip
NARROW, WIDE_TERMINAL = 80, 110
WIDEST_TERMINAL = 170
LONG_TEXTS = ("message", "findings")  # columns of tables that are cut to the terminal
LONG_TEXT = 40
OUTCOME_STYLES = {
    Outcome.CORRECT: "green",
    Outcome.SUSPECT: "bold magenta",
    Outcome.NOT_RUN: "dim",
    Outcome.PROBLEM_ERROR: "bold yellow",
    Outcome.HARNESS_ERROR: "bold yellow",
}
_CLOCK_SIGNS = {"bound": ">=", "mixed": "~"}
_CERTIFICATE_STYLES = {"yes": "green", "part": "yellow"}
# Leaderboard columns of narrow terminals; several names are stacked in one column.
_NARROW_HEAD = (("#",), ("model", "prompt"), ("correct", "problems"), ("fast_1",), ("fast_2",))
_NARROW_TAIL = (("speedup", "[low, high]"), ("own", "cert"))
_TURNS = ("turns", "best@turn", "tokens")  # only where a run has several turns
_LEGEND = (
    "correct, fast_p: share of all problems with a correct candidate, and with one more than p times as fast as the "
    "baseline; speedup: geometric mean over the timed correct candidates (number of candidates), [interval by "
    "measurement error]; own: median share of a correct candidate's time in its own compiled code; cert: evaluated "
    "under a valid red-team certificate (part: some samples)."
)
_TURNS_LEGEND = (
    "turns: mean per sample; best@turn: median turn of the result that counts, from 0; tokens, cost: per correct "
    "sample."
)
_MARKDOWN_HEAD = (
    "Model", "Prompt", "Language", "Device", "Workload", "Problems", "Correct", "fast_1", "fast_2", "Mean speedup"
)  # fmt: skip


def render_evaluations(
    rows: Iterable[ResultRow],
    columns: Sequence[str] = DEFAULT_COLUMNS,
    solutions: Mapping[int, str] = MappingProxyType({}),
) -> Table:
    """`columns` are fields of ResultRow; the dtype follows the workload if one was chosen, the name of an imported
    solution (by the row's id) the sample."""
    rows, table = list(rows), make_table()
    if "dtype" not in columns and "workload" in columns and any(row.dtype for row in rows):
        at = columns.index("workload") + 1
        columns = (*columns[:at], "dtype", *columns[at:])
    for name in columns:
        add_column(table, name, is_number=COLUMNS[name].is_number, whole=COLUMNS[name].is_whole)
    for row in rows:
        cells = {name: format_cell(name, getattr(row, name), row.clock) for name in columns}
        if "sample" in cells and solutions.get(row.id):
            cells["sample"].append_text(style_text(f" {solutions[row.id]}"))
        if "speedup" in cells and (faster := describe_fastest(row)):
            cells["speedup"].append_text(style_text(f"\n{faster}", "dim"))
        table.add_row(*cells.values())
    return table


def describe_fastest(row: ResultRow) -> str:
    """Return a text such as `0.90x of compile`; "" unless another baseline was the fastest."""
    if row.fastest_baseline in (None, row.baseline):
        return ""
    return f"{format_speedup(row.over_fastest)} of {row.fastest_baseline}"


def measure_evaluations(rows: Sequence[ResultRow], columns: Sequence[str]) -> int:
    """Return the width that shows all columns, with long strings cut to LONG_TEXT characters."""
    shortened = [row._replace(**{name: getattr(row, name)[:LONG_TEXT] for name in LONG_TEXTS}) for row in rows]
    return Console(width=10_000).measure(render_evaluations(shortened, columns)).maximum


def choose_columns(width: int, rows: Sequence[ResultRow]) -> tuple[str, ...]:
    """Include the sample and the turn if rows differ in nothing else that is shown."""
    if width >= WIDEST_TERMINAL:
        return WIDEST_COLUMNS
    columns = WIDE_COLUMNS if width >= WIDE_TERMINAL else DEFAULT_COLUMNS
    same_sample = {(row.run, row.problem, row.model): row.sample for row in rows}
    differ = any(row.sample != same_sample[row.run, row.problem, row.model] for row in rows)
    wanted = {"sample": differ and "sample" not in columns, "turn": any(row.turn for row in rows)}
    added = [name for name, is_wanted in wanted.items() if is_wanted]
    at = columns.index("model")
    return (*columns[:at], *added, *columns[at:])


def render_leaderboard(rows: Sequence[LeaderboardRow], *, wide: bool = False) -> RenderableType:
    """Show one table per comparable section; stack columns unless `wide`."""
    parts: list[RenderableType] = []
    in_order = sorted(rows, key=lambda row: row.group.section)
    for section, members in groupby(in_order, lambda row: row.group.section):
        parts.extend([_render_section(section, list(members), wide=wide), ""])
    legend = f"{_LEGEND} {_TURNS_LEGEND}" if any(row.group.turns > 1 for row in rows) else _LEGEND
    if untimed := sum(row.untimed for row in in_order):
        were = "candidates were" if untimed > 1 else "candidate was"
        legend = (
            f"fast_p is unknown where {untimed} correct {were} not timed: `harness evaluate RUN` times them.\n{legend}"
        )
    return Group(*parts, Text(legend, style="dim"))


def render_leaderboard_markdown(rows: Sequence[LeaderboardRow]) -> str:
    table = []
    for row in rows:
        group = row.group
        cells = (
            group.model,
            _name_prompt(group),
            group.language,
            f"{group.device} ({group.chip})" if group.chip else group.device,
            f"{group.workload}, {group.dtype}" if group.dtype else group.workload,
            _format_problems(row),
            *(format_rate(row.fast_p(threshold)) for threshold in (0.0, 1.0, 2.0)),
            _format_mean(row),
        )
        table.append([*map(_escape_markdown, cells)])
    sections = groupby(sorted(rows, key=lambda row: row.group.section), lambda row: row.group.section)
    notes = [_escape_markdown(note) for _, members in sections for note in list_clock_notes(members)]
    return "\n".join([*format_table(_MARKDOWN_HEAD, table), *(part for note in notes for part in ("", note))]) + "\n"


def style_outcome(outcome: str) -> Text:
    return style_text(outcome, OUTCOME_STYLES.get(Outcome(outcome), "red"))


def style_text(text: str, style: str = "") -> Text:
    """Remove markup and control characters."""
    return Text(make_printable(text), style=style)


def cut_text(text: str, style: str = "") -> Text:
    """As `style_text`, in one line that is cut with an ellipsis where the terminal or a column ends."""
    return Text(make_printable(text), style=style, no_wrap=True, overflow="ellipsis")


def render_heading(text: str) -> Text:
    return style_text(f"\n{text}", "bold underline")


def format_time_us(time_us: float) -> str:
    """Return a text such as `950 ns`, `12.3 us`, `4.56 ms` or `1.2 s`."""
    for limit, factor, unit in ((1.0, 1e3, "ns"), (1e3, 1.0, "us"), (1e6, 1e-3, "ms")):
        if abs(time_us) < limit:
            return f"{time_us * factor:.3g} {unit}"
    return f"{time_us * 1e-6:,.3f} s"


def format_speedup(speedup: float | None, clock: str | None = None) -> str:
    """Return `1.23x`, `>=1.23x` for a lower bound, or `~1.23x` for cases of different clocks."""
    return "-" if speedup is None else f"{_CLOCK_SIGNS.get(clock or '', '')}{format_fixed(speedup, 2)}x"


def list_clock_notes(rows: Iterable[LeaderboardRow]) -> list[str]:
    """Return notes below one table."""
    rows = list(rows)
    whole = sum((Counter(row.clocks) for row in rows), Counter[str]())
    notes = ((row.group, describe_clocks(row.clocks, whole)) for row in rows)
    return [f"{group.model} ({_name_prompt(group)}): {note}" for group, note in notes if note]


def name_workload(workload: str, dtype: str) -> str:
    return f"{workload} workload" + (f" in {dtype}" if dtype else "")


def describe_section(section: Section) -> str:
    descriptions = {NO_DEVICE: "not evaluated on a device", EMULATED: "emulated on a CPU: correctness without time"}
    where = descriptions.get(section.device, f"on {section.device} against {section.baseline}")
    chip = f" ({section.chip})" if section.chip else ""
    return f"{section.suite}, {name_workload(section.workload, section.dtype)}: {section.language} {where}{chip}"


def _render_section(section: Section, rows: list[LeaderboardRow], *, wide: bool) -> RenderableType:
    table = make_table()
    columns = [*_NARROW_HEAD, *((f"pass@{at.k}",) for at in rows[0].at_k), *_NARROW_TAIL]
    if any(row.group.turns > 1 for row in rows):
        columns.append((*_TURNS, "cost") if any(row.usd_per_correct is not None for row in rows) else _TURNS)
    if wide:
        columns = [(name,) for column in columns for name in column]
    for names in columns:
        is_name = names[0] in ("model", "prompt")
        table.add_column(_stack(map(style_text, names)), justify="left" if is_name else "right", no_wrap=not is_name)
    for rank, row in enumerate(rows, start=1):
        cells = _leaderboard_cells(rank, row)
        table.add_row(*(_stack(cells[name] for name in names) for names in columns))
    emulated_on = [] if section.chip else sorted({name for row in rows for name in row.hardware})
    notes = ["; ".join(emulated_on)] if emulated_on else []
    notes += [
        f"{row.group.model} ({row.group.prompt}): {row.truncated} of {row.samples} answers truncated, cut off by the "
        "token limit before they held a whole program (--max-tokens)"
        for row in rows
        if row.truncated
    ]
    notes += [
        f"{row.group.model} ({_name_prompt(row.group)}): {format_speedup(mean)} of {name}, the fastest baseline for "
        f"{count} of {row.timed} timed candidates"
        for row in rows
        for name, mean, count in row.over_faster
    ]
    notes += [*list_clock_notes(rows), *filter(None, [describe_unequal_problems(rows)])]
    return Group(style_text(describe_section(section), "bold"), table, *(style_text(note, "dim") for note in notes))


def _leaderboard_cells(rank: int, row: LeaderboardRow) -> dict[str, Text]:
    shares = {f"fast_{threshold:g}": share for threshold, share in row.fast}
    shares |= {"correct": row.fast_p(0.0)} | {f"pass@{at.k}": at.correct for at in row.at_k}
    own_share = format_rate(row.own_share, 0)
    return {name: _cell_text(format_rate(share)) for name, share in shares.items()} | {
        "#": _cell_text(str(rank)),
        "model": _cell_text(row.group.model),
        "prompt": _cell_text(_name_prompt(row.group), "dim"),
        "problems": _cell_text(_format_problems(row)),
        "speedup": _cell_text(_format_mean(row)),
        "[low, high]": _cell_text(format_range(row.speedup_low, row.speedup_high)),
        "own": _cell_text(own_share),
        "turns": _cell_text("-" if row.mean_turns is None else format_fixed(row.mean_turns, 1)),
        "best@turn": _cell_text("-" if row.best_turn is None else f"{row.best_turn:g}"),
        "tokens": _cell_text("-" if row.tokens_per_correct is None else f"{row.tokens_per_correct:,.0f}"),
        "cost": _cell_text("-" if row.usd_per_correct is None else f"{row.usd_per_correct:.4f} USD"),
        "cert": _cell_text(row.certificate or "-", _CERTIFICATE_STYLES.get(row.certificate or "", "dim")),
    }


def _name_prompt(group: GroupKey) -> str:
    return f"{group.prompt}, {group.turns} turns" if group.turns > 1 else group.prompt


def _stack(parts: Iterable[Text]) -> Text:
    return Text("\n", no_wrap=True, overflow="ellipsis").join(parts)


def make_table(*columns: str, title: str | None = None, least: int | None = None) -> Table:
    """Cells below `>` (right-aligned) and `=` stay in one line. Others are folded to `least` characters or more."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    table.title = None if title is None else style_text(title, "bold")
    table.title_justify = table.caption_justify = "left"
    for name in columns:
        whole, justify = name.startswith((">", "=")), "right" if name.startswith(">") else "left"
        head = style_text(name[whole:])
        table.add_column(head, justify=justify, no_wrap=whole, overflow="fold", min_width=None if whole else least)  # type: ignore[arg-type]
    return table


def add_column(table: Table, name: str, *, is_number: bool = False, whole: bool = False) -> None:
    """`whole` columns keep their width; the others are cut with an ellipsis."""
    table.add_column(name, justify="right" if is_number else "left", no_wrap=whole, min_width=4, overflow="ellipsis")


def format_cell(name: str, value: str | float | None, clock: str | None = None) -> Text:
    if name == "outcome":
        return style_outcome(str(value))
    if value is None or value == "":
        return _cell_text("-", "dim")
    unit = COLUMNS[name].unit
    if unit.startswith("x"):  # no sign at the ends of an interval
        return _cell_text(format_speedup(float(value), clock if unit == "x by clock" else None))
    if isinstance(value, float):
        return _cell_text(
            format_rate(value) if unit == "%" else format_time_us(value) if unit == "us" else f"{value:.2f}"
        )
    return _cell_text(str(value))


def _cell_text(text: str, style: str = "") -> Text:
    return cut_text(text.replace("\n", " "), style)


def _format_mean(row: LeaderboardRow) -> str:
    if row.geometric_mean_speedup is None:
        return "-"
    return f"{format_speedup(row.geometric_mean_speedup, row.clock)} ({row.timed})"


def _format_problems(row: LeaderboardRow) -> str:
    return str(row.problems) if row.scored == row.problems else f"{row.scored} of {row.problems}"


def _escape_markdown(cell: str) -> str:
    return make_printable(cell).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


LONGEST_REASON = 200  # characters; `harness show` prints the rest


def render_ranked_files(ranked: Sequence[RankedFile]) -> Table:
    table = make_table(">#", ">id", "file", "=outcome", ">speedup\n[low, high]", "note", least=8)
    for place, one in enumerate(ranked, start=1):
        numbers = (str(place) if one.is_correct else "-", str(one.stored.id))
        outcome, speedup = style_outcome(one.evaluation.outcome), format_interval(one.evaluation).replace(" [", "\n[")
        table.add_row(*numbers, style_text(one.name), outcome, speedup, style_text(_note(one)))
    return table


def list_notes(ranked: Sequence[RankedFile]) -> list[str]:
    devices = sorted({one.device_kind for one in ranked if one.is_correct})
    return [f"Speedups on different devices ({', '.join(devices)}) are not comparable."] if len(devices) > 1 else []


def format_interval(evaluation: Evaluation) -> str:
    """Return a text such as `1.23x [1.20, 1.26]`, or `-` without a confirmed time."""
    timing = evaluation.timing
    if timing is None or evaluation.speedup is None:
        return "-"
    interval = format_range(timing.speedup_low, timing.speedup_high)
    return f"{format_speedup(evaluation.speedup, timing.clock)} {interval}"


def _note(one: RankedFile) -> str:
    if not one.is_correct:
        return shorten(one.evaluation.message.partition("\n")[0], LONGEST_REASON, placeholder=" ...")
    return "; ".join(filter(None, (_compare(one), describe_fastest(make_row(one.evaluation)))))


def _compare(one: RankedFile) -> str:
    timing, pairs = one.evaluation.timing, one.pairs
    if one.timing is None:
        return "not timed" if timing is None else f"its time is {timing.verdict}"
    if pairs is None or pairs.speedup is None or pairs.speedup_low is None or pairs.speedup_high is None:
        return f"overlaps with {one.close_to}" if one.close_to else ""
    interval = format_range(pairs.speedup_low, pairs.speedup_high)
    verdict = "faster than" if pairs.speedup_low > 1 else "slower than" if pairs.speedup_high < 1 else "tie with"
    return f"{verdict} {one.close_to}: {format_speedup(pairs.speedup)} in pairs {interval}"
