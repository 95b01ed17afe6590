"""Assigns evaluations to devices and cores to processes, deterministically."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

SPILL = 8  # a problem moves to a second GPU that has so many evaluations fewer to do
CORES_PER_GPU = (4, 8)  # minimum (one for the worker, its neighbour idle) and maximum


class Placement:
    """Balances load, but keeps a problem on one device, which then measures its noise floor once."""

    def __init__(self, names: Iterable[str]) -> None:
        self._loads = dict.fromkeys(names, 0)
        self._homes: dict[str, list[str]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._loads)

    def choose(self, problem: str) -> str:
        """Raises LookupError without devices."""
        if not self._loads:
            raise LookupError("no device is left")
        homes = [name for name in self._homes.get(problem, ()) if name in self._loads]
        idlest = min(self._loads, key=lambda name: self._loads[name])
        if not homes or min(self._loads[home] for home in homes) - self._loads[idlest] >= SPILL:
            homes.append(idlest)
        self._homes[problem] = homes
        chosen = min(homes, key=lambda name: self._loads[name])
        self._loads[chosen] += 1
        return chosen

    def load(self, name: str) -> int:
        return self._loads.get(name, 0)

    def finish(self, name: str) -> None:
        """One of its evaluations ended or moved."""
        if name in self._loads:
            self._loads[name] -= 1

    def remove(self, name: str) -> None:
        self._loads.pop(name, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorePlan:
    """`devices`: cores per evaluator process. `shared`: timing excludes builds."""

    builds: frozenset[int]
    devices: tuple[frozenset[int], ...]
    shared: bool


def divide_cores(cores: Collection[int], devices: int, *, separate: bool) -> CorePlan:
    """Separate cores per GPU, and half of all for builds. Shared with too few cores or if not `separate`, as on a CPU
    device, whose candidates use all."""
    least, most = CORES_PER_GPU
    ordered = sorted(cores)
    share = min(most, len(ordered) // (2 * devices)) if separate else 0
    if share < least:
        return CorePlan(builds=frozenset(ordered), devices=(frozenset(ordered),) * devices, shared=True)
    separated = [frozenset(ordered[index * share : (index + 1) * share]) for index in range(devices)]
    return CorePlan(builds=frozenset(ordered[devices * share :]), devices=tuple(separated), shared=False)
