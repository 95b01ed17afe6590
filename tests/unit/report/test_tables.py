from io import StringIO

import pytest
from rich.console import Console

from harness.domain import Block, BuildSummary, Correctness, Finding, Outcome, Timing, Trial
from harness.rank.leaderboard import rank_rows
from harness.rank.regression import compare_evaluations
from harness.report.details import render_details, render_log
from harness.report.tables import (
    WIDE_COLUMNS,
    format_time_us,
    render_changes,
    render_evaluations,
    render_leaderboard,
    render_leaderboard_markdown,
)
from harness.store.results import ResultStore, StoredEvaluation

LONG_MODEL = "organisation/some-very-long-model-name-70b-instruct-2026"
LONG_PROBLEM = "conv2d_min_constant_bias_scaling_residual"


def render(content, width=80):
    console = Console(width=width, file=StringIO(), color_system=None)
    console.print(content)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines()), default=0) <= width
    return text


@pytest.fixture
def rows_of(tmp_path):
    def store_and_list(*evaluations):
        with ResultStore.open(tmp_path / "results") as store:
            store.record_all((evaluation, None) for evaluation in evaluations)
            return list(store.rows())

    return store_and_list


@pytest.fixture
def every_outcome(evaluation_of):
    return [
        evaluation_of(outcome.value, model=LONG_MODEL, problem=f"{LONG_PROBLEM}_{number}", sample=number)
        for number, outcome in enumerate(Outcome)
    ]


def test_evaluations_fit_80_columns_with_id_outcome_and_speedup_whole(rows_of, evaluation_of, every_outcome):
    fast = evaluation_of("correct", 123.45, model=LONG_MODEL, problem=LONG_PROBLEM)
    lines = render(render_evaluations(rows_of(fast, *every_outcome))).splitlines()
    assert "123.45x" in lines[2]
    assert lines[2].split()[0] == "1"
    for line, outcome in zip(lines[3:], Outcome, strict=True):
        assert f" {outcome.value} " in line


def test_evaluations_fit_120_columns_with_more_of_them(rows_of, every_outcome):
    text = render(render_evaluations(rows_of(*every_outcome), WIDE_COLUMNS), width=120)
    assert "baseline" in text
    assert "out_of_memory" in text


def test_what_looks_like_markup_or_an_escape_is_printed_as_it_is(rows_of, evaluation_of):
    hostile = evaluation_of("timeout", model="[red]m[/red]", extra={"message": "x\x1b[2Jy"})
    text = render(render_evaluations(rows_of(hostile), ["model", "message"]))
    assert "[red]m[/red]" in text
    assert "x\\x1b[2Jy" in text


@pytest.mark.parametrize("width", [80, 120])
def test_the_leaderboard_fits_and_separates_what_is_not_comparable(evaluation_of, width):
    evaluations = [
        evaluation_of("correct", 2.0, model=LONG_MODEL, prompt="notebook-long-name"),
        evaluation_of("harness_error", model=LONG_MODEL, prompt="notebook-long-name", problem="mul"),
        evaluation_of("correct", 3.0, workload="small", device="emulated"),
        evaluation_of("not_run", language="cuda", device="none"),
    ]
    text = render(render_leaderboard(rank_rows(evaluations)), width)
    assert "core, full workload: cpp on cpu against eager" in text
    assert "core, small workload: cpp on emulated against eager" in text
    assert "core, full workload: cuda not judged on a device" in text
    assert "2.00x (1)" in text
    assert "1 of 2" in text
    assert text.count("Example CPU 9000") == 2


def test_the_leaderboard_shows_pass_at_k_when_asked(evaluation_of):
    evaluations = [evaluation_of("correct", 2.0), evaluation_of("timeout", sample=1)]
    text = render(render_leaderboard(rank_rows(evaluations, ks=(1, 2))))
    assert "pass@1  pass@2" in text
    assert " 50.0%  100.0%" in text


def test_the_markdown_leaderboard_is_a_table_whatever_a_model_is_called(evaluation_of):
    text = render_leaderboard_markdown(rank_rows([evaluation_of("correct", 2.0, model="a|b\nc")]))
    head, rule, row = text.splitlines()
    assert row == "| a\\|b c | plain | cpp | cpu | full | 1 | 100.0% | 100.0% | 0.0% | 2.00x (1) |"
    assert head.count("|") == rule.count("|") == row.count("|") - 1


def test_changes_fit_80_columns_and_say_why(evaluation_of):
    before = evaluation_of("correct", 3.0, problem=LONG_PROBLEM)
    changes = [
        compare_evaluations(before, evaluation_of("correct", 1.5, problem=LONG_PROBLEM)),
        compare_evaluations(before, evaluation_of("out_of_memory", problem=LONG_PROBLEM)),
        compare_evaluations(before, evaluation_of("correct", 3.0, problem=LONG_PROBLEM, problem_digest="9" * 16)),
    ]
    text = render(render_changes(changes))
    for expected in ("slower", "correct 3.00x", "  0.50", "broken", "out_of_memory", "not_comparable", "other problem"):
        assert expected in text


@pytest.fixture
def full_evaluation(evaluation_of):
    block = Block(
        calls=10,
        baseline_claim_us=1e6,
        candidate_claim_us=5e5,
        baseline_judge_us=1.1e6,
        candidate_judge_us=6e5,
        baseline_copy_us=1e3,
        candidate_copy_us=1e3,
    )
    trials = (
        Trial(distribution="as_given", passed=True, max_abs_error=1e-6, reference_max_abs_error=1e-7, worst_ratio=0.1),
        Trial(distribution="large_values", passed=True, mismatched=0, elements=2**31, message="fine"),
    )
    return evaluation_of(
        "correct",
        extra={
            "correctness": Correctness(trials=trials, weights="loaded"),
            "timing": Timing(
                baseline="eager",
                baseline_us=1e6,
                candidate_us=5e5,
                speedup=2.0,
                speedup_low=1.9,
                speedup_high=2.1,
                verdict="faster",
                blocks=(block,) * 7,
                overhead_us=30.0,
                noise_floor=0.02,
            ),
            "build": BuildSummary(
                keys=("k" * 16,),
                cached=False,
                duration_s=12.0,
                lane="plain",
                log="\n".join(map("line {}".format, range(99))),
            ),
            "findings": (Finding(check="weights", severity="warning", message="[b]m[/b] " * 30, evidence="\x1b[31m"),),
            "started_at": "2026-01-01T00:00:00+00:00",
            "message": "well done",
        },
    )


@pytest.mark.parametrize("width", [80, 120])
def test_the_details_hold_every_trial_finding_and_block(full_evaluation, width):
    stored = StoredEvaluation(id=42, evaluation=full_evaluation)
    text = render(render_details(stored, "class ModelNew:  # [x]\n    pass\n"), width)
    for expected in (
        "class ModelNew:  # [x]",
        "warning weights: [b]m[/b]",
        "\\x1b[31m",
        "large_values",
        "trial 2: fine",
        "2.00x [1.90, 2.10], faster",
        "line 98",
        "Example CPU 9000",
        "demo/add/0",
        "2.00x against eager: well done",
    ):
        assert expected in text
    assert text.count("1.000 s") == 8  # seven blocks and the summary
    assert "line 50\n" not in text


def test_the_whole_log_is_shown_on_request(full_evaluation):
    stored = StoredEvaluation(id=42, evaluation=full_evaluation)
    text = render(render_details(stored, None, whole_log=True))
    assert "line 0\n" in text
    assert "(not stored)" in text
    assert "79 lines before these" in render(render_log(full_evaluation.build.log, whole=False))


@pytest.mark.parametrize(
    ("time_us", "text"), [(0.95, "950 ns"), (12.34, "12.3 us"), (4560.0, "4.56 ms"), (1.2e6, "1.200 s")]
)
def test_a_time_is_given_in_the_unit_that_suits_it(time_us, text):
    assert format_time_us(time_us) == text
