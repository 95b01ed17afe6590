import csv
import json
from io import StringIO

import pandas as pd
import pytest

from harness.analysis.ranking import rank_stored
from harness.domain import Finding, StoreError, Work
from harness.report.export.table_files import (
    EVALUATIONS_CSV,
    LEADERBOARD_CSV,
    format_evaluations,
    format_leaderboard,
    write_csvs,
)
from harness.store.columns import COLUMNS
from harness.store.results import ResultStore


@pytest.fixture
def store(tmp_path):
    with ResultStore.open(tmp_path / "results") as opened:
        yield opened


@pytest.fixture
def write(store):
    def write_and_read(**options):
        write_csvs(store, store.path.parent, **options)
        texts = [(store.path.parent / name).read_text() for name in (EVALUATIONS_CSV, LEADERBOARD_CSV)]
        return [list(csv.DictReader(StringIO(text, newline=""))) for text in texts]

    return write_and_read


def test_there_is_one_line_per_latest_evaluation(store, evaluation_of, write):
    store.record(evaluation_of("timeout"))
    store.record(evaluation_of("correct", 2.0))
    store.record(evaluation_of("wrong_value", sample=1))
    evaluations, _ = write()
    assert [(line["id"], line["outcome"], line["speedup"]) for line in evaluations] == [
        ("2", "correct", "2.0"),
        ("3", "wrong_value", ""),
    ]


def test_a_line_says_what_was_measured_where(store, evaluation_of, write):
    store.record(evaluation_of("correct", 2.0, extra={"isolation": "private root", "duration_s": 1.5}))
    (line,), _ = write()
    assert list(line) == list(COLUMNS)
    assert (line["baseline"], line["baseline_us"], line["candidate_us"]) == ("eager", "100.0", "50.0")
    assert (line["torch"], line["hardware"], line["harness_version"]) == ("2.9.0", "Example CPU 9000", "0.1.0")
    assert (line["confinement"], line["duration_s"], line["verdict"]) == ("private root", "1.5", "faster")


def test_new_columns_stand_at_the_end_of_both_files(store, evaluation_of, write):
    work = Work(custom=0.75, torch=0.25, library=0.0, other=0.0, without_custom="changed")
    store.record(evaluation_of("correct", 2.0, extra={"work": work, "certificate": "f" * 16}))
    (evaluation,), (group,) = write()
    assert list(evaluation.items())[-26:] == [
        ("hardware", "Example CPU 9000"),
        ("own_share", "0.75"),
        ("without_own", "changed"),
        ("peak_fraction", ""),
        ("certificate", "f" * 16),
        ("noise_floor", ""),
        ("worst_speedup", ""),
        ("generalisation_gap", ""),
        ("dtype", ""),
        ("rival_turn", ""),
        ("over_rival", ""),
        ("over_rival_low", ""),
        ("clock", "call"),
        ("gap_closed", ""),
        ("achieved_gb_s", ""),
        ("achieved_tflops", ""),
        ("baselines", "eager"),
        ("fastest_baseline", ""),
        ("over_fastest", ""),
        ("memory_bytes", ""),
        ("baseline_memory_bytes", ""),
        ("energy_mj", ""),
        ("baseline_energy_mj", ""),
        ("call_us", ""),
        ("baseline_call_us", ""),
        ("call_speedup", ""),
    ]
    assert list(group)[-14:] == [
        "runs", "speedup_low", "speedup_high", "own_share", "certificate", "truncated", "chip",
        "turns", "mean_turns", "best_turn", "tokens_per_correct", "dtype", "usd_per_correct", "clock",
    ]  # fmt: skip
    assert (group["own_share"], group["certificate"]) == ("0.75", "yes")
    assert (float(group["speedup_low"]), float(group["speedup_high"])) == (pytest.approx(1.9), pytest.approx(2.1))


@pytest.mark.parametrize("start", "=+-@")
def test_a_hostile_text_is_no_formula_and_numbers_stay_numbers(store, evaluation_of, write, start):
    finding = Finding(check=f"{start}1", severity="note", message="")
    store.record(
        evaluation_of(
            "timeout", model=f"{start}cmd|' /C calc'!A0", extra={"message": f"{start}1", "findings": (finding,)}
        )
    )
    store.record(evaluation_of("correct", 0.5, sample=1, model="-honest"))
    evaluations, leaderboard = write()
    assert evaluations[0]["model"] == f"'{start}cmd|' /C calc'!A0"
    assert evaluations[0]["message"] == f"'{start}1"
    assert evaluations[1]["model"] == "'-honest"
    assert evaluations[1]["speedup"] == "0.5"
    assert {line["model"][0] for line in leaderboard} == {"'"}


def test_line_breaks_and_escapes_in_a_message_stay_in_one_cell(store, evaluation_of, write):
    store.record(evaluation_of("runtime_error", extra={"message": 'a,"b"\nc\r\nd\x1b[2J'}))
    (line,), _ = write()
    assert line["message"] == 'a,"b"\nc\nd\\x1b[2J'


def test_the_leaderboard_file_has_the_ranked_groups(store, evaluation_of, write):
    store.record(evaluation_of("correct", 2.0, model="fast"))
    store.record(evaluation_of("wrong_value", model="wrong"))
    _, leaderboard = write()
    assert [(line["rank"], line["model"], line["fast_0"], line["fast_1.5"]) for line in leaderboard] == [
        ("1", "fast", "1.0", "1.0"),
        ("2", "wrong", "0.0", "0.0"),
    ]
    assert (leaderboard[1]["wrong_value"], leaderboard[1]["correct"]) == ("1", "0")
    assert leaderboard[1]["geometric_mean_speedup"] == ""


def write_manifest(generated_dir, run, problems):
    folder = generated_dir / run
    folder.mkdir(parents=True)
    manifest = {
        "run": run,
        "suite": "core",
        "model": "model-a",
        "provider": "recorded",
        "prompt": "plain",
        "language": "cpp",
        "samples": 1,
        "temperature": None,
        "problems": problems,
        "created_at": "",
        "harness_version": "0.1.0",
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_problems_that_a_run_asked_for_count_in_its_rates(store, evaluation_of, write, tmp_path):
    write_manifest(tmp_path / "generated", "demo", ["add", "mul", "sub", "div"])
    write_manifest(tmp_path / "generated", "unrelated", ["other"])
    store.record(evaluation_of("correct", 2.0))
    _, (line,) = write(generated_dir=tmp_path / "generated")
    assert (line["problems"], line["fast_1"]) == ("4", "0.25")


def test_a_run_whose_folder_is_gone_is_ranked_over_what_was_evaluated(store, evaluation_of, tmp_path):
    store.record(evaluation_of("correct", 2.0, run=""))
    (row,) = rank_stored(store.rows(), generated_dir=tmp_path / "gone")
    assert (row.problems, row.fast_p(1.0)) == (1, 1.0)


def test_an_empty_store_gives_files_with_a_header_only(store):
    assert write_csvs(store, store.path.parent) == ()
    evaluations, leaderboard = (store.path.parent / name for name in (EVALUATIONS_CSV, LEADERBOARD_CSV))
    assert evaluations.read_text() == ",".join(COLUMNS) + "\n"
    assert leaderboard.read_text().startswith("rank,model,prompt")
    assert (format_evaluations([], ["id"]), len(format_leaderboard([]).splitlines())) == ("id\n", 1)


def test_a_data_frame_reads_the_file_back(store, evaluation_of):
    store.record(evaluation_of("correct", 2.5))
    store.record(evaluation_of("timeout", sample=1))
    write_csvs(store, store.path.parent)
    frame = pd.read_csv(store.path.parent / EVALUATIONS_CSV)
    assert frame["speedup"].tolist()[0] == 2.5
    assert frame["speedup"].isna().tolist() == [False, True]


def test_writing_again_replaces_the_files_and_leaves_nothing_beside_them(store, evaluation_of, write):
    write()
    store.record(evaluation_of("correct", 2.0))
    evaluations, _ = write()
    assert len(evaluations) == 1
    names = {path.name for path in store.path.parent.iterdir()}
    assert names - {"harness.db-wal", "harness.db-shm"} == {
        "harness.db",
        "evaluations.csv",
        "leaderboard.csv",
        ".csv.lock",
    }


def test_failed_file_replacement_is_a_store_error_without_leftovers(store, evaluation_of):
    results_dir = store.path.parent
    (results_dir / "evaluations.csv").mkdir()
    with pytest.raises(StoreError, match=r"cannot write the CSV files in .*stored in .*harness\.db"):
        write_csvs(store, results_dir)
    assert not list(results_dir.glob(".evaluations.csv.*"))
