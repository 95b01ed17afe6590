"""Every word of results has one explanation, which the documentation repeats."""

import ast
import re
from pathlib import Path

import pytest
from check_names import collect_check_names

from harness.cli.show import list_entries
from harness.domain import PROBLEM_SETTINGS, Baseline, Outcome, TimingVerdict
from harness.problems.discovery import DISTRIBUTION_NAMES
from harness.report.explanations import (
    BASELINES,
    CHECKS,
    CLOCKS,
    INPUT_KINDS,
    LEADERBOARD,
    OUTCOMES,
    SETTINGS,
    TABLE_COLUMNS,
    VERDICTS,
)
from harness.store.columns import COLUMNS

ROOT = Path(__file__).resolve().parents[2]
DOCS, PACKAGE = ROOT / "docs", ROOT / "harness"
NO_TITLES = {"left", "right", "or effect of its absence"}
# Strings beside names of checks, in modules that choose the name in a loop.
NO_CHECKS = {
    "as_given", "compiled", "content_filter", "float64", "identical", "length", "note", "tool_calls", "unclosed_fence",
    "warning",
}  # fmt: skip


def make_table(*titles, rows):
    lines = (titles, ["---"] * len(titles), *rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines).replace("|  |", "| |")


def list_rows(entries, *, has_remedy=False):
    return [(f"`{name}`", one.meaning, *([one.remedy] if has_remedy else [])) for name, one in entries.items()]


TABLES = {
    "correctness.md": [make_table("outcome", "meaning", "what to do", rows=list_rows(OUTCOMES, has_remedy=True))],
    "measurement.md": [make_table("verdict", "meaning", rows=list_rows(VERDICTS))],
    "profiling.md": [make_table("baseline", "meaning", rows=list_rows(BASELINES))],
    "getting-started.md": [make_table("column", "meaning", rows=list_rows(LEADERBOARD))],
    "report.md": [
        make_table("clock", "meaning", rows=list_rows(CLOCKS)),
        make_table("column", "meaning", rows=list_rows(COLUMNS)),
        make_table("check", "what was found", "what to do", rows=list_rows(CHECKS, has_remedy=True)),
    ],
}


@pytest.mark.parametrize(("page", "table"), [(page, table) for page, tables in TABLES.items() for table in tables])
def test_the_documentation_has_the_table_of_the_explanations(page, table):
    assert table in (DOCS / page).read_text(encoding="utf-8"), f"{page} needs this table:\n{table}"


def test_every_check_that_the_source_names_is_explained_and_no_other():
    found = collect_check_names()
    assert {name: files for name, files in found.items() if name not in CHECKS.keys() | NO_CHECKS} == {}
    assert CHECKS.keys() - found.keys() == set()
    assert CHECKS.keys() & NO_CHECKS == set()


def test_every_outcome_verdict_baseline_setting_and_column_is_explained():
    assert OUTCOMES.keys() == set(Outcome)
    assert VERDICTS.keys() == {*TimingVerdict.__args__, "untimed"}
    assert BASELINES.keys() == set(Baseline.__args__)
    assert CLOCKS.keys() == set(COLUMNS["clock"].values)
    assert SETTINGS.keys() == set(PROBLEM_SETTINGS)
    assert [name for name, one in COLUMNS.items() if not one.meaning] == []


def test_every_kind_of_inputs_is_explained():
    page = (DOCS / "inputs.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| (?:distribution|kind) \|.*\n\|.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    first_cells = [row.split("|")[1] for table in tables for row in table.splitlines()]
    documented = {name for cell in first_cells for name in re.findall("`(.+?)`", cell)}
    assert set(DISTRIBUTION_NAMES) < documented == INPUT_KINDS.keys()


def test_every_explanation_names_a_section_of_the_documentation():
    for _, _, about in list_entries():
        page, _, anchor = about.page.partition("#")
        headings = re.findall(r"^#+ (.+)$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
        anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not anchor or anchor in anchors, about.page


def find_titles(path):
    """Titles of the columns that a module gives its tables: strings in calls of make_table and add_column, in loops
    around such calls and in the constants that these name.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = {
        node.targets[0].id: node.value for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }  # fmt: skip

    def list_strings(node):
        names = [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]
        nodes = [node, *(constants[name] for name in names if name in constants)]
        texts = [one.value for root in nodes for one in ast.walk(root) if isinstance(one, ast.Constant)]
        return [text for text in texts if isinstance(text, str)]

    def adds_columns(node):
        return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("add_column")

    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and any(adds_columns(one) for part in node.body for one in ast.walk(part)):
            found += list_strings(node.iter)
        elif adds_columns(node):
            found += [text for argument in node.args for text in list_strings(argument)]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "make_table":
            found += [text.lstrip(">=") for argument in node.args for text in list_strings(argument)]
    return {title.strip() for text in found for title in re.split(r"\n|[,;] (?!high)", text) if title.strip()}


def test_every_column_of_a_terminal_table_is_explained():
    modules = [*PACKAGE.glob("cli/*.py"), *PACKAGE.glob("report/**/*.py")]
    found = {title: path.name for path in modules for title in find_titles(path)}
    known = {name for name, _, _ in list_entries()} | {"fast_1", "fast_2"}
    assert {title: file for title, file in found.items() if title not in known | NO_TITLES} == {}
    assert len(found) > 80
    assert {title for title, *_ in TABLE_COLUMNS} - found.keys() <= {"cases", "error", "small", "tags"}


@pytest.mark.parametrize(
    ("word", "kinds"),
    [
        ("wrong_value", ["outcome"]),
        ("WRONG-VALUE", ["outcome"]),
        ("wrong value", ["outcome"]),
        ("clock", ["finding", "column of results"]),
        ("device", ["clock", "column of results"]),
        ("fast_1", ["column of the leaderboard"]),
        ("backward", ["setting of a problem"]),
        ("shared_race", ["finding"]),
        ("fatal", ["severity of a finding"]),
        ("watch", ["option of evaluate"]),
        ("runs rm", ["command"]),
    ],
)
def test_a_word_is_explained_in_all_of_its_senses(call_harness, word, kinds):
    done = call_harness(["explain", word])
    said = " ".join(done.stdout.split())
    assert all(f", {kind}: " in said for kind in kinds)
    others = [] if "option" in kinds[0] else re.findall(", option of", said)
    assert done.stdout.count("docs/") - len(others) == len(kinds)
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("wrng_value", "Did you mean wrong_value"),
        ("race", "Did you mean shared_race, global_race?"),
        ("qqqqqqq", "nothing is called 'qqqqqqq'. `harness explain` lists all words"),
    ],
)
def test_an_unknown_word_names_the_nearest(call_harness, word, hint):
    done = call_harness(["explain", word])
    assert (done.returncode, done.stdout) == (2, "")
    assert hint in done.stderr


def test_without_a_word_all_words_are_listed(call_harness):
    listed = set(re.findall(r"[\w@\[\]]+", call_harness(["explain"]).stdout))
    assert {*OUTCOMES, *CHECKS, *COLUMNS} <= listed
