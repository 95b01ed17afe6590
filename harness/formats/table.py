"""The formats that `harness import` reads, and how a folder is recognised."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.domain import UsageError
from harness.formats import gpu_mode
from harness.formats.definitions import folders
from harness.formats.imported import FormatName, Imported
from harness.formats.kernelbench import format as kernelbench


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """`find` returns the folder to `read` for a folder of this format, else None. `suite` is the default name."""

    name: FormatName
    suite: str
    recognised_by: str
    find: Callable[[Path], Path | None]
    read: Callable[[Path, str], Imported]


FORMATS = (
    Format(
        name="kernelbench-verified",
        suite="kernelbench_verified",
        recognised_by="hidden_tests/ beside KernelBench/level1/",
        find=kernelbench.find_verified,
        read=kernelbench.read_verified,
    ),
    Format(
        name="kernelbench",
        suite="kernelbench",
        recognised_by="level1/1_Name.py, also in KernelBench/ or problems/; a Parquet file; or a run's "
        "level_1_problem_1_sample_0_kernel.py",
        find=kernelbench.find,
        read=kernelbench.read,
    ),
    Format(
        name="flashinfer-bench",
        suite="flashinfer",
        recognised_by="definitions/**/*.json",
        find=folders.find_flashinfer,
        read=folders.read_flashinfer,
    ),
    Format(
        name="sol-execbench",
        suite="sol_execbench",
        recognised_by="definition.json beside workload.jsonl",
        find=folders.find_sol_execbench,
        read=folders.read_sol_execbench,
    ),
    Format(
        name="gpu-mode",
        suite="gpu_mode",
        recognised_by="task.yml beside reference.py",
        find=gpu_mode.find,
        read=gpu_mode.read,
    ),
)


def recognise(source: Path, asked: FormatName | None) -> tuple[Format, Path]:
    """Return the format, and the folder (or file) to read. Raises UsageError."""
    if not source.exists():
        raise UsageError(f"{source} does not exist: give a folder or a Parquet file")
    found = [(one, root) for one in FORMATS if asked in (None, one.name) and (root := one.find(source)) is not None]
    if len(found) == 1:
        return found[0]
    if found:
        names = " and ".join(one.name for one, _ in found)
        raise UsageError(f"{source} has the files of {names}: choose one with --format")
    known = [f"\n  {one.name}: {one.recognised_by}" for one in FORMATS if asked in (None, one.name)]
    fault = "in no known format" if asked is None else f"not in the format {asked}"
    raise UsageError(f"{source} is {fault}. Recognised are{''.join(known)}")
