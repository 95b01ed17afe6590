"""How much of the corpus of CUDA programs the emulated device builds and evaluates, and how often it is right.

Run: python benchmarks/emulated_corpus.py [--only WORD] [--unchecked] [--nvcc] [--device cuda:0] [--verbose]
Goal: at least 95 % built and evaluated, every verdict right, every planted bug named, no false alarm. With --nvcc each
program is compiled by nvcc as well, as `harness evaluate` does.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "emulated"))
from emulated_corpus import KINDS, Bench, Program, Result, read_corpus

UNEVALUATED = ("not_run", "load_error", "harness_error")


def main() -> int:
    options = parse_options()
    programs = [one for one in read_corpus() if options.only in f"{one.kind}/{one.name}"]
    console, results, began = Console(highlight=False), [], time.perf_counter()

    def report(result: Result) -> None:
        results.append(result)
        if options.verbose or not result.is_right:
            console.print(describe(result), soft_wrap=True, markup=False)

    with tempfile.TemporaryDirectory() as folder:
        cache = Path(options.cache or folder)
        with Bench(
            cache, device=options.device, checked=not options.unchecked, nvcc=options.nvcc, jobs=options.jobs
        ) as bench:
            bench.evaluate(programs, report)
    console.print(make_table(programs, results))
    console.print(f"{len(results)} programs in {time.perf_counter() - began:.0f} s")
    return 0 if all(result.is_right for result in results) else 1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="programs whose kind/name contains this")
    parser.add_argument("--unchecked", action="store_true")
    parser.add_argument("--nvcc", action="store_true")
    parser.add_argument("--device", default="emulated")
    parser.add_argument("--cache")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args()


def describe(result: Result) -> str:
    program, evaluation = result.program, result.evaluation
    state = "right" if result.is_right else f"WRONG: {result.why}"
    lines = evaluation.message.splitlines()[:1] if result.is_right else evaluation.message.splitlines()[:12]
    return "\n    ".join([f"{program.kind}/{program.name}: {evaluation.outcome.value}: {state}", *lines])


def make_table(programs: list[Program], results: list[Result]) -> Table:
    table = Table(title="the emulated device on its corpus")
    for column in ("kind", "programs", "built and evaluated", "right"):
        table.add_column(column, justify="left" if column == "kind" else "right")
    for kind in KINDS:
        own = [result for result in results if result.program.kind == kind]
        evaluated = [result for result in own if result.evaluation.outcome.value not in UNEVALUATED]
        count = sum(program.kind == kind for program in programs)
        right = sum(result.is_right for result in own)
        table.add_row(kind, str(count), f"{len(evaluated)}/{count}", f"{right}/{count}")
    return table


if __name__ == "__main__":
    raise SystemExit(main())
