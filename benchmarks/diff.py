"""How long `harness diff` of 100,000 stored evaluations takes, half of them on each side.

    python benchmarks/diff.py [--rows 100000]

The goal is under 5 s for the comparison and the page. The ratio is against the plain way, which loads every whole
evaluation from its JSON, without comparing anything.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from stored_results import make_evaluations, measure_s

from harness.analysis.side_material import compare_sides
from harness.cli.compare import format_page
from harness.domain import Evaluation
from harness.store.results import ResultStore

GOAL_S = 5.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder, ResultStore.open(Path(folder)) as store:
        store.record_all(make_two_runs(rows))
        naive_s, _ = measure_s(lambda: sum(1 for _ in store.load_all()))
        comparing_s, sides = measure_s(lambda: compare_sides(store, "a", "b", generated_dir=Path(folder)))
        page_s, _ = measure_s(lambda: format_page(sides))
    print(f"{'what':<44}{'rows':>9}{'seconds':>10}{'against naive':>15}")
    for what, seconds in (
        ("naive: load whole evaluations", naive_s),
        ("compare", comparing_s),
        ("render the page", page_s),
        ("both", comparing_s + page_s),
    ):
        print(f"{what:<44}{rows:>9,}{seconds:>10.2f}{naive_s / seconds:>14.1f}x")
    print(f"goal: both under {GOAL_S:g} s: {'met' if comparing_s + page_s < GOAL_S else 'MISSED'}")


def make_two_runs(rows: int) -> Iterator[tuple[Evaluation, None]]:
    """Two runs with ten samples of each problem."""
    for number, (evaluation, _) in enumerate(make_evaluations(rows)):
        side, place = divmod(number, rows // 2)
        problem, sample = divmod(place, 10)
        subject = replace(evaluation.subject, run="ab"[min(side, 1)], problem=f"problem-{problem}", sample=sample)
        yield replace(evaluation, subject=subject), None


if __name__ == "__main__":
    main()
