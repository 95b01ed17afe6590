"""Learns the traits of a problem's inputs from one watched run, and plans which kinds check correctness."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn

from harness.domain import InputContract, Problem, ProblemError
from harness.evaluation.correctness.truth import copy_tensors, run_reference, write_state
from harness.problems.inputs.inference import complete_contract
from harness.problems.inputs.kind import GIVEN, DerivedKind, InputKind
from harness.problems.inputs.kinds import list_declared
from harness.problems.inputs.rare import Draws
from harness.problems.inputs.tensors import PATTERNS, has_many_digits
from harness.problems.inputs.traits import InputTraits
from harness.problems.loading import LoadedProblem
from harness.problems.operators import OperatorCalls, OperatorUse, OperatorWatch, Terms, name_operator
from harness.protocol import KEPT_CALLS, list_leaves
from harness.sandbox.worker_client import describe
from harness.tensors.overlaps import find_overlapping
from harness.tensors.values import list_tensors, map_tensors

RERUNS = 3  # repetitions of earlier calls, where calls cost little; else 1
OTHER_SEED = 1  # of inputs that are compared with the given ones

DRAWS = {
    "rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "uniform_", "normal_", "random_", "ones",
    "zeros", "ones_like", "zeros_like",
}  # fmt: skip
ADDRESS_BITS = 48
COPYING = {"clone", "_to_copy", "_unsafe_view", "cat", "stack", "copy_"}
EMPTY = {"empty", "empty_like", "new_empty"}
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
    contracts = infer_contracts(loaded, inputs, use, draws, device)
    return InputTraits(
        problem=loaded.problem,
        is_known=True,
        use=use,
        contracts=tuple(contracts),
        draws_integers=draws.integers,
        fewest_drawn=draws.fewest,
        returns_floats=any(tensor.is_floating_point() or tensor.is_complex() for tensor in outputs),
        returns_16_bits=any(tensor.is_floating_point() and tensor.element_size() == 2 for tensor in outputs),
        has_state=bool(changing) or any(map(_is_floating, model.state_dict().values())),
        weights=tuple(one.detach() for one in model.parameters() if one.dim() == 2 and one.is_floating_point()),
    )


def infer_contracts(
    loaded: LoadedProblem, inputs: Sequence[Any], use: OperatorUse, draws: Draws, device: torch.device
) -> Iterator[InputContract]:
    """Complete those that the problem states. Gradients of outputs, the last of the inputs, are any real numbers."""
    ranges, tensors = _find_ranges(loaded, draws), count()
    others = loaded.make_inputs(OTHER_SEED, device)
    last = len(inputs) - loaded.problem.backward
    inputs, others = inputs[:last], others[:last]
    leaves = zip(loaded.list_contracts(inputs), list_leaves(inputs), list_leaves(others), strict=True)
    for contract, one, other in leaves:
        place = next(tensors) if isinstance(one, Tensor) else None
        drawn_from = None if place is None else ranges.get(place)
        yield complete_contract(contract, one, other, use, drawn_from=drawn_from, place=place)


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


def _find_ranges(loaded: LoadedProblem, draws: Draws) -> dict[int, tuple[float, float]]:
    """Watch `get_inputs` on the meta device; if it needs real values, treat all tensors as related."""
    watch = _DrawWatch()
    with suppress(ProblemError), watch:
        made = loaded.make_inputs(0, torch.device("meta"), watch=draws)
        return watch.find_ranges(list_tensors(made))
    return {}


def _is_floating(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The parts of draws that determine a tensor's memory, and what was made of `PROBE` in the same way."""

    origins: tuple[Tensor, ...]
    probe: Tensor = PROBE


class _DrawWatch(OperatorWatch):  # type: ignore[no-untyped-call]
    """Tracks the random draws that determine each tensor's memory through elementwise operators."""

    def __init__(self) -> None:
        super().__init__()
        self._sources: dict[int, _Source] = {}  # by memory
        self._structured: set[int] = set()  # memory; also what was read for it
        self._kept: list[Tensor] = []  # so that no memory is used again

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        name, read, made = name_operator(operator), list_tensors([args, kwargs]), list_tensors(result)
        self._kept += read + made
        if name in DRAWS:
            self._sources.update((_memory_of(one), _Source(origins=(one,))) for one in made)
        elif not operator.is_view and name not in EMPTY:
            sources, results = set(map(_memory_of, read)), set(map(_memory_of, made))
            source = None if sources & self._structured else self._follow(operator, args, kwargs)
            if source is None:
                self._structured |= sources | results
            else:
                self._sources |= dict.fromkeys(results, source)

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
        """Return those of tensors of which each element is drawn by itself."""
        free = [(at, one) for at, one in enumerate(tensors) if _memory_of(one) not in self._structured]
        found = {at: source for at, one in free if (source := self._find(one))}
        parts = [(at, one) for at, source in found.items() for one in source.origins]
        bases = {memory: at << ADDRESS_BITS for at, memory in enumerate({_memory_of(one) for _, one in parts})}
        starts = [bases[_memory_of(one)] + int(one.storage_offset()) * one.element_size() for _, one in parts]
        shared = {parts[at][0] for at in find_overlapping(starts, [describe(one) for _, one in parts])}
        return {at: _find_range(source.probe) for at, source in found.items() if at not in shared}


def _place(tensor: Tensor) -> Hashable:
    if tensor.layout is not torch.strided:
        return id(tensor)
    return _memory_of(tensor), tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype


def _find_range(probe: Tensor) -> tuple[float, float]:
    known = probe[~probe.isnan()]
    return (float(known.min()), float(known.max())) if len(known) else (-math.inf, math.inf)


def _memory_of(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata) if tensor.layout is torch.strided else id(tensor)


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
