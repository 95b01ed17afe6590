"""Candidates that are copies of other models' or of known solutions carry a finding."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from harness.domain import FILE_RUN, Candidate, Prompt, RunManifest, SampleKey, UsageError
from harness.domain.generation import Completion
from harness.executors.executor import Origin, make_task
from harness.pipeline.provenance import Provenance
from harness.problems.discovery import find_problem
from harness.store.results import DATABASE_NAME, ResultStore
from harness.store.runs import write_manifest, write_sample

HEAD = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, a, b):\n"
LONG = HEAD + "".join(f"        total = torch.add(a, b * {n}) + {n}\n" for n in range(40)) + "        return total\n"
RENAMED = LONG.replace("total", "result") + "# written anew\n"
SHORT = f"{HEAD}        return a + b\n"


@pytest.fixture
def problem(tiny_suite):
    return find_problem("add", tiny_suite)


@pytest.fixture
def store(tmp_path):
    with ResultStore.open(tmp_path / "results") as opened:
        yield opened


@pytest.fixture
def submit(store, tmp_path, problem, evaluation_of):
    """Records a candidate as evaluated, and returns (check, message) of its findings."""

    def record(model, source, *, run=None, prompt="plain", **folders):
        origin = Origin(run=run or f"run-of-{model}", model=model, prompt=prompt)
        task = make_task(problem, Candidate(source=source, language="cpp", rule="file"), origin, language="cpp")
        evaluation = replace(evaluation_of("correct"), subject=replace(task.subject, device="cpu"))
        provenance = Provenance(store, generated_dir=tmp_path / "generated", **folders)
        stored = provenance.record(evaluation, task)
        assert store.get(stored.id) == stored
        return [(one.check, one.severity, one.message) for one in stored.evaluation.findings]

    return record


def test_a_copy_of_another_models_candidate_names_its_source(submit):
    assert not submit("first", LONG)
    assert not submit("unrelated", LONG.replace("torch.add", "torch.mul"))
    ((check, severity, message),) = submit("second", RENAMED)
    assert (check, severity) == ("near_duplicate", "warning")
    assert "model first, sample run-of-first/add/0 (evaluation 1)" in message


def test_the_first_author_and_the_same_model_get_no_finding(submit):
    submit("first", LONG)
    submit("second", RENAMED)
    assert not submit("first", LONG)
    assert not submit("first", RENAMED, run="another-run")


def test_short_programs_copies_of_the_reference_and_files_get_no_finding(submit, problem):
    copied = problem.source.replace("Model(", "ModelNew(")
    for source in (SHORT, copied):
        submit("first", source)
        assert not submit("second", source)
    assert not submit("kernel.py", LONG, run=FILE_RUN)
    assert not submit("first", LONG)
    assert not submit("kernel.py", RENAMED, run=FILE_RUN)


@pytest.fixture
def write_first_turn(tmp_path):
    def write(model, text, candidate=None):
        run_dir = tmp_path / "generated" / f"run-of-{model}"
        manifest = RunManifest(
            run=run_dir.name, suite="tiny", model=model, provider="recorded", prompt="plain", language="cpp",
            samples=1, temperature=None, problems=("add",), created_at="", harness_version="0",
        )  # fmt: skip
        write_manifest(run_dir, manifest)
        write_sample(
            run_dir, key=SampleKey(run=run_dir.name, problem="add", sample=0),
            prompt=Prompt(name="plain", problem="add", language="cpp", text=text),
            completion=Completion(text="-"), candidate=candidate, provenance={},
        )  # fmt: skip

    return write


def test_code_that_the_prompt_showed_is_no_copy(submit, write_first_turn):
    for model in ("first", "second"):
        write_first_turn(model, f"Like this:\n```python\n{LONG}```\n")
    assert not submit("first", LONG)
    assert not submit("second", RENAMED)


def test_the_users_file_that_a_search_began_with_is_no_copy(submit, write_first_turn):
    submit("first", LONG)
    write_first_turn("second", "Make it fast.", Candidate(source=RENAMED, language="cpp", rule="file"))
    assert not submit("second", RENAMED, prompt="plain, from a file")
    assert submit("second", RENAMED)


def test_a_known_solution_is_found_by_its_path(submit, tmp_path):
    folder = tmp_path / "known"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "add.py").write_text(RENAMED)
    (folder / "short.py").write_text(SHORT)
    ((check, severity, message),) = submit("kernel.py", LONG, run=FILE_RUN, known_solutions=folder)
    assert (check, severity) == ("contaminated", "warning")
    assert str(folder / "deep" / "add.py") in message
    assert not submit("first", SHORT, known_solutions=folder)


def test_a_folder_without_programs_is_wrong_usage(store, tmp_path):
    for folder in (tmp_path / "missing", tmp_path):
        with pytest.raises(UsageError, match="known"):
            Provenance(store, generated_dir=tmp_path, known_solutions=folder)


def test_candidates_of_an_older_harness_are_compared_too(submit, store, tmp_path):
    submit("first", LONG)
    with closing(sqlite3.connect(tmp_path / "results" / DATABASE_NAME)) as connection:
        connection.execute("DELETE FROM fingerprints")
        connection.commit()
    assert [check for check, _, _ in submit("second", RENAMED)] == ["near_duplicate"]


def test_programs_that_differ_in_layout_only_are_one_program(submit, store):
    for model, source in (("first", LONG), ("second", f"# a comment\n{LONG}"), ("third", RENAMED)):
        submit(model, source)
    programs = list(store.programs().values())
    assert (len(programs), len(set(programs))) == (3, 2)
