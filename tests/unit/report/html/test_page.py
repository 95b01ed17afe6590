"""The report's file: what is in it, what is left out, and bad material. `tests/end_to_end` opens it in a browser."""

import base64
import json
import re
import sqlite3
import zlib
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256

import pytest

from harness.analysis.metrics import Price
from harness.domain import StoreError, UsageError
from harness.report.html.page import PAGE, ReportChoice, render_report
from harness.store.results import DATABASE_NAME, ResultFilter, ResultStore

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def unpack(text):
    return json.loads(zlib.decompress(base64.b64decode(text), -15))


def read_blocks(path):
    found = re.findall(r'<script type="application/octet-stream" id="block-([^"]+)">([^<]*)</script>', path.read_text())
    return {name: unpack(text) for name, text in found}


@pytest.fixture
def render(tmp_path):
    """Stores evaluations (with a source each), writes the report, and returns its blocks."""

    def store_and_render(*evaluations, source="x = 1\n", **options):
        with ResultStore.open(tmp_path / "results") as store:
            store.record_all((evaluation, source) for evaluation in evaluations)
            path = store_and_render.path = tmp_path / "out" / "report.html"
            store_and_render.summary = render_report(store, path, ReportChoice(**options), now=NOW)
        return read_blocks(path)

    return store_and_render


def test_the_file_names_its_scripts_by_hash_and_forbids_everything_else(render, evaluation_of):
    render(evaluation_of())
    text = render.path.read_text()
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)[1].replace("&#39;", "'")
    hashes = [base64.b64encode(sha256(script.encode()).digest()).decode() for script in scripts]
    assert re.findall(r"'sha256-([^']+)'", policy) == hashes
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert not re.search(r'(?:src|href)="(?!data:,|#)', text)


def test_no_text_of_a_candidate_stands_in_the_file_as_it_is(render, evaluation_of):
    hostile = "</script><script>alert(1)</script>"
    blocks = render(
        evaluation_of("timeout", model=hostile, problem=hostile, run=hostile, extra={"message": hostile}),
        source=hostile,
        title=hostile,
    )
    text = render.path.read_text()
    assert "<script>alert(1)" not in text
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in text  # the title
    assert hostile in blocks["index"]["texts"]["model"]["texts"]
    assert hostile in blocks["details-0"]["texts"]


def test_the_vendored_libraries_are_those_that_the_note_names():
    note = (PAGE / "vendor" / "README.md").read_text()
    for path in (PAGE / "vendor").glob("*.js"):
        assert re.search(rf"\| {re.escape(path.name)} \|.*\| {sha256(path.read_bytes()).hexdigest()} \|", note)
        assert (PAGE / "vendor" / f"{path.name.split('.')[0]}.LICENSE").is_file()


def test_the_index_has_a_column_per_field_and_a_place_per_evaluation(render, evaluation_of):
    blocks = render(evaluation_of("correct", 2.0), evaluation_of("timeout", sample=1))
    index = blocks["index"]
    assert index["count"] == 2
    assert index["numbers"]["speedup"] == [2.0, None]
    assert index["texts"]["outcome"] == {"texts": ["correct", "timeout"], "codes": [0, 1]}
    assert blocks["places"] == {"details": [0, 0], "answers": [0, 0]}


def test_kinds_of_gpu_are_sections_of_their_own(render, evaluation_of):
    on = {gpu: {"environment": (("gpu", gpu),)} for gpu in ("NVIDIA A100", "NVIDIA H100")}
    overview = render(*(evaluation_of("correct", 2.0, device="cuda:0", extra=extra) for extra in on.values()))[
        "overview"
    ]
    assert sorted(section["chip"] for section in overview["sections"]) == sorted(on)
    assert sorted(group["section"] for group in overview["groups"]) == [0, 1]


def test_the_overview_counts_what_the_leaderboard_counts(render, evaluation_of):
    blocks = render(
        evaluation_of("wrong_value", sample=0),
        evaluation_of("correct", 2.0, sample=0, turn=1, candidate_digest="d" * 16),
        evaluation_of("no_code", sample=1, device="none", candidate_digest=""),
    )
    (group,) = blocks["overview"]["groups"]
    assert (group["correct"], group["samples"], group["timed"]) == (0.5, 2, 1)
    assert group["members"] == [1, 2]
    assert group["outcomes"] == {"no_code": 1, "correct": 1}
    assert group["curve"]["share"][0] == 0.5
    assert group["curve"]["share"][-1] == 0


def test_emulated_evaluations_have_a_section_of_their_own_and_no_time(render, evaluation_of):
    blocks = render(evaluation_of("correct", 2.0), evaluation_of("correct", device="emulated", language="cuda"))
    assert [section["device"] for section in blocks["overview"]["sections"]] == ["cpu", "emulated"]
    emulated = blocks["overview"]["groups"][1]
    assert (emulated["correct"], emulated["timed"], emulated["geometric_mean_speedup"]) == (1, 0, None)


def test_identical_sources_are_kept_once(render, evaluation_of):
    source = "# " + "same " * 1000
    blocks = render(*(evaluation_of(sample=number) for number in range(5)), source=source)
    assert blocks["details-0"]["texts"] == [source]
    assert {record["source"] for record in blocks["details-0"]["records"].values()} == {0}


def test_the_secret_of_a_session_is_no_part_of_the_shared_environment(render, evaluation_of):
    environments = [(("torch", "2.9.0"), ("seed", str(number))) for number in range(3)]
    evaluations = [evaluation_of(sample=n, extra={"environment": one}) for n, one in enumerate(environments)]
    (environment,) = render(*evaluations)["overview"]["environments"]
    assert environment["count"] == 3
    assert "seed" not in dict(environment["entries"])


def test_only_the_runs_and_rows_asked_for_are_in_it(render, evaluation_of):
    evaluations = [evaluation_of(run="a-1"), evaluation_of(run="a-2"), evaluation_of(run="b", outcome="timeout")]
    assert render(*evaluations, runs=["a-*"])["index"]["texts"]["run"]["texts"] == ["a-1", "a-2"]
    where = ResultFilter(condition='outcome == "timeout"')
    assert render(where=where)["index"]["texts"]["run"]["texts"] == ["b"]
    with pytest.raises(UsageError, match=r"no run 'c' in .*; known: a-1, a-2, b"):
        render(runs=["a-*", "c"])


def test_answers_are_left_out_before_details_and_the_size_is_kept(render, evaluation_of):
    evaluations = [evaluation_of(sample=number, candidate_digest=f"{number:016}") for number in range(200)]
    render(*evaluations)
    whole = render.summary
    assert (whole.with_details, whole.with_answer) == (200, 200)
    render(max_bytes=whole.size_bytes - 1000)
    assert render.summary.with_details == 200
    assert 0 < render.summary.with_answer < 200
    assert render.summary.size_bytes <= whole.size_bytes - 1000
    blocks = render(max_bytes=1)
    assert (render.summary.with_details, blocks["places"]["details"]) == (0, [-1] * 200)
    assert blocks["index"]["count"] == 200


def write_answer(tmp_path, evaluation, completion):
    folder = tmp_path / "generated" / evaluation.subject.run / evaluation.subject.problem / "0"
    folder.mkdir(parents=True)
    (folder / "prompt.md").write_text("Make it fast.")
    (folder / "completion.md").write_bytes(b"caf\xc3\xa9 \xff")
    (folder / "completion.json").write_text(completion)


USAGE = '"usage": {"prompt_tokens": 1000, "completion_tokens": 500000, "reasoning_tokens": null}, "latency_s": 2.5'


@pytest.mark.parametrize("reasoning", ["short", "x" * 100_000 + '\\n \\"finish_reason\\": '])
def test_costs_come_from_the_answers(render, evaluation_of, tmp_path, reasoning):
    evaluation = evaluation_of()
    completion = f'{{\n "reasoning": "{reasoning}",\n "finish_reason": "stop",\n {USAGE}\n}}'
    write_answer(tmp_path, evaluation, completion)
    prices = [
        Price(model="other", prompt_usd=9, completion_usd=9),
        Price(model="model*", prompt_usd=1, completion_usd=10),
    ]
    cost = render(evaluation, generated_dir=tmp_path / "generated", prices=prices)["overview"]["groups"][0]["cost"]
    assert (cost["prompt_tokens"], cost["completion_tokens"], cost["latency_s"]) == (1000, 500_000, 2.5)
    assert cost["usd"] == pytest.approx(5.001)


@pytest.mark.parametrize("completion", ["", "{", "[1]", '{"usage": 3}', '{"usage": {"prompt_tokens": "x"}}', "\x00"])
def test_damaged_files_of_a_run_cost_only_their_answer(render, evaluation_of, tmp_path, completion):
    evaluation = evaluation_of()
    write_answer(tmp_path, evaluation, completion)
    blocks = render(evaluation, generated_dir=tmp_path / "generated")
    assert blocks["overview"]["groups"][0]["cost"]["counted"] == 0
    assert "Make it fast." in blocks["answers-0"]["texts"]


def test_a_run_whose_files_are_gone_has_its_results(render, evaluation_of, tmp_path):
    blocks = render(evaluation_of(), generated_dir=tmp_path / "nowhere", problems_dirs=[tmp_path / "nowhere"])
    assert blocks["answers-0"]["records"]["1"]["prompt"] is None
    assert blocks["references"] == {}


def test_a_reference_is_embedded_only_in_the_version_that_was_evaluated(render, evaluation_of, tmp_path):
    folder = tmp_path / "problems" / "core"
    folder.mkdir(parents=True)
    (folder / "add.py").write_text("evaluated")
    digest = sha256(b"evaluated").hexdigest()[:16]
    (tmp_path / "secret.py").write_text("secret")
    hostile = evaluation_of(problem="../../secret", problem_digest=sha256(b"secret").hexdigest()[:16], sample=1)
    evaluations = evaluation_of(problem_digest=digest), hostile
    assert render(*evaluations, problems_dirs=[tmp_path / "problems"])["references"] == {digest: "evaluated"}
    (folder / "add.py").write_text("changed")
    assert render(problems_dirs=[tmp_path / "problems"])["references"] == {}


def test_reference_given_as_a_file_is_read_from_its_run(render, evaluation_of, tmp_path):
    folder = tmp_path / "generated" / "demo" / "add"
    folder.mkdir(parents=True)
    (folder / "add.py").write_text("evaluated")
    digest = sha256(b"evaluated").hexdigest()[:16]
    evaluation = evaluation_of(problem_digest=digest)
    assert render(evaluation, generated_dir=tmp_path / "generated")["references"] == {digest: "evaluated"}


def test_huge_and_strange_sources_are_cut_and_shown(render, evaluation_of):
    blocks = render(evaluation_of(), source="é\x1b[2J\u202e😀" + "x" * 1_000_000)
    (text,) = blocks["details-0"]["texts"]
    assert text.startswith("é\\x1b[2J\\u202e😀xxx")
    assert "characters omitted" in text
    assert len(text) < 250_000


@pytest.mark.parametrize("text", ["[]", "{}", "", "{", "\x00", '{"phases_s": 3}', '{"roofline": {"x": 1}}'])
def test_a_damaged_row_costs_only_its_details(render, evaluation_of, tmp_path, text):
    render(evaluation_of(), evaluation_of(sample=1))
    with closing(sqlite3.connect(tmp_path / "results" / DATABASE_NAME)) as connection:
        connection.execute("UPDATE details SET evaluation = ? WHERE evaluation_id = 1", (text,))
        connection.commit()
    records = render()["details-0"]["records"]
    assert "evaluation 1 is damaged" in records["1"]["damaged"]
    assert "is correct" in records["2"]["verdict"]


def test_a_store_that_is_written_meanwhile_gives_one_consistent_report(tmp_path, evaluation_of):
    with ResultStore.open(tmp_path) as writer, ResultStore.open(tmp_path, read_only=True) as reader:
        writer.record(evaluation_of())
        rows = reader.rows

        def read_then_write(*arguments, **options):
            found = list(rows(*arguments, **options))
            writer.record(evaluation_of(sample=9))
            return iter(found)

        reader.rows = read_then_write
        summary = render_report(reader, tmp_path / "report.html", now=NOW)
    assert summary.evaluations == 1
    assert read_blocks(tmp_path / "report.html")["overview"]["groups"][0]["samples"] == 1


def test_a_place_that_cannot_be_written_is_an_error_that_leaves_nothing(tmp_path, evaluation_of):
    with ResultStore.open(tmp_path) as store:
        store.record(evaluation_of("correct", 2.0))
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match="choose another path with --output"):
            render_report(store, tmp_path / "file" / "report.html", now=NOW)


def test_the_same_results_give_the_same_file(render, evaluation_of):
    render(evaluation_of("correct", 2.0))
    first = render.path.read_bytes()
    render()
    assert render.path.read_bytes() == first
    assert [path.name for path in render.path.parent.iterdir()] == ["report.html"]


def test_large_report_has_details_of_the_best_evaluations_only(render, evaluation_of, monkeypatch):
    monkeypatch.setattr("harness.report.html.chunks.MANY_ROWS", 3)
    monkeypatch.setattr("harness.report.html.chunks.MOST_DETAILED", 2)
    speedups = {"a": (1.0, 3.0), "b": (4.0, 2.0)}
    evaluations = [
        evaluation_of("correct", speedup, problem=problem, sample=sample)
        for problem, by_sample in speedups.items()
        for sample, speedup in enumerate(by_sample)
    ]
    blocks = render(*evaluations)
    assert blocks["index"]["count"] == 4
    assert blocks["places"]["details"] == [-1, 0, 0, -1]


def write_captured(folder):
    """Write the record of a captured model, as capture and apply leave it: two modules, one with a kernel."""
    group = {
        "kind": "AddNorm", "calls": 13, "share": 0.13, "time_us": 151.0, "peak_fraction": 0.1, "gain_limit": 1.13,
        "bound": "memory", "problem": "add_norm", "reason": "", "paths": ["norm"],
    }  # fmt: skip
    groups = [
        group,
        group | {"kind": "Linear", "problem": "", "reason": "at most 1.01x"},
        group | {"share": 1e-4, "problem": "", "paths": ["last"]},
    ]
    kernel = {"problem": "add_norm", "evaluation": 1, "alone": 8.8, "predicted": 1.131, "reason": "", "in_model": None}
    applied = {
        "kernels": [kernel],
        "modes": {"graph": "no"},
        "predicted": 1.131,
        "tokens": 32,
        "asked_tokens": 32,
        "losses": [],
    }
    folder.mkdir(parents=True)
    facts = {"model": "Decoder", "hardware": "NVIDIA H200", "device": "cuda:0", "wall_us": 15553.0}
    (folder / "capture.json").write_text(json.dumps(facts | {"groups": groups}))
    (folder / "applied.json").write_text(json.dumps(applied))


def test_a_captured_model_is_described_with_what_was_tried_and_applied(render, evaluation_of, tmp_path):
    write_captured(tmp_path / "captured/net")
    tried = [evaluation_of(speedup=of, suite="net", problem="add_norm", sample=at) for at, of in enumerate((2.0, 8.8))]
    failed = evaluation_of("wrong_value", suite="net", problem="add_norm", sample=2)
    blocks = render(*tried, failed, evaluation_of(problem="softmax"), captured_dir=tmp_path / "captured")
    (model,) = blocks["overview"]["captured"]
    assert (model["suite"], model["model"], [one["name"] for one in model["groups"]]) == (
        "net",
        "Decoder",
        ["AddNorm norm", "Linear"],
    )
    assert model["groups"][0]["tried"] == {"candidates": 3, "correct": 2, "best": 8.8}
    assert model["groups"][0]["kernel"]["predicted"] == 1.131
    assert model["applied"]["tokens"] == 32


@pytest.mark.parametrize("text", [None, "{", '{"groups": 1}', "[]"])
def test_a_report_without_a_readable_captured_model_has_no_section_about_it(render, evaluation_of, tmp_path, text):
    if text is not None:
        (tmp_path / "captured/net").mkdir(parents=True)
        (tmp_path / "captured/net/capture.json").write_text(text)
    for suite in ("net", "my ops"):  # the second is no folder's name
        assert render(evaluation_of(suite=suite), captured_dir=tmp_path / "captured")["overview"]["captured"] == []
