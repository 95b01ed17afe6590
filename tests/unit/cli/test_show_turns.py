"""`harness show` of a sample with several turns."""

import pytest

from harness.cli.main import run_command
from harness.domain import Candidate, Comparison, Completion, Message, Prompt, RunManifest, SampleKey, Usage
from harness.store.results import ResultStore
from harness.store.runs import write_manifest, write_sample

USAGE = Usage(prompt_tokens=700, completion_tokens=800)
PROGRAMS = ("a = 1\n", "a = 2\n", "a = 3\n")


@pytest.fixture
def show(tmp_path, monkeypatch, capsys, evaluation_of):
    """What is printed about a turn; the third turn goes on from the first."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    run_dir = tmp_path / "generated" / "demo"
    manifest = RunManifest(
        run="demo", suite="core", model="m", provider="openai", prompt="plain", language="cpp", samples=1,
        temperature=None, problems=("add",), created_at="2030-01-01T00:00:00+00:00", harness_version="0", turns=3,
    )  # fmt: skip
    write_manifest(run_dir, manifest)
    with ResultStore.open(tmp_path / "results") as store:
        for turn, (source, parent) in enumerate(zip(PROGRAMS, (None, 0, 0), strict=True)):
            candidate = Candidate(source=source, language="cpp", rule="fence")
            earlier = (Message(role="user", text="make it fast"),) if turn else ()
            told = f"told before turn {turn}"
            prompt = Prompt(name="plain", problem="add", language="cpp", text=told, earlier=earlier)
            write_sample(
                run_dir, key=SampleKey(run="demo", problem="add", sample=0, turn=turn), prompt=prompt,
                completion=Completion(text="x", usage=USAGE), candidate=candidate,
                provenance={"parent": parent} | ({"partner": 1} if turn == 2 else {}),
            )  # fmt: skip
            outcome, speedup = (("correct", 2.0), ("timeout", None), ("correct", 3.0))[turn]
            pairs = Comparison(turn=0, speedup=1.4, speedup_low=1.3, speedup_high=1.5) if turn == 2 else None
            evaluation = evaluation_of(
                outcome, speedup, turn=turn, candidate_digest=candidate.digest, extra={"comparison": pairs}
            )
            store.record(evaluation, source)

    def run(name):
        assert run_command(["show", name]) == 0
        return capsys.readouterr().out

    return run


def test_turn_shows_results_feedback_and_the_change_since_its_parent(show):
    text = show("demo/add/0/turn-2")
    assert "told before turn 2" in text
    assert "Changed since turn 0" in text
    assert "-a = 1" in text
    assert "+a = 3" in text
    for part in ("timeout", "2.00x", "3.00x", "[2.90, 3.10]"):
        assert part in text, part


def test_the_first_turn_shows_the_results_of_the_others_and_no_feedback(show):
    text = show("demo/add/0")
    assert "3.00x" in text
    assert "Fed back" not in text
    assert "Changed since" not in text


def test_show_prints_turns_as_a_tree_with_speedup_and_tokens(show):
    text = show("demo/add/0/turn-2")
    start = text.index("Turns")
    rows = [line.split() for line in text[start : text.index("Fed back")].splitlines() if line][3:]
    assert rows == [
        ["0", "correct", "2.00x", "[1.90,", "2.10]", "-", "2.00x", "1,500", "1"],
        ["└1", "timeout", "-", "-", "-", "2.00x", "3,000", "2"],
        ["└2", "and", "1", "correct", "3.00x", "[2.90,", "3.10]", "0:", "1.40x", "3.00x", "4,500", "3", "<"],
    ]
