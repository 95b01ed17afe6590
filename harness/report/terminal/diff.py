"""Renders `harness diff` for 80 columns or more."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.analysis.side_by_side import FlipKind, GroupComparison, Pair, SpeedTest
from harness.analysis.side_material import Cost, SideBySide, TextDiff, pick_samples
from harness.domain import Outcome
from harness.report.terminal.tables import (
    cut_text,
    describe_section,
    format_speedup,
    make_table,
    style_outcome,
    style_text,
)
from harness.report.values import count, format_range, format_rate
from harness.store.columns import ResultRow

_FLIPS: tuple[tuple[FlipKind, str], ...] = (("lost", "correct before, not after"), ("won", "correct only after"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How many are shown: rows of a table, messages, differences of prompts, and lines of a difference."""

    rows: int = 30
    messages: int = 8
    prompts: int = 1
    lines: int = 40


WHOLE = Extent(rows=2000, messages=2000, prompts=2000, lines=2000)


def render_comparison(
    sides: SideBySide, *, code: bool = False, width: int = 80, extent: Extent = Extent()
) -> RenderableType:
    """`code` adds the source diffs."""
    parts: list[RenderableType] = [style_text(summarise_sides(sides), "bold")]
    for group in sides.comparison.groups:
        parts += ["", *_render_group(group, extent.rows, wide=width >= 110)]
    parts += ["", *_render_outcomes(sides), *_render_messages(sides, extent.messages), "", *_render_costs(sides)]
    parts += ["", *_render_prompts(sides, extent)]
    if code:
        parts += [part for diff in sides.code for part in ("", *_render_diff(diff, extent.lines))]
    elif sides.code:
        parts.append(style_text(f"{len(sides.code)} candidates differ in code: --code or --html shows how", "dim"))
    return Group(*parts)


def summarise_sides(sides: SideBySide) -> str:
    comparison = sides.comparison
    both = len({(group.group.suite, pair.name) for group in comparison.groups for pair in group.pairs})
    what = "candidate" if sides.kind == "harness" else "problem"
    text = f"{sides.kind} {sides.before} -> {sides.after}: {count(both, what)} on both sides"
    for name, problems in (
        (f"only in {sides.before}", comparison.only_before),
        (f"only in {sides.after}", comparison.only_after),
        ("with another problem version, not compared", comparison.other_version),
    ):
        if problems:
            text += f"; {len(problems)} {name}"
    if not both and comparison.only_before and comparison.only_after:
        groups = (comparison.only_before[0][0], comparison.only_after[0][0])
        text += f". Nothing is comparable: {describe_section(groups[0])} / {describe_section(groups[1])}"
    return text


def describe_correctness(group: GroupComparison) -> str:
    shares = f"{format_rate(group.correct_before)} -> {format_rate(group.correct_after)}"
    won, lost = (len(group.flips(kind)) for kind in ("won", "lost"))
    return f"{shares} of {len(group.pairs)}; {won} won, {lost} lost; sign test p = {format_p(group.correct_p)}"


def describe_speed(group: GroupComparison) -> str:
    other = f"; {group.other_clock} timed by different clocks, not compared" if group.other_clock else ""
    if group.speed is None:
        return f"timed on both sides: none{other}"
    changed = [pair.speed for pair in group.changed_speed() if pair.speed]
    faster = sum(speed.ratio > 1 for speed in changed)
    verdict = f"{faster} faster, {len(changed) - faster} slower, significant at a false discovery rate of 5 %"
    test = f"Wilcoxon p = {format_p(group.speed.p)}" if group.timed > 1 else "one problem: no test"
    return f"{format_ratio(group.speed)} over {group.timed} timed on both; {test}; {verdict}{other}"


def format_ratio(speed: SpeedTest) -> str:
    """Return a text such as `1.08x [1.01, 1.15]`, without interval for a single pair."""
    if speed.low <= 0 or speed.high > 1e6:
        return f"{speed.ratio:.2f}x"
    return f"{speed.ratio:.2f}x {format_range(speed.low, speed.high)}"


def format_p(p: float) -> str:
    return f"{p:.1g}" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def _render_group(group: GroupComparison, most: int, *, wide: bool) -> Iterator[RenderableType]:
    yield style_text(describe_section(group.group), "bold")
    for kind, title in _FLIPS:
        flips = group.flips(kind)
        if flips:
            yield style_text(f"{len(flips)} {title}", "red" if kind == "lost" else "green")
            yield _render_flips(flips[:most], wide=wide)
            yield from _note_omitted(len(flips), most)
    yield style_text(f"correct  {describe_correctness(group)}")
    yield style_text(f"speed    {describe_speed(group)}")
    changed = group.changed_speed()
    if changed:
        yield _render_speeds(changed[:most])
        yield from _note_omitted(len(changed), most)


def _render_flips(flips: Sequence[Pair], *, wide: bool) -> Table:
    table = make_table("problem", "=before", "=after")
    if wide:
        table.add_column("message", overflow="ellipsis", no_wrap=True)
    for pair in flips:
        before, after = pick_samples(pair)
        cells = [style_text(pair.name), describe_samples(pair.before), describe_samples(pair.after)]
        failed = after if after.outcome != Outcome.CORRECT else before
        table.add_row(*cells, *([style_text(failed.message.split("\n", 1)[0], "dim")] if wide else []))
    return table


def describe_samples(rows: Sequence[ResultRow]) -> Text:
    if len(rows) == 1:
        text = style_outcome(rows[0].outcome)
        return text if rows[0].speedup is None else text.append(f" {format_speedup(rows[0].speedup, rows[0].clock)}")
    correct = sum(row.outcome == Outcome.CORRECT for row in rows)
    style = "green" if correct else "red"
    return style_text(f"{correct} of {len(rows)} correct", style)


def _render_speeds(pairs: Sequence[Pair]) -> Table:
    table = make_table("problem", ">before", ">after", ">after/before", ">q")
    for pair in pairs:
        speed = pair.speed
        if speed is None or speed.q is None:
            continue
        times = (style_text(format_speedup(value, speed.clock)) for value in (speed.before, speed.after))
        ratio = style_text(format_ratio(speed), "green" if speed.ratio > 1 else "red")
        table.add_row(style_text(pair.name), *times, ratio, format_p(speed.q))
    return table


def _note_omitted(number: int, most: int) -> Iterator[Text]:
    if number > most:
        yield style_text(f"and {number - most} more: --html or --json has all", "dim")


def _render_outcomes(sides: SideBySide) -> Iterator[RenderableType]:
    if not sides.comparison.outcomes:
        return
    yield style_text("Outcomes of the compared samples", "bold")
    yield _make_count_table(
        "outcome", ((style_outcome(name), *pair) for name, pair in sides.comparison.outcomes.items())
    )


def _render_messages(sides: SideBySide, most: int) -> Iterator[RenderableType]:
    changed = [entry for entry in sides.comparison.messages if entry[1] != entry[2]]
    if changed:
        yield ""
        yield style_text("Errors with changed counts", "bold")
        yield _make_count_table("error", ((style_text(text), was, now) for text, was, now in changed[:most]))
        yield from _note_omitted(len(changed), most)


def _make_count_table(head: str, rows: Iterable[tuple[Text, int, int]]) -> Table:
    table = make_table(head, ">before", ">after", ">change")
    for text, before, after in rows:
        table.add_row(text, f"{before:,}", f"{after:,}", f"{after - before:+,}" if after != before else "")
    return table


def list_costs(costs: tuple[Cost, Cost]) -> list[tuple[str, str, str]]:
    """Return (name, before, after) as strings."""
    rows = [
        ("answers", *(f"{cost.answers:,}" for cost in costs)),
        ("correct samples", *(f"{cost.correct:,}" for cost in costs)),
        ("evaluation seconds", *(f"{cost.evaluated_s:,.0f}" for cost in costs)),
    ]
    if any(cost.counted for cost in costs):
        rows += [
            ("prompt tokens", *(_format_tokens(cost, cost.prompt_tokens) for cost in costs)),
            ("completion tokens", *(_format_tokens(cost, cost.completion_tokens) for cost in costs)),
            ("of them reasoning", *(_format_tokens(cost, cost.reasoning_tokens) for cost in costs)),
            ("completion tokens per correct sample", *(_format_per_correct(cost) for cost in costs)),
            ("seconds waiting for answers", *(f"{cost.latency_s:,.0f}" for cost in costs)),
        ]
    return [(what, before, after) for what, before, after in rows]


def _format_tokens(cost: Cost, tokens: int) -> str:
    if not cost.counted:
        return "unknown"
    return f"{tokens:,}" if cost.counted == cost.answers else f"{tokens:,} ({count(cost.counted, 'answer')})"


def _format_per_correct(cost: Cost) -> str:
    return "-" if cost.tokens_per_correct is None else f"{cost.tokens_per_correct:,.0f}"


def _render_costs(sides: SideBySide) -> Iterator[RenderableType]:
    yield style_text("Cost", "bold")
    table = make_table("what", ">before", ">after")
    for row in list_costs(sides.costs):
        table.add_row(*map(style_text, row))
    yield table


def describe_prompts(sides: SideBySide) -> str:
    if not sides.prompts_read:
        missing = (
            "the files of one or both sides are missing" if sides.prompts_shared else "no problem is on both sides"
        )
        return f"Prompts: not compared, {missing}."
    text = f"Prompts of {sides.prompts_read} of {sides.prompts_shared} problems compared: "
    if not sides.prompts:
        return f"{text}no differences."
    return f"{text}{count(len(sides.prompts), 'distinct difference')}."


def _render_prompts(sides: SideBySide, extent: Extent) -> Iterator[RenderableType]:
    yield style_text(describe_prompts(sides), "bold")
    for diff in sides.prompts[: extent.prompts]:
        yield from _render_diff(diff, extent.lines)


def name_diff(diff: TextDiff) -> str:
    more = f" and {len(diff.names) - 3} more" if len(diff.names) > 3 else ""
    return ", ".join(diff.names[:3]) + more


def _render_diff(diff: TextDiff, most: int) -> Iterator[RenderableType]:
    yield style_text(name_diff(diff), "bold")
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in diff.lines[:most]:
        yield cut_text(line.expandtabs(4), styles.get(line[:1], ""))
    left = len(diff.lines) - most
    if left > 0 or diff.is_cut:
        yield style_text(f"and {max(left, 0)}{'+' if diff.is_cut else ''} lines more", "dim")
