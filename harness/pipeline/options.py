"""Settings of evaluations by the commands and the API, with the baselines that they name."""

import ast
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, Literal, get_args

from harness.domain import EAGER, LIBRARY_CLASS, Baseline, Precision, TimedBaseline, UsageError, WorkloadName
from harness.domain.errors import explain_unknown
from harness.domain.files import raising, read_python
from harness.domain.options import RunFolders, option
from harness.executors.settings import LocalSettings
from harness.syntax import parse_python

ENTRIES = ("ModelNew", "Model")  # of a user's module, the first that it defines
_KNOWN = get_args(Baseline)


def read_baselines(names: str) -> tuple[TimedBaseline, ...]:
    """`names` are separated by commas. Raises UsageError."""
    found = tuple(_read_baseline(name.strip()) for name in names.split(","))
    repeated = [one.name for at, one in enumerate(found) if one in found[:at]]
    if repeated:
        raise UsageError(f"--baseline names {repeated[0]} twice")
    return found


def _read_baseline(name: str) -> TimedBaseline:
    if name in _KNOWN:
        return TimedBaseline(name=name, entry=LIBRARY_CLASS if name == "library" else "Model")
    path = Path(name)
    if path.suffix != ".py":
        raise UsageError(f"{explain_unknown('baseline', name, _KNOWN)}, or name a Python file")
    with raising(UsageError, f"read the baseline {path}", also=(ValueError, SyntaxError)):
        source = read_python(path)
        classes = {one.name for one in parse_python(source).body if isinstance(one, ast.ClassDef)}
    entry = next((one for one in ENTRIES if one in classes), None)
    if entry is None:
        raise UsageError(f"the baseline {path} defines no class {' or '.join(ENTRIES)}")
    digest = sha256(source.encode()).hexdigest()[:8]
    return TimedBaseline(name=f"{path.stem}@{digest}", entry=entry, source=source)


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(LocalSettings, RunFolders):
    """`dtype` None keeps the run's, else the problem's. `address` and `chip` are those of the Ray cluster."""

    title: ClassVar[str] = "Evaluation"

    workload: WorkloadName | None = option(
        None, "Sizes; full is scored. [default: full; if emulated, small or reduced]"
    )
    dtype: Precision | None = option(
        None, "Dtype of floating inputs and weights; tf32: fp32 with TF32 products. [default: the run's or problem's]"
    )
    baselines: tuple[TimedBaseline, ...] = option(
        EAGER,
        "Comma-separated: eager, eager-tf32, compile, compile-max-autotune, library, a Python file. The first ranks.",
        key="baseline",
        kind=str,
        text="eager",
        parse=read_baselines,
        metavar="NAMES",
    )
    again: bool = option(False, "Re-evaluate finished candidates.", "--again")
    executor: Literal["local", "ray"] = option("local", "local: devices of this machine; ray: of a Ray cluster.")
    address: str = option("auto", "With --executor ray: the cluster; local starts one.", metavar="ADDRESS")
    chip: str | None = option(None, "With --executor ray: part of the GPU's name.", metavar="NAME")
    known_solutions: Path | None = option(
        None, "Warn of candidates whose program or kernel is in this folder.", metavar="DIR"
    )
    results_dir: Path = option(Path("results"), "Folder of results.", panel="Paths", metavar="DIR")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Candidates with a stored verdict that `last_failed` chooses are evaluated again with `EvaluateOptions.again`."""

    title: ClassVar[str] = "Evaluation"
    has_variables: ClassVar[bool] = False

    fails_fast: bool = option(
        False, "Stop after the first candidate that is not correct.", "-x", "--fail-fast", key="fail_fast"
    )
    last_failed: bool = option(False, "Only candidates whose last verdict is not correct, again.", "--last-failed")


EVERY_TASK = Selection()
