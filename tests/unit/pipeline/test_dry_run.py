"""`harness run --dry-run`: what would be asked, spent and evaluated."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli.main import run_command
from harness.domain import Completion, Prompt, RunManifest, SampleKey, Usage
from harness.hardware.host import cpu_name
from harness.store.results import ResultStore
from harness.store.runs import write_manifest, write_sample, write_search

PROBLEM = "rows = 8\nclass Model: pass\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n"
ENDPOINT = ("--model", "m", "--base-url", "http://localhost:9/v1", "--language", "cpp", "--problems-dir", "suites")
MANIFEST = RunManifest(
    run="r", suite="tiny", model="m", provider="openai", prompt="plain", language="cpp", samples=2, temperature=None,
    problems=("add", "sub"), created_at="2026", harness_version="1", base_url="http://localhost:9/v1",
)  # fmt: skip
STARTS = ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec", "os.system", "socket.connect")
_seen = []


@pytest.fixture(scope="module")
def starts():
    """Processes and connections of this process; a hook cannot be removed."""
    sys.addaudithook(lambda event, args: _seen.append((event, args)) if event in STARTS else None)
    return _seen


@pytest.fixture
def estimate(tmp_path, monkeypatch, capsys):
    """The printed record, with its problems by name."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "CXX"):
        monkeypatch.delenv(name, raising=False)
    suite = tmp_path / "suites" / "tiny"
    suite.mkdir(parents=True)
    for name in ("add", "sub"):
        (suite / f"{name}.py").write_text(PROBLEM)

    def run(*arguments, expected=0):
        command = ["run", "--suite", "tiny", *ENDPOINT, "--dry-run", "--json", *arguments]
        assert run_command(list(map(str, command))) == expected
        output = capsys.readouterr()
        if expected:
            return output.err
        record = json.loads(output.out)
        return record | {one["problem"]: one for one in record["problems"]} | {"text": " ".join(record["notes"])}

    return run


def store_answer(problem="add", sample=0, turn=0, manifest=MANIFEST, **usage):
    run_dir = Path("generated") / manifest.run
    write_manifest(run_dir, manifest)
    write_sample(
        run_dir,
        key=SampleKey(run=manifest.run, problem=problem, sample=sample, turn=turn),
        prompt=Prompt(name="plain", problem=problem, language="cpp", text="?"),
        completion=Completion(text="!", usage=Usage(**usage)),
        candidate=None,
        provenance={},
    )


@pytest.fixture
def store_verdict(evaluation_of):
    def store(problem="add", sample=0, outcome="correct", duration_s=60.0, cpu=None, **subject):
        environment = (("cpu", cpu or cpu_name()), ("fidelity", "correctness"))
        evaluation = evaluation_of(
            outcome, extra={"duration_s": duration_s, "environment": environment, "timing": None}
        )
        given = {"run": "r", "suite": "tiny", "device": "cpu", "language": "cpp", "workload": "full", "turn": 0}
        subject = replace(evaluation.subject, problem=problem, sample=sample, **(given | subject))
        with ResultStore.open(Path("results")) as results:
            results.record(replace(evaluation, subject=subject), None)

    return store


def test_it_sends_nothing_and_starts_only_the_compiler_for_its_version(estimate, starts, tmp_path):
    store_answer(completion_tokens=10)
    before = sorted(tmp_path.rglob("*"))
    starts.clear()
    estimate("--turns", "3", "--strategy", "repair", "--price", "m=1/2")
    assert [args[1] for _, args in starts] == [["c++", "--version"]]
    assert sorted(tmp_path.rglob("*")) == before


def test_requests_are_samples_times_turns_without_stored_ones(estimate):
    assert estimate("--samples", "3")["total"]["requests"] == 6
    store_answer("add", sample=1)
    record = estimate("--run", "r", "--samples", "3", "--turns", "2")
    assert (record["add"]["stored"], record["add"]["requests"], record["sub"]["requests"]) == (1, 5, 6)
    assert record["total"]["requests"] == 11
    assert (record["run"], record["is_new"]) == ("r", False)


def test_a_search_that_ended_is_not_asked_again(estimate):
    store_answer("add")
    write_search(Path("generated/r"), SampleKey(run="r", problem="add", sample=0), {"turns": 3, "stopped": "correct"})
    assert estimate("--run", "r", "--turns", "3")["add"]["requests"] == 0
    assert estimate("--run", "r", "--turns", "4")["add"]["requests"] == 3


def test_prompt_tokens_are_a_quarter_of_the_characters_of_the_rendered_prompt(estimate, capsys):
    found = estimate()["add"]["prompt_tokens"]
    assert run_command(["generate", "--suite", "tiny", "--problem", "add", *ENDPOINT, "--dry-run"]) == 0
    assert found == -(-len(capsys.readouterr().out) // 4)


def test_later_turns_send_earlier_answers_again_within_the_context(estimate):
    store_answer("sub", manifest=replace(MANIFEST, run="before"), completion_tokens=1000, reasoning_tokens=900)
    first = estimate()["add"]["prompt_tokens"]
    arguments = ("--turns", "3", "--context-tokens", first + 150, "--strategy")
    assert estimate(*arguments, "repair")["add"]["prompt_tokens"] == 3 * first + 100 + 150
    assert estimate(*arguments, "best-of-n")["add"]["prompt_tokens"] == 3 * first


@pytest.mark.parametrize(
    ("counts", "arguments", "expected", "note"),
    [
        ({}, (), {"add": None, "sub": None}, "answer tokens: unknown"),
        ({}, ("--max-tokens", "500"), {"add": 500, "sub": 500}, "by --max-tokens"),
        ({"add": [100, 200]}, (), {"add": 150, "sub": 150}, "mean of 2 earlier answers"),
        ({"add": [100, 200], "sub": [600]}, (), {"add": 150, "sub": 600}, "mean of 3 earlier answers"),
        ({"add": [100, 200]}, ("--max-tokens", "50"), {"add": 50, "sub": 50}, "at most --max-tokens"),
        ({"add": [None]}, (), {"add": None, "sub": None}, "answer tokens: unknown"),
    ],
)
def test_answer_tokens_come_from_earlier_answers_or_the_limit(estimate, counts, arguments, expected, note):
    earlier = replace(MANIFEST, run="before")
    for problem, tokens in counts.items():
        for sample, count in enumerate(tokens):
            store_answer(problem, sample, manifest=earlier, completion_tokens=count)
    store_answer("add", manifest=replace(MANIFEST, run="other", model="other"), completion_tokens=9999)
    record = estimate(*arguments)
    assert {name: record[name]["answer_tokens"] for name in ("add", "sub")} == expected
    assert note in record["text"]


def test_the_cost_is_that_of_both_kinds_of_tokens(estimate):
    record = estimate("--max-tokens", "500", "--price", "m=2/8")
    usd = (2 * record["total"]["prompt_tokens"] + 8 * 1000) / 1e6
    assert record["total"]["usd"] == pytest.approx(usd)
    assert "cost" not in record["text"]


@pytest.mark.parametrize("arguments", [(), ("--price", "other=1/2")])
def test_without_a_price_the_cost_is_unknown_and_the_option_named(estimate, arguments):
    record = estimate("--max-tokens", "500", *arguments)
    assert record["total"]["usd"] is None
    assert "--price 'm=IN/OUT'" in record["text"]


def test_a_budget_without_a_price_fails_as_the_run_does(estimate):
    assert "--budget-usd needs the price" in estimate("--budget-usd", "1", expected=2)


def test_other_settings_of_the_named_run_fail_as_the_run_does(estimate):
    store_answer()
    assert "generated with other settings" in estimate("--run", "r", "--temperature", "0.5", expected=2)


def test_minutes_are_the_mean_duration_of_a_problem_here_times_its_evaluations(estimate, store_verdict):
    earlier = {"run": "before"}
    store_verdict("add", 0, duration_s=60.0, **earlier)
    store_verdict("add", 1, "wrong_value", duration_s=120.0, **earlier)
    for other in ({"cpu": "another CPU"}, {"workload": "small"}, {"language": "torch"}, {"suite": "core"}):
        store_verdict("add", 2, duration_s=9999.0, **(earlier | other))
    record = estimate("--samples", "2", "--no-time")
    assert (record["add"]["evaluations"], record["add"]["minutes"]) == (2, 3.0)
    assert (record["sub"]["minutes"], record["total"]["minutes"]) == (None, None)
    assert "3.0 without sub, never evaluated here" in record["text"]


def test_durations_without_timing_say_nothing_about_timed_evaluations(estimate, store_verdict):
    store_verdict("add", run="before")
    assert estimate()["add"]["minutes"] is None


def test_stored_verdicts_are_done_unless_they_would_be_made_again(estimate, store_verdict):
    store_answer("add", 0)
    store_answer("add", 1)
    store_answer("sub", 0)
    store_answer("sub", 1)
    store_verdict("add", 0)
    store_verdict("add", 1, "no_code", device="none")
    store_verdict("sub", 0, "harness_error")
    store_verdict("sub", 1, baseline="compile")
    arguments = ("--run", "r", "--samples", "2")
    found = {name: estimate(*arguments, "--no-time")[name] for name in ("add", "sub")}
    assert [(one["evaluated"], one["evaluations"]) for one in found.values()] == [(2, 0), (0, 2)]
    assert estimate(*arguments, "--no-time", "--again")["total"]["evaluations"] == 4
    assert estimate(*arguments)["add"]["evaluated"] == 1  # the correct one was not timed


def test_problems_without_the_workload_are_not_asked(estimate):
    Path("suites/tiny/sub.py").write_text(f"SMALL = {{'rows': 2}}\n{PROBLEM}")
    record = estimate("--workload", "small")
    assert [one["problem"] for one in record["problems"]] == ["sub"]
    assert "without a small workload: add" in record["text"]


def test_replayed_answers_are_no_requests_and_are_evaluated(estimate, monkeypatch):
    store_answer("add", 0, manifest=replace(MANIFEST, run="recorded"))
    record = estimate("--provider", "recorded", "--recording", "generated/recorded", "--samples", "2")
    assert (record["total"]["requests"], record["total"]["evaluations"], record["total"]["usd"]) == (0, 1, 0.0)
    assert "requests: none" in record["text"]


def test_the_table_fits_in_80_columns(estimate, capsys):
    store_answer(completion_tokens=123456)
    arguments = ["run", "--suite", "tiny", *ENDPOINT, "--dry-run", "--samples", "99", "--turns", "9"]
    assert run_command([*arguments, "--price", "m=11/22"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[3] for line in lines if line.startswith("total")] == ["1,782"]
