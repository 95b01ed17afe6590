import re
from dataclasses import replace
from io import StringIO
from xml.etree import ElementTree

import pytest
from rich.console import Console

from harness.analysis.change_detection import Change, SpeedChange
from harness.domain import Outcome
from harness.report.export.json_records import dump_json
from harness.report.terminal.regress import (
    changes_record,
    format_junit,
    format_markdown,
    render_changes,
    sort_changes,
    summarise_changes,
)

HOSTILE = "a|b`<script>alert(1)</script>]]>\x00\x1b[31m\n@everyone \ud800 [x](http://y) &amp;"
SPEED = SpeedChange(before=2.0, after=1.5, ratio=0.75, low=0.7, high=0.8, floor=1.06, visible=1.12)


@pytest.fixture
def changes(subject_of):
    """One of each kind, with hostile names and reasons."""

    def make(kind, **fields):
        subject = subject_of(problem=f"p-{kind}", run=HOSTILE)
        return Change(subject=subject, kind=kind, before=Outcome.CORRECT, after=Outcome.CORRECT, **fields)

    return [
        make("same", speed=replace(SPEED, ratio=1.0, low=0.95, high=1.05)),
        make("slower", speed=SPEED),
        make("broken", reason=HOSTILE),
        make("not_comparable", reason="other driver: 1 -> 2"),
        make("unreliable", reason="no confirmed time in the new evaluation"),
        make("not_comparable", reason="the harness broke", harness_failed=True),
        replace(make("fixed", reason="extraction: nothing -> fence"), before=None, after=None),
    ]


def render(changes, width):
    console = Console(file=StringIO(), width=width, color_system=None)
    console.print(render_changes(changes, wide=width >= 110))
    return console.file.getvalue()


def test_regressions_are_listed_first(changes):
    kinds = [change.kind for change in sort_changes(changes)]
    assert kinds == ["broken", "slower", "fixed", "unreliable", "not_comparable", "not_comparable", "same"]


@pytest.mark.parametrize("width", [80, 200])
def test_the_table_fits_and_shows_ratios_and_reasons(changes, width):
    text = render(changes, width)
    assert max(map(len, text.splitlines())) <= width
    assert "0.75 [0.70, 0.80]" in text
    assert "\x1b" not in text
    assert ("1.12x slower" in text) == (width == 200)


def test_the_summary_counts_kinds_and_says_what_could_not_have_been_seen(changes):
    text = summarise_changes(changes)
    assert text.startswith("7 compared: 1 broken, 1 slower, 1 fixed, 1 unreliable, 2 not comparable, 1 same.")
    assert "For 2 of 2 a slowdown of 10% might not be detected" in text
    sharp = [replace(change, speed=replace(SPEED, visible=1.09)) for change in changes[:1]]
    assert "could not" not in summarise_changes(sharp)


def test_junit_is_well_formed_whatever_the_names(changes):
    root = ElementTree.fromstring(format_junit(changes).encode())
    suite = root.find("testsuite")
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "7", "failures": "2", "errors": "1", "skipped": "2"}
    assert len(root.findall(".//failure")) == 2
    assert "<script>" in root.find(".//failure").get("message"), "shown as text"


def test_markdown_has_no_markup_of_others_and_whole_rows(changes):
    text = format_markdown(changes)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 6, "what stayed the same is only counted"
    assert all(row.replace("\\|", "").count("|") == 6 for row in rows)
    assert "<script" not in text
    assert not re.search(r"(?<!\\)\]|://", text)
    assert "@everyone" not in text


def test_the_json_record_is_strict_and_counts_every_kind(changes):
    blind = replace(changes[0], speed=replace(SPEED, visible=float("inf")))
    record = changes_record([*changes, blind], 1)
    assert '"visible": null' in dump_json(record)
    assert (record["exit_code"], record["counts"]["same"], record["counts"]["faster"]) == (1, 2, 0)


def test_without_changes_every_format_is_still_whole():
    assert ElementTree.fromstring(format_junit([]).encode()).get("tests") == "0"
    assert "0 compared" in format_markdown([])
    assert changes_record([], 4)["changes"] == []
