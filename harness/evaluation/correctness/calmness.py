"""Whether outputs depend so little on roundings of the inputs that every legitimate program is near them."""

from __future__ import annotations

from harness.domain import BIASED, SPARSE
from harness.evaluation.correctness.comparison import are_surely_close, compare_outputs
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.correctness.reference_checks import has_only_numbers
from harness.evaluation.correctness.truth import Expected, keep_on_host
from harness.problems.own_values import perturb
from harness.sandbox.tensors.outputs import FlatOutputs

# Largest share of the allowed error that one rounding of the inputs may cause. In 16-bit formats the roundings of
# inputs and outputs are half of what is allowed.
CALM, CALM_IN_16_BITS = 0.5, 1.0


def compute_perturbed(reference: Reference, seed: int, step: str) -> FlatOutputs | None:
    """In host memory where the memory plan has no place for them. None for `BIASED`, whose values are near the given
    ones. Raises ProblemError."""
    if step == BIASED:
        return None
    inputs = reference.make_inputs(seed, step)
    perturb(inputs, seed)
    outputs = reference.outputs_of(inputs)
    return outputs if reference.compares_own_first else keep_on_host(outputs)


def is_calm(reference: Reference, expected: Expected, perturbed: FlatOutputs | None, step: str) -> bool:
    if not has_only_numbers(expected.form.reference_outputs):
        return False
    tolerance = reference.loaded.problem.tolerance
    if perturbed is None or (expected.own is not None and are_surely_close(expected.own, perturbed, tolerance)):
        return True  # within a fifth of the limit, and an eighth for the reference's own error
    trial = compare_outputs(expected.truth, perturbed, tolerance, step, by_peak=step == SPARSE)[1]
    is_narrow = all(leaf.reference.element_size() == 2 for leaf in expected.truth.leaves)
    return trial.worst_ratio is not None and trial.worst_ratio <= (CALM_IN_16_BITS if is_narrow else CALM)
