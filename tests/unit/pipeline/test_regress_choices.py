"""What `harness regress` chooses to evaluate again, what it compares it with, and what it guards without evaluating."""

from dataclasses import replace

import pytest

from harness.domain import UsageError
from harness.pipeline.regress import Selection, check_extraction, choose_rows, find_device, find_repeats, read_pins
from harness.store.results import EVERYTHING, ResultFilter, ResultStore

ALL = (EVERYTHING,)
PROGRAM = "class ModelNew:\n    x = 1\n"


@pytest.fixture
def store(tmp_path, evaluation_of):
    """Five evaluations of two runs; number 4 is number 1 again."""
    with ResultStore.open(tmp_path / "results") as store:
        for day, (speedup, fields) in enumerate(
            (
                (2.0, {}),
                (3.0, {"problem": "softmax"}),
                (4.0, {"problem": "softmax", "sample": 1}),
                (2.1, {}),
                (None, {"run": "other", "problem": "conv"}),
            ),
            start=1,
        ):
            outcome = "correct" if speedup else "build_error"
            extra = {"started_at": f"2025-03-0{day}T10:00:00+00:00"}
            store.record(evaluation_of(outcome, speedup, extra=extra, **fields), PROGRAM)
        yield store


@pytest.mark.parametrize(
    ("selection", "ids"),
    [
        ({}, [2, 3, 4, 5]),
        ({"where": (ResultFilter(run="demo"),)}, [2, 3, 4]),
        ({"where": (ResultFilter(run="demo"), ResultFilter(run="other"))}, [2, 3, 4, 5]),
        ({"where": (ResultFilter(problem="soft*"),)}, [2, 3]),
        ({"last": 2}, [4, 5]),
        ({"since": "2025-03-03"}, [3, 4, 5]),
        ({"since": "2025-03-03", "last": 1}, [5]),
        ({"best": True}, [3, 4]),
    ],
)
def test_each_option_narrows_what_is_chosen(store, selection, ids):
    assert [row.id for row in choose_rows(store, Selection(**{"where": ALL} | selection))] == ids


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("2\n", [2]),
        ("# the fast one\ndemo/softmax/1  # here\n\n5\n", [3, 5]),
        ("1\n", [1]),
        ("demo/add/0\n", [4]),
    ],
)
def test_pins_name_evaluations_by_number_or_by_sample(store, tmp_path, text, ids):
    (tmp_path / "pins.txt").write_text(text)
    selection = Selection(where=ALL, pins=tmp_path / "pins.txt")
    assert [row.id for row in choose_rows(store, selection)] == ids


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no pins"),
        ("# only a comment", "contains no pins"),
        ("softmax", "line 1: expected"),
        ("1\n../../etc/0 1", "line 2: expected"),
        ("99", "no evaluation of 99"),
        ("demo/absent/0", "no evaluation of demo/absent/0"),
    ],
)
def test_a_pin_that_names_nothing_is_wrong_usage(store, tmp_path, text, message):
    (tmp_path / "pins.txt").write_text(text)
    with pytest.raises(UsageError, match=message):
        choose_rows(store, Selection(where=ALL, pins=tmp_path / "pins.txt"))


def test_pins_that_are_no_text_are_wrong_usage(tmp_path):
    (tmp_path / "pins.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="cannot read the pins"):
        read_pins(tmp_path / "pins.txt")


def test_evaluations_under_the_same_conditions_are_repeats_of_one_measurement(store, evaluation_of):
    assert [one.speedup for one in find_repeats(store, store.get(4), 6)] == [2.0, 2.1]
    assert [one.speedup for one in find_repeats(store, store.get(4), 1)] == [2.1]
    assert [one.speedup for one in find_repeats(store, store.get(1), 6)] == [2.0]
    other = evaluation_of("correct", 2.2, extra={"environment": (("torch", "another"),)})
    assert [one.speedup for one in find_repeats(store, store.get(store.record(other)), 6)] == [2.2]


def test_a_seed_of_their_own_does_not_make_evaluations_differ(store):
    stored = store.get(4).evaluation
    again = replace(stored, environment=(*stored.environment, ("seed", "7")))
    assert len(find_repeats(store, store.get(store.record(again)), 6)) == 3


@pytest.mark.parametrize(
    ("stored", "completion", "kinds"),
    [
        (PROGRAM, f"```python\n{PROGRAM}```\n", []),
        (PROGRAM, "nothing", ["broken"]),
        (PROGRAM, f"```python\n{PROGRAM}    y = 2\n```\n", ["broken"]),
        (None, f"```python\n{PROGRAM}```\n", ["fixed"]),
    ],
)
def test_a_completion_that_gives_another_program_now_is_noticed(
    store, write_run, evaluation_of, stored, completion, kinds
):
    folder = write_run("past", [stored]) / "add" / "0"
    (folder / "completion.md").write_text(completion)
    store.record(evaluation_of("build_error", run="past"))
    rows = choose_rows(store, Selection(where=(ResultFilter(run="past"),)))
    changes = check_extraction(rows, folder.parents[2])
    assert [change.kind for change in changes] == kinds


def test_a_run_whose_files_were_deleted_has_no_extraction_to_guard(store, tmp_path):
    assert check_extraction(choose_rows(store, Selection(where=ALL)), tmp_path / "generated") == []


def test_damaged_files_of_a_sample_are_not_comparable(store, write_run, evaluation_of, tmp_path):
    folder = write_run("past", [PROGRAM]) / "add" / "0"
    (folder / "provenance.json").write_text("{")
    store.record(evaluation_of("correct", 2.0, run="past"))
    (change,) = check_extraction(
        choose_rows(store, Selection(where=(ResultFilter(run="past"),))), tmp_path / "generated"
    )
    assert (change.kind, "damaged" in change.reason) == ("not_comparable", True)


@pytest.mark.parametrize(
    ("language", "stored", "now"),
    [
        ("cpp", "cpu", "cpu"),
        ("cpp", "none", "auto"),
        ("cuda", "emulated", "emulated"),
        ("cuda", "none", "cpu"),
        ("cuda", "cuda:977", "cpu"),
    ],
)
def test_a_cuda_candidate_without_its_device_is_only_built(subject_of, language, stored, now):
    assert find_device(subject_of(language=language, device=stored)) == now
