"""Learns the traits of a problem's inputs from one watched run, and plans which kinds check correctness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
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
from harness.tensors.values import list_tensors

RERUNS = 3  # repetitions of earlier calls, where calls cost little; else 1
OTHER_SEED = 1  # of inputs that are compared with the given ones

DRAWS = {
    "rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "uniform_", "normal_", "random_", "ones",
    "zeros", "ones_like", "zeros_like",
}  # fmt: skip
ELEMENTWISE = {
    "empty", "empty_like", "new_empty", "mul", "add", "sub", "rsub", "div", "neg", "clone", "detach", "_to_copy",
    "view", "reshape", "_unsafe_view", "transpose", "permute", "t", "unsqueeze", "squeeze",
}  # fmt: skip


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
    related, tensors = _find_related(loaded, inputs, draws), count()
    others = loaded.make_inputs(OTHER_SEED, device)
    last = len(inputs) - loaded.problem.backward
    inputs, others = inputs[:last], others[:last]
    leaves = zip(loaded.list_contracts(inputs), list_leaves(inputs), list_leaves(others), strict=True)
    for contract, one, other in leaves:
        is_related = isinstance(one, Tensor) and next(tensors) in related
        yield complete_contract(contract, one, other, use, is_related=is_related)


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


def _find_related(loaded: LoadedProblem, inputs: Sequence[Any], draws: Draws) -> frozenset[int]:
    """Watch `get_inputs` on the meta device; if it needs real values, treat all tensors as related."""
    watch = _DrawWatch()
    with suppress(ProblemError), watch:
        made = loaded.make_inputs(0, torch.device("meta"), watch=draws)
        return frozenset(watch.find_related(list_tensors(made)))
    return frozenset(range(len(list_tensors(inputs))))


def _is_floating(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


class _DrawWatch(OperatorWatch):  # type: ignore[no-untyped-call]
    """Tracks the random draws that determine each tensor's memory through elementwise operators."""

    def __init__(self) -> None:
        super().__init__()
        self._count = count()
        self._draws: dict[int, set[int]] = {}  # by memory
        self._structured: set[int] = set()  # memory; also what was read for it
        self._kept: list[Tensor] = []  # so that no memory is used again

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        name, read, made = name_operator(operator), list_tensors([args, kwargs]), list_tensors(result)
        self._kept += read + made
        sources, results = {_memory_of(tensor) for tensor in read}, {_memory_of(tensor) for tensor in made}
        is_known = name in DRAWS or (name.removesuffix("_") in ELEMENTWISE and len(read) <= 1)
        if not is_known or (sources & self._structured and name not in DRAWS):
            self._structured |= sources | results
        drawn = {next(self._count)} if name in DRAWS else set().union(*(self._draws.get(one, ()) for one in sources))
        self._draws.update(dict.fromkeys(results, drawn))

    def find_related(self, tensors: Sequence[Tensor]) -> Iterator[int]:
        draws = [self._draws.get(_memory_of(tensor), set()) for tensor in tensors]
        uses = Counter(one for drawn in draws for one in drawn)
        for place, (tensor, drawn) in enumerate(zip(tensors, draws, strict=True)):
            is_shared = any(uses[one] > 1 for one in drawn)
            if not drawn or is_shared or _memory_of(tensor) in self._structured:
                yield place


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
