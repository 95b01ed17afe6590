"""An evaluator process that has run a client's problem file may send anything."""

import json
from dataclasses import replace

import pytest
from built_evaluations import build_subject

from harness.domain import (
    Block,
    BuildSummary,
    CaseResult,
    Conditions,
    Correctness,
    CounterReport,
    Evaluation,
    Finding,
    KernelCounters,
    Outcome,
    RooflineBounds,
    Timing,
    Trial,
    WireError,
    Work,
)
from harness.executors.evaluator_process import Builds, Done, Lost, Ready, Waiting, decode_answer, encode_answer

SUBJECT = build_subject()
ROOFLINE = RooflineBounds(
    moved_bytes=1, flops=None, bandwidth_gb_s=1.0, tflops=2, bound_us=3.0, operations_us=None, peak_fraction=0.5
)
TIMING = Timing(
    baseline="eager",
    baseline_us=2.0,
    candidate_us=1.0,
    speedup=2.0,
    speedup_low=1.9,
    speedup_high=2.1,
    overhead_us=0.1,
    verdict="faster",
    conditions=Conditions(throttle_reasons=("power",)),
    blocks=(
        Block(
            calls=1,
            baseline_reported_us=1.0,
            candidate_reported_us=1.0,
            baseline_evaluator_us=1.0,
            candidate_evaluator_us=1.0,
        ),
    ),
)
EVALUATION = Evaluation(
    subject=SUBJECT,
    outcome=Outcome.CORRECT,
    message="\udcff",
    environment=(("cpu", "x"),),
    phases_s=(("build", 1),),
    findings=(Finding(check="a", severity="note", message="b"),),
    timing=TIMING,
    roofline=ROOFLINE,
    correctness=Correctness(
        trials=(Trial(distribution="as_given", passed=True, worst_ratio=float("inf")),), weights="none"
    ),
    build=BuildSummary(keys=("k",), cached=False, duration_s=1.5, strategy="fast", log="printed"),
    work=Work(custom=1.0, torch=0.0, library=0.0, other=0.0, custom_kernels=("k",)),
    counters=CounterReport(
        kernels=(KernelCounters(kernel="k", grid="1", block="1", launches=1, metrics=(("m", 1.0),)),)
    ),
    cases=(CaseResult(name="n", sizes="rows=1", outcome=Outcome.CORRECT, timing=TIMING, roofline=ROOFLINE),),
)
ANSWERS = (
    Ready(chip="H100", lock="GPU-1"),
    Waiting(reason=""),
    Lost(reason="gone", for_good=True),
    Done(evaluation=EVALUATION),
    Done(evaluation=Evaluation(subject=SUBJECT, outcome=Outcome.NO_CODE)),
    Builds(counts={"built": 2}),
)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda one: type(one).__name__)
def test_an_answer_arrives_as_it_was_sent(answer):
    assert decode_answer(encode_answer(answer)) == answer


def change(**parts):
    """The answer with other parts of the evaluation's record."""
    answer = json.loads(encode_answer(ANSWERS[3]))
    record = json.loads(answer["evaluation"]["text"]) | parts
    answer["evaluation"]["text"] = json.dumps(record)
    return json.dumps(answer)


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "[]",
        "1",
        '{"kind": "Done"}',
        '{"kind": "Other"}',
        '{"kind": ["Ready"]}',
        "[" * 100_000,
        "\xff",
        '{"kind": "Ready", "chip": 1, "lock": ""}',
        '{"kind": "Lost", "reason": "r", "for_good": 1}',
        '{"kind": "Waiting", "reason": "r", "more": 1}',
        '{"kind": "Done", "evaluation": {"text": "{}", "environment": "[]", "build_log": ""}}',
        '{"kind": "Builds", "counts": {"built": "many"}}',
        change(message=7),
        change(duration_s="1"),
        change(duration_s=True),
        change(outcome="perfect"),
        change(duration_s=10**400),
        change(findings=[{"check": "c", "severity": "huge", "message": "m"}]),
        change(findings=[{"check": [], "severity": "note", "message": "m"}]),
        change(phases_s=[["a", "b"]]),
        change(phases_s=[["a", 1, 2]]),
        change(cases=1),
        change(work=[1]),
        change(subject={}),
        change(isolation=None),
        change(outcome="wrong_value"),
    ],
)
def test_an_answer_of_another_form_is_refused(sent):
    with pytest.raises(WireError, match="no valid answer"):
        decode_answer(sent.encode("latin-1"))


def test_a_refusal_quotes_little_of_the_answer():
    evaluation = replace(EVALUATION, timing=None, cases=(), message="x" * 10_000)
    answer = json.loads(encode_answer(Done(evaluation=evaluation)))
    answer["evaluation"]["more"] = "y" * 10_000
    with pytest.raises(WireError) as refusal:
        decode_answer(json.dumps(answer).encode())
    assert len(str(refusal.value)) < 400
