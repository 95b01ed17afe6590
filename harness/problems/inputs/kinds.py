"""Lists all kinds of inputs."""

from collections.abc import Sequence
from typing import Any

import torch

from harness.domain import Problem, UsageError
from harness.problems.discovery import DISTRIBUTION_NAMES
from harness.problems.inputs.biased import Biased
from harness.problems.inputs.declared import DISTRIBUTIONS, Mixed, Padded, list_stress
from harness.problems.inputs.general import General
from harness.problems.inputs.kind import GIVEN, DerivedKind, InputKind, Inputs
from harness.problems.inputs.ordered import Arranged, Ordered
from harness.problems.inputs.peaked import Peaked
from harness.problems.inputs.rare import Compared, Rare
from harness.problems.inputs.scaled import Contrasted, Scaled, Shifted
from harness.problems.inputs.sparse import Sparse
from harness.problems.inputs.tensors import draw
from harness.problems.inputs.traits import InputTraits
from harness.problems.inputs.varied import Varied

MIXED, GENERAL = Mixed(), General()
DECLARED: tuple[InputKind, ...] = (GIVEN, *DISTRIBUTIONS, Padded(), MIXED)
DERIVED: tuple[DerivedKind, ...] = (
    Ordered(), Arranged(), Biased(), Varied(), Scaled(), Contrasted(), Shifted(), Peaked(), Sparse(), GENERAL, Rare(),
    Compared(),
)  # fmt: skip
_BY_NAME: dict[str, InputKind] = {kind.name: kind for kind in (*DECLARED, *DERIVED)}


def find_kind(name: str) -> InputKind:
    if name not in _BY_NAME:
        raise UsageError(f"unknown distribution {name!r}; choose among {', '.join(DISTRIBUTION_NAMES)}")
    return _BY_NAME[name]


def change_inputs(
    kind: InputKind, base: InputKind, inputs: Inputs, traits: InputTraits, generator: torch.Generator
) -> Inputs:
    """`base` is the distribution of a case."""
    if isinstance(kind, DerivedKind) and kind.is_combined and draw(2, generator):
        inputs = GENERAL.change_discrete(inputs, traits, generator)
    for one in (kind, base) if kind.is_of_draws else (base, kind):
        inputs = one.change(inputs, traits, generator)
    return inputs


def list_declared(problem: Problem) -> tuple[InputKind, ...]:
    declared = [find_kind(name) for name in problem.distributions if name != GIVEN.name]
    return (*declared, MIXED) if list_stress(problem) else tuple(declared)


def list_derived(traits: InputTraits, inputs: Sequence[Any]) -> tuple[DerivedKind, ...]:
    return tuple(kind for kind in DERIVED if traits.is_known and kind.applies(traits, inputs))
