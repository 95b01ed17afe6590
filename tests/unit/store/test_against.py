"""Stored evaluations are listed against any baseline that was measured with them."""

from dataclasses import replace

import pytest

from harness.domain import BaselineResult, UsageError
from harness.store.results import ResultFilter, ResultStore


@pytest.fixture
def record(tmp_path, evaluation_of):
    """Stores an evaluation with speedups by baseline; None is a failed baseline."""

    def record(speedups, **fields):
        (first, speedup), *others = speedups.items()
        evaluation = evaluation_of("correct", speedup, baseline=first, **fields)
        with ResultStore.open(tmp_path) as store:
            return store.record(replace(evaluation, further=tuple(further_of(*one) for one in others)))

    def further_of(name, speedup):
        if speedup is None:
            return BaselineResult(name=name, reason="it failed")
        return BaselineResult(name=name, timing=evaluation_of("correct", speedup, baseline=name).timing)

    return record


def list_rows(results_dir, baseline, **where):
    with ResultStore.open_against(results_dir, baseline) as store:
        return [(row.id, row.baseline, row.speedup, row.verdict) for row in store.rows(ResultFilter(**where))]


def test_a_further_baseline_takes_the_place_of_the_first(tmp_path, record):
    record({"eager": 2.0, "compile": 0.5, "library": None})
    assert list_rows(tmp_path, None) == [(1, "eager", 2.0, "faster")]
    assert list_rows(tmp_path, "compile") == [(1, "compile", 0.5, "faster")]
    assert list_rows(tmp_path, "compile", condition="speedup > 1") == []
    with ResultStore.open_against(tmp_path, "compile") as store:
        assert store.get(1).evaluation.timing.speedup == 0.5


def test_the_fastest_of_several_baselines_is_a_column(tmp_path, record):
    record({"eager": 2.0, "compile": 0.5})
    record({"eager": 2.0, "compile": 3.0}, problem="mul")
    record({"eager": 2.0}, problem="sub")
    with ResultStore.open(tmp_path) as store:
        found = [(row.baselines, row.fastest_baseline, row.over_fastest) for row in store.rows()]
    assert found == [("eager,compile", "compile", 0.5), ("eager,compile", "eager", 2.0), ("eager", None, None)]


def test_correct_programs_without_the_baseline_are_untimed(tmp_path, record, evaluation_of):
    record({"eager": 2.0})
    record({"eager": 2.0, "compile": 0.5}, problem="mul")
    with ResultStore.open(tmp_path) as store:
        store.record(evaluation_of("wrong_value", problem="sub"))
    expected = [(1, "compile", None, "untimed"), (2, "compile", 0.5, "faster"), (3, "compile", None, None)]
    assert list_rows(tmp_path, "compile") == expected


def test_a_time_counts_instead_of_a_later_verdict_without_one(tmp_path, record):
    record({"compile": 1.5})
    record({"eager": 2.0})
    assert list_rows(tmp_path, "compile") == [(1, "compile", 1.5, "faster")]


def test_a_baseline_that_nothing_was_timed_against_is_a_usage_error(tmp_path, record):
    record({"eager": 2.0, "compile": 0.5, "library": None})
    for name, hint in (("compil", "did you mean compile"), ("library", "known: compile, eager")):
        with pytest.raises(UsageError, match=hint):
            ResultStore.open_against(tmp_path, name)


def test_an_empty_store_has_no_rows_against_any_baseline(tmp_path):
    assert list_rows(tmp_path, "compile") == []
