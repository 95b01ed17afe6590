"""What is to be made faster: problems, their workloads and the accuracy they ask for. Plain data, no torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

WorkloadName = Literal["full", "small", "reduced"]  # reduced: cut by `harness.problems.shrink`
SizeValue = int | float | bool | str | tuple[int, ...]
MIXED = "mixed"  # inputs as given, with each of the stress distributions in secret places
NO_STRESS = ("as_given", "integers", "padded")
PROBLEM_FLAGS = ("ALLOW_TF32", "DETERMINISTIC", "TRAINING", "SEEDED_CALLS", "DYNAMIC_SHAPES", "DYNAMIC_WEIGHTS")
# Module-level names of a problem file that are read by the harness and are no part of the reference.
PROBLEM_SETTINGS = ("SMALL", "TAGS", "TOLERANCE", "DISTRIBUTIONS", *PROBLEM_FLAGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One set of shapes: `overrides` replaces module-level sizes of the problem file. `full` has none."""

    name: WorkloadName
    overrides: tuple[tuple[str, SizeValue], ...] = ()

    def __post_init__(self) -> None:
        if self.name == "full" and self.overrides:
            raise ValueError("the full workload is the problem file as written: it takes no overrides")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How far a candidate may be from the float64 truth.

    A value passes when its error is at most `factor` times the honest reference's own error, or below the floor
    `atol + rtol * magnitude`, where the magnitude is that of the truth there or around there. `None` means the default
    of the output's dtype (see `harness.evaluation.correctness.comparison`).
    """

    factor: float = 8.0
    atol: float | None = None
    rtol: float | None = None

    def __post_init__(self) -> None:
        if self.factor < 1.0:
            raise ValueError(f"tolerance factor must be at least 1, got {self.factor}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One reference file. `source` is its exact text; `digest` names this version of it.

    What a problem declares is required of its candidates: with `dynamic_shapes` they must work on nearby shapes, with
    `dynamic_weights` after their weights were changed, with `deterministic` two calls on the same inputs must agree bit
    for bit; otherwise failing there is only a finding. `training`: models are in training mode, and their buffers are
    compared. `seeded_calls`: where the reference draws random numbers, torch is seeded before each call.
    `requires_kernel` (from the suite): a candidate without a kernel of its own is rejected.
    """

    name: str
    suite: str
    source: str
    workloads: tuple[Workload, ...] = (Workload(name="full"),)
    tolerance: Tolerance = field(default_factory=Tolerance)
    tags: tuple[str, ...] = ()
    distributions: tuple[str, ...] = ("as_given",)
    allow_tf32: bool = False
    summary: str = ""
    deterministic: bool = False
    training: bool = False
    seeded_calls: bool = False
    dynamic_shapes: bool = False
    dynamic_weights: bool = False
    requires_kernel: bool = False
    path: str = field(default="", compare=False)  # where it was read; "" for one that is no file

    def __post_init__(self) -> None:
        names = [workload.name for workload in self.workloads]
        if "full" not in names or len(set(names)) != len(names):
            raise ValueError(f"problem {self.name} needs exactly one full workload, got {names}")

    @property
    def digest(self) -> str:
        return sha256(self.source.encode()).hexdigest()[:16]

    @property
    def stress_distributions(self) -> tuple[str, ...]:
        """Declared distributions of other values, which may be mixed with the given ones."""
        return tuple(name for name in self.distributions if name not in NO_STRESS)

    def workload(self, name: WorkloadName) -> Workload | None:
        return next((workload for workload in self.workloads if workload.name == name), None)
