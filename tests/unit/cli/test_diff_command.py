"""`harness diff`, run the way a user runs it."""

import json
from dataclasses import replace

import pytest

from harness.cli.main import run_command
from harness.domain import Candidate, Completion, Prompt, RunManifest, SampleKey, Usage
from harness.store.results import ResultStore
from harness.store.runs import write_manifest, write_sample

HOSTILE = "<script>alert(1)</script>\x1b[31m\ud800[red]"


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*args, columns=80):
        monkeypatch.setenv("COLUMNS", str(columns))
        code = run_command([str(arg) for arg in ("diff", *args)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def record(tmp_path, evaluation_of):
    """Stores one evaluation with the source `pass`."""

    def store(outcome, speedup=None, source="pass\n", **fields):
        candidate = Candidate(source=source, language="cpp", rule="fence")
        fields = {"candidate_digest": candidate.digest, "spread": 0.01} | fields
        with ResultStore.open(tmp_path / "results") as results:
            results.record(evaluation_of(outcome, speedup, **fields), source)

    return store


@pytest.fixture
def two_runs(record):
    for number in range(4):
        record("correct", 2.0, run="a", model="m", problem=f"p{number}")
        record("correct", 2.0 + number, run="b", model="m", problem=f"p{number}", source=f"pass  # {HOSTILE!r}\n")
    record("correct", 2.0, run="a", model="m", problem="flips")
    record("build_error", run="b", model="m", problem="flips", source="import x\n", extra={"message": HOSTILE})


@pytest.fixture
def write_answers(tmp_path):
    def write(run, problem, prompt, tokens):
        run_dir = tmp_path / "generated" / run
        manifest = RunManifest(
            run=run, suite="core", model="m", provider="recorded", prompt="plain", language="cpp", samples=1,
            temperature=None, problems=(problem,), created_at="now", harness_version="0",
        )  # fmt: skip
        write_manifest(run_dir, manifest)
        write_sample(
            run_dir,
            key=SampleKey(run=run, problem=problem, sample=0),
            prompt=Prompt(name="plain", problem=problem, language="cpp", text=prompt),
            completion=Completion(text="x", usage=Usage(completion_tokens=tokens)),
            candidate=None,
            provenance={},
        )

    return write


def test_a_problem_on_two_devices_counts_once(command, record):
    for run in ("a", "b"):
        for device in ("cpu", "emulated"):
            record("correct", run=run, model="m", problem="p", device=device)
    assert command("a", "b")[1].startswith("run a -> b: 1 problem on both sides")


@pytest.mark.parametrize("columns", [80, 200])
def test_flips_come_first_and_every_line_fits(command, two_runs, columns):
    code, stdout, _ = command("a", "b", "--code", columns=columns)
    lines = stdout.splitlines()
    assert code == 0
    assert lines[0].startswith("run a -> b: 5 problems on both sides")
    assert lines[3] == "1 correct before, not after"
    assert max(map(len, lines)) <= columns
    assert "\x1b" not in stdout
    assert "3 faster, 0 slower" in " ".join(stdout.split())
    assert "-pass" in stdout


def test_the_page_shows_hostile_names_and_runs_nothing(command, two_runs, tmp_path):
    assert command("a", "b", "--html", "out/diff.html")[0] == 0
    page = (tmp_path / "out" / "diff.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")
    assert "\x1b" not in page


def test_the_json_record_names_flips_changes_and_costs(command, two_runs):
    record = json.loads(command("a", "b", "--json")[1])
    (place,) = record["places"]
    assert [pair["name"] for pair in place["lost"]] == ["flips"]
    assert {pair["name"] for pair in place["changed_speed"]} == {"p1", "p2", "p3"}
    assert record["outcomes"] == {"build_error": [0, 1], "correct": [5, 4]}
    assert record["costs"]["before"]["answers"] == 5


def test_prompts_that_differ_and_tokens_are_read_from_the_runs(command, two_runs, write_answers):
    write_answers("a", "p1", "be fast\nplease\n", 100)
    write_answers("b", "p1", "be fast\nor else\n", 300)
    stdout = command("a", "b")[1]
    assert "Prompts of 1 of 5 problems compared: 1 distinct difference." in stdout
    assert "-please" in stdout
    assert "+or else" in stdout
    assert "100 (1 answer)" in stdout


def test_versions_of_harness_are_compared_candidate_by_candidate(command, record, evaluation_of):
    for version, outcome in (("1", "correct"), ("2", "timeout"), ("3", "correct")):
        record(outcome, extra={"environment": (("harness", version), ("cpu", "C"))})
    code, stdout, _ = command("1", "2")
    assert code == 0
    assert stdout.startswith("harness 1 -> 2: 1 candidate on both sides")
    assert "demo/add/0" in stdout


def test_models_and_prompts_are_told_apart_by_name_or_by_option(command, record):
    record("correct", model="x", prompt="x", run="one")
    record("correct", model="y", prompt="y", run="two")
    code, _, stderr = command("x", "y")
    assert code == 2
    assert "could each be a model or a prompt: choose one with --by" in stderr
    assert command("x", "y", "--by", "prompt")[1].startswith("prompt x -> y")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a", "absent"), "'absent'"),
        (("a", "m"), "both sides must be of the same kind"),
        (("a", "m", "--by", "run"), "run 'm'"),
        (("a", "b", "--problem", "absent"), "no problem 'absent' in results/harness.db"),
    ],
)
def test_names_that_do_not_fit_are_wrong_usage(command, two_runs, names, message):
    code, _, stderr = command(*names)
    assert code == 2
    assert message in stderr


def test_without_any_results_it_says_so(command):
    code, _, stderr = command("a", "b")
    assert code == 2
    assert "known: none" in stderr


def test_evaluations_on_other_chips_are_not_compared_and_named(command, record):
    for run, chip in (("a", "One"), ("b", "Other")):
        record("correct", 2.0, run=run, model="m", extra={"environment": (("cpu", chip),)})
    code, stdout, _ = command("a", "b")
    assert code == 0
    assert "Nothing is comparable" in " ".join(stdout.split())


def test_a_run_without_timings_compares_correctness(command, record):
    record("correct", run="a", model="m")
    record("wrong_value", run="b", model="m")
    assert "timed on both sides: none" in command("a", "b")[1]


def test_an_evaluation_made_again_replaces_the_older_one(command, record):
    record("timeout", run="a", model="m")
    record("correct", run="a", model="m")
    record("correct", run="b", model="m")
    assert "0 won, 0 lost" in command("a", "b")[1]


def test_a_source_that_is_not_stored_gives_an_empty_side(command, tmp_path, evaluation_of):
    with ResultStore.open(tmp_path / "results") as results:
        results.record(evaluation_of("correct", run="a"))
        results.record(replace(evaluation_of("timeout", run="b", candidate_digest="d" * 16)))
    assert command("a", "b", "--by", "run", "--code")[0] == 0
