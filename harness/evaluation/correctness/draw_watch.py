"""Finds out which random draws the inputs are made of, and how."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from harness.domain import InputContract
from harness.problems.inputs.conformity import is_testable
from harness.problems.inputs.draws import FLOATING_DRAWS, POSITIVE, Draw, describe_draw, is_floating_draw
from harness.problems.operators import INTEGERS, OperatorUse, OperatorWatch, name_operator
from harness.sandbox.worker_client import describe
from harness.tensors.overlaps import find_overlapping
from harness.tensors.values import list_tensors, map_tensors

WITH_PARAMETERS = {"normal", "bernoulli", "bernoulli_", "poisson", "binomial", "_standard_gamma"}  # that may be tensors
NEVER_NEGATIVE = POSITIVE | {"poisson", "binomial", "geometric_"}
DRAWS = WITH_PARAMETERS | NEVER_NEGATIVE | {
    "rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "uniform_", "normal_", "cauchy_", "random_",
    "ones", "zeros", "ones_like", "zeros_like",
}  # fmt: skip
ADDRESS_BITS = 48
COPYING = {"clone", "_to_copy", "_unsafe_view", "cat", "stack", "copy_"}
CONVERTING = {"_to_copy", "copy_"}
EMPTY = {"empty", "empty_like", "new_empty"}
# Of other matrices than those that get_inputs makes, such as a factor beside a multiple of the identity, they may be
# ill-conditioned in another way than programs that solve otherwise.
SOLVING = {
    "_linalg_det", "_linalg_eigh", "_linalg_slogdet", "_linalg_solve_ex", "_linalg_svd", "cholesky_inverse",
    "cholesky_solve", "geqrf", "linalg_cholesky_ex", "linalg_eig", "linalg_eigvals", "linalg_inv_ex",
    "linalg_ldl_factor_ex", "linalg_lstsq", "linalg_lu", "linalg_lu_factor_ex", "linalg_lu_solve", "linalg_matrix_exp",
    "linalg_qr", "linalg_solve_triangular", "triangular_solve",
}  # fmt: skip
STRUCTURED = ("symmetric", "positive_definite", "triangular")  # if stated, values may be any with this structure
# Values whose images under a function show its range: each twice, of which every other one shows a change in part.
ONE = torch.ones((), dtype=torch.float64)
FAR = torch.tensor([-math.inf, -1e6, 1e6, math.inf], dtype=torch.float64)
PROBE = torch.cat([FAR, torch.arange(-2000, 2001) / 100]).repeat_interleave(2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The parts of draws that determine a tensor's memory, and what was made of `PROBE` in the same way."""

    origins: tuple[Tensor, ...]
    probe: Tensor = PROBE


class DrawWatch(OperatorWatch):  # type: ignore[no-untyped-call]
    """Tracks the draws that each tensor's memory depends on, and those that elementwise operators make it of."""

    def __init__(self) -> None:
        super().__init__()
        self._count = self._others = 0
        self._draws: dict[int, frozenset[Draw]] = {}  # by memory; other draws have places below 0
        self._sources: dict[int, _Source] = {}  # by memory
        self._structured: set[int] = set()  # memory
        self._converted: set[int] = set()  # memory of integers whose range is that of floating draws
        self._kept: list[Tensor] = []  # so that no memory is used again

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        name, read = name_operator(operator), list_tensors([args, kwargs])
        made = read if result is None else list_tensors(result)
        self._kept += read + made
        is_drawn = name in DRAWS and not (name in WITH_PARAMETERS and self._depends(read[name.endswith("_") :]))
        found = frozenset[Draw]() if is_drawn else self._depends(read)
        if is_drawn or name in FLOATING_DRAWS:
            place = self._take_place(operator, result)
            found |= {Draw(place, one.shape, describe_draw(operator, args, kwargs)) for one in made}
        for one in made:
            self._draws[_memory_of(one)] = found | self._depends([one])
        self._note_integers(name, read, made)
        if is_drawn:
            probe = PROBE.abs() if name in NEVER_NEGATIVE else PROBE
            self._sources.update((_memory_of(one), _Source(origins=(one,), probe=probe)) for one in made)
        elif not operator.is_view and name not in EMPTY:
            results = set(map(_memory_of, made))
            is_structured = not self._structured.isdisjoint(map(_memory_of, read))
            source = None if is_structured else self._follow(operator, args, kwargs)
            if source is None:
                self._structured |= results
            else:
                self._sources |= dict.fromkeys(results, source)

    def _take_place(self, operator: Any, result: Any) -> int:
        if is_floating_draw(operator, result):
            self._count += 1
            return self._count - 1
        self._others += 1
        return -self._others

    def _note_integers(self, name: str, read: Sequence[Tensor], made: Sequence[Tensor]) -> None:
        converts = name in CONVERTING and any(one.is_floating_point() for one in read)
        converts |= not self._converted.isdisjoint(map(_memory_of, read))
        for one in made:
            if converts and one.dtype in INTEGERS and one.element_size() > 1:
                self._converted.add(_memory_of(one))

    def _depends(self, tensors: Sequence[Tensor]) -> frozenset[Draw]:
        none = frozenset[Draw]()
        return none.union(*(self._draws.get(_memory_of(one), none) for one in tensors))

    def _follow(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Source | None:
        """Return None unless each element is made of one, and at most of single numbers beside it."""
        name, every = name_operator(operator), list_tensors([args, kwargs])
        read = list({_place(one): one for one in every}.values())
        main = [one for one in read if one.numel() > 1 or len(read) == 1]
        found = [source for one in main if (source := self._find(one)) is not None]
        origins = tuple(one for tensor in read if (source := self._find(tensor)) for one in source.origins)
        if not found or len(found) < len(main):
            return None
        if name in COPYING and len(read) == (1 if name == "copy_" else len(every)):
            return _Source(origins=origins, probe=found[0].probe if len(found) == 1 else PROBE)
        if len(found) > 1 or torch.Tag.pointwise not in operator.tags:
            return None
        before = found[0].probe
        place = _place(main[0])
        replaced = map_tensors([args, kwargs], lambda one: before.clone() if _place(one) == place else ONE)
        with suppress(Exception):  # of any operator
            probe = operator(*replaced[0], **replaced[1]).double()
            is_part = name.endswith("_") and main[0].nbytes < main[0].untyped_storage().nbytes()
            probe = torch.where(torch.arange(len(PROBE)) % 2 == 0, probe, before) if is_part else probe
            return _Source(origins=origins, probe=probe)
        return None

    def _find(self, tensor: Tensor) -> _Source | None:
        """Name the part of a draw that a view of it shows."""
        source = self._sources.get(_memory_of(tensor))
        if source is None or _memory_of(source.origins[0]) != _memory_of(tensor):
            return source
        return replace(source, origins=(tensor,))

    def find_ranges(self, tensors: Sequence[Tensor]) -> dict[int, tuple[float, float]]:
        """Return those of tensors of which each element is drawn by itself, and no other tensor depends on it."""
        free = [(at, one) for at, one in enumerate(tensors) if _memory_of(one) not in self._structured]
        found = {at: source for at, one in free if (source := self._find(one))}
        taken = self._depends([one for at, one in enumerate(tensors) if at not in found])
        parts = [(at, one) for at, source in found.items() for one in source.origins]
        bases = {memory: at << ADDRESS_BITS for at, memory in enumerate({_memory_of(one) for _, one in parts})}
        starts = [bases[_memory_of(one)] + int(one.storage_offset()) * one.element_size() for _, one in parts]
        shared = {parts[at][0] for at in find_overlapping(starts, [describe(one) for _, one in parts])}
        shared |= {at for at in found if not taken.isdisjoint(self._depends([tensors[at]]))}
        return {at: _find_range(source.probe) for at, source in found.items() if at not in shared}

    def mark_redrawn(
        self, contracts: Sequence[InputContract], tensors: Sequence[Tensor | None], use: OperatorUse
    ) -> tuple[list[InputContract], frozenset[Draw]]:
        """`tensors` are those that were watched, None for other values. Return the contracts, and the draws that may
        change: those of values that depend on each other, but none of those that have to stay. Draws between two
        bounds, such as those of masks, change only if there are no others.
        """
        if use.has(SOLVING):
            return list(contracts), frozenset()
        changed, kept = frozenset[Draw](), frozenset[Draw]()
        for contract, one, place in zip(contracts, tensors, _count_tensors(tensors), strict=True):
            if one is not None:
                stays = _stays(contract, one) or place in use.restricted or _memory_of(one) in self._converted
                kept |= self._depends([one]) if stays else frozenset()
                changed |= _choose_draws(self._depends([one])) if _is_related(contract, one) else frozenset()
        changed -= kept
        pairs = zip(contracts, tensors, strict=True)
        found = [replace(by, is_redrawn=one is not None and bool(changed & self._depends([one]))) for by, one in pairs]
        return found, changed


def _choose_draws(draws: frozenset[Draw]) -> frozenset[Draw]:
    floating = frozenset(one for one in draws if one.place >= 0)
    return frozenset(one for one in floating if one.contract.high is None) or floating


def _count_tensors(tensors: Sequence[Tensor | None]) -> Iterator[int]:
    place = 0
    for one in tensors:
        yield place
        place += one is not None


def _stays(contract: InputContract, tensor: Tensor) -> bool:
    """Symmetric matrices stay if they are too large to test whether they are positive definite."""
    if contract.kind in STRUCTURED:
        return contract.kind != "triangular" and not is_testable(tensor)
    return contract.is_converted or (contract.is_stated and contract.kind != "real")


def _is_related(contract: InputContract, tensor: Tensor) -> bool:
    """True for floating values that no kind changes one by one."""
    if contract.kind == "mask" or not (tensor.is_floating_point() or tensor.is_complex()):
        return False
    return contract.kind in STRUCTURED if contract.is_stated else contract.is_related or contract.kind != "real"


def _place(tensor: Tensor) -> Hashable:
    if tensor.layout is not torch.strided:
        return id(tensor)
    return _memory_of(tensor), tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype


def _find_range(probe: Tensor) -> tuple[float, float]:
    known = probe[~probe.isnan()]
    return (float(known.min()), float(known.max())) if len(known) else (-math.inf, math.inf)


def _memory_of(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata) if tensor.layout is torch.strided else id(tensor)
