"""KernelBench's file formats: problems, generated kernels, evaluation results, baseline times.

level<L>/<P>_<Name>.py                               a problem: `Model`, `get_inputs`, `get_init_inputs`
<any>.parquet                                        the same as a table: code, level, name, problem_id
level_<L>_problem_<P>_sample_<S>_kernel.py           one generated kernel of a run
eval_results.json                                    {"<P>": {...} or [{...}, ...]}, each with a "sample_id"
<hardware>/baseline_*.json                           {"level<L>": {"<P>_<Name>.py": {"mean": milliseconds, ...}}}
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from harness.domain import PROBLEM_SETTINGS, StoreError, UsageError
from harness.domain.files import raising, read_json_record, replace_text, replacing
from harness.formats.imported import Imported, ImportedProblem, read_text, write_bytes
from harness.problems.discovery import list_assigned_names
from harness.syntax import try_parse

CHECKOUT_FOLDER = "KernelBench"  # of levels, in a checkout
OTHER_FOLDER = "problems"  # of levels, elsewhere
RUNS_FOLDER = "runs"  # beside it
EVAL_RESULTS = "eval_results.json"
BASELINE_TIMES = "baseline_time_torch.json"
PARQUET_COLUMNS = ("code", "level", "name", "problem_id")
UNTIMED = -1.0  # the format's value for a missing time
# Settings appended to imported problems: implicit in KernelBench's evaluator.
SEMANTICS = """

# KernelBench runs modules as they are constructed, in training mode, and seeds torch for both models.
TRAINING = True
SEEDED_CALLS = True
"""
_LEVEL_FOLDER = re.compile(r"level(\d{1,6})")
_SUITE = re.compile(r"_level(\d{1,6})$")
_PROBLEM_FILE = re.compile(r"(\d{1,9})_(.+)", re.DOTALL)
_KERNEL_FILE = re.compile(r"level_(\d{1,6})_problem_(\d{1,9})_sample_(\d{1,9})_kernel\.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchProblem:
    """`name` is the file's, without number and suffix: `Square_matrix_multiplication_`."""

    level: int
    number: int
    name: str
    code: str

    @property
    def place(self) -> tuple[int, int]:
        return self.level, self.number

    @property
    def stem(self) -> str:
        return f"{self.number}_{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchKernel:
    level: int
    number: int
    sample: int
    source: str

    @property
    def file_name(self) -> str:
        return f"level_{self.level}_problem_{self.number}_sample_{self.sample}_kernel.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A kernel's result as reported by another evaluator. `speedup` is reported baseline time / reported time."""

    number: int
    sample: int
    compiled: bool
    correct: bool
    runtime_ms: float | None
    speedup: float | None
    hardware: str


def find(source: Path) -> Path | None:
    """Recognise problems, and the kernels of a run."""
    if source.is_file():
        return source if source.suffix == ".parquet" else None
    levels = [source, *source.glob("level*")]
    is_level = any(_LEVEL_FOLDER.fullmatch(level.name) and any(level.glob("[0-9]*_*.py")) for level in levels)
    if is_level or any(source.glob("level_*_problem_*_sample_*_kernel.py")):
        return source
    inner = (source / name for name in (CHECKOUT_FOLDER, OTHER_FOLDER) if (source / name).is_dir())
    return None if find_verified(source) else next(filter(None, map(find, inner)), None)


def read(source: Path, suite: str) -> Imported:
    """Raises UsageError."""
    found = read_problems(source)
    return Imported(
        problems=tuple(
            ImportedProblem(suite=name_suite(suite, one.level), name=one.stem, code=keep_semantics(one.code))
            for one in found
        )
    )


def read_problems(source: Path) -> tuple[BenchProblem, ...]:
    """Read level folders, one level folder or a Parquet file, by level and number. Raises UsageError."""
    if source.is_file():
        found = _read_parquet(source)
    elif _LEVEL_FOLDER.fullmatch(source.name):
        found = [*_read_level(source)]
    else:
        found = [problem for folder in sorted(source.glob("level*")) for problem in _read_level(folder)]
    if not found:
        raise UsageError(f"no problems in {source}: expected level1/1_Name.py and so on, or a Parquet file")
    twice = next((place for place, count in Counter(one.place for one in found).items() if count > 1), None)
    if twice:
        raise UsageError(f"{source} has two problems with number {twice[1]} in level {twice[0]}")
    return tuple(sorted(found, key=lambda problem: problem.place))


def write_problems(problems: Iterable[BenchProblem], target: Path) -> None:
    known = sorted(problems, key=lambda problem: problem.place)
    if target.suffix == ".parquet":
        _write_parquet(known, target)
        return
    for problem in known:
        write_bytes(target / f"level{problem.level}" / f"{problem.stem}.py", problem.code.encode())


def keep_semantics(code: str) -> str:
    """Append `SEMANTICS` unless the code has settings of this harness."""
    tree = try_parse(code)
    if tree is None:
        return code  # reported when the file is read as a problem
    return code if list_assigned_names(tree) & set(PROBLEM_SETTINGS) else code + SEMANTICS


def drop_semantics(code: str) -> str:
    return code.removesuffix(SEMANTICS)


def split_stem(stem: str) -> tuple[int, str] | None:
    """Return (number, name); None without a number."""
    match = _PROBLEM_FILE.fullmatch(stem)
    return (int(match[1]), match[2]) if match and str(int(match[1])) == match[1] else None


def name_suite(prefix: str, level: int) -> str:
    """Use one suite per level, since levels are scored separately."""
    return f"{prefix}_level{level}"


def find_level(suite: str) -> int | None:
    match = _SUITE.search(suite)
    return int(match[1]) if match else None


def number_names(names: Iterable[str]) -> dict[str, tuple[int, str]]:
    """Numbered names keep their number (the first of equal ones); others get the next free ones alphabetically."""
    numbered: dict[str, tuple[int, str]] = {}
    taken: set[int] = set()
    known = sorted(names)
    for name in known:
        parts = split_stem(name)
        if parts is not None and parts[0] not in taken:
            numbered[name] = parts
            taken.add(parts[0])
    free = (number for number in count(1) if number not in taken)
    return numbered | {name: (next(free), name) for name in known if name not in numbered}


def read_kernels(folder: Path) -> tuple[BenchKernel, ...]:
    found = []
    for path in folder.glob("level_*_kernel.py"):
        match = _KERNEL_FILE.fullmatch(path.name)
        if match is not None:
            level, number, sample = map(int, match.groups())
            found.append(BenchKernel(level=level, number=number, sample=sample, source=read_text(path)))
    return tuple(sorted(found, key=lambda kernel: (kernel.level, kernel.number, kernel.sample)))


def list_run_folders(checkout: Path) -> list[Path]:
    folders = sorted((checkout / RUNS_FOLDER).glob("*/"))
    return [folder for folder in folders if any(folder.glob("level_*_problem_*_sample_*_kernel.py"))]


def write_kernels(kernels: Iterable[BenchKernel], folder: Path) -> None:
    for kernel in kernels:
        write_bytes(folder / kernel.file_name, kernel.source.encode())


def list_claims(results: Mapping[str, Any], baseline: Mapping[str, Any], level: int) -> tuple[Claim, ...]:
    """Compute speedups from baseline times. Skip unreadable entries: they are only displayed."""
    times = _read_baseline(baseline.get(f"level{level}"))
    claims = []
    for key, value in results.items():
        for entry in value if isinstance(value, list) else [value]:
            if isinstance(entry, dict) and key.isdecimal():
                claims.append(_read_claim(int(key), entry, times.get(int(key))))
    return tuple(sorted(claims, key=lambda claim: (claim.number, claim.sample)))


def _read_level(folder: Path) -> Iterator[BenchProblem]:
    match = _LEVEL_FOLDER.fullmatch(folder.name)
    if match is None or not folder.is_dir():
        return
    for path in folder.glob("*.py"):
        parts = split_stem(path.stem)
        if parts is not None:
            yield BenchProblem(level=int(match[1]), number=parts[0], name=parts[1], code=read_text(path))


def _read_parquet(path: Path) -> list[BenchProblem]:
    pandas = _import_pandas()
    with raising(UsageError, f"read {path} as Parquet", also=(ValueError,)):
        frame = pandas.read_parquet(path)
    missing = [name for name in PARQUET_COLUMNS if name not in frame.columns]
    if missing:
        raise UsageError(f"{path} lacks the columns {', '.join(missing)}; it has {', '.join(map(str, frame.columns))}")
    return [_read_record(record, path) for record in frame[list(PARQUET_COLUMNS)].to_dict("records")]


def _read_record(record: Mapping[str, Any], path: Path) -> BenchProblem:
    try:
        number, level = int(record["problem_id"]), int(record["level"])
    except (TypeError, ValueError) as error:
        raise UsageError(f"{path}: expected whole numbers as level and problem_id, found {record}") from error
    name = str(record["name"]).removesuffix(".py")
    parts = split_stem(name)
    if parts is not None and parts[0] == number:
        name = parts[1]
    return BenchProblem(level=level, number=number, name=name, code=str(record["code"]))


def _write_parquet(problems: Sequence[BenchProblem], path: Path) -> None:
    pandas = _import_pandas()
    rows = [(problem.code, problem.level, problem.stem, problem.number) for problem in problems]
    frame = pandas.DataFrame(rows, columns=list(PARQUET_COLUMNS))
    with raising(UsageError, f"write {path}"), replacing(path) as partial:
        frame.to_parquet(partial, index=False)


def _import_pandas() -> Any:
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise UsageError(f"Parquet files need pandas and pyarrow ({error}): pip install pyarrow") from error
    return pandas


def _read_claim(number: int, entry: Mapping[str, Any], baseline_ms: float | None) -> Claim:
    metadata = entry.get("metadata")
    runtime_ms = _read_time(entry.get("runtime"))
    sample = entry.get("sample_id")
    return Claim(
        number=number,
        sample=sample if isinstance(sample, int) else 0,
        compiled=entry.get("compiled") is True,
        correct=entry.get("correctness") is True,
        runtime_ms=runtime_ms,
        speedup=baseline_ms / runtime_ms if baseline_ms and runtime_ms else None,
        hardware=str(metadata.get("hardware", "")) if isinstance(metadata, dict) else "",
    )


def _read_baseline(times: Any) -> dict[int, float]:
    found = {}
    for name, stats in times.items() if isinstance(times, dict) else ():
        parts = split_stem(str(name).removesuffix(".py"))
        mean_ms = _read_time(stats.get("mean")) if isinstance(stats, dict) else None
        if parts is not None and mean_ms is not None:
            found[parts[0]] = mean_ms
    return found


def _read_time(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and 0 < value < float("inf") else None


# KernelBench-Verified: KernelBench's levels with seven changed problems, a TF32 baseline and four input distributions.
# KernelBench/level<L>/<P>_<Name>.py    hidden_tests/level<L>/<P>_hidden.py
SCALES = ("scale_3", "scale_0.01", "scale_-1")
# Distributions in which the reference is not finite, and problems whose outputs are always zero, as its report states.
NOT_FINITE = {(1, 90): "scale_3", (1, 98): "scale_-1"}
ALWAYS_ZERO = ((2, 23), (2, 80), (2, 83))


def find_verified(source: Path) -> Path | None:
    is_verified = (source / "hidden_tests").is_dir() and any((source / CHECKOUT_FOLDER).glob("level*/*.py"))
    return source / CHECKOUT_FOLDER if is_verified else None


def read_verified(root: Path, suite: str) -> Imported:
    """Raises UsageError."""
    problems = read_problems(root)
    kept = [problem for problem in problems if problem.place not in ALWAYS_ZERO]
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
    names = [name for name in SCALES if name != NOT_FINITE.get(problem.place)]
    declared = ", ".join(f'"{name}"' for name in ("as_given", *names))
    comment = "# KernelBench-Verified measures against TF32, and scales the inputs."
    return f"{code}{comment}\nALLOW_TF32 = True\nDISTRIBUTIONS = ({declared})\n"


CLAIMS = "claims.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredClaims:
    """Results and baseline times of other evaluators, stored verbatim in the run's folder, never in `results/`:
    {"format": "kernelbench", "level": 1, "results": {...}, "baseline": {...}}
    """

    format: str
    level: int
    results: dict[str, Any] = field(default_factory=dict)
    baseline: dict[str, Any] = field(default_factory=dict)


def write_claims(run_dir: Path, claims: StoredClaims) -> None:
    """Replace earlier ones. Raises StoreError."""
    with raising(StoreError, f"write {run_dir / CLAIMS}"):
        replace_text(run_dir / CLAIMS, json.dumps(asdict(claims), indent=1) + "\n")


def read_claims(run_dir: Path) -> StoredClaims | None:
    """Return None without a file. Raises StoreError for a damaged one."""
    path, remedy = run_dir / CLAIMS, "import the run again, or remove the file"
    record = read_json_record(path, remedy)
    try:
        return None if record is None else StoredClaims(**record)
    except TypeError as error:
        raise StoreError(f"{path} is damaged ({error}): {remedy}") from error
