"""How often `harness regress` is wrong: false alarms without any change, and slow-downs by 10 % that it misses.

    python benchmarks/regress.py [--repeats 20] [--keep FOLDER] [--problem NAME ...]

Evaluates recorded C++ answers on this CPU again and again, each time as they are and slowed down by 10 % on purpose
(the slowed one waits a tenth of its own time at the end of each call), so that nothing is simulated. Then it asks the
gate about many random choices of "stored" and "now" among the real evaluations, with one stored evaluation and with
six, as `--update` leaves them. The choices overlap, so a rate of one in a thousand is an estimate, not a proof.

Goals: at most one false alarm in 1,000 checks; of slow-downs by 10 % at least 19 in 20 found where the gate says that
it can see them. Run it on a quiet machine; with --keep it goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from harness.analysis.change_detection import GateRule, classify_change, needs_more
from harness.analysis.intervals import bootstrap_ratio_interval
from harness.domain import Candidate, Evaluation, Outcome, Problem, Timing
from harness.executors.executor import Origin, Task, make_task, run_tasks
from harness.executors.local import LocalExecutor
from harness.executors.settings import LocalSettings
from harness.generate.extraction.extractor import find_code
from harness.problems.discovery import find_problem
from harness.store.results import ResultFilter, ResultStore

ROOT = Path(__file__).resolve().parent.parent
RECORDING = ROOT / "recordings" / "demo" / "cpp"
SLOW_DOWN = 1.10
FALSE_ALARMS, FOUND = 1 / 1000, 19 / 20
CHECKS = 1000  # of each candidate
STORED = (1, 6)
SLOWED = f"""

import time as _time

_Fast = ModelNew


class ModelNew(_Fast):
    def forward(self, *inputs):
        began_s = _time.perf_counter()
        outputs = super().forward(*inputs)
        end_s = began_s + {SLOW_DOWN} * (_time.perf_counter() - began_s)
        while _time.perf_counter() < end_s:
            pass
        return outputs
"""


@dataclass(slots=True, kw_only=True)
class Measured:
    """All real evaluations of one candidate: as it is, and slowed down."""

    plain: list[Evaluation] = field(default_factory=list)
    slowed: list[Evaluation] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Rates:
    """How the gate decided. `able`: checks of the slowed one in which it said that such a slow-down is visible, and
    `found_able` those of them in which it was found; `visible` is the median of what it said to be visible."""

    checks: int = 0
    false_alarms: int = 0
    faster: int = 0
    found: int = 0
    unreliable: int = 0
    able: int = 0
    found_able: int = 0
    visible: list[float] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--problem", action="append")
    parser.add_argument("--allow-load", action="store_true", help="also on a busy machine: only to try the script")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ResultStore.open(arguments.keep or Path(folder)) as store:
        tasks = make_tasks(arguments.problem)
        for repeat in range(arguments.repeats):
            measure(tasks, repeat, store, allow_load=arguments.allow_load)
        report(gather(store))


def make_tasks(problems: Sequence[str] | None) -> list[Task]:
    """Each recorded program twice: as it is, and slowed down."""
    tasks = []
    for path in sorted(RECORDING.glob("*/*/completion.md")):
        problem, found = path.parent.parent.name, find_code(path.read_text())
        if found is not None and (not problems or problem in problems):
            known = find_problem(problem, ROOT / "reference_models" / "core")
            for kind, source in (("plain", found.source), ("slowed", found.source + SLOWED)):
                tasks.append(task_for(known, kind, int(path.parent.name), source))
    return tasks


def task_for(problem: Problem, kind: str, sample: int, source: str) -> Task:
    candidate = Candidate(source=source, language="cpp", rule="file")
    origin = Origin(run=kind, model="recorded", sample=sample, suite="core")
    return make_task(problem, candidate, origin, language="cpp", workload="small")


def measure(tasks: Sequence[Task], repeat: int, store: ResultStore, *, allow_load: bool) -> None:
    """One more evaluation of everything that was correct so far, in a process tree of its own."""
    counts: dict[tuple[str, str, int], int] = defaultdict(int)
    hopeless = set()
    for row in store.rows(history=True):
        counts[row.run, row.problem, row.sample] += 1
        if row.outcome != Outcome.CORRECT:
            hopeless.add((row.problem, row.sample))
    wanted = [
        task
        for task in tasks
        if counts[task.subject.run, task.subject.problem, task.subject.sample] <= repeat
        and (task.subject.problem, task.subject.sample) not in hopeless
    ]
    cache = os.environ.get("HARNESS_CACHE_DIR")
    settings = LocalSettings(cache=Path(cache) if cache else None)
    plan = replace(settings.plan, allow_load=allow_load)
    limits = replace(settings.limits, first_call_s=10.0, call_s=10.0)
    with LocalExecutor(replace(settings, plan=plan, limits=limits)) as executor:

        def take(task: Task, evaluation: Evaluation) -> None:
            store.record(evaluation, task.candidate.source if task.candidate else None)
            timing = evaluation.timing
            speed = f"{timing.speedup:.3f}x {timing.verdict}" if timing else ""
            name = f"{task.subject.run} {task.subject.problem}/{task.subject.sample}"
            print(f"  {repeat + 1:>3} {name:<32}{evaluation.outcome} {speed}", file=sys.stderr, flush=True)

        run_tasks(executor, wanted, take)


def gather(store: ResultStore) -> dict[str, Measured]:
    """Evaluations of both kinds by candidate, under one digest: to the gate they are the same program."""
    found: dict[str, Measured] = defaultdict(Measured)
    for kind in ("plain", "slowed"):
        for stored in store.load_all(ResultFilter(run=kind), history=True):
            evaluation = stored.evaluation
            if evaluation.outcome is Outcome.CORRECT:
                subject = replace(evaluation.subject, run="", candidate_digest="one")
                name = f"{subject.problem}/{subject.sample}"
                timing = evaluation.timing and without_blocks(evaluation.timing)
                getattr(found[name], kind).append(replace(evaluation, subject=subject, timing=timing))
    return {name: one for name, one in found.items() if len(one.plain) > max(STORED) and one.slowed}


def without_blocks(timing: Timing) -> Timing:
    """The same to the gate, which takes the error of a measurement from its blocks or else from its interval; to do it
    once is what makes thousands of checks quick."""
    times = [(block.baseline_reported_us, block.candidate_reported_us) for block in timing.blocks]
    _, low, high = bootstrap_ratio_interval(*zip(*times, strict=True), seed=len(times))
    width = math.sqrt(high / low) * (1 + (timing.noise_floor or 0.0))
    return replace(timing, blocks=(), speedup_low=timing.speedup / width, speedup_high=timing.speedup * width)


def report(measured: dict[str, Measured]) -> None:
    if not measured:
        raise SystemExit("nothing was correct often enough: more repeats are needed")
    head = f"{'candidate':<20}{'stored':>7}{'checks':>8}{'false':>7}{'faster':>8}{'found':>8}{'unreliable':>12}"
    print(f"{head}{'visible':>9}")
    totals = {count: Rates() for count in STORED}
    for name, one in sorted(measured.items()):
        for count in STORED:
            rates = ask_gate(one, count)
            print_rates(name, count, rates)
            add_rates(totals[count], rates)
    for count, rates in totals.items():
        print_rates("all", count, rates)
    checks, alarms = (sum(getattr(rates, name) for rates in totals.values()) for name in ("checks", "false_alarms"))
    met = alarms <= FALSE_ALARMS * checks
    print(f"false alarms: {alarms} in {checks:,} checks; goal 1 in 1,000: {'met' if met else 'MISSED'}")
    able, found = (sum(getattr(rates, name) for rates in totals.values()) for name in ("able", "found_able"))
    if not able:
        print(f"a slow-down by {SLOW_DOWN - 1:.0%} was visible nowhere, says the gate: the noise floor hides it here")
        return
    met = found >= FOUND * able
    print(f"found where it was visible: {found / able:.1%} of {able:,}; goal 95 %: {'met' if met else 'MISSED'}")


def ask_gate(one: Measured, stored: int) -> Rates:
    rule, rates, source = GateRule(), Rates(), random.Random(stored)
    for _ in range(CHECKS):
        shuffled = source.sample(one.plain, len(one.plain))
        before, rest = shuffled[:stored], shuffled[stored:]
        same, slower = (decide(before, now, rule) for now in (rest, source.sample(one.slowed, len(one.slowed))))
        rates.checks += 1
        rates.false_alarms += same.is_worse
        rates.faster += same.kind == "faster"
        rates.unreliable += same.kind == "unreliable"
        rates.found += slower.is_worse
        if slower.speed is not None:
            is_able = slower.speed.visible <= SLOW_DOWN
            rates.able += is_able
            rates.found_able += is_able and slower.is_worse
            rates.visible.append(slower.speed.visible)
    return rates


def decide(before: Sequence[Evaluation], now: Sequence[Evaluation], rule: GateRule):
    after: list[Evaluation] = []
    for evaluation in now:
        if not needs_more(before, after, rule):
            break
        after.append(evaluation)
    return classify_change(before, after, rule)


def add_rates(total: Rates, rates: Rates) -> None:
    for one in fields(Rates):
        setattr(total, one.name, getattr(total, one.name) + getattr(rates, one.name))


def print_rates(name: str, stored: int, rates: Rates) -> None:
    found = f"{rates.found / rates.checks:.1%}"
    counts = f"{rates.checks:>8,}{rates.false_alarms:>7}{rates.faster:>8}{found:>8}{rates.unreliable:>12}"
    visible = statistics.median(rates.visible) if rates.visible else math.inf
    print(f"{name:<20}{stored:>7}{counts}{visible:>8.2f}x")


if __name__ == "__main__":
    main()
