"""Tells whether values are as a contract says."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from harness.domain import InputContract
from harness.problems.inputs.tensors import find_marks, holds_whole_numbers, split_parts, without_repeats
from harness.problems.operators import INTEGERS

MOST_ELEMENTS = 1 << 26  # that are searched for a structure
MOST_TESTED = 1 << 33  # elements times rows of matrices, of a test for positive eigenvalues
SLACK = 64  # roundings, in sums of probabilities and positive definite matrices


def find_violation(value: Any, contract: InputContract) -> str:
    """Return "" if `value`, of one draw, is as the contract says."""
    if contract.kind in ("fixed", "as_drawn") or value is None:
        return ""
    if isinstance(value, bool | int | float):
        if contract.kind not in ("real", "integer", "index"):
            return f"a {type(value).__name__} is no tensor; state real, integer, index, fixed or as_drawn"
        value = torch.tensor(value, dtype=torch.float64)
    if not isinstance(value, Tensor) or value.layout is not torch.strided:
        return f"a value of type {type(value).__name__} has no such contract; state as_drawn"
    if value.is_meta or not value.numel():
        return ""
    tensor = without_repeats(value.detach())
    if contract.dim not in ("all", *range(-max(tensor.dim(), 1), max(tensor.dim(), 1))):
        return f"it has no dimension {contract.dim}"
    is_small_float = tensor.is_floating_point() and tensor.element_size() == 1  # which torch cannot compare
    return _CHECKS[contract.kind](tensor.float() if is_small_float else tensor, contract)


def find_structure(tensor: Tensor, seen: InputContract) -> InputContract:
    """Return the first structure that the values have, or `as_drawn`."""
    if tensor.numel() <= MOST_ELEMENTS:
        for contract in _list_structures(tensor, seen):
            if not find_violation(tensor, contract):
                return contract
    return replace(seen, kind="as_drawn")


def is_testable(tensor: Tensor) -> bool:
    """False for matrices of which a test whether they are positive definite takes long."""
    return tensor.dim() < 2 or tensor.numel() * tensor.size(-1) <= MOST_TESTED


def is_sorted(tensor: Tensor) -> bool:
    """True for rows of several values that are not all equal."""
    is_row = tensor.dim() > 0 and tensor.size(-1) > 2 and bool(tensor.min() < tensor.max())
    return is_row and not _check_sorted(tensor, InputContract(kind="sorted"))


def _list_structures(tensor: Tensor, seen: InputContract) -> Iterator[InputContract]:
    if tensor.dtype in INTEGERS:
        if tensor.numel() > 2 and tensor.min() < tensor.max():
            for dim in (-1, "all"):
                yield replace(seen, kind="sorted", dim=dim)
                yield replace(seen, kind="permutation", dim=dim)
        return
    yield from (replace(seen, kind="probabilities", dim=dim) for dim in range(-1, -1 - tensor.dim(), -1))
    if is_testable(tensor):
        yield replace(seen, kind="positive_definite")
    yield replace(seen, kind="symmetric")
    yield from (replace(seen, kind="triangular", structure=part) for part in ("lower", "upper"))
    yield replace(seen, kind="sorted")


def _check_range(tensor: Tensor, contract: InputContract) -> str:
    """Bounds are rounded to the dtype, as values are."""
    low, high = (None if bound is None else float(torch.tensor(bound, dtype=tensor.dtype))
                 for bound in (contract.low, contract.high))  # fmt: skip
    for part in split_parts(tensor) if contract.is_bounded else ():
        allowed = torch.ones_like(part, dtype=torch.bool)
        if low is not None:
            allowed &= part >= low
        if high is not None:
            allowed &= part <= high
        for value in contract.also:
            allowed |= part == value
        if not bool(allowed.all()):
            return f"{float(part[~allowed][0]):g} is beyond its range"
    return ""


def _check_real(tensor: Tensor, contract: InputContract) -> str:
    if contract.distinct and tensor.dim():
        ordered = tensor.sort(-1).values
        if bool((ordered[..., 1:] == ordered[..., :-1]).any()):
            return "two values of a row are equal"
    return _check_range(tensor, contract)


def _check_integers(tensor: Tensor, contract: InputContract) -> str:
    if tensor.is_floating_point() and not holds_whole_numbers(tensor):
        return "a value is no integer"
    return _check_range(tensor, contract)


def _check_mask(tensor: Tensor, contract: InputContract) -> str:
    marks, are_equal = find_marks(tensor), bool((tensor == tensor.flatten()[0]).all())
    if marks is None and not are_equal:
        return "a mask has at most two values"
    structure = contract.structure or "arbitrary"
    if structure == "arbitrary" or (are_equal and structure != "causal"):
        return ""
    if structure == "nonempty":
        return "" if bool((tensor == tensor.max()).any(-1).all()) else "a row has no element"
    is_first = tensor == tensor[..., :1]
    if structure == "lengths":
        is_same = bool((tensor[..., 0] == tensor.flatten()[0]).all())
        return (
            "" if is_same and not bool((is_first[..., 1:] & ~is_first[..., :-1]).any()) else "an element is not first"
        )
    return "" if tensor.dim() > 1 and _is_causal(tensor) else "it is not causal"


def _is_causal(tensor: Tensor) -> bool:
    marks = tensor == tensor[..., :1, :1]
    return bool((marks == torch.ones_like(marks).tril()).all()) and bool(
        (tensor[..., 0, 0] == tensor.flatten()[0]).all()
    )


def _check_one_hot(tensor: Tensor, contract: InputContract) -> str:
    rows = spread(tensor, contract)
    is_right = bool(((rows == 0) | (rows == 1)).all()) and bool((rows.sum(-1) == 1).all())
    return "" if is_right else "a vector has not exactly one 1 among zeros"


def _check_permutation(tensor: Tensor, contract: InputContract) -> str:
    rows = spread(tensor, contract)
    places = torch.arange(rows.size(-1), device=rows.device)
    return "" if bool((rows.sort(-1).values == places).all()) else "a number from 0 is missing, or occurs twice"


def _check_probabilities(tensor: Tensor, contract: InputContract) -> str:
    rows = spread(tensor, contract)
    if bool((rows < 0).any()):
        return "a value is negative"
    error = float((rows.double().sum(-1) - 1).abs().max())
    slack = SLACK * (torch.finfo(rows.dtype).eps if rows.is_floating_point() else 0)
    return "" if error <= slack else f"a sum differs from 1 by {error:.2g}"


def _check_sorted(tensor: Tensor, contract: InputContract) -> str:
    rows = spread(tensor, contract)
    if bool((rows[..., 1:] < rows[..., :-1]).any()):
        return "a value is less than the one before it"
    return _check_range(tensor, contract)


def _check_counts(tensor: Tensor, contract: InputContract) -> str:
    return _check_integers(tensor, replace(contract, low=contract.low or 0))


def _check_symmetric(tensor: Tensor, contract: InputContract) -> str:
    if not (tensor.dim() > 1 and tensor.size(-1) == tensor.size(-2)):
        return f"matrices of shape {tuple(tensor.shape)} are not square"
    limit = SLACK * torch.finfo(tensor.dtype).eps * float(tensor.abs().max()) if tensor.is_floating_point() else 0
    is_right = float((tensor - tensor.mT).abs().max()) <= limit
    return "" if is_right else "a matrix differs from its transpose"


def _check_positive_definite(tensor: Tensor, contract: InputContract) -> str:
    violation = _check_symmetric(tensor, contract)
    if violation:
        return violation
    return "a matrix is not positive definite" if torch.linalg.cholesky_ex(tensor.double()).info.any() else ""


def _check_triangular(tensor: Tensor, contract: InputContract) -> str:
    if tensor.dim() < 2:
        return "it has no matrices"
    kept = tensor.tril() if (contract.structure or "lower") == "lower" else tensor.triu()
    return (
        "" if bool((kept == tensor).all()) else f"an element beyond the {contract.structure or 'lower'} part is not 0"
    )


def find_range(given: Tensor, contract: InputContract) -> tuple[int, int]:
    """Return the stated bounds of integers, or else those of `given`."""
    low = int(given.min()) if contract.low is None else int(contract.low)
    return low, max(int(given.max()) if contract.high is None else int(contract.high), low)


def is_within(value: float, contract: InputContract) -> bool:
    low, high = contract.low, contract.high
    return (low is None or float(low) <= value) and (high is None or value <= float(high))


def spread(tensor: Tensor, contract: InputContract) -> Tensor:
    """View a tensor such that its last dimension is the one along which the contract holds."""
    if contract.dim == "all" or not tensor.dim():
        return tensor.reshape(1, -1)
    return tensor.movedim(contract.dim, -1)


_CHECKS: dict[str, Callable[[Tensor, InputContract], str]] = {
    "real": _check_real, "integer": _check_integers, "index": _check_integers, "mask": _check_mask,
    "one_hot": _check_one_hot, "permutation": _check_permutation, "probabilities": _check_probabilities,
    "sorted": _check_sorted, "counts": _check_counts, "symmetric": _check_symmetric,
    "positive_definite": _check_positive_definite, "triangular": _check_triangular,
}  # fmt: skip
