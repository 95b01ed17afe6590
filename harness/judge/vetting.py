"""Whether a reference can be the measure of others: it fits into memory, gives finite outputs, and the same ones again.

What fails here is the problem's fault or the machine's, never a candidate's: a ProblemError that says which.
"""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from harness.domain import ProblemError
from harness.judge.compare import judge_outputs
from harness.judge.difference import find_difference
from harness.judge.memory import available_memory_bytes
from harness.judge.truth import FlatOutputs, Truth, trust_outputs
from harness.problems.load import LoadedProblem

USABLE_SHARE = 0.9  # of the memory that is free: the rest is for everybody else


def require_repeatable(loaded: LoadedProblem, first: FlatOutputs, second: FlatOutputs) -> None:
    """Raises ProblemError if two runs on the same inputs differ: by a bit, or by more than the tolerance where the
    problem is declared to be non-deterministic."""
    outcome, trial = judge_outputs(trust_outputs(first), second, loaded.problem.tolerance, "as_given")
    where = _name_file(loaded)
    if loaded.problem.nondeterministic:
        if outcome is not None:
            raise ProblemError(
                f"{where}: two runs of the reference on the same inputs differ by more than its own tolerance: "
                f"{trial.message}; seed what is random, or widen TOLERANCE"
            )
        return
    same_form = [t.shape for t in first.tensors] == [t.shape for t in second.tensors] and first.tree == second.tree
    difference = find_difference(second.tensors, first.tensors) if same_form else trial.message
    if difference is not None:
        raise ProblemError(
            f"{where}: two runs of the reference on the same inputs differ: {difference}; make it deterministic, or "
            "declare NONDETERMINISTIC = True in the file"
        )


def require_finite(loaded: LoadedProblem, truth: Truth) -> None:
    """Raises ProblemError for outputs that are NaN throughout, or infinite or NaN where float64 truth is finite."""
    for leaf in truth.leaves:
        bad = ~leaf.reference.isfinite()
        if not bad.any():
            continue
        if leaf.reference.isnan().all():
            raise ProblemError(f"{_name_file(loaded)}: {leaf.name} of the reference is NaN throughout; correct it")
        wrong = int((bad & leaf.exact.to(leaf.reference.dtype).isfinite()).sum())
        if wrong:
            raise ProblemError(
                f"{_name_file(loaded)}: {wrong} of {bad.numel()} elements of {leaf.name} of the reference are infinite "
                f"or NaN where float64 gives numbers; give it smaller inputs, or a wider dtype on the way"
            )


def has_only_numbers(outputs: FlatOutputs) -> bool:
    return all(bool(tensor.isfinite().all()) for tensor in outputs.tensors)


def require_memory(loaded: LoadedProblem, needed_bytes: int, device: torch.device) -> None:
    """Raises ProblemError if that much is more than the memory that is free."""
    free_bytes = _free_bytes(device)
    if needed_bytes > free_bytes * USABLE_SHARE:
        raise ProblemError(
            f"{_name_file(loaded)}: judging it on {device} takes at least {needed_bytes >> 20} MiB, {free_bytes >> 20} "
            "MiB are free; end other programs, or choose the small workload"
        )


@contextmanager
def contain_memory(loaded: LoadedProblem, device: torch.device) -> Iterator[None]:
    """Turns a shortage of memory inside into a ProblemError. On the CPU an allocation beyond what is free fails, while
    otherwise the kernel would end this process once the memory is written to."""
    try:
        if device.type == "cuda":
            yield
        else:
            with _ADDRESS_SPACE.limited():
                yield
    except (ProblemError, RuntimeError, MemoryError) as error:  # torch.OutOfMemoryError is a RuntimeError
        if not is_out_of_memory(error):
            raise
        raise ProblemError(
            f"{_name_file(loaded)}: the reference needs more memory than there is on {device} "
            f"({_free_bytes(device) >> 20} MiB are free); choose the small workload, or make it need less: "
            f"{str(error)[-200:]}"
        ) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Whether this, or what caused it, is a failed allocation."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error):
        return True
    return error.__cause__ is not None and is_out_of_memory(error.__cause__)


class _AddressSpace:
    """This process's limit on what it maps, lowered as long as anybody asks for it. The limit is the process's: with
    several threads the first sets it and the last restores it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._usual = resource.RLIM_INFINITY

    @contextmanager
    def limited(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._lower()
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._set(self._usual)

    def _lower(self) -> None:
        self._usual, hard = resource.getrlimit(resource.RLIMIT_AS)
        mapped_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        wanted = mapped_bytes + int(available_memory_bytes() * USABLE_SHARE)
        limits = [limit for limit in (wanted, self._usual, hard) if limit != resource.RLIM_INFINITY]
        self._set(min(limits))

    def _set(self, soft: int) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (soft, resource.getrlimit(resource.RLIMIT_AS)[1]))


_ADDRESS_SPACE = _AddressSpace()


def _free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return available_memory_bytes()


def _name_file(loaded: LoadedProblem) -> str:
    return f"{loaded.problem.suite}/{loaded.problem.name}.py"
