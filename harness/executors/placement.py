"""Which GPU evaluates what, and which cores it has for that: pure functions and plain state, the same on every run."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

SPILL = 8  # evaluations by which a problem's GPU must be behind another before that one takes the problem, too
CORES_PER_GPU = (4, 8)  # at least, for one is the worker's and the one beside it stays empty; and at most


class Placement:
    """Spreads problems over devices of one kind. All candidates of a problem go to one device, which measures its noise
    floor once, unless that has far more to do than another."""

    def __init__(self, names: Iterable[str]) -> None:
        self._loads = dict.fromkeys(names, 0)
        self._homes: dict[str, list[str]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._loads)

    def choose(self, problem: str) -> str:
        """The device for one more evaluation of a problem. Raises LookupError where no device is left."""
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
        """One of its evaluations has ended, or goes elsewhere."""
        if name in self._loads:
            self._loads[name] -= 1

    def remove(self, name: str) -> None:
        """The device is lost."""
        self._loads.pop(name, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorePlan:
    """`devices` has the cores of each evaluator process. Where those are `shared` with builds, nothing is built while
    something is timed."""

    builds: frozenset[int]
    devices: tuple[frozenset[int], ...]
    shared: bool


def divide_cores(cores: Collection[int], devices: int, *, separate: bool) -> CorePlan:
    """Gives each of so many GPUs cores of its own, and builds the rest, at least half. Not `separate`, as on a CPU
    device, whose candidates use all cores, or with too few cores: all share all of them."""
    least, most = CORES_PER_GPU
    ordered = sorted(cores)
    share = min(most, len(ordered) // (2 * devices)) if separate else 0
    if share < least:
        return CorePlan(builds=frozenset(ordered), devices=(frozenset(ordered),) * devices, shared=True)
    own = [frozenset(ordered[index * share : (index + 1) * share]) for index in range(devices)]
    return CorePlan(builds=frozenset(ordered[devices * share :]), devices=tuple(own), shared=False)
