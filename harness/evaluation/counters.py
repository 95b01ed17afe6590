"""Reads hardware counters in a worker under ncu (Nsight Compute), isolated. The candidate can forge its output."""

import csv
import math
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.domain import NCU_METRICS, Candidate, CandidateFailure, CounterReport, HarnessError, KernelCounters
from harness.domain.options import TimeLimits
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.integrity.attribution import CustomKernels, classify_kernel, name_kernel
from harness.evaluation.model_construction import construct_with_state
from harness.evaluation.model_workers import ModelWorkers
from harness.sandbox.forkserver import Profiler
from harness.sandbox.memory_limits import is_out_of_memory

MOST_LAUNCHES = 16  # each is repeated for every group of metrics
MOST_KERNELS = 8
MOST_NAME = 200
MOST_ERROR = 300
TIME = NCU_METRICS[0][0]
NO_NCU = "ncu (Nsight Compute) is not on PATH; it comes with the CUDA toolkit"
NO_PERMISSION = (
    "ncu may not read the GPU's performance counters (ERR_NVGPUCTRPERM). An administrator allows it to all users with "
    "the option NVreg_RestrictProfilingToAdminUsers=0 of the kernel module nvidia, in /etc/modprobe.d, and a reboot. "
    "To run as root is not enough: a candidate has no CAP_SYS_ADMIN"
)
_HEAD = re.compile(r'^"ID",', re.MULTILINE)
_ERROR = re.compile(r"^==ERROR== (.*)$", re.MULTILINE)


def find_ncu() -> str | None:
    folders = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    more = os.pathsep.join(str(Path(folder) / "bin") for folder in (*folders, "/usr/local/cuda") if folder)
    return shutil.which("ncu") or shutil.which("ncu", path=more)


def explain_obstacle() -> str:
    """Return why ncu cannot read counters on this machine; "" without a known reason."""
    if find_ncu() is None:
        return NO_NCU
    parameters = Path("/proc/driver/nvidia/params")
    reserved = parameters.exists() and "RmProfilingAdminOnly: 1" in parameters.read_text()
    return NO_PERMISSION if reserved else ""


def make_profiler(ncu: str, kernels: Sequence[str]) -> Profiler:
    """Count kernels whose names start with these, between cudaProfilerStart and cudaProfilerStop."""
    names = "|".join(re.escape(name) for name in kernels if len(name) <= MOST_NAME)
    command = (
        "env", "HOME=/tmp", "TMPDIR=/tmp", "LC_ALL=C.UTF-8",
        ncu, "--target-processes", "all", "--profile-from-start", "off", "--replay-mode", "kernel",
        "--clock-control", "none", "--launch-count", str(MOST_LAUNCHES),
        "--kernel-name-base", "function", "--kernel-name", f"regex:^({names})$", "--print-kernel-base", "demangled",
        "--metrics", ",".join(name for name, *_ in NCU_METRICS), "--csv", "--page", "raw", "--print-units", "base",
    )  # fmt: skip
    return Profiler(command=command, readable=_list_installation(Path(ncu)))


def _list_installation(ncu: Path) -> tuple[Path, ...]:
    """`ncu` may be a link or a script beside the CUDA toolkit."""
    real = ncu.resolve()
    folders = (ncu.parent, real.parent, Path("/opt/nvidia/nsight-compute"))
    return tuple(folder for folder in folders if folder.is_dir())


def explain_missing(printed: str) -> str:
    if "ERR_NVGPUCTRPERM" in printed:
        return NO_PERMISSION
    error = _ERROR.search(printed)
    return f"ncu failed: {make_plain(error[1])}" if error is not None else ""


def parse_counters(printed: str, is_custom: Callable[[str], bool]) -> tuple[KernelCounters, ...]:
    """Return each kernel's longest launch, by time. Raises ValueError for a malformed table."""
    head = _HEAD.search(printed)
    if head is None:
        return ()
    try:
        launches = list(_parse_launches(printed[head.start() :], is_custom))
    except csv.Error as error:
        raise ValueError(f"ncu printed a malformed table: {error}") from error
    by_kernel: dict[str, list[KernelCounters]] = {}
    for launch in launches:
        by_kernel.setdefault(launch.kernel, []).append(launch)
    longest = sorted((_combine(same) for same in by_kernel.values()), key=_read_time, reverse=True)
    return tuple(longest[:MOST_KERNELS])


def _parse_launches(table: str, is_custom: Callable[[str], bool]) -> Iterator[KernelCounters]:
    rows = csv.DictReader(table.splitlines(), strict=True)
    for _, row in zip(range(MOST_LAUNCHES + 1), rows, strict=False):  # the first one has the units
        kernel, grid, block = (row.get(name) or "" for name in ("Kernel Name", "Grid Size", "Block Size"))
        name = kernel.replace("<unnamed>::", "(anonymous namespace)::")
        metrics = tuple(_parse_metrics(row))
        if kernel and metrics and is_custom(name):
            yield KernelCounters(
                kernel=make_plain(name, MOST_NAME), grid=make_plain(grid, 40), block=make_plain(block, 40),
                launches=1, metrics=metrics,
            )  # fmt: skip


def _parse_metrics(row: dict[str, str]) -> Iterator[tuple[str, float]]:
    for name, *_ in NCU_METRICS:
        try:
            value = float((row.get(name) or "").replace(",", ""))
        except ValueError:
            continue  # "n/a": not on this GPU
        if math.isfinite(value):
            yield name, value


def _combine(same: Sequence[KernelCounters]) -> KernelCounters:
    longest = max(same, key=_read_time)
    return KernelCounters(
        kernel=longest.kernel, grid=longest.grid, block=longest.block, launches=len(same), metrics=longest.metrics
    )


def _read_time(one: KernelCounters) -> float:
    return dict(one.metrics).get(TIME, 0.0)


def make_plain(text: str, most: int = MOST_ERROR) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text[:most])


LIMIT_S = 18.0  # from the start of the worker to the end of the output
NO_ISOLATION = "ncu was not started: a program that it profiles needs namespaces around it"
NO_KERNEL = "ncu saw no launch of a custom kernel"


def count_in_hardware(
    workers: ModelWorkers,
    candidate: Candidate,
    reference: Reference,
    seed: int,
    custom: CustomKernels,
    *,
    limit_s: float = LIMIT_S,
) -> CounterReport:
    """Read the counters of one call, after a first one. A failure is a note and does not change the verdict."""
    forkserver = workers.ahead.forkserver
    obstacle = explain_obstacle() or ("" if forkserver.can_profile else NO_ISOLATION)
    if obstacle or not custom.names:
        return CounterReport(note=obstacle or "the candidate has no custom kernel")
    profiled = forkserver.profile_with(make_profiler(find_ncu() or "ncu", custom.names))
    watchdog = threading.Timer(limit_s, profiled.abort)
    watchdog.start()
    try:
        failure = _call(workers.start_from(profiled), candidate, reference, seed)
    finally:
        printed = profiled.finish(limit_s)
        late = not watchdog.is_alive()
        watchdog.cancel()
    return make_report(printed, custom, f"ncu was ended after {limit_s:g} s" if late else failure)


def _call(workers: ModelWorkers, candidate: Candidate, reference: Reference, seed: int) -> str:
    try:
        with workers.open_candidate(candidate, reference, limits=TimeLimits(), mode="count") as session:
            construct_with_state(session, reference)
            session.profile(reference.make_inputs(seed))
    except (CandidateFailure, HarnessError, OSError) as error:  # OSError: of /proc, once its processes are killed
        return f"the candidate failed under ncu: {make_plain(str(error))}"
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        return f"there was not enough memory: {make_plain(str(error))}"
    return ""


def make_report(printed: str, custom: CustomKernels, failure: str = "") -> CounterReport:
    def is_custom(kernel: str) -> bool:
        return custom.holds(name_kernel(kernel)) and classify_kernel("", kernel, custom) == "custom"

    try:
        kernels = parse_counters(printed, is_custom)
    except ValueError as error:
        return CounterReport(note=str(error))
    note = explain_missing(printed) or failure
    return CounterReport(kernels=kernels, note=note or ("" if kernels else NO_KERNEL))
