import json

from harness.domain import Correctness, CounterReport, Finding, KernelCounters, Outcome, Trial
from harness.report.export.json_records import dump_json, evaluation_record, leaderboard_record
from harness.store.results import StoredEvaluation


def test_a_record_of_a_correct_evaluation_has_what_a_script_needs(evaluation_of):
    record = evaluation_record(StoredEvaluation(id=7, evaluation=evaluation_of("correct", 2.0)))
    expected = {
        "id": 7,
        "outcome": "correct",
        "speedup": 2.0,
        "baseline": "eager",
        "device": "cpu",
        "problem": "add",
        "candidate": "c" * 16,
        "findings": [],
    }
    assert {key: record[key] for key in expected} == expected
    assert record["timing"]["speedup_low"] == 1.9


def test_a_record_without_a_candidate_says_null(evaluation_of):
    finding = Finding(check="extraction", severity="fatal", message="no code")
    evaluation = evaluation_of("no_code", candidate_digest="", extra={"findings": (finding,)})
    record = json.loads(dump_json(evaluation_record(StoredEvaluation(id=1, evaluation=evaluation))))
    assert (record["candidate"], record["speedup"], record["timing"]) == (None, None, None)
    assert record["findings"] == [{"check": "extraction", "severity": "fatal", "message": "no code", "evidence": ""}]


def test_an_unconfirmed_speedup_is_null_at_the_top(evaluation_of):
    record = evaluation_record(StoredEvaluation(id=1, evaluation=evaluation_of("correct", 9.0, verdict="unconfirmed")))
    assert record["speedup"] is None
    assert record["timing"]["speedup"] == 9.0


def test_numbers_that_json_does_not_have_become_words(evaluation_of):
    trial = Trial(distribution="x", passed=False, max_abs_error=float("inf"), worst_ratio=float("nan"))
    correctness = Correctness(trials=(trial,), weights="none")
    evaluation = evaluation_of("wrong_value", extra={"correctness": correctness})
    text = dump_json(evaluation_record(StoredEvaluation(id=1, evaluation=evaluation)))

    def refuse(constant):
        raise AssertionError(constant)

    (read,) = json.loads(text, parse_constant=refuse)["correctness"]["trials"]
    assert (read["max_abs_error"], read["worst_ratio"]) == ("inf", "nan")


def test_a_leaderboard_record_names_its_group_and_rates(evaluation_of, rank_evaluations):
    (row,) = rank_evaluations([evaluation_of("correct", 2.0), evaluation_of("timeout", problem="mul")], ks=(1,))
    record = json.loads(dump_json(leaderboard_record(row)))
    assert (record["model"], record["device"], record["problems"]) == ("model-a", "cpu", 2)
    assert (record["correct"], record["fast"]["1"], record["fast"]["2"]) == (0.5, 0.5, 0.0)
    assert record["outcomes"] == {Outcome.CORRECT.value: 1, Outcome.TIMEOUT.value: 1}
    assert (record["own_share"], record["certificate"], record["on_device"]) == (None, "no", 2)
    assert record["at_k"] == [{"k": 1, "correct": 0.5, "fast_1": 0.5}]


def test_hardware_counters_are_keyed_by_the_names_of_ncu(evaluation_of):
    kernel = KernelCounters(kernel="f", grid="(1, 1, 1)", block="(32, 1, 1)", launches=1, metrics=(("a.sum", 2.5),))
    evaluation = evaluation_of("correct", extra={"counters": CounterReport(kernels=(kernel,))})
    record = json.loads(dump_json(evaluation_record(StoredEvaluation(id=1, evaluation=evaluation))))
    assert record["counters"]["kernels"][0]["metrics"] == {"a.sum": 2.5}
