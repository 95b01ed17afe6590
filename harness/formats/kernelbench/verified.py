"""KernelBench-Verified: KernelBench's levels with seven changed problems, a TF32 baseline and four input distributions.

KernelBench/level<L>/<P>_<Name>.py    hidden_tests/level<L>/<P>_hidden.py
"""

from __future__ import annotations

from pathlib import Path

from harness.formats.imported import Imported, ImportedProblem
from harness.formats.kernelbench.format import BenchProblem, keep_semantics, name_suite, read_problems

SCALES = ("scale_3", "scale_0.01", "scale_-1")
# Distributions in which the reference is not finite, and problems whose outputs are always zero, as its report states.
NOT_FINITE = {(1, 90): "scale_3", (1, 98): "scale_-1"}
ALWAYS_ZERO = ((2, 23), (2, 80), (2, 83))


def find(source: Path) -> Path | None:
    is_verified = (source / "hidden_tests").is_dir() and any((source / "KernelBench").glob("level*/*.py"))
    return source / "KernelBench" if is_verified else None


def read(root: Path, suite: str) -> Imported:
    """Raises UsageError."""
    problems = read_problems(root)
    kept = [problem for problem in problems if (problem.level, problem.number) not in ALWAYS_ZERO]
    return Imported(
        problems=tuple(
            ImportedProblem(suite=name_suite(suite, one.level), name=one.stem, code=_add_settings(one)) for one in kept
        ),
        notes=tuple(
            f"level {one.level}, {one.stem}: its output is always zero, so KernelBench-Verified leaves it out"
            for one in problems
            if one not in kept
        ),
    )


def _add_settings(problem: BenchProblem) -> str:
    code = keep_semantics(problem.code)
    if code == problem.code:
        return code
    names = [name for name in SCALES if name != NOT_FINITE.get((problem.level, problem.number))]
    declared = ", ".join(f'"{name}"' for name in ("as_given", *names))
    comment = "# KernelBench-Verified measures against TF32, and scales the inputs."
    return f"{code}{comment}\nALLOW_TF32 = True\nDISTRIBUTIONS = ({declared})\n"
