"""Which calls with inputs near the given ones (`harness.problems.own_values`) a problem has, beside those that it
declares. Where legitimate programs may differ there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn

from harness.domain import ALTERED, BIASED, NEGATED, RARE, SPARSE, STRETCHED, ProblemError
from harness.evaluation.correctness.hidden_work import VALUE_RESTRICTED, HiddenWork
from harness.evaluation.correctness.truth import copy_tensors, run_reference, write_state
from harness.problems.distributions import floating_tensors
from harness.problems.hidden_values import RareDraws, find_constants
from harness.problems.loading import LoadedProblem
from harness.problems.operators import OperatorCalls, OperatorWatch, name_operator
from harness.problems.own_values import PATTERNS, has_negative
from harness.tensors.trees import list_tensors

# Sums of more terms are not tried with `biased` values: each of 256 threads adds so many of them that float32 sums lose
# as much as the roundings to narrower formats that these values reveal.
MOST_TERMS = 1 << 17
PARAMETERS_SHARE = 16  # a draw of at most one in so many elements of the largest input is no data
OTHER_SEED = 1  # of inputs that are compared with the given ones
# Their results depend on which of two close values is larger.
ORDERING = {
    "sort", "argsort", "topk", "argmax", "argmin", "kthvalue", "median", "mode", "searchsorted", "bucketize", "histc",
    "unique_dim", "_unique2", "multinomial", "bernoulli", "bernoulli_", "poisson", "binomial",
}  # fmt: skip
DRAWS = {
    "rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "uniform_", "normal_", "random_", "ones",
    "zeros", "ones_like", "zeros_like",
}  # fmt: skip
ELEMENTWISE = {
    "empty", "empty_like", "new_empty", "mul", "add", "sub", "rsub", "div", "neg", "clone", "detach", "_to_copy",
    "view", "reshape", "_unsafe_view", "transpose", "permute", "t", "unsqueeze", "squeeze",
}  # fmt: skip
# Their results are undefined if integers that were unique no longer are.
SCATTERING = {
    "index_copy", "index_put", "_index_put_impl", "index_fill", "scatter", "masked_scatter", "put", "slice_scatter",
}  # fmt: skip


def list_own_steps(
    loaded: LoadedProblem,
    model: nn.Module,
    inputs: Sequence[Any],
    outputs: Sequence[Tensor],
    *,
    changing: dict[str, Tensor],
    device: torch.device,
) -> tuple[str, ...]:
    """Runs the reference once. `sparse` only without weights: those may make nearly constant values of it, of which
    legitimate programs compute the variance with different accuracy. Inputs with structure (triangular, symmetric,
    normalised, absolute values, copies) keep it, since legitimate programs may rely on it."""
    problem = loaded.problem
    if problem.only_as_given:
        return ()
    copies = copy_tensors(inputs, device)
    watch = OperatorCalls() if problem.stress_distributions else HiddenWork(copies)
    if not _runs(loaded, model, copies, changing, watch):
        return ()
    del copies
    draws = _watch_draws(loaded, inputs)
    hidden = (*_find_altered(loaded, inputs, watch, device), *_find_rare(draws, inputs))
    if not _has_usable(inputs) or any(call.converts_to_integers for call in watch.calls):
        return hidden
    if any(call.name in ORDERING and call.overload != "bernoulli_.float" for call in watch.calls):  # that is dropout
        moved = watch.list_shifts() if isinstance(watch, HiddenWork) else ()
        return hidden if _restricts_values(watch) else (NEGATED, STRETCHED, *moved, *hidden)
    if not any(tensor.is_floating_point() or tensor.is_complex() for tensor in outputs):
        return hidden
    loaded.structured_inputs[:] = draws.structured
    unstructured = [one for one in floating_tensors(loaded.list_unstructured(inputs)) if one.dtype in PATTERNS]
    has_one_sign = not all(map(has_negative, unstructured))
    # Declared values reveal it, too.
    revealing = watch.list_steps(has_one_sign=has_one_sign) if isinstance(watch, HiddenWork) else ()
    has_weights = any(tensor.is_floating_point() for tensor in model.state_dict().values() if torch.is_tensor(tensor))
    sparse = () if has_weights or changing or problem.backward else (SPARSE,)
    biased = () if any(call.terms > MOST_TERMS for call in watch.calls) else (BIASED,)
    return (*biased, *(revealing + sparse if unstructured else ()), *hidden)


def _find_altered(
    loaded: LoadedProblem, inputs: Sequence[Any], watch: OperatorCalls, device: torch.device
) -> tuple[str, ...]:
    """Not where other values may be invalid: as indices, or as probabilities."""
    if _restricts_values(watch) or any(call.converts_to_integers for call in watch.calls):
        return ()
    scatters = any(call.name.removesuffix("_") in SCATTERING for call in watch.calls)
    other = loaded.make_inputs(OTHER_SEED, device)
    loaded.constant_inputs[:] = find_constants(inputs, other, with_integers=not scatters)
    return (ALTERED,) if loaded.constant_inputs else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draws:
    """What `get_inputs` draws, as far as it runs without real values. `structured`: positions of the tensors whose
    elements are not each drawn by themselves, and independently of other tensors."""

    rare: RareDraws
    structured: tuple[int, ...]


class _DrawWatch(OperatorWatch):  # type: ignore[no-untyped-call]
    """Which draws the memory of each tensor comes from, if only by operators that change each element by itself."""

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

    def find_structured(self, tensors: Sequence[Tensor]) -> Iterator[int]:
        draws = [self._draws.get(_memory_of(tensor), set()) for tensor in tensors]
        uses = Counter(one for drawn in draws for one in drawn)
        for place, (tensor, drawn) in enumerate(zip(tensors, draws, strict=True)):
            is_shared = any(uses[one] > 1 for one in drawn)
            if not drawn or is_shared or _memory_of(tensor) in self._structured:
                yield place


def _memory_of(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata) if tensor.layout is torch.strided else id(tensor)


def _watch_draws(loaded: LoadedProblem, inputs: Sequence[Any]) -> _Draws:
    watch, rare = _DrawWatch(), RareDraws()
    structured = tuple(range(len(list_tensors(inputs))))
    with suppress(ProblemError), watch:
        structured = tuple(watch.find_structured(list_tensors(loaded.make_inputs(0, torch.device("meta"), draws=rare))))
    return _Draws(rare=rare, structured=structured)


def _find_rare(draws: _Draws, inputs: Sequence[Any]) -> tuple[str, ...]:
    """Where integers, masks, or parameters beside larger data are drawn."""
    tensors, rare = list_tensors(inputs), draws.rare
    has_others = any(not tensor.is_floating_point() for tensor in tensors)
    has_few = rare.fewest * PARAMETERS_SHARE <= max((tensor.numel() for tensor in tensors), default=0)
    return (RARE,) if rare.integers or (rare.fewest and (has_others or has_few)) else ()


def _has_usable(inputs: Sequence[Any]) -> bool:
    return any(tensor.dtype in PATTERNS for tensor in list_tensors(inputs))


def _runs(
    loaded: LoadedProblem, model: nn.Module, inputs: Sequence[Any], changing: dict[str, Tensor], watch: OperatorCalls
) -> bool:
    """Whether the reference runs while it is watched."""
    ran = False
    with suppress(ProblemError):
        with watch:
            run_reference(loaded, model, inputs)
        ran = True
    write_state(model, changing)
    return ran


def _restricts_values(watch: OperatorCalls) -> bool:
    return any(call.overload in VALUE_RESTRICTED for call in watch.calls)
