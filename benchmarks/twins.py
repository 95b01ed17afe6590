"""The same five kernels in CUDA and in Triton, evaluated and timed on a GPU.

    python benchmarks/twins.py [--device cuda:0] [--workload small] [--problems softmax swiglu]

Prints a row per problem: the baseline's time, and for each language the candidate's time, speedup with its interval,
verdict, and the seconds of the evaluation without its build. The programs are in `benchmarks/twins/`, and in
`recordings/demo/` for softmax, and layer norm in CUDA. On the emulated device (`--device emulated`) nothing is timed.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import harness
from harness.domain import Evaluation
from harness.generate.extraction.extractor import find_code

ROOT = Path(__file__).resolve().parents[1]
PROBLEMS = ("core/softmax", "core/layer_norm", "core/rms_norm", "llm/swiglu", "llm/rms_norm_residual")
LANGUAGES = ("cuda", "triton")


def read_program(problem: str, language: str) -> str:
    name = problem.partition("/")[2]
    own = ROOT / "benchmarks" / "twins" / language / f"{name}.py"
    if own.is_file():
        return own.read_text()
    answer = (ROOT / "recordings" / "demo" / language / name / "0" / "completion.md").read_text()
    found = find_code(answer)
    if found is None:
        raise SystemExit(f"no program in the recorded answer for {problem} in {language}")
    return found.source


def describe(evaluation: Evaluation) -> str:
    seconds = evaluation.duration_s - dict(evaluation.phases_s).get("build", 0.0)
    timing = evaluation.timing
    if timing is None:
        return f"{evaluation.outcome:12} {evaluation.message[:80]:26} {seconds:5.1f} s"
    interval = f"{timing.speedup:5.2f} [{timing.speedup_low:.2f}, {timing.speedup_high:.2f}]"
    return f"{timing.candidate_us:9.1f} us {interval:20} {timing.verdict:11} {seconds:5.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--workload", default="full", choices=("full", "small"))
    parser.add_argument("--problems", nargs="*", metavar="NAME")
    options = parser.parse_args()
    with harness.Evaluator(device=options.device) as evaluator:
        for problem in PROBLEMS:
            if options.problems and problem.partition("/")[2] not in options.problems:
                continue
            for language in LANGUAGES:
                program = read_program(problem, language)
                evaluation = evaluator.evaluate(program, problem, language=language, workload=options.workload)
                baseline = f"{evaluation.timing.baseline_us:9.1f} us" if evaluation.timing else f"{'-':>12}"
                print(f"{problem:22} {baseline}  {language:6} {describe(evaluation)}", flush=True)


if __name__ == "__main__":
    main()
