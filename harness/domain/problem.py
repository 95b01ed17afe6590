"""Problems, their workloads and tolerances."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

WorkloadName = Literal["full", "small", "reduced"]  # reduced: shrunk by `harness.problems.shrink`
SizeValue = int | float | bool | str | tuple[int, ...]
MIXED = "mixed"  # given inputs, with stress distributions at random positions
NO_STRESS = ("as_given", "integers", "padded")
PROBLEM_FLAGS = ("ALLOW_TF32", "DETERMINISTIC", "TRAINING", "SEEDED_CALLS", "DYNAMIC_SHAPES", "DYNAMIC_WEIGHTS")
# Module-level names of a problem file that configure the harness and are not part of the reference.
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
    """Allowed error against the float64 truth: `factor` times the reference's own error, or `atol + rtol * magnitude`.

    `None`: default of the output's dtype (see `harness.evaluation.correctness.comparison`).
    """

    factor: float = 8.0
    atol: float | None = None
    rtol: float | None = None

    def __post_init__(self) -> None:
        if self.factor < 1.0:
            raise ValueError(f"tolerance factor must be at least 1, got {self.factor}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One reference file.

    Requirements on candidates: `dynamic_shapes` (work on nearby shapes), `dynamic_weights` (work after a change of
    weights), `deterministic` (bitwise repeatable); otherwise a failure there is only a finding. `training`: training
    mode, buffers are compared. `seeded_calls`: torch is seeded before each call. `requires_kernel`: candidates without
    a custom kernel are rejected.
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
    path: str = field(default="", compare=False)  # "" if not read from a file

    def __post_init__(self) -> None:
        names = [workload.name for workload in self.workloads]
        if "full" not in names or len(set(names)) != len(names):
            raise ValueError(f"problem {self.name} needs exactly one full workload, got {names}")

    @property
    def digest(self) -> str:
        return sha256(self.source.encode()).hexdigest()[:16]

    @property
    def stress_distributions(self) -> tuple[str, ...]:
        return tuple(name for name in self.distributions if name not in NO_STRESS)

    def workload(self, name: WorkloadName) -> Workload | None:
        return next((workload for workload in self.workloads if workload.name == name), None)
