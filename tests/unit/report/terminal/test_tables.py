import csv
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from harness.analysis.leaderboard import SearchSpending
from harness.domain import TRUNCATED, Finding, Outcome, Work
from harness.report.export.json_records import leaderboard_record
from harness.report.export.table_files import format_leaderboard
from harness.report.terminal.tables import (
    WIDE_COLUMNS,
    choose_columns,
    format_time_us,
    render_evaluations,
    render_leaderboard,
    render_leaderboard_markdown,
)
from harness.report.values import format_fixed
from harness.store.columns import make_row
from harness.store.results import ResultStore

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


def test_name_of_a_solution_follows_its_sample(rows_of, evaluation_of):
    rows = rows_of(evaluation_of("correct", sample=3), evaluation_of("correct", sample=4))
    text = render(render_evaluations(rows, ["id", "sample"], {rows[0].id: "[b]tiled"}))
    assert [line.split() for line in text.splitlines()[2:4]] == [["1", "3", "[b]tiled"], ["2", "4"]]


def test_markup_and_escapes_are_printed_literally(rows_of, evaluation_of):
    hostile = evaluation_of("timeout", model="[red]m[/red]", extra={"message": "x\x1b[2Jy"})
    text = render(render_evaluations(rows_of(hostile), ["model", "message"]))
    assert "[red]m[/red]" in text
    assert "x\\x1b[2Jy" in text


@pytest.mark.parametrize("width", [80, 200])
def test_the_leaderboard_fits_and_separates_what_is_not_comparable(evaluation_of, width, rank_evaluations):
    evaluations = [
        evaluation_of("correct", 2.0, model=LONG_MODEL, prompt="notebook-long-name"),
        evaluation_of("harness_error", model=LONG_MODEL, prompt="notebook-long-name", problem="mul"),
        evaluation_of("correct", workload="small", device="emulated", language="cuda"),
        evaluation_of("not_run", language="cuda", device="none"),
    ]
    text = render(render_leaderboard(rank_evaluations(evaluations), wide=width > 80), width)
    assert "core, full workload: cpp on cpu against eager" in text
    assert "core, small workload: cuda emulated on a CPU: correctness without time" in text
    assert "core, full workload: cuda not evaluated on a device" in text
    assert "2.00x (1)" in text
    assert "[1.90, 2.10]" in text
    assert "1 of 2" in text
    assert text.count("Example CPU 9000") == 2


def test_the_leaderboard_shows_pass_at_k_when_asked(evaluation_of, rank_evaluations):
    evaluations = [evaluation_of("correct", 2.0), evaluation_of("timeout", sample=1)]
    text = render(render_leaderboard(rank_evaluations(evaluations, ks=(1, 2))))
    assert "pass@1  pass@2" in text
    assert " 50.0%  100.0%" in text
    assert "model-a" in text


def test_the_leaderboard_shows_certificates_and_whose_work_it_was(evaluation_of, rank_evaluations):
    work = Work(custom=0.98, torch=0.02, library=0.0, other=0.0)
    extra = {"certificate": "f" * 16, "work": work}
    evaluations = [
        evaluation_of("correct", 2.0, model="certified", extra=extra),
        evaluation_of("correct", 2.0, model="partly", extra=extra),
        evaluation_of("correct", 2.0, model="partly", sample=1),
        evaluation_of("correct", 2.0, model="trusting"),
    ]
    text = render(render_leaderboard(rank_evaluations(evaluations), wide=True), 200)
    ends = {line.split()[1]: line.split()[-2:] for line in text.splitlines() if line[:1].isdigit()}
    assert ends == {"certified": ["98%", "yes"], "partly": ["98%", "part"], "trusting": ["-", "no"]}


def test_an_untimed_run_has_no_share_that_is_faster(evaluation_of, rank_evaluations):
    evaluations = [
        evaluation_of("correct"),
        evaluation_of("timeout", sample=1),
        evaluation_of("correct", model="other"),
    ]
    text = render(render_leaderboard(rank_evaluations(evaluations)))
    assert "50.0%       -       -" in text
    assert " ".join(text.split()).count("fast_p is unknown where 2 correct candidates were not timed") == 1


@pytest.mark.parametrize("width", [80, 200])
def test_the_leaderboard_says_how_many_answers_the_token_limit_cut_off(evaluation_of, width, rank_evaluations):
    cut_off = Finding(check=TRUNCATED, severity="note", message="cut off")
    truncated = evaluation_of("no_code", extra={"findings": (cut_off,)})
    rows = rank_evaluations([truncated, evaluation_of("no_code", sample=1)])
    text = " ".join(render(render_leaderboard(rows, wide=width > 80), width).split())
    assert "1 of 2 answers truncated, cut off by the token limit" in text
    assert leaderboard_record(rows[0])["truncated"] == 1
    (group,) = csv.DictReader(StringIO(format_leaderboard(rows)))
    assert group["truncated"] == "1"


def test_the_markdown_leaderboard_is_a_table_whatever_a_model_is_called(evaluation_of, rank_evaluations):
    text = render_leaderboard_markdown(rank_evaluations([evaluation_of("correct", 2.0, model="a|b\nc")]))
    head, rule, row = text.splitlines()
    assert row == "| a\\|b c | plain | cpp | cpu (Example CPU 9000) | full | 1 | 100.0% | 100.0% | 0.0% | 2.00x (1) |"
    assert head.count("|") == rule.count("|") == row.count("|") - 1


@pytest.mark.parametrize(
    ("time_us", "text"),
    [(0.95, "950 ns"), (12.34, "12.3 us"), (4560.0, "4.56 ms"), (1.2e6, "1.200 s"), (-50.0, "-50 us")],
)
def test_a_time_is_given_in_the_unit_that_suits_it(time_us, text):
    assert format_time_us(time_us) == text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (31.25, 1, "31.3"),
        (31.35, 1, "31.4"),
        (1.125, 2, "1.13"),
        (2.0, 2, "2.00"),
        (0.5, 0, "1"),
        (float("inf"), 2, "inf"),
    ],
)
def test_numbers_are_rounded_as_on_the_page(value, digits, text):
    assert format_fixed(value, digits) == text


def test_a_share_of_five_in_sixteen_is_rounded_up(evaluation_of, rank_evaluations):
    evaluations = [evaluation_of("correct" if n < 5 else "timeout", problem=f"p{n}") for n in range(16)]
    assert "31.3%" in render(render_leaderboard(rank_evaluations(evaluations)), 80)


@pytest.mark.parametrize("width", [80, 200])
def test_columns_about_turns_appear_only_where_a_run_has_several(evaluation_of, width, rank_evaluations):
    single = [evaluation_of("correct", 2.0, model=LONG_MODEL)]
    assert "best@turn" not in render(render_leaderboard(rank_evaluations(single), wide=width > 80), width)
    several = [evaluation_of("timeout", run="more"), evaluation_of("correct", 2.0, run="more", turn=1)]
    ranked = rank_evaluations([*single, *several], spent={("more", "add", 0): SearchSpending(12_345, 0.25)})
    text = render(render_leaderboard(ranked, wide=width > 80), width)
    for part in ("best@turn", "2.0", "12,345", "0.2500 USD", "plain, 2 turns"):
        assert part in text, text


@pytest.mark.parametrize("name", ["turn", "sample"])
def test_results_show_the_turn_and_the_sample_only_where_there_are_several(name, evaluation_of):
    rows = [make_row(evaluation_of("correct", 2.0, **{name: number}), number) for number in (0, 1)]
    assert name not in choose_columns(80, rows[:1])
    assert choose_columns(80, rows).count(name) == choose_columns(120, rows).count(name) == 1


def with_clock(evaluation, clock):
    return replace(evaluation, timing=replace(evaluation.timing, clock=clock))


@pytest.mark.parametrize(("clock", "text"), [("device", " 2.00x"), ("bound", ">=2.00x"), ("mixed", "~2.00x")])
def test_a_speedup_that_is_not_exact_is_marked(rows_of, evaluation_of, clock, text):
    evaluation = with_clock(evaluation_of("correct", 2.0, model=LONG_MODEL, problem=LONG_PROBLEM), clock)
    assert text in render(render_evaluations(rows_of(evaluation)))


@pytest.mark.parametrize("width", [80, 200])
def test_the_leaderboard_ranks_exact_means_above_equal_bounds_and_counts_these(evaluation_of, width, rank_evaluations):
    bounds = [with_clock(evaluation_of("correct", 2.0, model="a", sample=n), "bound") for n in range(2)]
    exact = [with_clock(evaluation_of("correct", 2.0, model=name, sample=2), "device") for name in "ab"]
    ranked = rank_evaluations([*bounds, *exact])
    assert [(row.group.model, row.clock) for row in ranked] == [("b", "device"), ("a", "bound")]
    text = " ".join(render(render_leaderboard(ranked, wide=width > 110), width).split())
    assert ">=2.00x (3)" in text
    assert "2 of 3 timed by whole calls: lower bounds (>=)" in text
    assert "b (" not in text
    assert "2 of 3 timed by whole calls" in render_leaderboard_markdown(ranked)
    assert leaderboard_record(ranked[1])["clocks"] == {"bound": 2, "device": 1}
