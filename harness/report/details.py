"""One evaluation in full, for a terminal: its source, its build log, and every trial, finding and block.

Only builds what `rich` renders; the command line prints it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.domain import BuildSummary, Correctness, Evaluation, Finding, SampleKey, Timing
from harness.report.printable import make_printable
from harness.report.tables import format_speedup, format_time_us, make_table, style_outcome, style_text
from harness.store.results import StoredEvaluation

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

LOG_TAIL_LINES = 20
_SEVERITY_STYLES = {"fatal": "bold red", "warning": "yellow", "note": ""}


def render_details(stored: StoredEvaluation, source: str | None, *, whole_log: bool = False) -> RenderableType:
    """Source, build log (its end, or all of it), evaluation: the verdict comes last, where a terminal stops."""
    from rich.console import Group

    return Group(*_sections(stored, source, whole_log=whole_log))


def render_source(source: str) -> RenderableType:
    """The source with line numbers and colours."""
    from rich.syntax import Syntax

    return Syntax(make_printable(source), "python", line_numbers=True, word_wrap=True, background_color="default")


def render_log(log: str, *, whole: bool = True) -> Text:
    """The build log, or its last lines with a word about the rest."""
    lines = make_printable(log).rstrip("\n").split("\n")
    if whole or len(lines) <= LOG_TAIL_LINES:
        return style_text("\n".join(lines))
    skipped = len(lines) - LOG_TAIL_LINES
    return style_text(f"({skipped} lines before these; --log shows all)\n", "dim").append(
        "\n".join(lines[-LOG_TAIL_LINES:])
    )


def _sections(stored: StoredEvaluation, source: str | None, *, whole_log: bool) -> Iterator[RenderableType]:
    evaluation = stored.evaluation
    yield _heading("Source")
    yield style_text("(not stored)", "dim") if source is None else render_source(source)
    if evaluation.build is not None:
        yield from _build_parts(evaluation.build, whole_log=whole_log)
    if evaluation.findings:
        yield _heading("Findings")
        yield from map(_render_finding, evaluation.findings)
    if evaluation.correctness is not None:
        yield from _correctness_parts(evaluation.correctness)
    if evaluation.timing is not None:
        yield from _timing_parts(evaluation.timing)
    yield _heading("Measured in")
    yield _render_facts(_list_environment(evaluation))
    yield _heading("Verdict")
    yield _render_facts(_list_facts(stored))
    yield _render_verdict(evaluation)


def _build_parts(build: BuildSummary, *, whole_log: bool) -> Iterator[RenderableType]:
    origin = "from the cache" if build.cached else f"in {build.duration_s:.1f} s"
    yield _heading("Build")
    yield style_text(
        f"{len(build.keys)} extension(s), {origin}, lane {build.lane}: {', '.join(build.keys) or 'no key'}"
    )
    if build.log:
        yield render_log(build.log, whole=whole_log)


def _render_finding(finding: Finding) -> Text:
    text = style_text(f"{finding.severity} ", _SEVERITY_STYLES[finding.severity]).append_text(
        style_text(finding.check, "bold")
    )
    text.append_text(style_text(f": {finding.message}"))
    return text.append_text(style_text(f"\n    {finding.evidence}", "dim")) if finding.evidence else text


def _correctness_parts(correctness: Correctness) -> Iterator[RenderableType]:
    yield _heading("Correctness")
    yield style_text(f"against the {correctness.truth} truth; weights: {correctness.weights}")
    table = _make_number_table("trial", "inputs", "passed", "max error", "reference", "of allowed", "mismatched")
    for number, trial in enumerate(correctness.trials, start=1):
        table.add_row(
            str(number),
            style_text(trial.distribution),
            style_text("yes", "green") if trial.passed else style_text("NO", "bold red"),
            *map(_format_error, (trial.max_abs_error, trial.reference_max_abs_error, trial.worst_ratio)),
            f"{trial.mismatched} of {trial.elements}",
        )
    yield table
    messages = [
        f"trial {number}: {one.message}" for number, one in enumerate(correctness.trials, start=1) if one.message
    ]
    if messages:
        yield style_text("\n".join(messages))


def _timing_parts(timing: Timing) -> Iterator[RenderableType]:
    yield _heading("Time per call")
    floor = "" if timing.noise_floor is None else f"; noise floor {100 * timing.noise_floor:.1f}%"
    yield style_text(
        f"{timing.baseline} {format_time_us(timing.baseline_us)}, candidate {format_time_us(timing.candidate_us)}: "
        f"{format_speedup(timing.speedup)} [{timing.speedup_low:.2f}, {timing.speedup_high:.2f}], {timing.verdict}"
        f"; exchange {format_time_us(timing.overhead_us)}{floor}"
    )
    if not timing.blocks:
        return
    table = _make_number_table(
        "block", "calls", timing.baseline, "candidate", "ratio", f"{timing.baseline} (judge)", "candidate (judge)"
    )
    for number, block in enumerate(timing.blocks, start=1):
        times_us = block.baseline_claim_us, block.candidate_claim_us
        judged_us = block.baseline_judge_us, block.candidate_judge_us
        ratio = format_speedup(times_us[0] / times_us[1] if times_us[1] else None)
        table.add_row(
            str(number), str(block.calls), *map(format_time_us, times_us), ratio, *map(format_time_us, judged_us)
        )
    yield table


def _list_environment(evaluation: Evaluation) -> list[tuple[str, str]]:
    phases = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in evaluation.phases_s)
    facts = [*evaluation.environment, ("confinement", evaluation.confinement), ("started", evaluation.started_at)]
    return [*facts, ("took", f"{evaluation.duration_s:.2f} s" + (f" ({phases})" if phases else ""))]


def _list_facts(stored: StoredEvaluation) -> list[tuple[str, str]]:
    subject = stored.evaluation.subject
    key = SampleKey(run=subject.run, problem=subject.problem, sample=subject.sample, turn=subject.turn)
    return [
        ("id", str(stored.id)),
        ("candidate", f"{key} ({subject.candidate_digest or 'no code'})"),
        ("problem", f"{subject.suite}/{subject.problem}, {subject.workload} workload ({subject.problem_digest})"),
        ("model", f"{subject.model}, prompt {subject.prompt}, {subject.language}"),
        ("device", f"{subject.device} {stored.evaluation.hardware}".strip()),
    ]


def _render_verdict(evaluation: Evaluation) -> Text:
    verdict = style_outcome(evaluation.outcome.value)
    if evaluation.speedup is not None:
        verdict.append_text(
            style_text(f" {format_speedup(evaluation.speedup)} against {evaluation.subject.baseline}", "bold")
        )
    return verdict.append_text(style_text(f": {evaluation.message}")) if evaluation.message else verdict


def _render_facts(facts: list[tuple[str, str]]) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for name, value in facts:
        if not value:
            continue
        table.add_row(style_text(name, "dim"), style_text(value))
    return table


def _make_number_table(*columns: str) -> Table:
    table = make_table()
    for name in columns:
        is_text = name in ("inputs", "passed")
        table.add_column(style_text(name), justify="left" if is_text else "right", no_wrap=not is_text)
    return table


def _heading(text: str) -> Text:
    return style_text(f"\n{text}", "bold underline")


def _format_error(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
