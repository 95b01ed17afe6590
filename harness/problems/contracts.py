"""Reads the setting `INPUTS` (docs/problems.md): what the arguments of `forward`, and each value among them, may be."""

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.domain import CONTRACT_KINDS, CONTRACT_STRUCTURES, InputContract, ProblemError
from harness.domain.errors import explain_unknown
from harness.protocol import list_leaves

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def read_contracts(given: Any, path: Path) -> tuple[InputContract, ...]:
    """Raises ProblemError."""
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        raise ProblemError(f"{path}: INPUTS must be a dict by argument of forward such as {{'x': 'real'}}: {given!r}")
    try:
        return tuple(_read(name, {"kind": one} if isinstance(one, str) else one) for name, one in given.items())
    except (TypeError, ValueError) as error:
        raise ProblemError(f"{path}: {error}") from error


def _read(name: str, given: Any) -> InputContract:
    where = f"INPUTS[{name!r}]"
    if not isinstance(given, dict) or not isinstance(given.get("kind"), str):
        example = "'real' or {'kind': 'index', 'below': 1000}"
        raise TypeError(f"{where} must be a kind, or a dict with a kind, such as {example}: {given!r}")
    kind = choose(given["kind"], tuple(CONTRACT_KINDS), where, "kind")
    options = {key: _READERS[choose(key, CONTRACT_KINDS[kind], where, f"option of {kind}")](value, kind, where)
               for key, value in given.items() if key != "kind"}  # fmt: skip
    if kind == "index":
        if "below" not in options:
            raise ValueError(f"{where}: an index needs 'below': the number of elements, or an expression of sizes")
        below = options.pop("below")
        options |= {"low": 0, "high": f"{below} - 1" if isinstance(below, str) else below - 1}
    low, high = (options.get(key) for key in ("low", "high"))
    if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
        raise ValueError(f"{where}: no value lies between low = {low} and high = {high}")
    return InputContract(kind=kind, argument=name, is_stated=True, **options)


def choose(value: Any, known: Sequence[str], where: str, what: str) -> str:
    """Raises ValueError."""
    if value in known:
        return str(value)
    raise ValueError(f"{where}: {explain_unknown(what, value, known)}")


def _read_bound(value: Any, kind: str, where: str) -> int | float | str:
    if isinstance(value, str):
        try:
            return ast.unparse(ast.parse(value, mode="eval"))
        except (SyntaxError, ValueError) as error:
            raise ValueError(f"{where}: {value!r} is no expression of the file's sizes") from error
    takes_fractions = kind in ("real", "sorted")
    if isinstance(value, bool) or not isinstance(value, int | float if takes_fractions else int):
        numbers = "a number" if takes_fractions else "an integer"
        raise TypeError(f"{where}: a bound must be {numbers}, or an expression of sizes as a string: {value!r}")
    return value


def _read_dim(value: Any, kind: str, where: str) -> int | str:
    if value != "all" and (isinstance(value, bool) or not isinstance(value, int)):
        raise TypeError(f"{where}: dim must be an integer or 'all': {value!r}")
    return value  # type: ignore[no-any-return]


def _read_also(value: Any, kind: str, where: str) -> tuple[int, ...]:
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    if any(isinstance(one, bool) or not isinstance(one, int) for one in values):
        raise TypeError(f"{where}: also must be an integer, or a list of integers: {value!r}")
    return values


def _read_distinct(value: Any, kind: str, where: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{where}: distinct must be True or False: {value!r}")
    return value


def _read_structure(value: Any, kind: str, where: str) -> str:
    return choose(value, CONTRACT_STRUCTURES[kind], where, "structure")


_READERS: dict[str, Callable[[Any, str, str], Any]] = {
    "low": _read_bound, "high": _read_bound, "below": _read_bound, "dim": _read_dim, "also": _read_also,
    "distinct": _read_distinct, "structure": _read_structure,
}  # fmt: skip


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
