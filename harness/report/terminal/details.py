"""Renders one evaluation for a terminal."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.analysis.source_locations import find_lines
from harness.builder.error_excerpt import shorten_log
from harness.domain import (
    BaselineResult,
    BuildSummary,
    CaseResult,
    Correctness,
    CounterReport,
    Evaluation,
    Finding,
    Outcome,
    Trial,
    Work,
)
from harness.report.terminal.sources import (
    NO_TURNS,
    CompilerText,
    SampleTurns,
    drop_installed_frames,
    render_excerpt,
    render_turns,
)
from harness.report.terminal.tables import (
    format_speedup,
    format_time_us,
    make_table,
    name_workload,
    render_heading,
    style_outcome,
    style_text,
)
from harness.report.terminal.timing_details import list_conditions, render_timing
from harness.report.values import count, make_printable
from harness.report.verdict_text import (
    WITHOUT_CUSTOM,
    explain_cases,
    explain_roofline,
    explain_use,
    format_interval,
    format_share,
    list_circumstances,
    name_sample,
    state_verdict,
)
from harness.store.results import StoredEvaluation


def render_cases(evaluation: Evaluation) -> Iterator[RenderableType]:
    is_timed = any(case.timing is not None for case in evaluation.cases)
    table = make_table("case", "outcome", *((">speedup", ">interval", ">baseline, candidate") if is_timed else ()))
    for case in evaluation.cases:
        table.add_row(_name_case(case), style_outcome(case.outcome.value), *(_list_times(case) if is_timed else ()))
    yield table
    for sentence in explain_cases(evaluation):
        yield style_text(sentence)


def _name_case(case: CaseResult) -> Text:
    name = style_text(case.name, "bold").append_text(style_text(", secret" if case.is_secret else ""))
    return name.append_text(style_text(f"\n{case.sizes}", "dim")) if case.sizes else name


def _list_times(case: CaseResult) -> tuple[Text, Text, Text]:
    timing = case.timing
    if timing is None:
        return style_text("-"), style_text("not timed"), style_text("-")
    interval = style_text(f"{format_interval(timing)}\n{timing.verdict}")
    times = f"{format_time_us(timing.baseline_us)}\n{format_time_us(timing.candidate_us)}"
    return style_text(format_speedup(timing.speedup, timing.clock)), interval, style_text(times)


TAIL_LINES = 20
BAR_WIDTH = 40
KERNELS_SHOWN = 8
_SEVERITIES = (("fatal", "bold red"), ("warning", "yellow"), ("note", ""))
_BUILD_DECIDED = (Outcome.BUILD_ERROR, Outcome.LOAD_ERROR)


def render_details(
    stored: StoredEvaluation,
    *,
    source: str | None = None,
    turns: SampleTurns = NO_TURNS,
    whole_log: bool = False,
    all_blocks: bool = False,
) -> RenderableType:
    """The outcome is first and last: a terminal shows the end. Without `whole_log`, the log is reduced to errors."""
    return Group(*_sections(stored, source, turns, whole_log=whole_log, all_blocks=all_blocks))


def render_log(log: str, *, whole: bool = True) -> RenderableType:
    if whole:
        return style_text(log.rstrip("\n"))
    errors, lines = shorten_log(log), len(log.splitlines())
    rest = lines - len(errors.splitlines())
    hint = [style_text(f"({rest:,} more lines; --log shows all)", "dim")] if rest > 0 else []
    return Group(CompilerText(errors), *hint)


def _sections(
    stored: StoredEvaluation, source: str | None, turns: SampleTurns, *, whole_log: bool, all_blocks: bool
) -> Iterator[RenderableType]:
    evaluation = stored.evaluation
    yield style_text(f"Evaluation {stored.id}: ", "bold").append_text(style_outcome(evaluation.outcome.value))
    yield style_text(state_verdict(evaluation))
    yield style_text("")
    origin = turns.origins.get(evaluation.subject.turn)
    yield _render_facts(_list_facts(evaluation, origin.solution if origin else ""))
    yield from _finding_parts(evaluation, source or "")
    if evaluation.correctness is not None:
        yield from _correctness_parts(evaluation.correctness, evaluation.message)
    if evaluation.cases:
        yield render_heading("Cases")
        yield from render_cases(evaluation)
    yield from _timing_parts(evaluation, all_blocks=all_blocks)
    if evaluation.further:
        yield from _baseline_parts(evaluation.further)
    if evaluation.work is not None:
        yield from _work_parts(evaluation.work)
    if evaluation.counters is not None:
        yield from _counter_parts(evaluation.counters)
    if evaluation.build is not None:
        yield from _build_parts(evaluation, evaluation.build, whole_log=whole_log)
    if source:
        yield from _source_parts(evaluation, source)
    yield from render_turns(turns, evaluation.subject.turn, source)
    yield render_heading("Evaluation conditions")
    phases = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in evaluation.phases_s)
    yield _render_facts(list_circumstances(evaluation, phases))
    yield style_text(f"\nAlso: harness show {stored.id} --source | --log | --blocks | --json", "dim")
    yield _render_verdict(evaluation)


def _finding_parts(evaluation: Evaluation, source: str) -> Iterator[RenderableType]:
    yield render_heading("Findings")
    if not evaluation.findings:
        yield style_text("none")
    for severity, style in _SEVERITIES:
        for finding in evaluation.findings:
            if finding.severity == severity:
                is_reason = finding.message in evaluation.message
                yield _render_finding(finding, style, find_lines(finding, source), is_reason=is_reason)


def _render_finding(finding: Finding, style: str, lines: tuple[int, ...], *, is_reason: bool) -> RenderableType:
    head = style_text(f"{finding.severity} ", style).append_text(style_text(finding.check, "bold"))
    head.append_text(style_text(": the reason above" if is_reason else f": {finding.message}"))
    if lines:
        where = f" (line {', '.join(map(str, lines))} of the candidate)"
        head.append_text(style_text(where, "bold"))
    if not finding.evidence:
        return head
    evidence = _cut_to_tail(drop_installed_frames(finding.evidence))
    return Group(head, Padding(CompilerText(evidence, "dim"), (0, 0, 0, 4)))


def _correctness_parts(correctness: Correctness, reason: str) -> Iterator[RenderableType]:
    trials = correctness.trials
    passed = sum(trial.passed for trial in trials)
    truth = "the float64 truth" if correctness.truth == "float64" else "the reference itself (no float64 truth)"
    yield render_heading("Correctness")
    yield style_text(f"{passed} of {len(trials)} trials passed, against {truth}; weights: {correctness.weights}")
    table = make_table(">#", "inputs", "passed", ">max error", ">reference's", ">of allowed", ">wrong")
    for number, trial in enumerate(trials, start=1):
        table.add_row(
            str(number),
            style_text(f"{trial.case}: {trial.distribution}" if trial.case else trial.distribution),
            style_text("yes", "green") if trial.passed else style_text("NO", "bold red"),
            *map(_format_error, (trial.max_abs_error, trial.reference_max_abs_error)),
            "-" if trial.worst_ratio is None else format_share(trial.worst_ratio),
            f"{trial.mismatched:,}",
        )
    yield table
    yield style_text(
        f"{_count_elements(correctness)} elements each. Allowed: a multiple of the reference's own error, with "
        f"a floor for the dtype; the worst element counts.{_explain_missing_errors(trials)}",
        "dim",
    )
    for number, trial in enumerate(trials, start=1):
        if trial.message and trial.message not in reason:
            yield style_text(f"trial {number}: {trial.message}")


def _explain_missing_errors(trials: Sequence[Trial]) -> str:
    if all(trial.worst_ratio is not None for trial in trials if trial.passed):
        return ""
    return " Passed without an error: so close to the reference's outputs that the truth was not computed."


def _count_elements(correctness: Correctness) -> str:
    counts = sorted({trial.elements for trial in correctness.trials})
    return f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}" if counts else "no"


def _timing_parts(evaluation: Evaluation, *, all_blocks: bool) -> Iterator[RenderableType]:
    timing = evaluation.timing
    if timing is not None:
        yield render_heading("Time per call")
        if evaluation.outcome is not Outcome.CORRECT:
            yield style_text("Not ranked: the candidate is not correct.", "bold red")
        yield from render_timing(timing, all_blocks=all_blocks)
        for case in evaluation.cases:
            if case.timing is not None and all_blocks:
                yield style_text(f"\ncase {case.name}", "bold")
                yield from render_timing(case.timing, all_blocks=True)
        yield render_heading("System conditions")
        yield _render_facts([*explain_use(timing), *list_conditions(timing)])
    if evaluation.roofline is not None:
        place = next((f" of case {case.name}" for case in evaluation.cases if case.roofline is not None), "")
        yield render_heading(f"Roofline{place}")
        yield _render_facts(explain_roofline(evaluation))


def _baseline_parts(further: Sequence[BaselineResult]) -> Iterator[RenderableType]:
    yield render_heading("Further baselines")
    table = make_table(">baseline", ">time", ">candidate", ">speedup", ">interval")
    for one in further:
        timing = one.timing
        if timing is None:
            table.add_row(style_text(one.name), "-", "-", "-", style_text("not timed"))
            continue
        times = (style_text(format_time_us(time_us)) for time_us in (timing.baseline_us, timing.candidate_us))
        interval = f"{format_interval(timing)} {timing.verdict}"
        table.add_row(style_text(one.name), *times, format_speedup(timing.speedup, timing.clock), style_text(interval))
    yield table
    for one in further:
        if one.reason:
            yield style_text(f"{one.name}: {one.reason}", "dim")


def _work_parts(work: Work) -> Iterator[RenderableType]:
    yield render_heading("Time attribution")
    table = make_table("code", ">share", "of the time")
    shares = (
        ("candidate's kernels", work.custom),
        ("torch operators", work.torch),
        ("vendor libraries", work.library),
        ("other (Python, launches)", work.other),
    )
    for name, share in shares:
        table.add_row(name, f"{100 * share:.0f}%", "#" * round(BAR_WIDTH * min(max(share, 0.0), 1.0)))
    yield table
    more = len(work.custom_kernels) - KERNELS_SHOWN
    kernels = ", ".join(work.custom_kernels[:KERNELS_SHOWN]) + (f" and {more} more" if more > 0 else "")
    yield _render_facts([("kernels", kernels or "none"), ("without them", WITHOUT_CUSTOM[work.without_custom])])
    yield style_text("as reported by the worker; a column and a filter (--own-kernels), not part of the verdict", "dim")


def _counter_parts(counters: CounterReport) -> Iterator[RenderableType]:
    yield render_heading("Hardware counters")
    for one in counters.kernels:
        yield style_text(f"{one.kernel}: {one.describe_launch()}", "bold")
        yield _render_facts(one.list_facts())
    if counters.note:
        yield style_text(counters.note)
    yield style_text("read by ncu in a worker of its own, in another call than the timed ones", "dim")


def _build_parts(evaluation: Evaluation, build: BuildSummary, *, whole_log: bool) -> Iterator[RenderableType]:
    origin = "from the cache" if build.cached else f"built in {build.duration_s:.1f} s"
    yield render_heading("Build")
    strategy = f"{build.strategy}: {build.reason}" if build.reason else build.strategy
    yield style_text(f"{count(len(build.keys), 'extension')}, {origin}, strategy {strategy}")
    yield style_text(", ".join(build.keys) or "no key", "dim")
    if whole_log or evaluation.outcome in _BUILD_DECIDED:
        yield render_log(build.log, whole=whole_log)
    elif build.log:
        yield style_text(f"({len(build.log.splitlines())} lines of log; --log shows them)", "dim")


def _source_parts(evaluation: Evaluation, source: str) -> Iterator[RenderableType]:
    marked = {line for finding in evaluation.findings for line in find_lines(finding, source)}
    yield render_heading("Source")
    yield render_excerpt(source, marked=marked)


def _list_facts(evaluation: Evaluation, solution: str) -> list[tuple[str, str]]:
    subject = evaluation.subject
    workload = name_workload(subject.workload, subject.dtype)
    return [
        ("candidate", f"{name_sample(subject)} ({subject.candidate_digest or 'no code'})"),
        *([("solution", solution)] if solution else []),
        ("model", f"{subject.model}, prompt {subject.prompt}, {subject.language}"),
        ("problem", f"{subject.suite}/{subject.problem}, {workload} ({subject.problem_digest})"),
        ("device", f"{subject.device} {evaluation.hardware}".strip()),
    ]


def _render_verdict(evaluation: Evaluation) -> Text:
    verdict, timing = style_outcome(evaluation.outcome.value), evaluation.timing
    if evaluation.speedup is not None and timing is not None:
        speed = f" {format_speedup(evaluation.speedup, timing.clock)} against {timing.baseline} ({timing.verdict})"
        verdict.append_text(style_text(speed, "bold"))
    elif evaluation.outcome is Outcome.CORRECT:
        verdict.append_text(style_text(f" (time {timing.verdict}, not ranked)" if timing else " (not timed)"))
    else:
        verdict.append_text(style_text(f" (harness explain {evaluation.outcome})"))
    return verdict


def _render_facts(facts: list[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, value in facts:
        if value:
            table.add_row(style_text(name, "dim"), style_text(value))
    return table


def _cut_to_tail(text: str) -> str:
    lines = make_printable(text).rstrip("\n").split("\n")
    skipped = len(lines) - TAIL_LINES
    head = [f"({skipped} lines before these; --json has all)"] if skipped > 0 else []
    return "\n".join([*head, *lines[-TAIL_LINES:]])


def _format_error(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
