"""Whether a reference can be the measure of others: it fits into memory, gives finite outputs, and the same ones again.

What fails here is the problem's fault or the machine's, never a candidate's: a ProblemError that says which.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from harness.domain import ProblemError
from harness.judge.compare import judge_outputs
from harness.judge.difference import find_difference
from harness.judge.memory_limit import USABLE_SHARE, count_free_bytes, is_out_of_memory, limit_memory
from harness.judge.truth import FlatOutputs, Truth, trust_outputs
from harness.problems.load import LoadedProblem


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
    free_bytes = count_free_bytes(device)
    if needed_bytes > free_bytes * USABLE_SHARE:
        raise ProblemError(
            f"{_name_file(loaded)}: judging it on {device} takes at least {needed_bytes >> 20} MiB, {free_bytes >> 20} "
            "MiB are free; end other programs, or choose the small workload"
        )


@contextmanager
def contain_memory(loaded: LoadedProblem, device: torch.device) -> Iterator[None]:
    """Turns a shortage of memory inside into a ProblemError (see `limit_memory`)."""
    try:
        with limit_memory(device):
            yield
    except (ProblemError, RuntimeError, MemoryError) as error:  # torch.OutOfMemoryError is a RuntimeError
        if not is_out_of_memory(error):
            raise
        raise ProblemError(
            f"{_name_file(loaded)}: the reference needs more memory than there is on {device} "
            f"({count_free_bytes(device) >> 20} MiB are free); choose the small workload, or make it need less: "
            f"{str(error)[-200:]}"
        ) from error


def _name_file(loaded: LoadedProblem) -> str:
    return f"{loaded.problem.suite}/{loaded.problem.name}.py"
