"""Files that an older harness wrote: read as they are, and brought up to date without loss."""

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from harness.domain import StoreError
from harness.store.columns import SCHEMA_VERSION
from harness.store.results import DATABASE_NAME, ResultFilter, ResultStore
from harness.store.schema import locate_backup

SCHEMA_1 = Path(__file__).with_name("results_schema_1.sql")
TABLES = ("meta", "environments", "candidates", "details", "build_logs")


@pytest.fixture
def old_results(tmp_path):
    results_dir = tmp_path / "results"
    results_dir.mkdir()
    with closing(sqlite3.connect(results_dir / DATABASE_NAME)) as connection:
        connection.executescript(SCHEMA_1.read_text())
    return results_dir


def query(results_dir, text):
    with closing(sqlite3.connect(results_dir / DATABASE_NAME)) as connection:
        return connection.execute(text).fetchall()


def read_everything(store):
    return list(store.rows()), list(store.load_all(history=True)), store.source("c" * 16)


@pytest.mark.parametrize("read_only", [True, False])
def test_an_older_file_shows_everything_it_holds(old_results, read_only):
    with ResultStore.open(old_results, read_only=read_only) as store:
        rows, evaluations, source = read_everything(store)
    assert [row.outcome for row in rows] == ["correct", "wrong_value", "no_code", "correct"]
    assert [row.noise_floor for row in rows] == [0.0625, None, None, None]
    assert [row.own_share for row in rows] == [None, None, None, 0.75]
    assert [row.without_own for row in rows] == [None, None, None, "changed"]
    assert [row.peak_fraction for row in rows] == [None, None, None, 0.5]
    assert [row.certificate for row in rows] == ["", "", "", "f" * 16]
    assert evaluations[0].evaluation.timing.blocks[2].candidate_evaluator_us == 83.0
    assert evaluations[0].evaluation.build.log == "line 1\nline 2\n"
    assert evaluations[1].evaluation.correctness.trials[0].max_abs_error == float("inf")
    assert source == "class ModelNew: ...\n"


def test_keys_of_older_records_are_read_by_their_present_names(old_results):
    with ResultStore.open(old_results, read_only=True) as store:
        evaluations = [one.evaluation for one in store.load_all(history=True)]
        evidence = [one.roofline for one in store.evidence()]
    evaluation = evaluations[3]
    assert evaluation.roofline.peak_fraction == 0.5
    assert (evaluation.work.custom, evaluation.work.custom_kernels) == (0.75, ("k",))
    assert evaluation.isolation == "none"
    assert evaluations[0].build.strategy == "plain"
    assert evaluation.work.without_custom == "changed"
    assert evidence == [None, None, None, evaluation.roofline]


@pytest.mark.parametrize("read_only", [True, False])
def test_the_clock_of_an_older_row_is_the_recorded_one_or_none(old_results, read_only):
    with closing(sqlite3.connect(old_results / DATABASE_NAME)) as connection, connection:
        timed = "evaluation = json_set(evaluation, '$.timing.clock', 'device')"
        connection.execute(f"UPDATE details SET {timed} WHERE evaluation_id = 1")
    with ResultStore.open(old_results, read_only=read_only) as store:
        assert [row.clock for row in store.rows()] == ["device", None, None, None]
        assert store.count(ResultFilter(condition='clock == "device"')) == 1


def test_older_verdict_is_found_for_the_same_subject_and_dtype(old_results):
    with ResultStore.open(old_results, read_only=True) as store:
        stored = max(store.load_all(history=True), key=lambda one: one.id)
        assert store.find(stored.evaluation.subject) == stored
        assert store.find(replace(stored.evaluation.subject, dtype="bf16")) is None


def test_reading_an_older_file_leaves_it_as_it_is(old_results):
    before = (old_results / DATABASE_NAME).read_bytes()
    with ResultStore.open(old_results, read_only=True) as store:
        assert store.count(ResultFilter(min_own_share=0.5)) == 1
    assert (old_results / DATABASE_NAME).read_bytes() == before


def test_opening_an_older_file_for_writing_keeps_every_value_of_it(old_results):
    tables = [query(old_results, f"SELECT * FROM {table}") for table in TABLES]
    rows = query(old_results, "SELECT * FROM evaluations")
    with ResultStore.open(old_results, read_only=True) as store:
        read = read_everything(store)
    with ResultStore.open(old_results) as store:
        assert read_everything(store) == read
    assert [query(old_results, f"SELECT * FROM {table}") for table in TABLES] == tables
    assert [row[: len(rows[0])] for row in query(old_results, "SELECT * FROM evaluations")] == rows
    assert query(old_results, "PRAGMA user_version") == [(SCHEMA_VERSION,)]


def test_an_upgraded_file_has_the_columns_of_a_new_one(old_results, tmp_path):
    ResultStore.open(old_results).close()
    ResultStore.open(tmp_path / "new").close()
    columns = "SELECT name, type, \"notnull\", dflt_value FROM pragma_table_info('evaluations')"
    assert query(old_results, columns) == query(tmp_path / "new", columns)


def test_an_upgraded_file_takes_new_evaluations_and_is_upgraded_once(old_results, evaluation_of):
    for expected_id in (5, 6):
        with ResultStore.open(old_results) as store:
            assert store.record(evaluation_of("correct", 2.0, extra={"certificate": "e" * 16})) == expected_id
    with ResultStore.open(old_results, read_only=True) as store:
        assert [row.certificate for row in store.rows()] == ["", "", "f" * 16, "e" * 16]


def test_a_reader_stays_right_while_a_writer_upgrades_the_file(old_results, evaluation_of):
    with ResultStore.open(old_results, read_only=True) as reader:
        before = list(reader.rows())
        with ResultStore.open(old_results) as writer:
            writer.record(evaluation_of("correct", 2.0, model="new", extra={"certificate": "e" * 16}))
            rows = list(reader.rows())
        assert rows[:4] == before
        assert (rows[4].model, rows[4].certificate) == ("new", "e" * 16)


def test_an_older_harness_that_has_the_file_open_goes_on_writing(old_results):
    with closing(sqlite3.connect(old_results / DATABASE_NAME, isolation_level=None)) as old_writer:
        columns = [row[1] for row in old_writer.execute("PRAGMA table_info(evaluations)")][1:]
        ResultStore.open(old_results).close()
        names = ", ".join(columns)
        old_writer.execute(f"INSERT INTO evaluations ({names}) SELECT {names} FROM evaluations WHERE id = 1")
    with ResultStore.open(old_results, read_only=True) as store:
        assert [row.certificate for row in store.rows(history=True)] == ["", "", "", "f" * 16, ""]


def test_an_upgrade_that_fails_half_way_changes_nothing(old_results, tmp_path):
    path = old_results / DATABASE_NAME
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE evaluations ADD COLUMN noise_floor REAL")  # the last that the upgrade adds
    shutil.copy(path, tmp_path / "before.db")
    with pytest.raises(StoreError, match=r"cannot open .*duplicate column name: noise_floor"):
        ResultStore.open(old_results)
    assert query(old_results, "PRAGMA user_version") == [(1,)]
    assert "own_share" not in [row[1] for row in query(old_results, "PRAGMA table_info(evaluations)")]


def test_an_older_file_is_copied_before_it_is_upgraded_and_only_once(old_results):
    before = (old_results / DATABASE_NAME).read_bytes()
    with ResultStore.open(old_results, read_only=True):
        assert not locate_backup(old_results / DATABASE_NAME, 1).exists()
    ResultStore.open(old_results).close()
    backup = locate_backup(old_results / DATABASE_NAME, 1)
    assert backup.name == "harness.db.schema-1"
    assert backup.stat().st_size == len(before)
    with closing(sqlite3.connect(backup)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM evaluations").fetchone() == (4,)
    backup.write_text("kept")
    ResultStore.open(old_results).close()
    assert backup.read_text() == "kept"
    assert sorted(path.name for path in old_results.iterdir()) == ["harness.db", "harness.db.schema-1"]


def test_a_new_file_has_no_backup(tmp_path):
    ResultStore.open(tmp_path).close()
    assert [path.name for path in tmp_path.iterdir()] == ["harness.db"]
