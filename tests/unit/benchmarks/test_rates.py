"""The tables of benchmarks/rates.py, from stored evaluations and labels."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from built_evaluations import build_subject

from harness.domain import Correctness, Evaluation, Outcome, Timing, Trial
from harness.store.results import ResultStore

ROOT = Path(__file__).resolve().parents[3]
SUBJECT = build_subject(run="answers", model="m", suite="s", problem="1_add", language="cuda", device="cuda:0")
PASSED = Correctness(trials=(Trial(distribution="as_given", passed=True),), weights="none")
LABELS = """run,problem,sample,label,correct,kind,claimed
answers,1,0,clean,yes,cuda,3.0
answers,2_mul,0,clean,yes,cuda,1.0
answers,3_div,0,hack,no,torch,
answers,4_sub,0,hack,no,torch,2.0
answers,5_neg,0,clean,yes,cuda,
"""


def make_timing(speedup):
    return Timing(
        baseline="eager", baseline_us=100.0 * speedup, candidate_us=100.0, speedup=speedup, speedup_low=speedup,
        speedup_high=speedup, verdict="faster", blocks=(), overhead_us=0.0, noise_floor=0.01, clock="device",
    )  # fmt: skip


def make_evaluation(problem, outcome, minute, speedup=None):
    return Evaluation(
        subject=replace(SUBJECT, problem=problem), outcome=outcome, message="", environment=(("gpu", "NVIDIA H100"),),
        isolation="", started_at=f"2026-01-01T00:{minute:02}:00+00:00", duration_s=6.0, seeds_digest="",
        correctness=PASSED if outcome is Outcome.CORRECT else None,
        timing=None if speedup is None else make_timing(speedup),
    )  # fmt: skip


def print_rates(folder, *evaluations):
    with ResultStore.open(folder / "results") as store:
        store.record_all((evaluation, None) for evaluation in evaluations)
    (folder / "labels.csv").write_text(LABELS)
    command = [sys.executable, ROOT / "benchmarks" / "rates.py", folder / "results", "--labels", folder / "labels.csv"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    return print_rates(
        tmp_path_factory.mktemp("rates"),
        make_evaluation("1_add", Outcome.CORRECT, 0, 1.5),
        make_evaluation("2_mul", Outcome.WRONG_VALUE, 1),
        make_evaluation("3_div", Outcome.CORRECT, 2, 2.0),
        make_evaluation("4_sub", Outcome.REJECTED, 40),
        make_evaluation("5_neg", Outcome.HARNESS_ERROR, 41),
        make_evaluation("6_unlabelled", Outcome.CORRECT, 42),
    )


@pytest.mark.parametrize(
    "row",
    [
        "| clean | 3 | 1 | 1 | 1 | 0 | 0 | 1 | 6.0 |",
        "| hack | 2 | 0 | 1 | 1 | 1 | 1 | 0 | 6.0 |",
        "| all | 5 | 1 | 2 | 2 | 1 | 1 | 1 | 6.0 |",
    ],
)
def test_wrong_verdicts_are_counted_for_each_label(printed, row):
    assert row in printed


def test_pauses_between_commands_are_no_gpu_time(printed):
    assert "5 verdicts in 3 minutes of one NVIDIA H100: 94 per GPU hour" in printed


def test_each_verdict_that_contradicts_its_label_is_listed(printed):
    assert "| answers/2_mul/0 | clean  | wrong_value |  |" in printed
    assert "| answers/3_div/0 | hack  | faster, 2.00x |  |" in printed


def test_claimed_speedups_stand_beside_measured_ones(printed):
    assert "| cuda | 2 | 1 | 3.00x | 1.50x | 1 | 1 |" in printed
    assert "| answers/1_add/0 | cuda | 3.00x | faster, 1.50x |  |" in printed


def test_results_without_times_have_rates_too(tmp_path):
    printed = print_rates(tmp_path, make_evaluation("3_div", Outcome.CORRECT, 0))
    assert "| answers/3_div/0 | hack  | correct |  |" in printed
