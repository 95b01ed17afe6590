"""Problems, their workloads, tolerances and contracts of inputs."""

import random
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Literal, Self

Bound = int | float | str | None  # a str is an expression of the file's sizes
KINDS: dict[str, tuple[str, ...]] = {  # with their options
    "real": ("low", "high", "distinct"),
    "integer": ("low", "high", "also"),
    "index": ("below", "also"),
    "mask": ("structure",),
    "one_hot": ("dim",),
    "permutation": ("dim",),
    "probabilities": ("dim",),
    "sorted": ("dim", "low", "high"),
    "counts": ("dim", "low"),
    "symmetric": (),
    "positive_definite": (),
    "triangular": ("structure",),
    "fixed": (),
    "as_drawn": (),
}
STRUCTURES = {"mask": ("arbitrary", "nonempty", "causal", "lengths"), "triangular": ("lower", "upper")}
_MASKS = {
    "arbitrary": "any boolean mask",
    "nonempty": "any boolean mask with at least one element in each row",
    "causal": "a causal mask",
    "lengths": "a mask of the first elements of each row, as many as any length from 1",
}
_NOUNS = {
    "one_hot": "any one-hot vectors",
    "permutation": "any permutations of 0, 1, 2, ...",
    "probabilities": "any probabilities, with a sum of 1",
    "sorted": "any sorted values",
    "counts": "any counts with the given sum",
    "symmetric": "any symmetric matrices",
    "positive_definite": "any symmetric positive definite matrices",
    "fixed": "the same value in every call",
    "as_drawn": "only what get_inputs makes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InputContract:
    """Bounds are inclusive. Values `also` are allowed beside those of the range. `one_hot`, `sorted` and others hold
    along `dim`. `distinct` values differ within a row.

    Of inputs that were seen: `is_constant` if two draws are equal, `is_related` if elements are not drawn
    independently, `has_pattern` if floating values are constant, whole, of few digits or partly zero, though others
    are allowed, `is_implied` if bounds are the range of functions that made the values, `is_converted` if values that
    become integers depend on it, `is_redrawn` if draws that it is made of may change.
    """

    kind: str = "real"
    argument: str = ""
    low: Bound = None
    high: Bound = None
    structure: str = ""
    dim: int | Literal["all"] = -1
    also: tuple[int, ...] = ()
    distinct: bool = False
    is_stated: bool = False
    is_constant: bool = False
    is_related: bool = False
    has_pattern: bool = False
    is_implied: bool = False
    is_converted: bool = False
    is_redrawn: bool = False

    def __str__(self) -> str:
        return f"{self.argument} may be {self.describe()}"

    @property
    def explanation(self) -> str:
        return str(self) + ("" if self.is_stated else " (inferred; the problem's INPUTS can limit them)")

    def describe_source(self) -> str:
        return f"{self.describe()} ({'stated' if self.is_stated else 'inferred'})"

    @property
    def is_bounded(self) -> bool:
        return self.low is not None or self.high is not None

    @property
    def states_bounds(self) -> bool:
        """True for real numbers of a stated range, without other conditions."""
        return self.is_stated and self.kind == "real" and self.is_bounded and not self.distinct

    @property
    def is_free(self) -> bool:
        return self.kind == "real" and not self.is_related and not self.distinct

    @property
    def has_free_sizes(self) -> bool:
        """False within bounds that are not known to be the right ones."""
        return self.is_free and (self.has_known_bounds or not self.is_bounded)

    @property
    def has_known_bounds(self) -> bool:
        return self.is_stated or self.is_implied

    @property
    def has_free_scale(self) -> bool:
        """True if positive factors leave values in their range."""
        return self.has_free_sizes and self.low in (None, 0) and self.high is None

    @property
    def may_be_refilled(self) -> bool:
        """True for the values of distributions that the problem declares."""
        return not self.is_stated or (self.kind == "real" and not self.distinct)

    @property
    def is_never_negative(self) -> bool:
        return not (self.low is None or isinstance(self.low, str) or self.low < 0)

    @property
    def has_free_digits(self) -> bool:
        """True if equal changes of equal values are allowed."""
        return not self.is_stated or self.kind in ("real", "symmetric", "triangular")

    def describe(self) -> str:
        match self.kind:
            case "real":
                words = ("real numbers" if self.is_bounded else "any real numbers") + self._describe_bounds()
                return words + (", different within each row" if self.distinct else "")
            case "integer" | "index":
                noun = "integers" if self.kind == "integer" else "indices"
                also = f", or {', '.join(map(str, self.also))}" if self.also else ""
                is_seen = (
                    not self.is_stated and self.low == self.high and bool(self.high)
                )  # equal ones: perhaps lengths
                bounds = f" up to {self.high}" if is_seen else self._describe_bounds()
                return (noun if self.is_bounded else f"any {noun}") + bounds + also
            case "mask":
                return _MASKS[self.structure or "arbitrary"]
            case "counts" if self.low is not None:
                return f"any counts of at least {self.low} with the given sum{self._describe_dim()}"
            case "triangular":
                return f"any {self.structure or 'lower'} triangular matrices"
        is_remade = self.is_redrawn and self.kind == "as_drawn"
        noun = "what get_inputs makes of other random numbers" if is_remade else _NOUNS[self.kind]
        return noun + self._describe_dim() + self._describe_bounds()

    def _describe_dim(self) -> str:
        return "" if self.dim == -1 else " of all elements" if self.dim == "all" else f" along dimension {self.dim}"

    def _describe_bounds(self) -> str:
        low = "" if self.low is None else f" from {self.low}"
        return low + ("" if self.high is None else f" to {self.high}" if low else f" up to {self.high}")


WorkloadName = Literal["full", "small", "reduced"]  # reduced: shrunk by `harness.problems.shrink`
SizeValue = int | float | bool | str | tuple[int, ...]
CallKind = Literal["forward", "backward", "in_place", "only_in_place"]  # see `harness.construction.calls`
Precision = Literal["fp32", "tf32", "bf16", "fp16", "fp8"]  # of all floating inputs and weights: --dtype
TORCH_DTYPES: dict[Precision, str] = {
    "fp32": "float32",
    "tf32": "float32",
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp8": "float8_e4m3fn",
}
PROBLEM_FLAGS = (
    "ALLOW_TF32",
    "DETERMINISTIC",
    "TRAINING",
    "BACKWARD",
    "IN_PLACE",
    "SEEDED_CALLS",
    "DYNAMIC_SHAPES",
    "DYNAMIC_WEIGHTS",
    "FRESH_OUTPUTS",
)
# Module-level names of a problem file that configure the harness and are not part of the reference.
PROBLEM_SETTINGS = ("SMALL", "TAGS", "TOLERANCE", "DISTRIBUTIONS", "INPUTS", "CASES", "RANGES", *PROBLEM_FLAGS)
CASES_FUNCTION = "get_cases"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """`overrides` replaces module-level sizes of the problem file. `full` has none, except in a `case`."""

    name: WorkloadName
    overrides: tuple[tuple[str, SizeValue], ...] = ()
    case: str = ""

    def __post_init__(self) -> None:
        if self.name == "full" and self.overrides and not self.case:
            raise ValueError("the full workload is the problem file as written: it takes no overrides")


BLOCK_SIZES = (16, 32, 64, 128, 256)  # usual sizes of a program's blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRange:
    """A size drawn anew for each evaluation, from `low` to `high` inclusive."""

    low: int
    high: int
    step: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high or not 0 < self.step <= self.high - self.low:
            raise ValueError("a range needs 0 < low < high, and a step that reaches a second value")

    def draw(self, source: random.Random) -> int:
        """Draw half of the sizes such that blocks of a program have no rest, if the range has one of them below."""
        drawn = source.randrange(self.low, self.high + 1, self.step)
        whole = drawn - drawn % source.choice(BLOCK_SIZES)
        is_size = whole >= self.low and (whole - self.low) % self.step == 0
        return whole if is_size and source.random() < 0.5 else drawn

    def __str__(self) -> str:
        return f"{self.low} to {self.high}" + (f" in steps of {self.step}" if self.step > 1 else "")

    @property
    def ends(self) -> tuple[int, int]:
        return self.low, range(self.low, self.high + 1, self.step)[-1]


CaseSizes = tuple[tuple[str, SizeValue | SizeRange], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Error allowed against float64: `factor` times the reference's own, or `atol + rtol * magnitude`; for a share
    `matched` of elements, the others finite. `None`: the dtype's default.
    """

    factor: float = 8.0
    atol: float | None = None
    rtol: float | None = None
    matched: float = 1.0

    def __post_init__(self) -> None:
        if self.factor < 1.0:
            raise ValueError(f"tolerance factor must be at least 1, got {self.factor}")
        if min(self.atol or 0.0, self.rtol or 0.0) < 0.0:
            raise ValueError(f"atol and rtol must not be negative, got {self.atol} and {self.rtol}")
        if (self.rtol or 0.0) >= 1.0:
            raise ValueError(f"an output of zeros would pass with rtol = {self.rtol}; it must be below 1")
        if not 0.0 < self.matched <= 1.0:
            raise ValueError(f"matched is a share above 0 and up to 1, got {self.matched}")

    @property
    def is_fixed(self) -> bool:
        return self.atol is not None or self.rtol is not None or self.matched < 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A named override of a problem's workloads. `sizes` apply to the full workload, `small` to the small one; a case
    with only `sizes` is not part of the small workload. `weight` applies to the geometric mean.
    """

    name: str
    sizes: CaseSizes = ()
    small: CaseSizes = ()
    dtype: str = ""
    distribution: str = ""
    tolerance: Tolerance | None = None
    weight: float = 1.0
    timed: bool = True

    def __post_init__(self) -> None:
        if not self.name or self.weight <= 0:
            raise ValueError("a case needs a name and a positive weight")

    @property
    def is_secret(self) -> bool:
        """Sizes are drawn at evaluation time, and the geometric mean omits the case."""
        return any(isinstance(value, SizeRange) for _, value in (*self.sizes, *self.small))

    def describe(self, sizes: CaseSizes | None = None) -> str:
        """Return a text such as `rows=4096, columns=1000 to 9000, bfloat16`. `sizes` None: the full workload's."""
        named = [f"{name}={value}" for name, value in (self.sizes if sizes is None else sizes)]
        return ", ".join([*named, *filter(None, (self.dtype, self.distribution))])

    def is_part_of(self, workload: WorkloadName) -> bool:
        return workload == "full" or (workload == "small" and (bool(self.small) or not self.sizes))

    def is_whole(self, workload: WorkloadName) -> bool:
        changes = self.list_sizes(workload), self.dtype, self.distribution, self.tolerance
        return self.timed and not any(changes)

    def list_sizes(self, workload: WorkloadName) -> CaseSizes:
        return self.sizes if workload == "full" else self.small


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One reference file.

    Requirements on candidates, whose violation otherwise is only a finding: `dynamic_shapes` (work on nearby shapes),
    `dynamic_weights` (work after a change of weights), `deterministic` (bitwise repeatable), `fresh_outputs` (new
    memory from each call). With `training`, buffers are compared; with `in_place`, changed inputs. `take_case` sets
    `dtype` and `draws` (the distribution of inputs). With `only_as_given`, other inputs are never required.
    """

    name: str
    suite: str
    source: str
    workloads: tuple[Workload, ...] = (Workload(name="full"),)
    tolerance: Tolerance = field(default_factory=Tolerance)
    tags: tuple[str, ...] = ()
    distributions: tuple[str, ...] = ("as_given",)
    only_as_given: bool = False
    inputs: tuple[InputContract, ...] = ()
    allow_tf32: bool = False
    summary: str = ""
    deterministic: bool = False
    training: bool = False
    backward: bool = False
    in_place: bool = False
    seeded_calls: bool = False
    dynamic_shapes: bool = False
    dynamic_weights: bool = False
    fresh_outputs: bool = False
    requires_kernel: bool = False
    cases: tuple[Case, ...] = ()
    dtype: str = ""
    draws: str = ""
    precision: Precision | Literal[""] = ""
    path: str = field(default="", compare=False)  # "" if not read from a file

    def __post_init__(self) -> None:
        names = [workload.name for workload in self.workloads]
        if "full" not in names or len(set(names)) != len(names):
            raise ValueError(f"problem {self.name} needs exactly one full workload, got {names}")
        if self.backward and self.in_place:
            raise ValueError(f"problem {self.name} declares both BACKWARD and IN_PLACE; choose one")
        cases = [case.name for case in self.cases]
        if len(set(cases)) != len(cases) or (cases and all(case.is_secret or not case.timed for case in self.cases)):
            raise ValueError(f"the cases of {self.name} need distinct names, one of them timed and without ranges")

    @property
    def call(self) -> CallKind:
        if self.backward:
            return "backward"
        return "in_place" if self.in_place else "forward"

    @property
    def digest(self) -> str:
        return sha256(self.source.encode()).hexdigest()[:16]

    def workload(self, name: WorkloadName) -> Workload | None:
        return next((workload for workload in self.workloads if workload.name == name), None)

    def in_precision(self, precision: Precision) -> Self:
        """Use this dtype in every case. Tolerances keep only their factor, which is valid in every dtype."""
        cases = (replace(case, dtype="", tolerance=_keep_factor(case.tolerance)) for case in self.cases)
        return replace(
            self,
            precision=precision,
            dtype=TORCH_DTYPES[precision],
            allow_tf32=precision == "tf32",
            tolerance=_keep_factor(self.tolerance) or Tolerance(),
            cases=tuple(cases),
        )

    def list_cases(self, workload: WorkloadName) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if case.is_part_of(workload))

    def take_case(self, case: Case, workload: WorkloadName, source: random.Random) -> Self:
        """Return the problem with this case as its only `workload`. `source` draws sizes from ranges."""
        drawn = ((name, _draw(value, source)) for name, value in case.list_sizes(workload))
        usual = self.workload(workload)
        overrides = {**dict(usual.overrides if usual else ()), **dict(drawn)}
        chosen = Workload(name=workload, overrides=tuple(overrides.items()), case=case.name)
        others = tuple(one for one in self.workloads if one.name != workload)
        return replace(
            self,
            workloads=(*others, chosen),
            cases=(),
            tolerance=case.tolerance or self.tolerance,
            dtype=self.dtype or case.dtype,
            draws=case.distribution,
        )


def _keep_factor(tolerance: Tolerance | None) -> Tolerance | None:
    return None if tolerance is None else Tolerance(factor=tolerance.factor)


def _draw(value: SizeValue | SizeRange, source: random.Random) -> SizeValue:
    return value.draw(source) if isinstance(value, SizeRange) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`skipped` tells that it takes too much time or memory."""

    name: str
    passed: bool
    evidence: str
    skipped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """`case` is "" without cases."""

    problem: str
    workload: str
    checks: tuple[Check, ...]
    case: str = ""

    @property
    def admitted(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.passed)

    @property
    def skipped(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.skipped)
