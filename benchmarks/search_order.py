"""Whether a search reports the true order of its programs, and accepts no equal one as better.

Run on an idle machine with a GPU and nvcc: python benchmarks/search_order.py [steps|equal] [--device cuda:0]
steps: four CUDA programs for each of six problems, from a naive one to an optimised one, as the turns of
`harness run --strategy optimise`. Goal: of two programs whose times differ by 5 % or more, the faster one has the
higher speedup, and the best turn is the fastest program. The true times are those of the same kernels in this process:
CUDA events, caches flushed before each call.
equal: one program, then 20 with the same kernel and a function that nobody calls. Goal: none is accepted as better.
Other options go to `harness run`, such as --no-profile.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from search_programs import ANSWER, ENTRY, PROBLEM, PROBLEMS

from harness.builder.toolchain import find_cuda_home
from harness.sandbox.devices import Device, open_device

ROWS = COLUMNS = 8192
DIFFERENT = 0.05
REPEATS = 20
EQUAL_PROGRAMS = 20
EQUAL = "softmax_of_rows"


def make_equal(problem: str) -> Sequence[str]:
    """One program that leaves room to gain, and copies of it with another unused function."""
    program = PROBLEMS[problem][2]()[1]
    unused = "__device__ float unused{0}(float a) {{ return a * {0}.5f; }}\n"
    return [program, *(unused.format(number) + program for number in range(EQUAL_PROGRAMS))]


def write_material(folder: Path, programs: Mapping[str, Sequence[str]]) -> None:
    for problem, turns in programs.items():
        expression, shape, _ = PROBLEMS[problem]
        reference = folder / "problems" / "steps" / f"{problem}.py"
        reference.parent.mkdir(parents=True, exist_ok=True)
        reference.write_text(PROBLEM.format(expression=expression, rows=ROWS, columns=COLUMNS))
        for number, kernels in enumerate(turns):
            sample = folder / "recording" / "cuda" / problem / "0"
            answer = (sample / f"turn-{number}" if number else sample) / "completion.md"
            answer.parent.mkdir(parents=True, exist_ok=True)
            answer.write_text(ANSWER.format(kernels=kernels, shape=shape))
    (folder / "recording" / "manifest.json").write_text(json.dumps({"model": "written-by-hand"}))


def search(folder: Path, turns: int, device: str, more: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The record of `harness run --json` for each problem."""
    command = [sys.executable, "-m", "harness", "run", "--provider", "recorded", "--recording", folder / "recording"]
    command += ["--problems-dir", folder / "problems", "--suite", "steps", "--language", "cuda", "--device", device]
    command += ["--turns", turns, "--patience", turns, "--strategy", "optimise", "--run", "order", "--json"]
    command += ["--results-dir", folder / "results", "--generated-dir", folder / "generated", *more]
    done = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True)
    return {record["problem"]: record for record in map(json.loads, done.stdout.splitlines())}


def measure_truth(programs: Mapping[str, Sequence[str]], device: Device) -> dict[str, list[float]]:
    """The time of each program in us."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        work = [(problem, number) for problem in programs for number in range(len(programs[problem]))]
        built = pool.map(lambda one: build_alone(programs[one[0]][one[1]], Path(folder) / f"{one[0]}{one[1]}"), work)
        entries = dict(zip(work, built, strict=True))
        return {
            problem: [time_alone(entries[problem, number], device) for number in range(len(programs[problem]))]
            for problem in programs
        }


def build_alone(kernels: str, path: Path) -> Any:
    source = path.with_suffix(".cu")
    source.write_text(kernels + ENTRY)
    library = path.with_suffix(".so")
    arch = "sm_{}{}".format(*torch.cuda.get_device_capability())
    command = [
        f"{find_cuda_home()}/bin/nvcc",
        "-O3",
        f"-arch={arch}",
        "--shared",
        "-Xcompiler",
        "-fPIC",
        "-o",
        library,
        source,
    ]
    subprocess.run([str(word) for word in command], check=True)
    return ctypes.CDLL(str(library)).entry


def time_alone(entry: Any, device: Device) -> float:
    x = torch.randn(ROWS, COLUMNS, device=device.torch_device)
    y = torch.empty_like(x)
    times = []
    for _ in range(REPEATS + 3):
        device.flush_cache()
        torch.cuda.synchronize()
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        marks[0].record(torch.cuda.default_stream())
        entry(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), ROWS, COLUMNS)
        marks[1].record(torch.cuda.default_stream())
        torch.cuda.synchronize()
        times.append(marks[0].elapsed_time(marks[1]) * 1e3)
    return statistics.median(times[3:])


def report_steps(record: dict[str, Any], true_us: Sequence[float]) -> bool:
    """Prints a line per turn. Returns whether order and best turn are true."""
    turns = [turn for turn in record["turns"] if turn["speedup"] is not None]
    for turn in turns:
        true = f"{true_us[turn['turn']]:10.1f} us alone"
        print(f"{record['problem']:16} turn {turn['turn']} {true}  {describe_speedup(turn)}")
    wrong = [
        (first["turn"], second["turn"])
        for first, second in combinations(turns, 2)
        if differ(first, second, true_us) and not agree(first, second, true_us)
    ]
    fastest = min(turns, key=lambda turn: true_us[turn["turn"]])["turn"]
    best = record["best"]
    found = true_us[best] <= true_us[fastest] * (1 + DIFFERENT)
    met = not wrong and found and len(turns) == len(record["turns"])
    asked = ", ".join(f"{turn['turn']} {turn['outcome']}" for turn in record["turns"])
    print(
        f"{record['problem']:16} best: turn {best}, fastest alone: {fastest}; {asked} {'' if met else 'MISSED'}",
        flush=True,
    )
    return met


def describe_speedup(turn: dict[str, Any]) -> str:
    over = ""
    if turn["over_rival"] is not None:
        over = f"  {turn['over_rival']:.3f} over turn {turn['rival']}, from {turn['over_rival_low']:.3f}"
    return f"speedup {turn['speedup']:7.3f} [{turn['speedup_low']:.3f}, {turn['speedup_high']:.3f}]{over}"


def differ(first: dict[str, Any], second: dict[str, Any], true_us: Sequence[float]) -> bool:
    times = sorted((true_us[first["turn"]], true_us[second["turn"]]))
    return times[1] > times[0] * (1 + DIFFERENT)


def agree(first: dict[str, Any], second: dict[str, Any], true_us: Sequence[float]) -> bool:
    return bool((true_us[first["turn"]] < true_us[second["turn"]]) == (first["speedup"] > second["speedup"]))


def report_equal(record: dict[str, Any]) -> bool:
    timed = [turn for turn in record["turns"] if turn["speedup"] is not None]
    for turn in timed:
        print(f"turn {turn['turn']:2} parent {turn['parent']} {describe_speedup(turn)}")
    print(f"{len(timed)} of {len(record['turns'])} programs timed; best: turn {record['best']}")
    return record["best"] == 0 and len(timed) == EQUAL_PROGRAMS + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["steps", "equal"])
    parser.add_argument("--device", default="cuda:0", help="of the search; the true times are those of the first one")
    parser.add_argument("--problem", choices=sorted(PROBLEMS), nargs="*", default=list(PROBLEMS), help="of steps")
    parser.add_argument("--folder", type=Path, help="where programs and results stay; a temporary one if none is given")
    options, more = parser.parse_known_args()
    equal = options.what == "equal"
    programs = {EQUAL: make_equal(EQUAL)} if equal else {name: PROBLEMS[name][2]() for name in options.problem}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        write_material(folder, programs)
        records = search(folder, max(map(len, programs.values())), options.device, more)
    if equal:
        met = report_equal(records[EQUAL])
    else:
        true_us = measure_truth(programs, open_device(options.device.split(",")[0]))
        met = False not in [report_steps(records[problem], true_us[problem]) for problem in programs]
    print(f"goal: {'none accepted as better' if equal else 'true order'}: {'met' if met else 'MISSED'}")


if __name__ == "__main__":
    main()
