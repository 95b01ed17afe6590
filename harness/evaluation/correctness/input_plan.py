"""Learns the traits of a problem's inputs from one watched run, and plans which kinds check correctness."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn

from harness.domain import InputContract, Problem, ProblemError
from harness.evaluation.correctness.truth import copy_tensors, run_reference, write_state
from harness.problems.inputs.conformity import is_testable
from harness.problems.inputs.draws import FLOATING_DRAWS, POSITIVE, Draw, describe_draw, is_floating_draw
from harness.problems.inputs.inference import complete_contract
from harness.problems.inputs.kind import GIVEN, DerivedKind, InputKind
from harness.problems.inputs.kinds import list_declared
from harness.problems.inputs.rare import Draws
from harness.problems.inputs.tensors import PATTERNS, has_many_digits
from harness.problems.inputs.traits import InputTraits
from harness.problems.loading import LoadedProblem
from harness.problems.operators import INTEGERS, OperatorCalls, OperatorUse, OperatorWatch, Terms, name_operator
from harness.protocol import KEPT_CALLS, list_leaves
from harness.sandbox.worker_client import describe
from harness.tensors.overlaps import find_overlapping
from harness.tensors.values import count_bytes, list_tensors, map_tensors

RERUNS = 3  # repetitions of earlier calls, where calls cost little; else 1
OTHER_SEED = 1  # of inputs that are compared with the given ones
META = torch.device("meta")
MOST_WATCHED_BYTES = 1 << 30  # of inputs, whose intermediate results are kept as well
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


def learn_traits(
    loaded: LoadedProblem,
    model: nn.Module,
    inputs: Sequence[Any],
    outputs: Sequence[Tensor],
    *,
    changing: dict[str, Tensor],
    device: torch.device,
) -> InputTraits:
    """Return unknown traits if the problem allows only given inputs, or if the watched reference fails."""
    use = None if loaded.problem.only_as_given else watch_reference(loaded, model, inputs, changing, device)
    if use is None:
        return loaded.describe_unwatched(inputs)
    draws = Draws()
    contracts, redrawn = infer_contracts(loaded, inputs, use, draws, device)
    are_floats = [tensor.is_floating_point() or tensor.is_complex() for tensor in outputs]
    return InputTraits(
        problem=loaded.problem,
        is_known=True,
        use=use,
        contracts=tuple(contracts),
        redrawn=redrawn,
        draws_integers=draws.integers,
        fewest_drawn=draws.fewest,
        returns_floats=any(are_floats),
        returns_others=not all(are_floats),
        returns_16_bits=any(tensor.is_floating_point() and tensor.element_size() == 2 for tensor in outputs),
        has_state=bool(changing) or any(map(_is_floating, model.state_dict().values())),
        weights=tuple(one.detach() for one in model.parameters() if one.dim() == 2 and one.is_floating_point()),
    )


def infer_contracts(
    loaded: LoadedProblem, inputs: Sequence[Any], use: OperatorUse, draws: Draws, device: torch.device
) -> tuple[list[InputContract], frozenset[Draw]]:
    """Complete those that the problem states, and return the draws in `get_inputs` that may change. Gradients of
    outputs, the last of the inputs, are any real numbers.
    """
    watch, made = _watch_draws(loaded, inputs, draws, device)
    others = loaded.make_inputs(OTHER_SEED, device)
    last = len(inputs) - loaded.problem.backward
    inputs, others = inputs[:last], others[:last]
    ranges, tensors, contracts = watch.find_ranges(list_tensors(made)), count(), []
    leaves = zip(loaded.list_contracts(inputs), list_leaves(inputs), list_leaves(others), strict=True)
    for contract, one, other in leaves:
        place = next(tensors) if isinstance(one, Tensor) else None
        drawn_from = None if place is None else ranges.get(place)
        contracts.append(complete_contract(contract, one, other, use, drawn_from=drawn_from, place=place))
    watched = [one if isinstance(one, Tensor) else None for one in list_leaves(made)]
    return watch.mark_redrawn(contracts, watched, use) if watched else (contracts, frozenset())


def find_terms(traits: InputTraits, inputs: Sequence[Any]) -> Terms | None:
    """Return None if unknown. Values of few digits, as whole numbers, may all err in one direction when they are added,
    as truncated sums do.
    """
    if not traits.is_known:
        return None
    floats = [tensor for tensor in list_tensors(inputs) if tensor.dtype in PATTERNS and tensor.numel()]
    terms = traits.use.terms
    return terms if all(map(has_many_digits, floats)) else replace(terms, truncated=terms.added)


def watch_reference(
    loaded: LoadedProblem,
    model: nn.Module,
    inputs: Sequence[Any],
    changing: dict[str, Tensor],
    device: torch.device,
) -> OperatorUse | None:
    copies = copy_tensors(inputs, device)
    watch = OperatorCalls(copies)
    use = None
    with suppress(ProblemError):
        with watch:
            run_reference(loaded, model, copies)
        use = watch.use
    write_state(model, changing)
    return use


def _watch_draws(
    loaded: LoadedProblem, inputs: Sequence[Any], draws: Draws, device: torch.device
) -> tuple[DrawWatch, list[Any]]:
    """Watch `get_inputs`, and return what it made, nothing if it fails. Large tensors have no values."""
    is_large = count_bytes(list_tensors(inputs)) > MOST_WATCHED_BYTES
    watches = [DrawWatch()]

    def watch_again() -> Sequence[AbstractContextManager[object]]:
        watches.append(DrawWatch())
        return draws, watches[-1]

    with suppress(ProblemError):
        made = loaded.draw_arguments(0, META if is_large else device, watch_again)
        return watches[-1], list(made)
    return watches[0], []


def _is_floating(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def plan_kinds(problem: Problem, derived: Sequence[DerivedKind], *, is_small: bool) -> list[InputKind]:
    """List the kinds of all calls with fresh inputs but the first three.

    A small problem is called so often that a candidate which rotates as many output buffers as the worker keeps must
    overwrite one with other values.
    """
    used = (*list_declared(problem), *derived)
    kinds = [kind for kind in used for _ in range(kind.count_calls(is_small=is_small))]
    if is_small:
        kinds += [GIVEN] * max(KEPT_CALLS - RERUNS - len(kinds), 0)
    return kinds


def count_further_calls(problem: Problem, derived: Sequence[DerivedKind], *, is_small: bool) -> int:
    return len(plan_kinds(problem, derived, is_small=is_small)) + problem.dynamic_shapes + 2 * problem.dynamic_weights


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
