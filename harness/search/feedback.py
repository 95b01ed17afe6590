"""Makes the feedback on one turn: the one main problem with its evidence, or the measurements.

Evidence that helps to deceive the evaluator is left out. Text of others is quoted as data, bounded and without paths.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.analysis.source_locations import find_lines
from harness.builder.error_excerpt import shorten_log
from harness.domain import (
    IN_REASONING,
    INEXACT,
    TRUNCATED,
    Clock,
    Comparison,
    CounterReport,
    Evaluation,
    Finding,
    KernelCounters,
    Outcome,
    RooflineBounds,
    Timing,
    Work,
)
from harness.domain.errors import shorten
from harness.search.history import History, Turn

MOST_LINES = 30
MOST_CHARACTERS = 2_000
MOST_IN_LINE = 200  # characters
LONGEST_LINE = 300
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)", re.DOTALL)
# C0 and C1 controls except newline and tab, DEL, bidirectional controls, invisible separators, lone surrogates.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
_FOLDERS = re.compile(r"(?<![\w./])/(?:[\w.+~@-]+/)+(?=[\w.+~@-])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """`fence` is longer than any run of backticks in `text`."""

    title: str
    text: str

    @property
    def fence(self) -> str:
        return make_fence(self.text)


def make_fence(text: str) -> str:
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    return "`" * max(3, longest + 1)


def clean(text: str) -> str:
    """Cut long text at its end, with a note, before any pattern runs."""
    text = text[: 8 * MOST_CHARACTERS].replace("\r\n", "\n").replace("\r", "\n")
    text = _FOLDERS.sub("", _CONTROLS.sub("", _ESCAPES.sub("", text))).strip("\n")
    lines = [line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} ..." for line in text.split("\n")]
    short = "\n".join(lines[:MOST_LINES])[:MOST_CHARACTERS]
    return short if len(lines) <= MOST_LINES and short == "\n".join(lines) else f"{short}\n... (cut)"


def clean_line(text: str) -> str:
    return shorten(" ".join(clean(text).replace("`", "'").split()), MOST_IN_LINE)


MOST_ERROR_LINES = 8
MOST_LOCATIONS = 4
MOST_KERNELS = 8
MOST_COUNTED = 3  # kernels with hardware counters, about 25 lines each
MOST_REMARKS = 3
MOST_ATTEMPTS = 12
_PROBLEMS = {
    Outcome.NO_CODE: "The answer holds no Python program that defines `ModelNew`.",
    Outcome.REJECTED: "The program was rejected before it was measured.",
    Outcome.BUILD_ERROR: "The extension does not compile.",
    Outcome.LOAD_ERROR: "The program cannot be imported, or `ModelNew` cannot be constructed.",
    Outcome.RUNTIME_ERROR: "The program fails when it is called.",
    Outcome.WRONG_SHAPE: "The outputs have another shape or structure than the reference's.",
    Outcome.WRONG_DTYPE: "An output has another dtype than the reference's.",
    Outcome.WRONG_VALUE: "The outputs have wrong values.",
    Outcome.TIMEOUT: "The program did not finish within the time limit.",
    Outcome.OUT_OF_MEMORY: "The program needs more memory than there is.",
    Outcome.SUSPECT: (
        "The program was not accepted: it does not behave like a program that computes its outputs from its inputs, in "
        "full, on every call."
    ),
}
_CLOCKS: dict[Clock, str] = {
    "device": "device time of the GPU work, replayed without host code",
    "call": "time of whole calls",
    "bound": (
        "whole calls of the program, whose GPU work cannot be replayed, against device time of the baseline; the "
        "speedup is a lower bound"
    ),
    "mixed": "device time for some cases, whole calls for others",
}
_INCOMPLETE = {
    TRUNCATED: "The answer was cut off by the token limit, before it held a whole program.",
    IN_REASONING: "The answer defines `ModelNew` within marks of reasoning, which is not searched for programs.",
}
_COPY = "The program is the reference under another name. Write kernels of your own."
_KERNEL = "A kernel has an error, found while its threads were checked."
# Warnings of a correct program that its author can act on.
_REMARKS = ("launches", "nondeterministic", "shape_specialised", "size_specialised", "build", "repeated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Of a correct program or a case. Times in µs, `*call_us` of whole GPU calls; shares in percent."""

    candidate_us: float
    baseline: str
    baseline_us: float
    speedup: float
    low: float
    high: float
    verdict: str
    clock: str  # in plain words
    call_us: float | None = None
    baseline_call_us: float | None = None
    roofline_percent: float | None = None
    limited_by: str = ""  # memory or arithmetic
    bound_us: float | None = None
    case: str = ""  # with its sizes
    worst: "Measured | None" = None  # of several cases; times and speedups beside it are geometric means


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """The variable `feedback` of templates. `shares` are (part, percent) of a call's time; `counters` are sorted by
    time. `remarks` are warnings about a correct program, `over_rival` A/B pairs with the best earlier one. `attempts`
    has a line per turn that is not shown as messages. `partner` is a program to combine this one with.
    """

    number: int
    outcome: str
    problem: str = ""
    quotes: tuple[Quote, ...] = ()
    same_as: int | None = None
    is_copy: bool = False
    measured: Measured | None = None
    shares: tuple[tuple[str, float], ...] = ()
    kernels: tuple[str, ...] = ()
    counters: tuple[KernelCounters, ...] = ()
    remarks: tuple[str, ...] = ()
    best: str = ""
    over_rival: str = ""
    attempts: tuple[str, ...] = ()
    partner: Quote | None = None


def make_feedback(
    turn: Turn,
    history: History = History(),  # noqa: B008
    hidden: Sequence[Turn] = (),
    partner: Turn | None = None,
) -> Feedback:
    """`history` gives the best program so far; `hidden` turns get one line each."""
    evaluation = turn.evaluation
    known = Feedback(
        number=turn.number,
        outcome=turn.outcome.value,
        same_as=turn.same_as,
        is_copy=turn.is_copy,
        attempts=tuple(summarise(one) for one in hidden[-MOST_ATTEMPTS:]),
        partner=None if partner is None else Quote(title=summarise(partner), text=(partner.source or "").rstrip()),
    )
    if turn.outcome is not Outcome.CORRECT:
        problem, quotes = _explain_failure(evaluation, turn.source or "")
        return replace(known, problem=problem, quotes=quotes)
    best, work = history.best, evaluation.work
    return replace(
        known,
        problem=_COPY if turn.is_copy else "",
        measured=_measure(evaluation),
        shares=() if work is None else tuple(_list_shares(work)),
        kernels=() if work is None else tuple(clean_line(name) for name in work.custom_kernels[:MOST_KERNELS]),
        counters=tuple(_quote_counters(evaluation.counters)),
        remarks=tuple(_list_remarks(evaluation)),
        best=summarise(best) if best is not None and best.number != turn.number else "",
        over_rival=_describe_comparison(evaluation.comparison),
    )


def _describe_comparison(one: Comparison | None) -> str:
    if one is None or one.speedup is None:
        return ""
    interval = f"[{one.speedup_low:.2f}, {one.speedup_high:.2f}]"
    return f"{one.speedup:.2f}x as fast as turn {one.turn} in A/B pairs, interval {interval}"


def list_told_findings(evaluation: Evaluation) -> Iterator[Finding]:
    """Return errors of the kernels, and warnings that their author can act on; none for a rejected program."""
    for one in evaluation.findings if evaluation.outcome is not Outcome.SUSPECT else ():
        if _is_about_kernel(one) or (one.severity == "warning" and one.check in _REMARKS):
            yield one


def summarise(turn: Turn) -> str:
    """Return one line, without text of the candidate."""
    return f"turn {turn.number}: {_summarise_result(turn)}"


def _summarise_result(turn: Turn) -> str:
    if turn.same_as is not None:
        return f"the same program as in turn {turn.same_as}"
    if turn.is_copy:
        return "a copy of the reference"
    timing = turn.evaluation.timing
    if timing is None:
        return turn.outcome.value
    interval = f"[{timing.speedup_low:.2f}, {timing.speedup_high:.2f}]"
    measured = f"{timing.speedup:.2f}x as fast as {timing.baseline}, interval {interval}, {timing.verdict}"
    if timing.clock in INEXACT:
        measured += f" ({_CLOCKS[timing.clock]})"
    return f"{turn.outcome.value}, {measured}"


def _explain_failure(evaluation: Evaluation, source: str) -> tuple[str, tuple[Quote, ...]]:
    """Return (the main problem, its evidence)."""
    outcome, problem = evaluation.outcome, _PROBLEMS.get(evaluation.outcome, "The program could not be evaluated.")
    if outcome is Outcome.NO_CODE:
        return next((_INCOMPLETE[one.check] for one in evaluation.findings if one.check in _INCOMPLETE), problem), ()
    if outcome is Outcome.SUSPECT:
        return problem, ()
    kernel = next((one for one in evaluation.findings if _is_about_kernel(one)), None)
    if kernel is not None and outcome in (Outcome.RUNTIME_ERROR, Outcome.WRONG_VALUE, Outcome.TIMEOUT):
        text = "\n".join(filter(None, (kernel.message, kernel.evidence)))
        consequence = [] if kernel.message in evaluation.message else [_quote("Its consequence", evaluation.message)]
        return _KERNEL, (_quote("Kernel check", text), *_quote_lines(kernel, source), *consequence)
    if outcome is Outcome.BUILD_ERROR:
        log = shorten_log(evaluation.build.log if evaluation.build else evaluation.message, max_lines=MOST_ERROR_LINES)
        error = Finding(check="build", severity="fatal", message=log)
        return problem, (_quote("Compiler", log), *_quote_lines(error, source))
    fatal = [one for one in evaluation.findings if one.severity == "fatal"]
    located = fatal[0] if fatal else Finding(check="", severity="fatal", message=evaluation.message)
    return problem, (_quote("Evaluation", evaluation.message), *_quote_lines(located, source))


def _is_about_kernel(finding: Finding) -> bool:
    return finding.severity != "note" and finding.evidence.startswith("in kernel ")


def _quote(title: str, text: str) -> Quote:
    return Quote(title=title, text=clean(text))


def _quote_lines(finding: Finding, source: str) -> Iterator[Quote]:
    numbers = find_lines(finding, source)[:MOST_LOCATIONS]
    if numbers:
        lines = source.splitlines()
        yield _quote("Lines of the program", "\n".join(f"{number}: {lines[number - 1]}" for number in numbers))


def _measure(evaluation: Evaluation) -> Measured | None:
    worst = evaluation.worst_case
    if worst is None or worst.timing is None or evaluation.timing is None:
        return _measure_times(evaluation.timing, evaluation.roofline)
    name = f"{worst.name} ({worst.sizes})" if worst.sizes else worst.name
    of_worst = _measure_times(worst.timing, worst.roofline, case=name)
    return _measure_times(evaluation.timing, None, worst=of_worst)


def _measure_times(
    timing: Timing | None, roofline: RooflineBounds | None, *, case: str = "", worst: Measured | None = None
) -> Measured | None:
    if timing is None:
        return None
    limited_by, bound_us, percent = "", None, None
    if roofline is not None and roofline.peak_fraction is not None:
        operations_us = roofline.operations_us or 0.0
        limited_by = "arithmetic" if operations_us > roofline.bound_us else "memory"
        bound_us, percent = max(operations_us, roofline.bound_us), 100 * roofline.peak_fraction
    return Measured(
        candidate_us=timing.candidate_us,
        baseline=timing.baseline,
        baseline_us=timing.baseline_us,
        speedup=timing.speedup,
        low=timing.speedup_low,
        high=timing.speedup_high,
        verdict=timing.verdict,
        clock=_CLOCKS[timing.clock],
        call_us=timing.candidate_call_us,
        baseline_call_us=timing.baseline_call_us,
        roofline_percent=percent,
        limited_by=limited_by,
        bound_us=bound_us,
        case=case,
        worst=worst,
    )


def _list_shares(work: Work) -> Iterator[tuple[str, float]]:
    yield "code of your own", 100 * work.custom
    yield "torch operators", 100 * work.torch
    yield "vendor libraries", 100 * work.library
    yield "Python and launches", 100 * work.other


def _quote_counters(report: CounterReport | None) -> Iterator[KernelCounters]:
    for one in report.kernels[:MOST_COUNTED] if report is not None else ():
        yield replace(one, kernel=clean_line(one.kernel), grid=clean_line(one.grid), block=clean_line(one.block))


def _list_remarks(evaluation: Evaluation) -> Iterator[str]:
    told = [one for one in list_told_findings(evaluation) if one.severity == "warning"]
    for one in told[:MOST_REMARKS]:
        yield clean_line(one.message)
