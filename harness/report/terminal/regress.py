"""Renders results of `harness regress` for terminals, Markdown, JUnit and JSON, with escaping for each."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any
from xml.etree import ElementTree

from rich.table import Table
from rich.text import Text

from harness.analysis.change_detection import CHANGE_KINDS, Change
from harness.domain import FILE_RUN, Outcome, Subject
from harness.report.terminal.tables import format_speedup, make_table, style_outcome, style_text
from harness.report.values import format_range, format_table, make_printable, make_strict
from harness.report.verdict_text import name_sample

_STYLES = {
    "broken": "bold red", "slower": "red", "fixed": "green", "faster": "green", "unreliable": "yellow",
    "not_comparable": "dim", "same": "",
}  # fmt: skip
_MARKDOWN_SIGNS = re.compile(r"([\\`*_\[\]#|~&])")
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DIGITS = 8
VISIBLE_GOAL = 1.10


def name_subject(subject: Subject) -> str:
    """Add the digest to programs given as files, whose names may be equal."""
    digest = f" ({subject.candidate_digest[:_DIGITS]})" if subject.run == FILE_RUN else ""
    return f"{name_sample(subject)}{digest}"


def sort_changes(changes: Iterable[Change]) -> list[Change]:
    def sort_key(change: Change) -> tuple[int, float, str]:
        return (
            CHANGE_KINDS.index(change.kind),
            change.speed.ratio if change.speed else 1.0,
            name_subject(change.subject),
        )

    return sorted(changes, key=sort_key)


def render_changes(changes: Iterable[Change], *, wide: bool = False) -> Table:
    """Show one row per candidate; fold long names instead of cutting them."""
    table = make_table(
        "=change", "candidate", "=then", "=now", "now/then", *((">visible from", "device") if wide else ())
    )
    for change in sort_changes(changes):
        cells = [
            style_text(change.kind.replace("_", " "), _STYLES[change.kind]),
            style_text(name_subject(change.subject)),
            *_format_verdicts(change),
            style_text(explain_change(change)),
        ]
        wide_cells = [style_text(_format_visible(change)), style_text(change.subject.device)]
        table.add_row(*cells, *(wide_cells if wide else ()))
    return table


def summarise_changes(changes: Sequence[Change]) -> str:
    if not changes:
        return "0 compared."
    counts = Counter(change.kind for change in changes)
    parts = [f"{counts[kind]} {kind.replace('_', ' ')}" for kind in CHANGE_KINDS if counts[kind]]
    text = f"{len(changes)} compared: {', '.join(parts)}."
    timed = [change.speed.visible for change in changes if change.speed and isfinite(change.speed.visible)]
    blind = [visible for visible in timed if visible > VISIBLE_GOAL]
    if blind:
        text += (
            f" For {len(blind)} of {len(timed)} a slowdown of {VISIBLE_GOAL - 1:.0%} might not be detected, "
            f"only one of {max(blind) - 1:.0%}: noise floor too high or too few stored evaluations "
            "(`--update` stores several of each)."
        )
    return text


def explain_change(change: Change) -> str:
    if change.speed is None or change.reason:
        return change.reason or "-"
    return f"{change.speed.ratio:.2f} {format_range(change.speed.low, change.speed.high)}"


def format_markdown(changes: Sequence[Change]) -> str:
    lines = ["### harness regress", "", _escape_markdown(summarise_changes(changes))]
    rows = []
    for change in sort_changes(changes):
        kind = change.kind.replace("_", " ")
        verdicts = [verdict.plain for verdict in _format_verdicts(change)]
        words = map(_escape_markdown, (name_subject(change.subject), *verdicts, explain_change(change)))
        if change.kind != "same":
            rows.append([f"**{kind}**" if change.is_worse else kind, *words])
    if rows:
        lines += ["", *format_table(("Change", "Candidate", "Then", "Now", "Now / then"), rows)]
    return "\n".join(lines) + "\n"


def format_junit(changes: Sequence[Change]) -> str:
    """Write JUnit XML: worse is a failure, not comparable is skipped."""
    counts = {
        "tests": len(changes),
        "failures": sum(change.is_worse for change in changes),
        "errors": sum(change.harness_failed and not change.is_worse for change in changes),
        "skipped": sum(_is_skipped(change) for change in changes),
    }
    attributes = {name: str(number) for name, number in counts.items()}
    root = ElementTree.Element("testsuites", attributes)
    suite = ElementTree.SubElement(root, "testsuite", {"name": "harness regress"} | attributes)
    for change in sort_changes(changes):
        _add_case(suite, change)
    ElementTree.indent(root, "")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def changes_record(changes: Sequence[Change], exit_code: int) -> dict[str, Any]:
    """`visible` is None without an interval."""
    counts = Counter(change.kind for change in changes)
    records = [
        make_strict(asdict(change) | {"candidate": name_subject(change.subject)}) for change in sort_changes(changes)
    ]
    return {"exit_code": exit_code, "counts": {kind: counts[kind] for kind in CHANGE_KINDS}, "changes": records}


def _add_case(suite: ElementTree.Element, change: Change) -> None:
    subject = change.subject
    parts = subject.suite, subject.problem, subject.device, subject.workload, subject.dtype
    name = f"{name_subject(subject)} ({'extraction' if change.after is None else subject.baseline})"
    about = {"classname": ".".join(filter(None, parts)), "name": name}
    case = ElementTree.SubElement(suite, "testcase", {key: _clean_xml(text) for key, text in about.items()})
    message = {"message": _clean_xml(f"{change.kind.replace('_', ' ')}: {explain_change(change)}")}
    if change.is_worse:
        ElementTree.SubElement(case, "failure", message).text = _clean_xml(_describe_failure(change))
    elif change.harness_failed:
        ElementTree.SubElement(case, "error", message)
    elif _is_skipped(change):
        ElementTree.SubElement(case, "skipped", message)


def _is_skipped(change: Change) -> bool:
    return change.kind in ("not_comparable", "unreliable") and not change.harness_failed


def _describe_failure(change: Change) -> str:
    then, now = _format_verdicts(change)
    return f"{name_subject(change.subject)}: {then.plain} -> {now.plain}, {explain_change(change)}"


def _clean_xml(text: str) -> str:
    return NOT_XML.sub("?", make_printable(text).replace("\n", " "))


def _escape_markdown(text: str) -> str:
    escaped = _MARKDOWN_SIGNS.sub(r"\\\1", make_printable(text).replace("\n", " "))
    return escaped.replace("<", "&lt;").replace("@", "@\u200b").replace("://", ":\\//")


def _format_verdicts(change: Change) -> tuple[Text, Text]:
    clock = change.speed.clock if change.speed else None

    def format_verdict(outcome: Outcome | None, speedup: float | None) -> Text:
        if outcome is None:
            return style_text("-", "dim")
        text = style_outcome(outcome.value)
        return text if speedup is None else text.append(f" {format_speedup(speedup, clock)}")

    return format_verdict(change.before, change.before_speedup), format_verdict(change.after, change.after_speedup)


def _format_visible(change: Change) -> str:
    return f"{change.speed.visible:.2f}x slower" if change.speed and isfinite(change.speed.visible) else "-"
