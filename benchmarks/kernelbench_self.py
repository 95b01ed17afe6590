"""Every problem of a KernelBench folder with its own `Model` as the candidate: all should be correct, and none faster.

Run: python benchmarks/kernelbench_self.py FOLDER [--problems 1-20] [--memory-fraction 0.5] [--hold-gb 20]
FOLDER holds level folders, or is one. Evaluates on a GPU where there is one, else on the CPU, with `--workload reduced`
at the sizes that the emulated device gets; prints each verdict with what was reduced for lack of memory, how many ended
how, the evaluator's memory before and after, and the seconds taken. `--memory-fraction` plans with that share of the
device's free memory, and keeps the evaluator's own allocations below that share; `--hold-gb` has this process hold as
much, as another program would.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from harness.sandbox.forkserver import EXPANDABLE_SEGMENTS

os.environ |= {"OMP_WAIT_POLICY": "PASSIVE", **EXPANDABLE_SEGMENTS, **os.environ}

import torch

from harness.builder.toolchain import probe_toolchain
from harness.domain import Candidate, Evaluation, Language, WorkloadName
from harness.evaluation.settings import TimingPlan
from harness.executors.device_evaluators import DeviceEvaluators
from harness.executors.executor import Origin, Task, make_task
from harness.executors.settings import LocalSettings, Setup
from harness.formats.kernelbench.format import BenchProblem, keep_semantics, read_problems
from harness.problems.discovery import read_problem
from harness.problems.workloads import provide_workload
from harness.sandbox.devices import open_device
from harness.sandbox.policy import probe_isolation

GIB = 1 << 30
NOTED = ("memory_plan", "memory", "opponent_slowed", "reported_time", "clock")


def choose_problems(folder: Path, wanted: str) -> list[BenchProblem]:
    """Those with the numbers of a list such as `1,5,10-20`; "": all."""
    problems = list(read_problems(folder))
    if not wanted:
        return problems
    ranges = [part.partition("-") for part in wanted.split(",")]
    numbers = {number for low, _, high in ranges for number in range(int(low), int(high or low) + 1)}
    return [problem for problem in problems if problem.number in numbers]


def prepare_task(problem: BenchProblem, folder: Path, language: Language, workload: WorkloadName) -> Task | None:
    """None if the sizes cannot be reduced."""
    path = folder / f"level{problem.level}" / f"{problem.stem}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(keep_semantics(problem.code))
    found = provide_workload(read_problem(path, f"level{problem.level}"), workload, language)
    if found is None:
        return None
    source = problem.code.replace("class Model(", "class ModelNew(").replace("super(Model,", "super(ModelNew,")
    candidate = Candidate(source=source, language=language, rule="file")
    return make_task(found, candidate, Origin(run="benchmark", model="-"), language=language, workload=workload)


def describe(evaluation: Evaluation) -> str:
    speedup, timing = "", evaluation.timing
    if timing is not None:
        interval = f"[{timing.speedup_low:.3f}, {timing.speedup_high:.3f}]"
        speedup = f"{timing.speedup:6.3f} {interval} {timing.verdict}, {timing.baseline_us:.0f} us"
    notes = [one.message for one in evaluation.findings if one.check in NOTED]
    message = "" if evaluation.outcome == "correct" else evaluation.message.replace("\n", " ")[:300]
    return " | ".join(filter(None, (speedup, message, *notes)))


def count_held_bytes() -> int:
    """What this process has of the GPU; on a CPU its resident memory."""
    if torch.cuda.is_available():
        return torch.cuda.memory_reserved()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--problems", default="", metavar="LIST", help="numbers, such as 1,5,10-20")
    parser.add_argument("--memory-fraction", type=float, metavar="SHARE", help="of the device's free memory")
    parser.add_argument("--hold-gb", type=float, default=0.0, metavar="GIB")
    parser.add_argument("--workload", choices=("full", "reduced"), default="full")
    parser.add_argument("--no-time", action="store_true", help="correctness only")
    parser.add_argument("--allow-load", action="store_true", help="time on a CPU that others use, too")
    options = parser.parse_args()
    name, language = ("cuda:0", "cuda") if torch.cuda.is_available() else ("cpu", "cpp")
    held = torch.ones(int(options.hold_gb * GIB), dtype=torch.uint8, device=name)
    memory_bytes = None
    if options.memory_fraction is not None:
        memory_bytes = int(open_device(name).measure_room().device_bytes * options.memory_fraction)
        if name != "cpu":
            torch.cuda.set_per_process_memory_fraction(options.memory_fraction)
    plan = TimingPlan(allow_load=options.allow_load)
    outcomes: Counter[str] = Counter()
    before_bytes, began_s = count_held_bytes(), time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        settings = LocalSettings(
            device=name, cache=folder / "cache", memory_bytes=memory_bytes, time=not options.no_time, plan=plan
        )
        setup = Setup(settings=settings, toolchain=probe_toolchain(None), isolation=probe_isolation("auto"))
        device = open_device(name, memory_bytes=memory_bytes)
        with closing(DeviceEvaluators(setup, device, checks=False)) as evaluators:  # in this process, for its memory
            for problem in choose_problems(options.folder, options.problems):
                what = f"level{problem.level}/{problem.stem}"[:48]
                task = prepare_task(problem, folder, language, options.workload)
                if task is None:
                    outcomes["without reduced workload"] += 1
                    print(f"{what:48} without reduced workload", flush=True)
                    continue
                evaluation = evaluators.evaluate(task.on_device(name))
                outcomes[evaluation.outcome] += 1
                held_mib = count_held_bytes() >> 20
                line = f"{what:48} {evaluation.outcome:14} {evaluation.duration_s:7.1f} s {held_mib:7} MiB"
                print(f"{line}  {describe(evaluation)}", flush=True)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    print(f"\n{outcomes.total()} problems on {name}: {counts or 'none'}; {time.monotonic() - began_s:.0f} s")
    print(f"held by this process: {before_bytes >> 20} MiB before, {count_held_bytes() >> 20} MiB after")
    del held


if __name__ == "__main__":
    main()
