"""Writes the page of `harness diff --html`, self-contained and without scripts. The template escapes all values."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.analysis.side_by_side import Pair
from harness.analysis.side_material import SideBySide, TextDiff, pick_samples
from harness.report.html.encoding import clean
from harness.report.terminal.diff import (
    describe_correctness,
    describe_prompts,
    describe_samples,
    describe_speed,
    format_p,
    format_ratio,
    list_costs,
    name_diff,
    summarise_sides,
)
from harness.report.terminal.tables import describe_section, format_speedup
from harness.report.values import make_strict

TEMPLATE = "diff_page.html.jinja"
MOST_ROWS = 2000  # per table
_LINE_CLASSES = {"+": "added", "-": "removed", "@": "hunk"}


def format_comparison_page(sides: SideBySide, *, made_at: str) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.get_template(TEMPLATE).render(clean(_describe_page(sides, made_at)))
    return page.encode("utf-8", "replace").decode()


def comparison_record(sides: SideBySide) -> dict[str, Any]:
    comparison = sides.comparison
    record: dict[str, Any] = {"kind": sides.kind, "before": sides.before, "after": sides.after}
    record["places"] = [
        {
            **group.group._asdict(),
            "pairs": len(group.pairs),
            "correct": {"before": group.correct_before, "after": group.correct_after, "p": group.correct_p},
            "lost": [_record_pair(pair) for pair in group.flips("lost")],
            "won": [_record_pair(pair) for pair in group.flips("won")],
            "timed": group.timed,
            "speed": asdict(group.speed) if group.speed else None,
            "changed_speed": [_record_pair(pair) for pair in group.changed_speed()],
        }
        for group in comparison.groups
    ]
    for name in ("only_before", "only_after", "other_version"):
        record[name] = [{**group._asdict(), "name": left} for group, left in getattr(comparison, name)]
    record["outcomes"] = {name: list(counts) for name, counts in comparison.outcomes.items()}
    record["messages"] = [{"text": text, "before": was, "after": now} for text, was, now in comparison.messages]
    record["costs"] = dict(zip(("before", "after"), map(asdict, sides.costs), strict=True))
    record["prompts"] = {"read": sides.prompts_read, "shared": sides.prompts_shared, "differences": len(sides.prompts)}
    return {name: make_strict(value) for name, value in record.items()}


def _record_pair(pair: Pair) -> dict[str, Any]:
    before, after = pick_samples(pair)
    record = {"name": pair.name, "problem": pair.problem, "before": before.outcome, "after": after.outcome}
    ids = {"before_id": before.id, "after_id": after.id}
    return record | ids | {"speed": asdict(pair.speed) if pair.speed else None}


def _describe_page(sides: SideBySide, made_at: str) -> dict[str, Any]:
    changed = [entry for entry in sides.comparison.messages if entry[1] != entry[2]]
    return {
        "title": f"{sides.before} -> {sides.after}",
        "summary": summarise_sides(sides),
        "made_at": made_at,
        "places": [
            {
                "name": describe_section(group.group),
                "correct": describe_correctness(group),
                "speed": describe_speed(group),
                "flips": [
                    (kind, [_describe_flip(pair) for pair in group.flips(kind)[:MOST_ROWS]], len(group.flips(kind)))
                    for kind in ("lost", "won")
                ],
                "changed": [_describe_speed(pair) for pair in group.changed_speed()[:MOST_ROWS]],
            }
            for group in sides.comparison.groups
        ],
        "outcomes": [(name, *counts) for name, counts in sides.comparison.outcomes.items()],
        "messages": changed[:MOST_ROWS],
        "costs": list_costs(sides.costs),
        "prompts": describe_prompts(sides),
        "prompt_diffs": [_describe_diff(diff) for diff in sides.prompts],
        "code_diffs": [_describe_diff(diff) for diff in sides.code],
    }


def _describe_flip(pair: Pair) -> dict[str, str]:
    before, after = pick_samples(pair)
    failed = after if after.outcome != "correct" else before
    return {
        "name": pair.name,
        "before": describe_samples(pair.before).plain,
        "after": describe_samples(pair.after).plain,
        "message": failed.message[:400],
    }


def _describe_speed(pair: Pair) -> dict[str, Any]:
    speed = pair.speed
    if speed is None or speed.q is None:
        return {}
    return {
        "name": pair.name,
        "before": format_speedup(speed.before, speed.clock),
        "after": format_speedup(speed.after, speed.clock),
        "ratio": format_ratio(speed),
        "q": format_p(speed.q),
        "style": "won" if speed.ratio > 1 else "lost",
    }


def _describe_diff(diff: TextDiff) -> dict[str, Any]:
    lines = [(_LINE_CLASSES.get(line[:1], ""), line) for line in diff.lines]
    return {"name": name_diff(diff), "lines": lines, "is_cut": diff.is_cut}
