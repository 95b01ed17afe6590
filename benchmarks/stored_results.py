"""How long the leaderboard, the CSV files and the listings of 100,000 stored evaluations take.

    python benchmarks/stored_results.py [--rows 100000]

The goals: leaderboard and CSV files together under 5 s, and `harness results` (the whole process, from its start) under
1 s. The ratio is against the plain way to do it, which loads every whole evaluation from its JSON and ranks those.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness.analysis.leaderboard import rank_samples
from harness.analysis.ranking import rank_stored
from harness.domain import Block, Correctness, Evaluation, Finding, Outcome, Subject, Timing, Trial
from harness.report.export.table_files import write_csvs
from harness.store.columns import make_row
from harness.store.results import ResultStore

GOAL_S = 5.0
LISTING_GOAL_S = 1.0
LISTINGS = (
    (),
    ("--where", 'outcome == "correct" and speedup > 1.2', "--sort", "-speedup"),
    ("--model", "model-3", "--problem", "problem-1*"),
    ("--group", "model,outcome"),
)
OUTPUTS = (("--csv",), ("--csv", "--columns", "id,problem,speedup"), ("--json", "--limit", "1000"))
PROBLEMS, SAMPLES, BLOCKS = 250, 10, 20
OUTCOMES = tuple(Outcome)
ENVIRONMENT = (("torch", "2.9.0"), ("cpu", "Example"), *((f"key-{number}", "value " * 5) for number in range(12)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder, ResultStore.open(Path(folder)) as store:
        filling_s, _ = measure_s(lambda: store.record_all(make_evaluations(rows)))
        naive_s = print_measurements(store, Path(folder), rows, filling_s)
        print_listings(Path(folder), rows, naive_s)


def print_measurements(store: ResultStore, folder: Path, rows: int, filling_s: float) -> float:
    naive_s, naive = measure_s(lambda: rank_samples(make_row(stored.evaluation) for stored in store.load_all()))
    ranking_s, ranked = measure_s(lambda: rank_stored(store.rows(), generated_dir=None))
    writing_s, _ = measure_s(lambda: write_csvs(store, folder))
    if ranked != naive:
        raise SystemExit("the leaderboard of flat rows differs from that of whole evaluations")
    print(f"{'what':<44}{'rows':>9}{'seconds':>10}{'against naive':>15}")
    for what, seconds in (
        ("record in one transaction", filling_s),
        ("naive: leaderboard of whole evaluations", naive_s),
        ("leaderboard of flat rows", ranking_s),
        ("both CSV files (ranks once more)", writing_s),
        ("leaderboard and CSV files", ranking_s + writing_s),
    ):
        print(f"{what:<44}{rows:>9,}{seconds:>10.2f}{naive_s / seconds:>14.1f}x")
    print(
        f"goal: leaderboard and CSV files under {GOAL_S:g} s: {'met' if ranking_s + writing_s < GOAL_S else 'MISSED'}"
    )
    return naive_s


def print_listings(folder: Path, rows: int, naive_s: float) -> None:
    """The command as a user starts it; the best of three, since the first one warms the disk's cache."""
    slowest_s = 0.0
    for options in (*LISTINGS, *OUTPUTS):
        seconds = min(measure_command_s(folder, options) for _ in range(3))
        slowest_s = max(slowest_s, seconds) if options in LISTINGS else slowest_s
        name = " ".join(("results", *options))
        short = name if len(name) < 44 else f"{name[:40]}..."
        print(f"{short:<44}{rows:>9,}{seconds:>10.2f}{naive_s / seconds:>14.1f}x")
    print(f"goal: tables under {LISTING_GOAL_S:g} s: {'met' if slowest_s < LISTING_GOAL_S else 'MISSED'}")


def measure_command_s(folder: Path, options: tuple[str, ...]) -> float:
    command = [sys.executable, "-m", "harness", "results", "--results-dir", str(folder), *options]
    return measure_s(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))[0]


def make_evaluations(count: int) -> Iterator[tuple[Evaluation, None]]:
    """Evaluations of every outcome, about half of them correct and timed in 20 blocks."""
    source = random.Random(0)
    for number in range(count):
        outcome = Outcome.CORRECT if number % 2 else source.choice(OUTCOMES)
        yield make_evaluation(number, outcome, source.lognormvariate(0, 0.5)), None


def make_evaluation(number: int, outcome: Outcome, speedup: float) -> Evaluation:
    model, draw = divmod(number, PROBLEMS * SAMPLES)
    subject = Subject(
        run=f"run-{model}",
        sample=draw % SAMPLES,
        turn=0,
        model=f"model-{model}",
        prompt="plain",
        suite="core",
        problem=f"problem-{draw // SAMPLES}",
        problem_digest="0" * 16,
        candidate_digest=f"{number:016x}",
        language="cpp",
        device="cpu",
        workload="full",
        baseline="eager",
    )
    trials = tuple(Trial(distribution="as_given", passed=True, max_abs_error=1e-6, elements=4096) for _ in range(5))
    correct = outcome is Outcome.CORRECT
    return Evaluation(
        subject=subject,
        outcome=outcome,
        message="" if correct else f"trial 3 of 5: {number} of 4096 elements differ",
        findings=(Finding(check="weights", severity="note", message="no parameters"),),
        correctness=Correctness(trials=trials, weights="none") if correct else None,
        timing=make_timing(speedup) if correct else None,
        environment=ENVIRONMENT,
        isolation="private root",
        started_at="2026-01-01T00:00:00+00:00",
        duration_s=1.5,
    )


def make_timing(speedup: float) -> Timing:
    block = Block(
        calls=10,
        baseline_reported_us=100.0,
        candidate_reported_us=100.0 / speedup,
        baseline_evaluator_us=130.0,
        candidate_evaluator_us=30.0 + 100.0 / speedup,
        baseline_copy_us=50.0,
        candidate_copy_us=50.0,
    )
    return Timing(
        baseline="eager",
        baseline_us=100.0,
        candidate_us=100.0 / speedup,
        speedup=speedup,
        speedup_low=0.95 * speedup,
        speedup_high=1.05 * speedup,
        verdict="faster" if speedup > 1 else "slower",
        blocks=(block,) * BLOCKS,
        overhead_us=30.0,
    )


def measure_s(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


if __name__ == "__main__":
    main()
