"""Whether a speedup means anything: every core problem against itself, and single pairs of programs measured ten times.

Run on an idle machine: python benchmarks/noise.py [--rounds N] [--language cpp|cuda] [--fidelity quick|full]
Goals: at most 1 % of the pairs of equal programs are called faster or slower; of ten measurements of one pair, at least
nine lie in the interval of the first.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from harness.domain import Candidate, Evaluation, Fidelity, Problem, Timing
from harness.evaluation.settings import TimingPlan
from harness.executors.executor import Origin, Task, make_task
from harness.executors.local import LocalExecutor
from harness.executors.settings import LocalSettings
from harness.problems.discovery import find_suite

CORE = Path(__file__).resolve().parents[1] / "reference_models" / "core"
GOAL_SHARE, GOAL_WITHIN, REPEATS = 0.01, 9, 10
# What makes a candidate of the reference that does its work and a part more, and so is slower by some share.
SLOWED = """

class _Reference(ModelNew):
    pass


class ModelNew(_Reference):
    def forward(self, *inputs):
        outputs = super().forward(*inputs)
        (outputs[0] if isinstance(outputs, tuple) else outputs).float().sum()
        return outputs
"""


def task_for(problem: Problem, source: str, language: str, workload: str) -> Task:
    candidate = Candidate(source=source, language=language, rule="file")
    origin = Origin(run="benchmark", model="-")
    return make_task(problem, candidate, origin, language=language, workload=workload)


def as_candidate(problem: Problem) -> str:
    """The reference as its own candidate."""
    return re.sub(r"\bclass Model\b", "class ModelNew", problem.source).replace("super(Model,", "super(ModelNew,")


def slow_down(problem: Problem) -> str:
    """The reference as a candidate that is slower by some share."""
    return as_candidate(problem) + SLOWED


def open_executor(cache: Path, fidelity: Fidelity, *, allow_load: bool) -> LocalExecutor:
    return LocalExecutor(LocalSettings(cache=cache, fidelity=fidelity, plan=TimingPlan(allow_load=allow_load)))


def measure(executor: LocalExecutor, tasks: list[Task]) -> Iterator[Evaluation]:
    return (future.result() for future in [executor.submit(task) for task in tasks])


def timing_of(evaluation: Evaluation) -> Timing:
    if evaluation.timing is None:
        raise SystemExit(f"{evaluation.subject.problem}: {evaluation.outcome}: {evaluation.message}")
    return evaluation.timing


def measure_equals(executor: LocalExecutor, tasks: list[Task]) -> bool:
    """Prints each evaluation as it ends, and the sums; of those so far when it is interrupted."""
    verdicts: Counter[str] = Counter()
    done = 0
    try:
        for evaluation in measure(executor, tasks):
            timing = timing_of(evaluation)
            cases = Counter(case.timing.verdict for case in evaluation.cases if case.timing)
            verdicts += cases or Counter([timing.verdict])
            interval = f"{timing.speedup:.3f} [{timing.speedup_low:.3f}, {timing.speedup_high:.3f}]"
            of_cases = f"; cases: {tell(cases)}" if cases else ""
            print(f"  {evaluation.subject.problem}: {timing.verdict} {interval}{of_cases}", flush=True)
            done += 1
    except KeyboardInterrupt:
        print(f"interrupted after {done} of {len(tasks)}")
    wrong = verdicts["faster"] + verdicts["slower"]
    share = wrong / max(1, verdicts.total())
    print(f"equal programs: {done} evaluations, {tell(verdicts)}; called faster or slower: {share:.1%}", flush=True)
    return done == len(tasks) and share <= GOAL_SHARE


def tell(verdicts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in verdicts.most_common())


def report_repeats(name: str, timings: list[Timing]) -> bool:
    first = timings[0]
    within = sum(first.speedup_low <= timing.speedup <= first.speedup_high for timing in timings)
    speedups = sorted(timing.speedup for timing in timings)
    print(
        f"{name}: speedup {first.speedup:.3f} [{first.speedup_low:.3f}, {first.speedup_high:.3f}]; of {len(timings)} "
        f"measurements from {speedups[0]:.3f} to {speedups[-1]:.3f} lie inside: {within}"
    )
    return within >= GOAL_WITHIN


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6, help="evaluations of each problem against itself")
    parser.add_argument("--language", default="cpp", help="cpp: on this CPU; cuda: on a GPU")
    parser.add_argument("--workload", default="small")
    parser.add_argument("--fidelity", default="full", choices=["quick", "full"])
    parser.add_argument("--allow-load", action="store_true", help="measure although other programs run")
    parser.add_argument("--problem", nargs="*", help="only these")
    parser.add_argument("--repeated", nargs="*", default=["softmax", "matmul", "layer_norm"], help="of which problems")
    options = parser.parse_args()
    problems = {problem.name: replace(problem, requires_kernel=False) for problem in find_suite(CORE)}
    problems = {name: problem for name, problem in problems.items() if not options.problem or name in options.problem}
    rule = options.language, options.workload
    opened = partial(open_executor, fidelity=options.fidelity, allow_load=options.allow_load)
    with tempfile.TemporaryDirectory() as cache, opened(Path(cache)) as executor:
        tasks = [task_for(problem, as_candidate(problem), *rule) for problem in problems.values()]
        met = [measure_equals(executor, tasks * options.rounds)]
        for name in options.repeated:
            task = task_for(problems[name], slow_down(problems[name]), *rule)
            repeated = [timing_of(one) for _ in range(REPEATS) for one in measure(executor, [task])]
            met.append(report_repeats(name, repeated))
    print(f"goals: at most {GOAL_SHARE:.0%}, at least {GOAL_WITHIN} of {REPEATS}: {'met' if all(met) else 'MISSED'}")


if __name__ == "__main__":
    main()
