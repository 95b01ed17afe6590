"""Commands that bring stored things in and out or look at them again: extract --stored, import, export."""

import json
from pathlib import Path

import pytest

from harness.cli.main import run_command
from harness.domain import Candidate
from harness.problems.discovery import read_problem
from harness.store.results import ResultStore
from harness.store.runs import load_samples

PROBLEM = "class Model: pass\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n"
PROGRAM = "class ModelNew:\n    x = 1\n"


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs one command line in this process, in the test's folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*args):
        code = run_command([str(arg) for arg in args])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def bench_checkout(tmp_path):
    """A KernelBench checkout with two levels, and the folder of a run over the first one with results and times."""
    for level, names in ((1, ("1_Relu", "2_Softmax_")), (2, ("1_Conv",))):
        folder = tmp_path / "bench" / f"level{level}"
        folder.mkdir(parents=True)
        for name in names:
            (folder / f"{name}.py").write_bytes(f"# {name}\r\n{PROBLEM}".encode())
    run = tmp_path / "bench-run"
    run.mkdir()
    for number in (1, 2):
        (run / f"level_1_problem_{number}_sample_0_kernel.py").write_text(f"{PROGRAM}# é {number}\n")
    entry = {"sample_id": 0, "compiled": True, "correctness": True, "runtime": 0.5, "metadata": {"hardware": "H100"}}
    (run / "eval_results.json").write_text(json.dumps({"1": entry, "2": [entry | {"extra": [1, None, "ü"]}]}))
    times = {"level1": {"1_Relu.py": {"mean": 1.0, "std": 0.1}, "2_Softmax_.py": {"mean": 0.25}}}
    (tmp_path / "times.json").write_text(json.dumps(times))
    return tmp_path / "bench"


def read_tree(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_problems_go_in_and_out_without_loss(command, bench_checkout, tmp_path):
    assert command("import", "--format", "kernelbench", "bench")[0] == 0
    assert (tmp_path / "reference_models" / "kernelbench_level1" / "1_Relu.py").is_file()
    suites = ("--suite", "kernelbench_level1", "--suite", "kernelbench_level2")
    assert command("export", "--format", "kernelbench", "out", *suites)[0] == 0
    assert read_tree(tmp_path / "out") == read_tree(bench_checkout)
    assert command("import", "--format", "kernelbench", "bench")[0] == 0, "the same problems may be imported again"


def test_imported_problems_are_in_training_mode_with_seeded_calls(command, bench_checkout, tmp_path):
    command("import", "--format", "kernelbench", "bench")
    problem = read_problem(tmp_path / "reference_models" / "kernelbench_level1" / "1_Relu.py", "kernelbench_level1")
    assert (problem.training, problem.seeded_calls, problem.deterministic) == (True, True, False)


def test_a_problem_with_settings_of_ours_keeps_them_when_it_is_imported(command, bench_checkout, tmp_path):
    text = f'{PROBLEM}TAGS = ("relu",)\n'
    (bench_checkout / "level1" / "1_Relu.py").write_text(text)
    command("import", "--format", "kernelbench", "bench")
    assert (tmp_path / "reference_models" / "kernelbench_level1" / "1_Relu.py").read_text() == text


def test_a_problem_that_is_there_with_another_text_is_not_overwritten(command, bench_checkout):
    command("import", "--format", "kernelbench", "bench")
    (bench_checkout / "level1" / "1_Relu.py").write_text(f"{PROBLEM}# another\n")
    code, _, stderr = command("import", "--format", "kernelbench", "bench")
    assert code == 2
    assert "differs" in stderr


def test_imported_run_is_exported_without_loss_and_its_times_stay_claims(command, bench_checkout, tmp_path):
    command("import", "--format", "kernelbench", "bench")
    code, stdout, _ = command("import", "--format", "kernelbench", "bench-run", "--baseline-times", "times.json")
    assert code == 0
    assert "reported by others (H100), not measured here: 2 of 2 correct" in stdout
    assert "reported by others, not measured here: 1 of 2 faster" in stdout
    assert not (tmp_path / "results").exists()
    command("export", "--format", "kernelbench", "out", "--run", "bench-run")
    given, written = read_tree(tmp_path / "bench-run"), read_tree(tmp_path / "out")
    assert json.loads(written.pop("baseline_time_torch.json")) == json.loads((tmp_path / "times.json").read_text())
    assert json.loads(written.pop("eval_results.json")) == json.loads(given.pop("eval_results.json"))
    assert written == given


def test_measured_results_are_exported_instead_of_claims(command, bench_checkout, tmp_path, evaluation_of):
    command("import", "--format", "kernelbench", "bench")
    command("import", "--format", "kernelbench", "bench-run", "--model", "m")
    with ResultStore.open(tmp_path / "results") as store:
        for problem, speedup in (("1_Relu", 2.0), ("2_Softmax_", None)):
            outcome = "correct" if speedup else "build_error"
            store.record(evaluation_of(outcome, speedup, run="bench-run", problem=problem, suite="kernelbench_level1"))
    command("export", "--format", "kernelbench", "out", "--run", "bench-run")
    results = json.loads((tmp_path / "out" / "eval_results.json").read_text())
    assert results["1"][0]["correctness"]
    assert results["1"][0]["runtime"] == pytest.approx(0.05)
    assert (results["2"][0]["compiled"], results["2"][0]["runtime"]) == (False, -1.0)
    times = json.loads((tmp_path / "out" / "baseline_time_torch.json").read_text())
    assert times["level1"]["1_Relu.py"]["mean"] == pytest.approx(0.1)


def test_an_export_says_what_it_leaves_out(command, bench_checkout, tmp_path, evaluation_of):
    command("import", "--format", "kernelbench", "bench")
    command("import", "--format", "kernelbench", "bench-run", "--model", "m")
    with ResultStore.open(tmp_path / "results") as store:
        run = {"run": "bench-run", "problem": "1_Relu", "suite": "kernelbench_level1"}
        store.record(evaluation_of("correct", 2.0, workload="small", **run))
        store.record(evaluation_of("correct", 3.0, dtype="bf16", **run))
    code, _, stderr = command("export", "--format", "kernelbench", "out", "--run", "bench-run")
    assert code == 0
    assert "left out: 2 evaluations of other workloads than full, or in another dtype" in stderr


def test_runs_of_a_checkout_are_imported_with_its_problems(command, bench_checkout, tmp_path):
    bench_checkout.rename(tmp_path / "KernelBench")
    (tmp_path / "checkout" / "runs").mkdir(parents=True)
    (tmp_path / "KernelBench").rename(tmp_path / "checkout" / "KernelBench")
    (tmp_path / "bench-run").rename(tmp_path / "checkout" / "runs" / "sound")
    odd = tmp_path / "checkout" / "runs" / "odd"
    odd.mkdir()
    (odd / "level_7_problem_1_sample_0_kernel.py").write_text(PROGRAM)
    code, stdout, stderr = command("import", "checkout")
    assert code == 0
    assert "2 kernels in generated/sound: harness evaluate sound" in stdout
    assert "note: checkout/runs/odd is left out" in stderr


def test_a_checkout_is_recognised_by_its_folder_of_levels(command, bench_checkout, tmp_path):
    (tmp_path / "checkout").mkdir()
    bench_checkout.rename(tmp_path / "checkout" / "KernelBench")
    assert command("import", "checkout")[0] == 0
    assert (tmp_path / "reference_models" / "kernelbench_level2" / "1_Conv.py").is_file()


def test_evaluate_imports_folders_of_other_formats_first(command, bench_checkout, tmp_path):
    code, stdout, stderr = command("evaluate", "bench")
    assert (code, "problems without programs" in stderr) == (2, True)
    assert "2 problems in reference_models/kernelbench_level1" in stdout
    code, stdout, _ = command("evaluate", "bench-run", "--problem", "absent")
    assert code == 2
    assert "2 kernels in generated/bench-run: harness evaluate bench-run" in stdout
    (sample, _) = load_samples(tmp_path / "generated" / "bench-run")
    assert sample.candidate.source.startswith(PROGRAM)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("import", "--format", "kernelbench", "absent"), "absent does not exist"),
        (("import", "--format", "kernelbench", "bench-run"), "import the problems of the run first"),
        (("export", "--format", "kernelbench", "out"), "either problems"),
        (("export", "--format", "kernelbench", "out", "--run", "absent"), "no run 'absent'"),
        (("import", "--format", "other", "bench"), "other"),
        (("extract", "--stored", "absent"), "no run 'absent'"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_to_do(command, bench_checkout, arguments, message):
    code, _, stderr = command(*arguments)
    assert code == 2
    assert message in stderr


def test_invalid_folder_name_is_changed_by_the_import(command, bench_checkout, tmp_path):
    (bench_checkout / "level1" / "3_Hinge Loss (mean).py").write_text(PROBLEM)
    code, stdout, stderr = command("import", "--format", "kernelbench", "bench")
    assert (code, "3 problems in reference_models/kernelbench_level1" in stdout) == (0, True)
    assert "renamed '3_Hinge Loss (mean)' to '3_Hinge_Loss_mean_'" in stderr
    assert (tmp_path / "reference_models" / "kernelbench_level1" / "3_Hinge_Loss_mean_.py").is_file()


def test_a_name_that_leaves_the_folder_is_refused(command, tmp_path):
    pytest.importorskip("pyarrow")
    import pandas as pd

    rows = {"code": ["x"], "level": [1], "name": ["1_../../../evil"], "problem_id": [1]}
    pd.DataFrame(rows).to_parquet(tmp_path / "evil.parquet")
    code, _, stderr = command("import", "--format", "kernelbench", "evil.parquet")
    assert code == 2
    assert "cannot be a folder name" in stderr


def test_extracting_again_lists_what_changes_and_stores_it_only_when_asked(command, write_run, tmp_path):
    run_dir = write_run("past", [PROGRAM])
    (run_dir / "add" / "0" / "completion.md").write_text(f"```python\n{PROGRAM}    y = 2\n```\n")
    code, stdout, _ = command("extract", "--stored", "--check")
    assert code == 1
    assert "1 of 1 samples changed" in stdout
    code, stdout, _ = command("extract", "--stored", "--diff")
    assert code == 0
    assert "+    y = 2" in stdout
    assert command("extract", "past", "--stored", "--write")[0] == 0
    (sample,) = load_samples(run_dir)
    assert sample.candidate == Candidate(source=f"{PROGRAM}    y = 2\n", language="cpp", rule="fence")
    code, stdout, _ = command("extract", "--stored", "--check")
    assert (code, stdout) == (0, "1 samples: no changes.\n")


def test_a_candidate_that_is_no_longer_found_is_removed(command, write_run):
    run_dir = write_run("past", [PROGRAM])
    assert command("extract", "--stored", "--write")[0] == 0
    (sample,) = load_samples(run_dir)
    assert sample.candidate is None


def test_extracting_again_goes_on_past_a_damaged_sample_and_says_so(command, write_run):
    run_dir = write_run("past", [None, None])
    (run_dir / "add" / "0" / "provenance.json").write_text("{")
    code, stdout, _ = command("extract", "--stored", "--json")
    record = json.loads(stdout)
    assert code == 0
    assert (record["samples"], record["changes"], len(record["damaged"])) == (1, [], 1)
    assert command("extract", "--stored", "--check")[0] == 1


def test_without_runs_there_is_nothing_to_extract(command):
    assert command("extract", "--stored", "--check")[:2] == (0, "0 samples: no changes.\n")


def test_the_commands_leave_no_partial_files(command, bench_checkout):
    command("import", "--format", "kernelbench", "bench")
    assert not [*Path().rglob("*.partial")]


def test_run_with_numbers_outside_the_suite_is_refused_with_the_numbers(command, bench_checkout, tmp_path):
    command("import", "--format", "kernelbench", "bench")
    (tmp_path / "bench-run" / "level_1_problem_7_sample_0_kernel.py").write_text(PROGRAM)
    code, _, stderr = command("import", "--format", "kernelbench", "bench-run")
    assert code == 2
    assert "the run does not match the suite kernelbench_level1: it has kernels for 3 problems" in stderr
    assert "has no problem with the number 7 (it has 1, 2)" in stderr
    assert not (tmp_path / "generated").exists()


def test_claims_about_other_problems_than_the_suites_are_pointed_out(command, bench_checkout, tmp_path):
    command("import", "--format", "kernelbench", "bench")
    results = json.loads((tmp_path / "bench-run" / "eval_results.json").read_text())
    (tmp_path / "bench-run" / "eval_results.json").write_text(json.dumps(results | {"9": results["1"]}))
    (tmp_path / "times.json").write_text(json.dumps({"level1": {"1_Gelu.py": {"mean": 1.0}}}))
    code, _, stderr = command("import", "--format", "kernelbench", "bench-run", "--baseline-times", "times.json")
    assert code == 0
    assert "the results include problems that kernelbench_level1 lacks: 9" in stderr
    assert "lacks or names differently: 1_Gelu" in stderr
