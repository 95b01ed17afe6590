"""`harness problems suites`, `find`, `show` and `new`, as typed."""

import json
from pathlib import Path

import pytest

from harness.problems.discovery import list_files, read_problem, read_suite_settings
from harness.store.results import ResultStore

ROOT = Path(__file__).parents[3]
PROBLEM = """'''{docstring}'''
import torch
from torch import nn

rows = 64

class Model(nn.Module):
    '''Adds a constant.'''
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.randn(rows, 8)]

def get_init_inputs():
    return []

SMALL = {{"rows": 7}}
CASES = [{{"name": "half", "sizes": {{"rows": 32}}, "dtype": "bfloat16", "tolerance": {{"atol": 0.5}}}}]
RANGES = {{"rows": (5, 9)}}
BACKWARD = True
"""


@pytest.fixture
def harness(call_harness, tmp_path, monkeypatch):
    """Runs commands in a folder with the suite `mine` and its only problem, `shift_rows`."""
    monkeypatch.setenv("COLUMNS", "80")
    folder = tmp_path / "reference_models" / "mine"
    folder.mkdir(parents=True)
    (folder / "shift_rows.py").write_text(PROBLEM.format(docstring="Moves rows by Zebra's method."))
    (folder / "suite.toml").write_text('summary = "Two kinds of rows"\n')

    def call(*arguments):
        done = call_harness(["problems", *arguments])
        assert max(map(len, done.stdout.splitlines()), default=0) <= 80 or "--json" in arguments or "show" in arguments
        return done

    return call


def test_suites_are_listed_with_their_problems_folder_and_content(harness):
    entries = {entry["name"]: entry for entry in map(json.loads, harness("suites", "--json").stdout.splitlines())}
    assert set(entries) == {"mine", "core", "llm", "fused", "scientific"}
    assert entries["mine"]["summary"] == "Two kinds of rows"
    assert (entries["mine"]["problems"], entries["mine"]["folder"]) == (1, "reference_models/mine")
    assert "Two kinds of rows" in harness("suites").stdout


def test_a_shipped_suite_that_an_own_one_hides_is_marked(harness, tmp_path):
    (tmp_path / "reference_models" / "mine").rename(tmp_path / "reference_models" / "core")
    assert "not used: reference_models/core has the same name" in " ".join(harness("suites").stdout.split())


def test_the_page_about_suites_has_the_summary_that_the_command_prints():
    page = (ROOT / "docs" / "suites.md").read_text()
    for folder in (ROOT / "reference_models").iterdir():
        row = f"| `{folder.name}` | {len(list_files(folder))} | {read_suite_settings(folder).summary} |"
        assert row in page


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("zebra", ["mine/shift_rows"]),
        ("SHIFTROWS", ["mine/shift_rows"]),
        ("constant zebra", ["mine/shift_rows"]),
        ("paged attention", ["llm/paged_decode"]),
        ("nothing_like_this", []),
    ],
)
def test_problems_are_found_by_words_of_names_and_docstrings_in_all_suites(harness, words, found):
    done = harness("find", *words.split(), "--json")
    assert [json.loads(line)["name"] for line in done.stdout.splitlines()] == found
    assert done.returncode == (0 if found else 1)


def test_names_that_contain_the_word_come_first(harness):
    lines = harness("find", "softmax").stdout.splitlines()[2:]
    names = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert names == sorted(names, key=lambda name: "softmax" not in name)


def test_a_word_that_nothing_contains_names_the_nearest(harness):
    done = harness("find", "softmx")
    assert "no problem mentions 'softmx'; did you mean softmax" in done.stderr


def test_a_file_that_is_no_problem_is_found_by_its_name(harness, tmp_path):
    (tmp_path / "reference_models" / "mine" / "broken_thing.py").write_text("def (")
    assert "not a problem: " in harness("find", "broken thing").stdout


def test_show_states_settings_cases_inputs_and_source(harness):
    record = json.loads(harness("show", "mine/shift_rows", "--json").stdout)
    assert record["settings"] == {
        "TOLERANCE": "factor=8.0 (default)", "DISTRIBUTIONS": "as_given (default)", "BACKWARD": "True"
    }  # fmt: skip
    half, secret = record["cases"][0], record["cases"][1]
    assert (half["sizes"], half["tolerance"]) == ("rows=32, bfloat16", "atol=0.5")
    assert half["inputs"] == [{"dtype": "bfloat16", "shape": [32, 8]}]
    assert (secret["sizes"], secret["is_secret"], secret["inputs"]) == ("rows=5 to 9", True, [])
    assert record["source"].startswith("'''Moves rows")


def test_show_prints_the_source_as_it_is_below_the_tables(harness, tmp_path):
    path = tmp_path / "reference_models" / "mine" / "shift_rows.py"
    path.write_text(path.read_text() + f"# {'long ' * 30}line\n")
    done = harness("show", "mine/shift_rows")
    tables, _, source = done.stdout.partition("Source: ")
    assert source.endswith(path.read_text())
    assert max(map(len, tables.splitlines())) <= 80


def test_show_states_why_a_file_does_not_load_beside_the_rest(harness, tmp_path):
    path = tmp_path / "reference_models" / "mine" / "shift_rows.py"
    path.write_text("import no_such_package\n" + path.read_text())
    done = harness("show", "mine/shift_rows")
    assert "no_such_package" in done.stdout.partition("Source: ")[0]
    assert done.stdout.endswith(path.read_text())


def test_show_states_the_baseline_time_of_this_version_of_the_file(harness, evaluation_of, tmp_path):
    digest = read_problem(tmp_path / "reference_models" / "mine" / "shift_rows.py", "mine").digest
    facts = {"suite": "mine", "problem": "shift_rows", "speedup": 2.0}
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of(**facts, model="a", problem_digest=digest))
        store.record(evaluation_of(**facts, model="b", problem_digest="of another version"))
        store.record(evaluation_of("wrong_value", suite="mine", problem="shift_rows", problem_digest=digest, model="c"))
    (time,) = json.loads(harness("show", "mine/shift_rows", "--json").stdout)["baseline_times"]
    assert (time["evaluation"], time["baseline"], time["time_us"], time["clock"]) == (1, "eager", 100.0, "call")
    assert "100 us" in harness("show", "mine/shift_rows").stdout


def test_an_unknown_problem_names_the_nearest_of_other_suites(harness):
    done = harness("show", "shift_row")
    assert done.returncode == 2
    assert "no problem 'shift_row' in suite 'core'" in done.stderr
    assert "did you mean mine/shift_rows?" in done.stderr


def test_a_new_problem_passes_the_check(harness, tmp_path):
    done = harness("new", "mine/own", "--kernel", "cpp")
    assert done.stdout.startswith("wrote mine/own.py and mine/own_cpp.py. ")
    assert "class ModelNew" in (tmp_path / "mine" / "own_cpp.py").read_text()
    assert read_problem(tmp_path / "mine" / "own.py", "mine").workload("small")
    assert harness("check", "mine/own.py").returncode == 0


def test_a_language_without_an_example_is_refused(harness, tmp_path):
    done = harness("new", "own", "--kernel", "helion")
    assert done.returncode == 2
    assert "choose among cpp, cuda, triton" in done.stderr
    assert not list(tmp_path.glob("*.py"))


@pytest.mark.parametrize("name", ["9lives", "a b", "_hidden", "suite/", ""])
def test_a_name_that_cannot_be_a_problem_is_refused(harness, name, tmp_path):
    done = harness("new", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert "problem name" in done.stderr
    assert not list(tmp_path.glob("*.py"))


def test_an_existing_file_is_never_overwritten(harness, tmp_path):
    (tmp_path / "mine.py").write_text("x = 1\n")
    for name in ("mine", "mine.py"):
        done = harness("new", name)
        assert done.returncode == 2
        assert "mine.py exists and is not overwritten" in done.stderr
    assert (tmp_path / "mine.py").read_text() == "x = 1\n"
