"""Errors of honest arithmetic, and of arithmetic that computes less than was asked for, relative to what is allowed.

Run: python benchmarks/tolerance.py [SUITE_FOLDER ...] [--draws 1] [--only TEXT] [--kind as_given] [--table FILE.csv]
Computes the problems of the shipped suites (small workload), and products of growing length, with each arithmetic of
`other_arithmetic`, on given inputs. Prints how many programs are accepted, the quantiles of error / allowed error (of
single elements, and of whole outputs) for each arithmetic, and the honest programs that are refused. In problems of 16
bits only formats of 8 bits compute less. Constants: `harness/evaluation/correctness/allowed_errors.py`. Goal: at least
99.5 % of the honest programs are accepted.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from functools import partial
from pathlib import Path
from statistics import quantiles

import torch
from other_arithmetic import (
    FastMath,
    Mode,
    Products,
    Sums,
    add_compensated,
    add_in_order,
    around_means,
    drop_bits,
    in_parts,
    leave_out,
    round_at_random,
    round_fused,
    rounded,
    scaled,
    split,
    to_bfloat16,
    to_float8,
    to_float16,
    to_int8,
    to_tf32,
    truncate,
)  # fmt: skip
from torch.nn.attention import SDPBackend, sdpa_kernel

from harness.domain import HarnessError, Problem, WorkloadName
from harness.evaluation.correctness.calls import select_calm
from harness.evaluation.correctness.reference import Reference, prepare_reference
from harness.evaluation.correctness.refinement import add_spread, compare_refined
from harness.evaluation.correctness.truth import Expected, Truth, copy_tensors
from harness.problems.discovery import find_suite, parse_problem
from harness.problems.inputs.kind import GIVEN, InputKind
from harness.problems.inputs.kinds import find_kind
from harness.problems.loading import load_problem
from harness.sandbox.devices import open_device
from harness.tensors.outputs import flatten_outputs

SUITES = sorted(path.parent for path in Path(__file__).parents[1].glob("reference_models/*/suite.toml"))
LENGTHS, SIDE = (64, 256, 1024, 2048, 4096, 8192), 256
GOAL = 0.995
HONEST: dict[str, Callable[[], Mode]] = {
    "products one by one": lambda: Products(in_parts(1)),
    "products by 16": lambda: Products(in_parts(16)),
    "products in 4 parts": lambda: Products(in_parts(parts=4)),
    "fused multiply-add": lambda: Products(in_parts(1, keep=round_fused, wide=True)),
    "3xTF32": lambda: Products(split(to_tf32, "hh hl lh")),
    "3xTF32, truncated sums": lambda: Products(split(to_tf32, "hh hl lh", in_parts(8, keep=truncate, wide=True))),
    "bfloat16 in three parts": lambda: Products(split(to_bfloat16, "hh hl lh")),
    "fast math (2 ulp)": FastMath,
    "sums in order": lambda: Sums(add_in_order),
    "sums in 32 strands": lambda: Sums(partial(add_in_order, strands=32)),
    "compensated sums": lambda: Sums(add_compensated),
}
LESS: dict[str, Callable[[], Mode]] = {
    "TF32": lambda: Products(rounded(to_tf32)),
    "TF32 truncated": lambda: Products(rounded(drop_bits(13))),
    "TF32 around means": lambda: Products(around_means(to_tf32)),
    "TF32 at random": lambda: Products(rounded(round_at_random(13))),
    "TF32 at random around means": lambda: Products(around_means(round_at_random(13))),
    "float16": lambda: Products(rounded(to_float16)),
    "float16 around means": lambda: Products(around_means(to_float16)),
    "float16 scaled by row": lambda: Products(rounded(scaled(to_float16))),
    "bfloat16": lambda: Products(rounded(to_bfloat16)),
    "bfloat16 around means": lambda: Products(around_means(to_bfloat16)),
    "bfloat16 at random": lambda: Products(rounded(round_at_random(16))),
    "bfloat16 in two parts": lambda: Products(split(to_bfloat16, "hh hl")),
    "12 bits dropped": lambda: Products(rounded(drop_bits(12))),
    "8 bits dropped": lambda: Products(rounded(drop_bits(8))),
    "sums of bfloat16": lambda: Sums(lambda x: x.sum(-1), to_bfloat16),
    "sums of bfloat16 at random": lambda: Sums(lambda x: x.sum(-1), round_at_random(16)),
}
LESS_THAN_16_BITS: dict[str, Callable[[], Mode]] = {
    "int8 scaled by row": lambda: Products(rounded(scaled(to_int8))),
    "int8 around means": lambda: Products(around_means(scaled(to_int8))),
    "float8 scaled by row": lambda: Products(rounded(scaled(to_float8))),
    "1 term of 64 left out": lambda: Products(leave_out(64)),
}
SIDES = {"honest": HONEST, "less": {**LESS, **LESS_THAN_16_BITS}}
PRODUCT = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.{draw}({side}, {length}), torch.{draw}({length}, {side})]


def get_init_inputs():
    return []
"""


@dataclass(frozen=True, slots=True)
class Row:
    suite: str
    problem: str
    side: str
    arithmetic: str
    element_ratio: float
    whole_ratio: float
    passed: bool


def list_problems(folders: Sequence[Path]) -> Iterator[tuple[Problem, WorkloadName]]:
    for folder in folders:
        for problem in find_suite(folder):
            yield problem, "small"
    for draw in ("randn", "rand") if folders == SUITES else ():
        for length in LENGTHS:
            source = PRODUCT.format(draw=draw, length=length, side=SIDE)
            yield parse_problem(source, Path(f"{draw}_{length}.py"), "products"), "full"


def list_arithmetics(reference: Reference) -> Iterator[tuple[str, str, Callable[[], Mode]]]:
    for side, arithmetics in SIDES.items():
        for name, make in arithmetics.items():
            if reference.format_bits == 32 or side == "honest" or name in LESS_THAN_16_BITS:
                yield side, name, make


def measure(reference: Reference, seed: int, kind: InputKind) -> Iterator[Row]:
    inputs = reference.make_inputs(seed, kind.name)
    expected = select_calm(reference, Expected(partial(reference.truth_of, inputs)), seed, kind)
    if expected is None:
        return
    truth = expected.truth
    state = {name: value.clone() for name, value in reference.model.state_dict().items()}
    refined: list[Truth] = []

    def refine(_: Truth) -> Truth:
        if not refined:
            reference.model.load_state_dict(state)
            refined.append(add_spread(reference, truth, inputs))
        return refined[0]

    for side, name, make in list_arithmetics(reference):
        reference.model.load_state_dict(state)
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), make() as mode:
            outputs = flatten_outputs(reference.model(*copy_tensors(inputs)))
        if not mode.replaced:
            continue
        outputs = outputs.with_state({one: reference.model.state_dict()[one] for one in reference.changing})
        outcome, trial = compare_refined(reference, truth, outputs, name, kind=kind, refine=refine)
        element = float("inf") if trial.worst_ratio is None else trial.worst_ratio
        problem = reference.loaded.problem
        yield Row(problem.suite, problem.name, side, name, element, trial.whole_ratio or 0.0, outcome is None)


def show(rows: Sequence[Row]) -> None:
    quarter = "10 %   median     90 %     most"
    print(f"{'':36}programs accepted    element: {quarter}     whole: {quarter}")
    for side, arithmetics in SIDES.items():
        for name in ("all", *arithmetics):
            some = [row for row in rows if row.side == side and name in ("all", row.arithmetic)]
            if some:
                ratios = describe([row.element_ratio for row in some]), describe([row.whole_ratio for row in some])
                print(f"{side + ': ' + name:36}{len(some):8} {sum(row.passed for row in some):8}", *ratios)


def describe(ratios: Sequence[float]) -> str:
    tenths = quantiles([*ratios, ratios[0]], n=10, method="inclusive")
    return "    " + "".join(f"{value:9.2g}" for value in (tenths[0], tenths[4], tenths[8], max(ratios)))


def write_table(rows: Sequence[Row], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([field.name for field in fields(Row)])
        writer.writerows(map(astuple, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", type=Path, default=SUITES)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--kind", default=GIVEN.name, help="of inputs, such as varied (default: %(default)s)")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    device, rows = open_device("cpu"), []
    for problem, workload in list_problems(options.suites):
        if options.only not in problem.name:
            continue
        try:
            reference = prepare_reference(load_problem(problem, workload), device, 1, 2)
            for seed in range(options.draws):
                rows += measure(reference, seed, find_kind(options.kind))
        except (HarnessError, RuntimeError) as error:
            print(f"{problem.name}: {type(error).__name__}: {error}"[:200], file=sys.stderr)
    show(rows)
    honest = [row for row in rows if row.side == "honest"]
    for row in honest:
        if not row.passed:
            print("refused:", *astuple(row))
    print(f"honest programs accepted: {sum(row.passed for row in honest) / len(honest):.2%} (goal: {GOAL:.1%})")
    if options.table:
        write_table(rows, options.table)


if __name__ == "__main__":
    main()
