import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from harness import __version__
from harness.domain import BuildSummary, StoreError, UsageError, Work
from harness.store.columns import SCHEMA_VERSION
from harness.store.results import DATABASE_NAME, ResultFilter, ResultStore

ROOT = Path(__file__).parents[3]


@pytest.fixture
def results_dir(tmp_path):
    return tmp_path / "results"


@pytest.fixture
def store(results_dir):
    with ResultStore.open(results_dir) as opened:
        yield opened


def sample_ids(store, **where):
    return [row.id for row in store.rows(ResultFilter(**where))]


def test_an_evaluation_is_found_again_by_its_subject(store, evaluation_of, subject_of):
    evaluation_id = store.record(evaluation_of("correct", 2.0))
    assert store.find(subject_of()).id == evaluation_id


@pytest.mark.parametrize(
    "change",
    [
        {"run": "other"},
        {"model": "other"},
        {"prompt": "other"},
        {"language": "cuda"},
        {"sample": 1},
        {"turn": 1},
        {"problem": "mul"},
        {"suite": "other"},
        {"problem_digest": "2" * 16},
        {"candidate_digest": "d" * 16},
        {"device": "cuda:0"},
        {"workload": "small"},
        {"baseline": "compile"},
    ],
)
def test_another_subject_is_not_taken_for_one_that_was_evaluated(store, evaluation_of, subject_of, change):
    store.record(evaluation_of("correct", 2.0))
    assert store.find(subject_of(**change)) is None


def test_the_latest_evaluation_counts_and_the_older_stays_in_the_history(store, evaluation_of, subject_of):
    store.record(evaluation_of("harness_error"))
    latest = store.record(evaluation_of("correct", 2.0))
    assert store.find(subject_of()).id == latest
    assert [stored.id for stored in store.load_all()] == [latest]
    assert [stored.id for stored in store.load_all(history=True)] == [1, latest]


def test_newer_problem_version_replaces_the_older_in_listings(store, evaluation_of, subject_of):
    store.record(evaluation_of("correct", 2.0, problem_digest="1" * 16))
    newer = store.record(evaluation_of("wrong_value", problem_digest="2" * 16))
    assert sample_ids(store) == [newer]
    assert store.find(subject_of(problem_digest="1" * 16)).id == 1


def test_two_candidates_of_one_sample_are_both_listed(store, evaluation_of):
    ids = [store.record(evaluation_of("correct", 2.0, candidate_digest=letter * 16)) for letter in "ab"]
    assert sample_ids(store) == ids


def test_filters_match_exactly_or_by_wildcard(store, evaluation_of):
    for model in ("gpt-5", "gpt-5-mini", "qwen"):
        store.record(evaluation_of("correct", 2.0, model=model, run=f"run-{model}"))
    assert sample_ids(store, model="gpt-5") == [1]
    assert sample_ids(store, model="gpt*") == [1, 2]
    assert sample_ids(store, run="run-?wen", outcome="correct") == [3]
    assert sample_ids(store, model="' OR 1=1 --") == []


def test_filter_requires_a_custom_share_that_changes_outputs(store, evaluation_of):
    works = [
        (0.9, "changed"), (0.5, "failed"), (0.49, "changed"), (0.9, "unchanged"), (0.6, "not_tried"),
    ]  # fmt: skip
    for sample, (own, without_custom) in enumerate(works):
        work = Work(custom=own, torch=1 - own, library=0.0, other=0.0, without_custom=without_custom)
        store.record(evaluation_of("correct", 2.0, sample=sample, extra={"work": work}))
    store.record(evaluation_of("correct", 2.0, sample=9))
    assert sample_ids(store, min_own_share=0.5) == [1, 2, 5]
    assert sample_ids(store, min_own_share=0.5, sample=1) == [2]


def test_rows_are_sorted_with_what_has_no_value_last(store, evaluation_of):
    for sample, speedup in enumerate([1.0, None, 3.0, 2.0]):
        store.record(evaluation_of("correct", speedup, sample=sample))
    assert [row.speedup for row in store.rows(sort="-speedup")] == [3.0, 2.0, 1.0, None]
    assert [row.speedup for row in store.rows(sort="speedup", limit=2)] == [1.0, 2.0]


@pytest.mark.parametrize(("sort", "clocks"), [("-speedup", ["call", "bound"]), ("speedup", ["bound", "call"])])
def test_an_exact_speedup_ranks_above_an_equal_lower_bound(store, evaluation_of, sort, clocks):
    exact = evaluation_of("correct", 2.0, sample=1)
    store.record(replace(exact, subject=replace(exact.subject, sample=0), timing=replace(exact.timing, clock="bound")))
    store.record(exact)
    assert [row.clock for row in store.rows(sort=sort)] == clocks


def test_sorting_by_an_unknown_column_is_an_error_listing_columns(store):
    with pytest.raises(UsageError, match=r"cannot sort: unknown column 'speed; DROP'; choose among id, run"):
        list(store.rows(sort="-speed; DROP"))


def test_the_source_and_the_build_log_are_kept_with_the_evaluation(results_dir, evaluation_of):
    build = BuildSummary(keys=("k",), cached=False, duration_s=1.0, strategy="plain", log="error: ;\n" * 1000)
    with ResultStore.open(results_dir) as store:
        evaluation_id = store.record(evaluation_of("build_error", extra={"build": build}), "class ModelNew: ...")
    with ResultStore.open(results_dir, read_only=True) as store:
        assert store.source("c" * 16) == "class ModelNew: ..."
        assert store.get(evaluation_id).evaluation.build == build
        assert store.source("unknown") is None


def test_reading_a_folder_without_results_finds_nothing_and_creates_nothing(results_dir):
    with ResultStore.open(results_dir, read_only=True) as store:
        assert (list(store.rows()), list(store.load_all()), store.count(), store.get(1)) == ([], [], 0, None)
    assert not results_dir.exists()


def test_a_read_only_store_refuses_to_record(results_dir, evaluation_of):
    ResultStore.open(results_dir).close()
    with (
        ResultStore.open(results_dir, read_only=True) as store,
        pytest.raises(StoreError, match=r"cannot write .*harness.db.*readonly"),
    ):
        store.record(evaluation_of())


def test_an_empty_file_left_by_a_killed_start_becomes_a_store(results_dir, evaluation_of):
    results_dir.mkdir()
    (results_dir / DATABASE_NAME).touch()
    with ResultStore.open(results_dir, read_only=True) as store:
        assert store.count() == 0
    with ResultStore.open(results_dir) as store:
        assert store.record(evaluation_of()) == 1


def edit_database(results_dir, *statements):
    with closing(sqlite3.connect(results_dir / DATABASE_NAME)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize("read_only", [True, False])
def test_database_of_a_newer_version_is_unchanged_and_its_writer_named(results_dir, evaluation_of, read_only):
    with ResultStore.open(results_dir) as store:
        store.record(evaluation_of())
    edit_database(
        results_dir,
        f"PRAGMA user_version={SCHEMA_VERSION + 1}",
        "UPDATE meta SET value = '9.1.0' WHERE key = 'created_by'",
    )
    before = (results_dir / DATABASE_NAME).read_bytes()
    expected = (
        rf"written by harness 9\.1\.0 in schema {SCHEMA_VERSION + 1}; this harness {__version__} reads schemas up to "
        rf"{SCHEMA_VERSION}: upgrade harness"
    )
    with pytest.raises(StoreError, match=expected):
        ResultStore.open(results_dir, read_only=read_only)
    assert (results_dir / DATABASE_NAME).read_bytes() == before


def test_a_newer_version_without_a_name_is_reported_too(results_dir):
    ResultStore.open(results_dir).close()
    edit_database(results_dir, f"PRAGMA user_version={SCHEMA_VERSION + 1}", "DROP TABLE meta")
    with pytest.raises(StoreError, match=rf"harness \(unknown version\) in schema {SCHEMA_VERSION + 1}"):
        ResultStore.open(results_dir)


@pytest.mark.parametrize("read_only", [True, False])
def test_somebody_elses_database_is_refused_and_left_alone(results_dir, read_only):
    results_dir.mkdir()
    edit_database(results_dir, "CREATE TABLE recipes (name TEXT)")
    before = (results_dir / DATABASE_NAME).read_bytes()
    with pytest.raises(StoreError, match="not a harness database"):
        ResultStore.open(results_dir, read_only=read_only)
    assert (results_dir / DATABASE_NAME).read_bytes() == before


@pytest.mark.parametrize("read_only", [True, False])
def test_a_file_that_is_no_database_is_refused(results_dir, read_only):
    results_dir.mkdir()
    (results_dir / DATABASE_NAME).write_text("id,run\n" * 1000)
    with pytest.raises(StoreError, match=r"cannot open .*harness.db: file is not a database.*--results-dir"):
        ResultStore.open(results_dir, read_only=read_only)


def test_a_damaged_page_is_a_store_error(results_dir, evaluation_of):
    with ResultStore.open(results_dir) as store:
        store.record_all([(evaluation_of(sample=sample), None) for sample in range(500)])
    path = results_dir / DATABASE_NAME
    content = path.read_bytes()
    path.write_bytes(content[:8192] + os.urandom(len(content) - 8192))
    with pytest.raises(StoreError, match="cannot read"), ResultStore.open(results_dir) as store:
        list(store.load_all())


def test_a_damaged_row_is_named_and_leaves_the_others_readable(results_dir, evaluation_of):
    with ResultStore.open(results_dir) as store:
        for sample in range(2):
            store.record(evaluation_of(sample=sample), None)
    edit_database(results_dir, "UPDATE details SET evaluation = '{}' WHERE evaluation_id = 1")
    with ResultStore.open(results_dir) as store:
        assert store.get(2) is not None
        with pytest.raises(StoreError, match="evaluation 1 is damaged"):
            store.get(1)


def test_a_damaged_source_is_a_store_error(results_dir, evaluation_of):
    with ResultStore.open(results_dir) as store:
        store.record(evaluation_of(), "source")
        edit_database(results_dir, "UPDATE candidates SET source = x'00ff'")
        with pytest.raises(StoreError, match=r"source of candidate c{16} is damaged"):
            store.source("c" * 16)


def test_a_results_folder_that_cannot_be_made_is_a_store_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot open .*--results-dir"):
        ResultStore.open(tmp_path / "file" / "results")


def test_many_recorded_at_once_are_all_stored_or_none(store, evaluation_of):
    def pairs():
        yield evaluation_of(), None
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.record_all(pairs())
    assert store.count() == 0
    assert len(store.record_all([(evaluation_of(), None), (evaluation_of(), None)])) == 2


PRELUDE = """
import os, resource, sys
from pathlib import Path
sys.path.insert(0, "tests")
from built_evaluations import build_evaluation
from harness.domain import StoreError
from harness.store.columns import SCHEMA_VERSION
from harness.store.results import ResultStore
results_dir = Path(sys.argv[1])
"""
WRITE = """
with ResultStore.open(results_dir) as store:
    for sample in range(int(sys.argv[3])):
        print(store.record(build_evaluation(run=sys.argv[2], sample=sample), "x" * 2000), flush=True)
"""
FILL_THE_DISK = """
with ResultStore.open(results_dir) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    try:
        for sample in range(10_000):
            print(store.record(build_evaluation(run="full", sample=sample), os.urandom(3000).hex()), flush=True)
    except StoreError as error:
        print(error, file=sys.stderr)
"""
COUNT_AS_NOBODY = """
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
with ResultStore.open(results_dir, read_only=True) as store:
    print(store.count())
"""


def start(script, *arguments):
    command = [sys.executable, "-c", PRELUDE + script, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_processes_that_start_at_once_both_record_everything(results_dir):
    writers = [start(WRITE, results_dir, run, 40) for run in ("left", "right")]
    outputs = [writer.communicate(timeout=300) for writer in writers]
    assert [error for _, error in outputs] == ["", ""]
    ids = [int(line) for output, _ in outputs for line in output.split()]
    assert sorted(ids) == list(range(1, 81))
    with ResultStore.open(results_dir, read_only=True) as store:
        assert len(sample_ids(store, run="left")) == len(sample_ids(store, run="right")) == 40


def test_results_of_a_killed_process_are_kept(results_dir, evaluation_of):
    writer = start(WRITE, results_dir, "killed", 100_000)
    reported = [int(writer.stdout.readline()) for _ in range(25)]
    writer.send_signal(signal.SIGKILL)
    reported += [int(line) for line in writer.communicate()[0].splitlines(keepends=True) if line.endswith("\n")]
    with ResultStore.open(results_dir) as store:
        assert set(reported) <= set(sample_ids(store, run="killed"))
        assert store.record(evaluation_of()) > max(reported)


def test_a_full_disk_is_a_store_error_and_loses_nothing(results_dir, evaluation_of):
    output, message = start(FILL_THE_DISK, results_dir).communicate(timeout=300)
    recorded = [int(line) for line in output.split()]
    assert recorded
    assert "free disk space" in message
    with ResultStore.open(results_dir) as store:
        assert [stored.id for stored in store.load_all(ResultFilter(run="full"))] == recorded
        assert store.record(evaluation_of()) > recorded[-1]


def test_another_users_read_only_folder_can_be_browsed(evaluation_of):
    with tempfile.TemporaryDirectory() as folder:
        results_dir = Path(folder)
        with ResultStore.open(results_dir) as store:
            store.record(evaluation_of())
        results_dir.chmod(0o555)
        output, message = start(COUNT_AS_NOBODY, results_dir).communicate(timeout=300)
        results_dir.chmod(0o755)
    assert (output, message) == ("1\n", "")
