"""What a worker tells of its kernels: believed only in form, and said as a compiler would."""

import pytest

from harness.domain import BuildResult, CandidateFailure, Finding, Outcome
from harness.evaluation.emulated.findings import (
    choose_outcome,
    drop_repeated,
    excuse_compiled,
    merge_kernel_findings,
    parse_kernel_findings,
    put_causes_first,
    report_kernel_findings,
)
from harness.evaluation.emulated.sanitizer import _conclude, _drop_repetition, _SanitizerPass, explain
from harness.evaluation.model_workers import may_change_verdict, reconcile_builds

RACE = {
    "check": "race", "severity": "error", "message": "two threads write s[3]", "file": "cuda.cu", "line": 12,
    "kernel": "soft", "block": [1, 0, 0], "thread": [3, 0, 0], "value": "1.5",
}  # fmt: skip
BOUNDS = {**RACE, "check": "out_of_bounds", "message": "reads beyond x", "line": 20}


def found(*ones):
    return parse_kernel_findings(list(ones))


def test_a_finding_reads_like_a_diagnostic_of_a_compiler():
    (finding,) = report_kernel_findings(found(RACE), "fatal")
    assert finding.message == "cuda.cu:12: error: two threads write s[3]"
    assert finding.evidence == "in kernel soft, block (1, 0, 0), thread (3, 0, 0), value 1.5"
    assert (finding.check, finding.severity) == ("race", "fatal")


def test_a_finding_without_a_place_is_said_without_one():
    (finding,) = report_kernel_findings(found({"check": "race", "message": "somewhere"}), "warning")
    assert (finding.message, finding.evidence) == ("error: somewhere", "")


def test_notes_of_the_emulator_never_decide():
    mild = {**RACE, "severity": "warning"}
    assert report_kernel_findings(found(mild), "fatal")[0].severity == "warning"
    assert _conclude(_SanitizerPass(found=found(mild))).outcome is None


def test_the_same_thing_at_the_same_place_is_told_once():
    other = {**RACE, "thread": [4, 0, 0]}
    assert merge_kernel_findings(found(RACE, other, BOUNDS)) == found(RACE, BOUNDS)


def describe_race(line, other, variable="s"):
    message = (
        f"race on {variable} (byte 4): this read and the write by thread (1, 0, 0) at cuda.cu:{other} are not ordered"
    )
    return {**RACE, "check": "shared_race", "line": line, "message": message}


UNWRITTEN = {
    **RACE,
    "check": "uninitialised_shared",
    "line": 14,
    "message": "reads s (byte 8) of shared memory, which nobody has written before",
}
DIVERGENT = {**RACE, "check": "barrier_divergence", "line": 9, "message": "not all threads reach this barrier"}


@pytest.mark.parametrize(
    ("findings", "kept"),
    [
        ((describe_race(10, 11), describe_race(11, 10)), (0,)),
        ((describe_race(12, 10), describe_race(12, 11, "t"), describe_race(13, 10)), (0,)),
        ((UNWRITTEN, describe_race(11, 10)), (1,)),
        ((describe_race(11, 10), UNWRITTEN, DIVERGENT), (2,)),
        ((BOUNDS, DIVERGENT), (0, 1)),
        ((describe_race(11, 10), describe_race(21, 20)), (0, 1)),
        ((describe_race(11, 10, "t"), UNWRITTEN), (0, 1)),
        ((DIVERGENT, {**describe_race(11, 10), "kernel": "other"}), (0, 1)),
    ],
)
def test_one_missing_or_divergent_barrier_is_one_finding(findings, kept):
    assert merge_kernel_findings(found(*findings)) == found(*(findings[number] for number in kept))


def test_one_divergent_barrier_is_told_once_at_whichever_line_threads_wait():
    elsewhere = {**DIVERGENT, "line": 12}
    reported = report_kernel_findings(found(DIVERGENT, elsewhere), "warning")
    assert drop_repeated(reported) == [reported[0]]


def test_a_cause_comes_before_what_follows_from_it():
    mild = {**BOUNDS, "severity": "warning"}
    assert put_causes_first(found(mild, RACE, BOUNDS)) == found(BOUNDS, RACE, mild)
    checked = _conclude(_SanitizerPass(found=found(RACE, BOUNDS)))
    assert checked.message == "cuda.cu:20: error: reads beyond x (and 1 more)"
    assert [one.check for one in checked.findings] == ["out_of_bounds", "race"]


def test_a_consequence_does_not_repeat_its_cause():
    cause = "writes beyond the end of y: byte 8 of 8 (4 bytes past its end), and 9 more lanes"
    error = "IllegalAccess: CUDA error: an illegal memory access was encountered"
    repeated = f"{error} (writes beyond the end of y: byte 8 of 8 (4 bytes past its end))"
    assert _drop_repetition(repeated, cause) == error
    assert _drop_repetition(f"{error} (by another)", cause) == f"{error} (by another)"
    assert _drop_repetition(error, cause) == error


def test_repeated_findings_of_a_line_are_dropped_and_deciding_ones_kept():
    other = Finding(check="clock", severity="warning", message="cuda.cu:12: short")
    again = {**RACE, "message": "two threads write s[4]"}
    warnings, fatal = (report_kernel_findings(found(again, BOUNDS), severity) for severity in ("warning", "fatal"))
    assert drop_repeated([*warnings, other, other, *warnings]) == [*warnings, other, other]
    assert drop_repeated([*warnings, other, *fatal]) == [*fatal, other]


@pytest.mark.parametrize(
    "lie",
    [
        None,
        "findings",
        [RACE] * 65,
        ["race"],
        [{**RACE, "line": "12"}],
        [{**RACE, "line": True}],
        [{**RACE, "message": ["a"]}],
        [{**RACE, "block": {"x": 1}}],
        [{**RACE, "thread": [1, 2, 3, 4]}],
    ],
)
def test_impossible_finding_is_a_protocol_error(lie):
    with pytest.raises(CandidateFailure) as failure:
        parse_kernel_findings(lie)
    assert failure.value.outcome is Outcome.SUSPECT


def test_endless_texts_are_cut():
    (one,) = found({**RACE, "message": "x" * 10**6, "value": "y" * 10**6})
    assert len(one.message) == len(one.value) == 600


@pytest.mark.parametrize(
    ("checks", "outcome"),
    [
        (["race"], "wrong_value"),
        (["uninitialised_read"], "wrong_value"),
        (["out_of_bounds"], "runtime_error"),
        (["barrier_divergence", "race"], "runtime_error"),
        (["time_limit", "race"], "timeout"),
        (["uncovered", "out_of_bounds"], "not_run"),
    ],
)
def test_each_finding_makes_its_outcome_and_errors_weigh_more(checks, outcome):
    assert choose_outcome(found(*({**RACE, "check": check} for check in checks))) == outcome


def test_race_decides_at_any_size_and_bounds_only_at_requested_sizes():
    assert _SanitizerPass(found=found(RACE)).holds_for_all_sizes
    assert not _SanitizerPass(found=found(BOUNDS)).holds_for_all_sizes
    assert not _SanitizerPass(wrong={"ascending": "wrong_value: other sizes"}).holds_for_all_sizes


def test_finding_at_other_sizes_is_a_warning():
    checked = _conclude(_SanitizerPass(at_other_sizes=found(BOUNDS)))
    assert checked.outcome is None
    assert [finding.severity for finding in checked.findings] == ["warning"]
    assert checked.findings[0].message.endswith("(with other sizes)")


def test_results_that_depend_on_the_order_are_wrong():
    checked = _conclude(_SanitizerPass(wrong={"descending": "wrong_value: all elements"}))
    assert checked.outcome == "wrong_value"
    assert "right in ascending, not in descending" in checked.message
    assert checked.findings[0].evidence == "wrong_value: all elements"


def test_unchecked_access_is_reported_and_decides_nothing():
    unbuilt = BuildResult(key="k", status="uncovered", extension=None, log="cuda.cu:3: asm", duration_s=0.0)
    for look in (
        _SanitizerPass(unbuilt=unbuilt),
        _SanitizerPass(stopped="timeout: 60 s"),
        _SanitizerPass(wrong={"ascending": "wrong_value"}),
    ):
        checked = _conclude(look)
        assert checked.outcome is None
        assert [(one.check, one.severity) for one in checked.findings] == [("kernels", "note")]


def test_interpreter_error_is_excused_if_the_compiler_accepts_the_kernel():
    failed = found({**RACE, "check": "interpreter", "kernel": "scale", "message": "abs fails"}, BOUNDS)
    excused = excuse_compiled(failed, frozenset(("scale",)))
    assert [one.check for one in excused] == ["uncovered", BOUNDS["check"]]
    assert choose_outcome(excused) is Outcome.NOT_RUN and "abs fails" in excused[0].message
    assert [one.check for one in excuse_compiled(failed, frozenset(("other",)))] == [BOUNDS["check"]]


def test_findings_that_do_not_decide_are_warnings():
    gap = _conclude(_SanitizerPass(stopped="timeout: 60 s")).findings
    decided = report_kernel_findings(found(RACE, BOUNDS), "fatal")
    assert [one.severity for one in explain((*decided, *gap))] == ["warning"] * 2


def build(status, log="", strategy="emulated"):
    library = "/x.so" if status in ("built", "cached") else None
    return BuildResult(key="k", status=status, extension=library, log=log, duration_s=0.0, strategy=strategy)


@pytest.mark.parametrize(
    ("emulated", "compiled", "told"),
    [
        ("built", "built", "built"),
        ("built", "failed", "failed"),
        ("uncovered", "failed", "failed"),
        ("failed", "built", "uncovered"),
        ("uncovered", "built", "uncovered"),
        ("built", "timeout", "built"),
        ("failed", "timeout", "failed"),
    ],
)
def test_nvcc_has_the_last_word_on_what_builds(emulated, compiled, told):
    assert reconcile_builds(build(emulated), build(compiled, strategy="fast")).status == told


@pytest.mark.parametrize(
    ("status", "outcome", "may"),
    [
        ("built", "correct", True),
        ("uncovered", "not_run", True),
        ("failed", "build_error", True),
        ("failed", "wrong_value", True),
        ("built", "wrong_value", False),
        ("cached", "runtime_error", False),
        ("built", "timeout", False),
    ],
)
def test_nvcc_is_not_asked_about_a_program_that_builds_and_fails(status, outcome, may):
    assert may_change_verdict([build(status)], Outcome(outcome)) is may
