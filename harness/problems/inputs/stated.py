"""Finds the contract of each value among the arguments of `forward`."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.domain import InputContract
from harness.problems.contracts import choose
from harness.protocol import list_leaves

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class StatedInputs:
    """The contracts of a problem, with the sizes of one workload."""

    def __init__(
        self, contracts: Sequence[InputContract], forward: Callable[..., Any], sizes: Mapping[str, Any]
    ) -> None:
        """Raises ValueError."""
        self._parameters = _list_parameters(forward)
        names = [one.name for one in self._parameters]
        for one in contracts:
            choose(one.argument, names, "INPUTS", "argument of forward")
        self._stated = {one.argument: _resolve(one, sizes) for one in contracts}

    def list_for(self, inputs: Sequence[Any]) -> list[InputContract]:
        """Return one for each value in `inputs`; without a statement, and beyond the arguments, any real number."""
        found = []
        for place, value in enumerate(inputs):
            name = self._name(place)
            contract = self._stated.get(name, InputContract(argument=name or f"input {place}"))
            found += [contract for _ in list_leaves(value)]
        return found

    def _name(self, place: int) -> str:
        if place < len(self._parameters):
            return self._parameters[place].name
        last = self._parameters[-1:]
        return last[0].name if last and last[0].kind in _VARIADIC else ""


def _list_parameters(forward: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(forward).parameters.values())[1:]  # without self
    except (TypeError, ValueError):  # it has no signature
        return []


def _resolve(contract: InputContract, sizes: Mapping[str, Any]) -> InputContract:
    where = f"INPUTS[{contract.argument!r}]"
    low, high = (_compute(bound, sizes, where) for bound in (contract.low, contract.high))
    if low is not None and high is not None and low > high:
        raise ValueError(f"{where}: no value lies between low = {low} and high = {high}")
    return replace(contract, low=low, high=high)


def _compute(bound: Any, sizes: Mapping[str, Any], where: str) -> Any:
    if not isinstance(bound, str):
        return bound
    try:
        value = eval(bound, {"__builtins__": {}}, dict(sizes))
    except Exception as error:  # of an expression of the file
        raise ValueError(f"{where}: {bound!r} raised {type(error).__name__}: {error}; use sizes of the file") from error
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{where}: {bound!r} is {value!r}, not a number")
    return value
