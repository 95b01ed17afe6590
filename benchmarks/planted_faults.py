"""How small a share of its work a fault may touch and still be found.

Run: python benchmarks/planted_faults.py [--language cpp|cuda] [--fidelity correctness|full] [--repeats 8] [--only KIND]
Programs compute a row softmax of SIDE x SIDE values right, but for a falling share of: elements, rows or calls, which
follow from the digits of the inputs, or values in a range. Prints how many evaluations found the fault; the number n of
independent chances with which `1 - (1 - share)^n` fits these best; and from it the share that is found with 99 %.
cpp: on this CPU; cuda: on a GPU, where timed calls are replays without host code, so that faults are device code, too.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from harness.domain import Candidate, Evaluation, Fidelity, Outcome, Problem
from harness.executors.executor import Origin, make_task
from harness.executors.local import LocalExecutor
from harness.executors.settings import LocalSettings

SIDE, GOAL = 256, 0.99
MODULE = """
import torch
from torch import nn


def mix(integers):
    places = torch.arange(1, integers.numel() + 1, device=integers.device).view(integers.shape)
    mixed = (integers + places) * 0x1E3779B97F4A7C15
    return (((mixed ^ mixed >> 29) * 0x3F58476D1CE4E5B9) >> 33) & 0x3FFFFFFF


class {name}(nn.Module):
    def forward(self, x):
        y = x.softmax(dim=1)
        {fault}
        return y


def get_inputs():
    return [torch.randn({side}, {side})]


def get_init_inputs():
    return []
"""
# Depends on all digits of an integer, and on its place: inputs with many zeros must not find the fault by these.
DIGITS = "mix({integers}) % {one_in} == 0"
FAULTS = {
    "elements": DIGITS.replace("{integers}", "x.view(torch.int32).long()"),
    "rows": DIGITS.replace("{integers}", "x.view(torch.int32).long().sum(1, keepdim=True)"),
    "calls": DIGITS.replace("{integers}", "x.view(torch.int32).long().sum()"),
    "values": "(x - 0.93721).abs() < 1.945 / {one_in}",  # of many digits; the density of normal values is 0.257 there
}
LEAST_ONE_IN = {"elements": 1 << 12, "rows": 1 << 6, "calls": 1 << 1, "values": 1 << 12}
STEPS, STEP = 6, 4
SMALLEST = 1e-12


def write(name: str, fault: str = "") -> str:
    return MODULE.format(name=name, fault=fault, side=SIDE)


def make_candidate(kind: str, one_in: int, repeat: int, language: str) -> Candidate:
    """Each repeat is another program, so that it is evaluated anew."""
    fault = f"y = torch.where({FAULTS[kind].format(one_in=one_in)}, y * 1.5, y)  # {repeat}"
    return Candidate(source=write("ModelNew", fault), language=language, rule="file")


def was_found(evaluation: Evaluation) -> bool:
    if evaluation.outcome not in (Outcome.CORRECT, Outcome.WRONG_VALUE, Outcome.SUSPECT):
        raise SystemExit(f"{evaluation.outcome}: {evaluation.message}")
    return evaluation.outcome is not Outcome.CORRECT


def fit_chances(shares: Sequence[float], found: Sequence[int], repeats: int) -> float:
    """Return the n of highest likelihood, in steps of 5 %."""

    def rate(chances: float) -> float:
        probabilities = [-math.expm1(chances * math.log1p(-share)) for share in shares]
        limited = [min(max(one, SMALLEST), 1 - SMALLEST) for one in probabilities]
        pairs = zip(limited, found, strict=True)
        return sum(count * math.log(one) + (repeats - count) * math.log1p(-one) for one, count in pairs)

    return max((1.05**power for power in range(500)), key=rate)


def measure(executor: LocalExecutor, kind: str, language: str, repeats: int) -> None:
    problem = Problem(name="softmax", suite="benchmark", source=write("Model"))
    one_in = [LEAST_ONE_IN[kind] * STEP**step for step in range(STEPS)]
    found = []
    for each in one_in:
        candidates = [make_candidate(kind, each, repeat, language) for repeat in range(repeats)]
        origin = Origin(run="benchmark", model="-")
        tasks = [make_task(problem, candidate, origin, language=language) for candidate in candidates]
        found.append(sum(was_found(executor.submit(task).result()) for task in tasks))
        print(f"{kind:10} 1 of {each:<10} found in {found[-1]} of {repeats} evaluations", flush=True)
        if not found[-1]:
            break
    chances = fit_chances([1 / each for each in one_in[: len(found)]], found, repeats)
    share = -math.expm1(math.log(1 - GOAL) / chances)
    print(f"{kind:10} {chances:.3g} chances: found with {GOAL:.0%} if 1 of {1 / share:.3g} is wrong", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", default="cpp", choices=("cpp", "cuda"))
    parser.add_argument("--fidelity", default="full", choices=("correctness", "full"))
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--only", choices=sorted(FAULTS))
    options = parser.parse_args()
    fidelity: Fidelity = options.fidelity
    with tempfile.TemporaryDirectory() as cache:
        device = "cuda:0" if options.language == "cuda" else "cpu"
        settings = LocalSettings(cache=Path(cache), device=device, fidelity=fidelity)
        for kind in FAULTS if options.only is None else (options.only,):
            with LocalExecutor(settings) as executor:
                measure(executor, kind, options.language, options.repeats)


if __name__ == "__main__":
    main()
