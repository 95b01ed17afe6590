"""Describes verdicts of evaluations in plain sentences."""

from harness.domain import FILE_RUN, Clock, Evaluation, Outcome, Subject, Timing, WithoutCustom
from harness.report.terminal.tables import format_speedup, format_time_us
from harness.report.values import count, format_range
from harness.store.columns import ResultRow

_OUTCOMES = {
    Outcome.NO_CODE: "contains no program",
    Outcome.REJECTED: "was rejected: the submission is not a legitimate answer",
    Outcome.BUILD_ERROR: "did not build",
    Outcome.LOAD_ERROR: "did not load",
    Outcome.RUNTIME_ERROR: "failed at run time",
    Outcome.WRONG_SHAPE: "returned outputs of another shape or structure than the reference",
    Outcome.WRONG_DTYPE: "returned outputs of another dtype than the reference",
    Outcome.WRONG_VALUE: "computed wrong values",
    Outcome.TIMEOUT: "exceeded the time limit",
    Outcome.OUT_OF_MEMORY: "exceeded the memory limit",
    Outcome.SUSPECT: "is suspect and never ranked: it did something that legitimate programs do not do",
    Outcome.CORRECT: "is correct",
    Outcome.NOT_RUN: "was not run, which does not count against it",
    Outcome.PROBLEM_ERROR: "could not be evaluated: the problem is at fault, which does not count against it",
    Outcome.HARNESS_ERROR: "could not be evaluated: the harness failed, which does not count against it",
}
WITHOUT_CUSTOM: dict[WithoutCustom, str] = {  # effect on the outputs of disabling extension functions
    "changed": "the outputs changed: they depend on its own code",
    "unchanged": "the outputs did NOT change: they do not depend on its own code (decoy kernels)",
    "failed": "the call failed: it depends on them",
    "not_tried": "not tried",
}
WHOLE_CALLS: tuple[Clock, ...] = ("call", "bound")  # their blocks have reported and evaluator-measured times
CLOCKS: dict[Clock, str] = {
    "call": "",
    "device": "Device time: the GPU work of one call, replayed without host code.",
    "bound": (
        "A lower bound: whole calls of the candidate, whose GPU work cannot be replayed, against device time of the "
        "baseline. The finding not_replayable has the reason. The blocks compare whole calls of both."
    ),
    "mixed": "Not all cases were timed by the same clock: some by device time, some by whole calls.",
}

PLAIN_TORCH = "Plain PyTorch, without a custom kernel, is evaluated with --language torch."


def lacks_kernel(evaluation: Evaluation) -> bool:
    return any(one.check == "no_own_kernel" and one.severity == "fatal" for one in evaluation.findings)


def name_sample(subject: Subject | ResultRow) -> str:
    """Return `run/problem/sample`, with the turn if any; `file/problem/NAME` for a candidate given as a file."""
    if subject.run == FILE_RUN:
        return f"{FILE_RUN}/{subject.problem}/{subject.model}"
    return str(subject.key)


def state_verdict(evaluation: Evaluation) -> str:
    parts = [f"{name_sample(evaluation.subject)} {_OUTCOMES[evaluation.outcome]}"]
    if evaluation.outcome is Outcome.CORRECT:
        parts.append(_state_speed(evaluation.timing))
        parts.append(_state_fastest(evaluation))
        parts.extend(f"; {sentence}" for sentence in _list_case_facts(evaluation))
    if evaluation.message:
        parts.append(f": {evaluation.message}")
    return "".join(parts) + ("" if evaluation.message else ".")


def _state_speed(timing: Timing | None) -> str:
    if timing is None:
        return "; it was not timed"
    measured = f"{format_speedup(timing.speedup, timing.clock)} as fast as {timing.baseline} {format_interval(timing)}"
    if timing.verdict == "tie":
        return f" and ties with {timing.baseline}: measured {measured}, which {_explain_tie(timing)}"
    if timing.is_doubtful:
        return f", but its time is {timing.verdict} and not ranked; measured {measured}"
    joint = "and" if timing.verdict == "faster" else "but only"
    return f" {joint} {measured}: {timing.verdict}, {_mention_floor(timing)}"


def _explain_tie(timing: Timing) -> str:
    if timing.speedup_high < 1:
        return "is a lower bound: its calls are no slower than the baseline's"
    return "is within the noise"


def _state_fastest(evaluation: Evaluation) -> str:
    fastest = evaluation.fastest
    if fastest is None or fastest.baseline == evaluation.subject.baseline:
        return ""
    return f"; {format_measured(fastest)} of {fastest.baseline}, the fastest of {len(evaluation.measured)} baselines"


def explain_cases(evaluation: Evaluation) -> list[str]:
    """Return nothing without times."""
    return [f"{sentence[0].upper()}{sentence[1:]}." for sentence in _list_case_facts(evaluation)]


def _list_case_facts(evaluation: Evaluation) -> list[str]:
    worst, gap = evaluation.worst_case, evaluation.generalisation_gap
    if worst is None or worst.timing is None:
        return []
    known = sum(case.timing is not None and not case.is_secret for case in evaluation.cases)
    facts = [
        f"the speedup is the geometric mean of {count(known, 'case')}; the worst is {worst.name}, "
        f"{format_measured(worst.timing)}"
    ]
    if gap is not None:
        meaning = "a program that is specialised for the known sizes" if gap.low > 1 else "within the noise"
        if gap.high < 1:
            meaning = "faster on the secret sizes"
        facts.append(f"generalisation gap {gap.ratio:.2f} [{gap.low:.2f}, {gap.high:.2f}], known to secret: {meaning}")
    return facts


def format_measured(timing: Timing) -> str:
    """Return a text such as `1.23x [1.20, 1.26]`."""
    return f"{format_speedup(timing.speedup, timing.clock)} {format_interval(timing)}"


def format_interval(timing: Timing) -> str:
    return format_range(timing.speedup_low, timing.speedup_high)


def format_share(share: float) -> str:
    """Return a text such as `0.42%`, `4.2%` or `42%`."""
    percent = 100 * share
    return f"{percent:.2f}%" if abs(percent) < 1 else f"{percent:.1f}%" if abs(percent) < 10 else f"{percent:,.0f}%"


def _mention_floor(timing: Timing) -> str:
    if timing.noise_floor is None:
        return "with no noise floor measured"
    return f"beyond the noise floor of {format_share(timing.noise_floor)}"


def explain_timing_verdict(timing: Timing) -> str:
    reasons = {
        "faster": "faster: the whole interval lies above the noise floor",
        "slower": "slower: the whole interval lies below the noise floor",
        "tie": f"a tie, ranked as 1.00x: the measured speedup {_explain_tie(timing)}",
        "unreliable": "unreliable and not ranked: the machine or its clocks were disturbed",
        "unconfirmed": "unconfirmed and not ranked: the reported times are too short to confirm",
    }
    floor = "the noise floor was not measured"
    if timing.noise_floor is not None:
        floor = f"noise floor (a program against itself): {format_share(timing.noise_floor)}"
    return f"{reasons[timing.verdict]} ({floor})"


def explain_resolution(timing: Timing) -> str:
    """State the largest undetected gain of a hostile program."""
    if timing.resolution_us is not None and timing.clock == "device":
        share = format_share(timing.resolution_us / timing.candidate_us)
        gain = f"{format_time_us(timing.resolution_us)}, {share} of the candidate's time"
        return f"Forged device events could gain at most {gain}: beyond that the host's clock decides."
    if timing.resolution_us is None:
        return "The resolution of the evaluator's clock was not recorded."
    share = format_share(timing.resolution_us / timing.candidate_us)
    return (
        f"The evaluator's clock confirms the reported times to {format_time_us(timing.resolution_us)}, {share} of the "
        "candidate's time: work that takes less could go unnoticed. The interval covers it."
    )


def explain_call_time(timing: Timing) -> str:
    """Return "" unless whole calls were timed beside another clock."""
    if timing.clock == "call" or timing.baseline_call_us is None or timing.candidate_call_us is None:
        return ""
    return (
        f"Whole calls, host work included: {format_time_us(timing.baseline_call_us)} ({timing.baseline}) and "
        f"{format_time_us(timing.candidate_call_us)}, {timing.baseline_call_us / timing.candidate_call_us:.2f}x; "
        "they do not affect the verdict."
    )


def explain_roofline(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return (name, text) of each device limit, and what the candidate reaches."""
    roofline = evaluation.roofline
    if roofline is None:
        return []
    moved = _format_amount(roofline.moved_bytes, "B")
    bandwidth = f"{roofline.bandwidth_gb_s:,.4g} GB/s"
    bound = f"{format_time_us(roofline.bound_us)} for {moved} at {bandwidth}: no program is faster"
    facts = [("bytes", f"{moved}: inputs, weights and outputs, each once"), ("bound", bound)]
    if roofline.flops is not None:
        facts.append(("operations", f"{_format_amount(roofline.flops, 'FLOP')} in the reference"))
    if roofline.operations_us is not None:
        time = f"{format_time_us(roofline.operations_us)} at {roofline.tflops:,.4g} TFLOP/s"
        facts.append(("", f"{time}; a better algorithm may need fewer"))
    if roofline.peak_fraction is not None:
        facts.append(("of peak", f"{format_share(roofline.peak_fraction)}: the larger of both times / its time"))
    if evaluation.achieved_gb_s is not None:
        flops = evaluation.achieved_tflops
        operations = "" if flops is None else f", {flops:,.4g} TFLOP/s"
        facts.append(("achieved", f"{evaluation.achieved_gb_s:,.4g} GB/s{operations}: these / its time"))
    if evaluation.gap_closed is not None:
        facts.append(
            ("gap closed", f"{format_share(evaluation.gap_closed)} of the way from the baseline to the roofline")
        )
    return facts


def explain_use(timing: Timing) -> list[tuple[str, str]]:
    """Return (label, text) for memory and energy of a call, where they are known."""
    facts = []
    if timing.candidate_bytes is not None and timing.baseline_bytes is not None:
        mine, theirs = (f"{value / 2**20:,.1f} MiB" for value in (timing.candidate_bytes, timing.baseline_bytes))
        facts.append(("device memory", f"{mine} beside the inputs; the baseline {theirs}"))
    if timing.candidate_mj is not None:
        theirs = "" if timing.baseline_mj is None else f"; the baseline {timing.baseline_mj:,.4g} mJ"
        facts.append(("energy", f"{timing.candidate_mj:,.4g} mJ{theirs}"))
    return facts


def explain_certificate(certificate: str) -> str:
    if certificate:
        return f"{certificate}: this harness passed the whole red-team corpus on this machine"
    return "none was valid at evaluation time: create one with `harness red-team`"


def list_circumstances(evaluation: Evaluation, phases: str = "") -> list[tuple[str, str]]:
    return [
        ("isolation", evaluation.isolation),
        ("certificate", explain_certificate(evaluation.certificate)),
        ("secret seeds", evaluation.seeds_digest),
        ("started", evaluation.started_at),
        ("took", f"{evaluation.duration_s:.2f} s" + (f" ({phases})" if phases else "")),
        *evaluation.environment,
    ]


def _format_amount(amount: float, unit: str) -> str:
    """Return `950 B`, `4.19 MB`, `1.07 GFLOP`: powers of 1000."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if amount >= factor:
            return f"{amount / factor:,.3g} {prefix}{unit}"
    return f"{amount:,.0f} {unit}"
