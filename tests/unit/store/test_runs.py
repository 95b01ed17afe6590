"""What `generated/` keeps, and what it refuses."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.domain import (
    Alternative,
    Candidate,
    Completion,
    Extraction,
    Prompt,
    RunManifest,
    SampleKey,
    StoreError,
    Usage,
    UsageError,
)
from harness.store import runs

MANIFEST = RunManifest(
    run="first",
    suite="core",
    model="m",
    provider="openai",
    prompt="plain",
    language="cpp",
    samples=2,
    temperature=0.7,
    problems=("add", "softmax"),
    created_at="2030-01-01T00:00:00+00:00",
    harness_version="0",
    base_url="http://localhost:1/v1",
)
KEY = SampleKey(run="first", problem="add", sample=0)
PROMPT = Prompt(name="plain", problem="add", language="cpp", text="Make it fast.\n")
COMPLETION = Completion(
    text="Here:\r\n```\nx\n```",
    reasoning="hm \ud800",
    finish_reason="stop",
    usage=Usage(prompt_tokens=3, completion_tokens=5, reasoning_tokens=2),
    latency_s=1.25,
    model="m-0613",
    response_id="r1",
)
CANDIDATE = Candidate(source="class ModelNew: ...\n", language="cpp", rule="fence")


def _write(run_dir: Path, key: SampleKey = KEY, completion: Completion = COMPLETION) -> Path:
    return runs.write_sample(
        run_dir, key=key, prompt=PROMPT, completion=completion, candidate=CANDIDATE, provenance={"model": "m"}
    )


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    runs.write_manifest(tmp_path / "first", MANIFEST)
    return tmp_path / "first"


def test_a_manifest_comes_back_as_it_was_written(run_dir: Path) -> None:
    assert runs.read_manifest(run_dir) == MANIFEST


def test_a_sample_comes_back_as_it_was_written(run_dir: Path) -> None:
    _write(run_dir)
    [sample] = runs.load_samples(run_dir)
    assert (sample.key, sample.completion, sample.candidate) == (KEY, COMPLETION, CANDIDATE)
    assert (sample.model, sample.prompt, sample.suite, sample.language) == ("m", "plain", "core", "cpp")


def test_a_sample_has_the_files_that_people_look_for(run_dir: Path) -> None:
    folder = _write(run_dir)
    assert folder == run_dir / "add" / "0"
    assert (folder / "prompt.md").read_text() == PROMPT.text
    assert (folder / "completion.md").read_bytes() == b"Here:\r\n```\nx\n```"
    assert (folder / "candidate.py").read_text() == CANDIDATE.source


def test_how_a_candidate_was_chosen_comes_back_and_is_replaced_with_it(run_dir: Path) -> None:
    alternative = Alternative(rule="fence", first_line=9, last_line=12, reason="for comparison")
    extraction = Extraction(
        rule="joined", first_line=2, last_line=4, reason="last", joined=((6, 7),), alternatives=(alternative,)
    )
    candidate = Candidate(source="x\n", language="cpp", rule="joined", extraction=extraction)
    runs.write_sample(run_dir, key=KEY, prompt=PROMPT, completion=COMPLETION, candidate=candidate, provenance={})
    stored = runs.load_sample(run_dir, KEY).candidate
    assert stored is not None
    assert stored.extraction == extraction
    runs.replace_candidate(run_dir, KEY, CANDIDATE)
    stored = runs.load_sample(run_dir, KEY).candidate
    assert stored is not None
    assert (stored, stored.extraction) == (CANDIDATE, None)


def test_a_sample_without_content_or_candidate_comes_back_so(run_dir: Path) -> None:
    completion = Completion(text=None, reasoning="long", finish_reason="length")
    runs.write_sample(run_dir, key=KEY, prompt=PROMPT, completion=completion, candidate=None, provenance={})
    [sample] = runs.load_samples(run_dir)
    assert (sample.completion, sample.candidate) == (completion, None)


def test_samples_come_ordered_by_problem_sample_and_turn(run_dir: Path) -> None:
    keys = [
        SampleKey(run="first", problem="add", sample=2),
        SampleKey(run="first", problem="add", sample=2, turn=1),
        SampleKey(run="first", problem="add", sample=10),
        SampleKey(run="first", problem="softmax", sample=0),
    ]
    for key in (keys[3], keys[2], keys[0], keys[1]):
        _write(run_dir, key)
    assert [sample.key for sample in runs.load_samples(run_dir)] == keys


def test_a_sample_that_is_there_is_never_overwritten(run_dir: Path) -> None:
    _write(run_dir)
    _write(run_dir, completion=replace(COMPLETION, text="other"))
    assert [sample.completion for sample in runs.load_samples(run_dir)] == [COMPLETION]


def test_a_half_written_sample_is_not_there_and_is_cleared(run_dir: Path) -> None:
    left = run_dir / ".partial-x"
    left.mkdir()
    (left / "provenance.json").write_text("{}")
    assert runs.load_samples(run_dir) == []
    with runs.hold_run(run_dir):
        assert not left.exists()


def test_a_failing_write_leaves_nothing_half_done(run_dir: Path) -> None:
    (run_dir / "add").write_text("a file where a folder should be")
    with pytest.raises(StoreError, match=r"cannot write .*add.*Earlier samples are complete"):
        _write(run_dir)
    assert not [*run_dir.glob(".partial-*")]


def test_a_run_that_another_process_writes_cannot_be_held(run_dir: Path) -> None:
    with (
        runs.hold_run(run_dir),
        pytest.raises(UsageError, match="another process is generating run 'first'"),
        runs.hold_run(run_dir),
    ):
        pass


def test_a_contradicting_manifest_says_what_differs(run_dir: Path) -> None:
    with pytest.raises(UsageError, match=r"model: 'm' there, 'other' asked; prompt: 'plain' there, 'tips' asked"):
        runs.write_manifest(run_dir, replace(MANIFEST, model="other", prompt="tips"))
    assert runs.read_manifest(run_dir) == MANIFEST


def test_a_run_may_grow(run_dir: Path) -> None:
    grown = runs.write_manifest(run_dir, replace(MANIFEST, samples=5, problems=("conv", "add")))
    assert (grown.samples, grown.problems) == (5, ("add", "softmax", "conv"))
    assert runs.read_manifest(run_dir) == grown


def test_an_unknown_run_suggests_the_nearest(run_dir: Path) -> None:
    with pytest.raises(UsageError, match=r"no run 'frist' .*did you mean first"):
        runs.find_run(run_dir.parent, "frist")


def test_runs_are_listed_by_name(run_dir: Path) -> None:
    runs.write_manifest(run_dir.parent / "a-run", replace(MANIFEST, run="a-run"))
    (run_dir.parent / "no-run").mkdir()
    assert runs.list_runs(run_dir.parent) == ("a-run", "first")


@pytest.mark.parametrize("name", ["../up", "..", ".", "", "/etc", "a/b", "a\\b", ".hidden", "a\n", "x" * 300, "a\0b"])
def test_a_name_that_leaves_its_folder_is_refused(name: str, run_dir: Path) -> None:
    with pytest.raises(UsageError, match="cannot be a folder name"):
        runs.locate_run(run_dir, name)
    with pytest.raises(UsageError, match="cannot be a folder name"):
        _write(run_dir, replace(KEY, problem=name))


@pytest.mark.parametrize("content", ["", "[]", '{"run": "first"}', '{"colour": 1}', "\x00"])
def test_a_damaged_manifest_names_the_file(run_dir: Path, content: str) -> None:
    (run_dir / "manifest.json").write_text(content)
    with pytest.raises(StoreError, match=r"manifest\.json"):
        runs.read_manifest(run_dir)


def test_a_damaged_sample_names_its_folder(run_dir: Path) -> None:
    (_write(run_dir) / "provenance.json").write_text("{}")
    with pytest.raises(StoreError, match="add/0 and generate it again"):
        runs.load_samples(run_dir)


def test_a_hand_made_recording_needs_only_the_text(tmp_path: Path) -> None:
    (tmp_path / "completion.md").write_text("answer")
    assert runs.read_completion(tmp_path) == Completion(text="answer")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(text=st.text(st.characters(), max_size=30), number=st.integers(0, 10**6))
def test_any_text_comes_back_exactly(run_dir: Path, text: str, number: int) -> None:
    key = replace(KEY, problem=f"p{abs(hash((text, number)))}", sample=number)
    folder = _write(run_dir, key, Completion(text=text, reasoning=text))
    assert runs.read_completion(folder) == Completion(text=text, reasoning=text)
