"""Settings of evaluations by the commands and the API."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from harness.domain import EAGER, Precision, TimedBaseline, WorkloadName
from harness.domain.options import RunFolders, option
from harness.executors.settings import LocalSettings
from harness.pipeline.baselines import read_baselines


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
