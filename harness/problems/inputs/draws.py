"""Changes floating-point draws while `get_inputs` makes inputs of them, so that relations between values stay true."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from harness.domain import InputContract
from harness.problems.operators import OperatorWatch, name_operator

OF_BOTH_SIGNS = {"randn", "randn_like", "normal", "normal_", "cauchy_"}
POSITIVE = {"exponential_", "log_normal_", "_standard_gamma"}
UNIFORM = {"rand", "rand_like", "uniform_"}
FLOATING_DRAWS = OF_BOTH_SIGNS | POSITIVE | UNIFORM


@dataclass(frozen=True, slots=True)
class Draw:
    """`place` is the one among the floating draws of a run. The contract says which sizes and signs are possible."""

    place: int
    shape: torch.Size
    contract: InputContract


Change = Callable[[Tensor, InputContract, Generator], object]


class ChangedDraws(OperatorWatch):  # type: ignore[no-untyped-call]
    """Changes `draws` of one run in place."""

    def __init__(self, seed: int, draws: Collection[Draw], change: Change) -> None:
        super().__init__()
        self._seed, self._change = seed, change
        self._contracts = {(one.place, one.shape): one.contract for one in draws}
        self._count = 0
        self._generators: dict[torch.device, Generator] = {}

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if not is_floating_draw(operator, result):
            return
        contract, self._count = self._contracts.get((self._count, result.shape)), self._count + 1
        if contract is None or result.is_meta or not result.numel():
            return
        if result.device not in self._generators:
            self._generators[result.device] = Generator(device=result.device).manual_seed(self._seed)
        values = torch.view_as_real(result) if result.is_complex() else result
        self._change(values.view(1) if not values.dim() else values, contract, self._generators[result.device])


def is_floating_draw(operator: Any, result: Any) -> bool:
    is_number = isinstance(result, Tensor) and (result.is_floating_point() or result.is_complex())
    return is_number and name_operator(operator) in FLOATING_DRAWS


def describe_draw(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> InputContract:
    name = name_operator(operator)
    low: float | None = None if name in OF_BOTH_SIGNS else 0.0
    high = 1.0 if name in UNIFORM else None
    if name == "uniform_":
        given = dict(zip(("from", "to"), args[1:], strict=False)) | kwargs
        low, high = given.get("from", 0.0), given.get("to", 1.0)
    return InputContract(low=low, high=high, is_stated=True)
