"""Groups stored rows by sample and turn, and finds the best turn."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Self, TypeVar

from harness.domain import NO_DEVICE, Outcome, chip_of
from harness.store.columns import ResultRow

SampleId = tuple[str, str, int]  # run, problem, sample
Turns = dict[SampleId, dict[int, ResultRow]]


class Section(NamedTuple):
    suite: str
    workload: str
    dtype: str  # chosen for inputs and weights; "" as in the problems
    language: str
    device: str  # its kind: the GPUs of one chip are alike, whatever their numbers
    baseline: str
    chip: str  # the GPU or CPU; "" if nothing was timed (emulated, no device)


class GroupKey(NamedTuple):
    model: str
    prompt: str
    language: str
    device: str
    suite: str
    workload: str
    baseline: str
    chip: str
    turns: int = 1  # the most of any sample of the run
    dtype: str = ""

    @property
    def section(self) -> Section:
        return Section(*(getattr(self, name) for name in Section._fields))


_Group = TypeVar("_Group", Section, GroupKey)


def section_of(row: ResultRow) -> Section:
    kind, chip = row.device.partition(":")[0], chip_of(row.device, row.hardware)
    return Section(row.suite, row.workload, row.dtype, row.language, kind, row.baseline, chip)


def group_of(row: ResultRow, turns: int) -> GroupKey:
    suite, workload, dtype, language, kind, baseline, chip = section_of(row)
    return GroupKey(row.model, row.prompt, language, kind, suite, workload, baseline, chip, turns, dtype)


def group_samples(rows: Iterable[ResultRow], group_by: Callable[[ResultRow], _Group]) -> dict[_Group, Turns]:
    """Keep each turn's latest evaluation. Turns without device join the groups otherwise alike; a device's wins."""
    groups: dict[_Group, Turns] = {}
    for row in rows:
        samples = groups.setdefault(group_by(row), {})
        samples.setdefault((row.run, row.problem, row.sample), {})[row.turn] = row
    on_device = {group: turns for group, turns in groups.items() if group.device != NO_DEVICE}
    targets: dict[_Group, list[Turns]] = {}
    for group, turns in on_device.items():
        targets.setdefault(group._replace(device=NO_DEVICE, chip=""), []).append(turns)
    without_device = {group: groups[group] for group in groups.keys() - on_device.keys() - targets.keys()}
    for group in groups.keys() & targets.keys():
        for target in targets[group]:
            for key, added in groups[group].items():
                target[key] = added | target.get(key, {})
    return on_device | without_device


class TurnResult(NamedTuple):
    """Compare by the interval of A/B pairs with `old`, else speedup and lower end must exceed `old`'s interval."""

    is_correct: bool
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    turn: int | None = None
    rival: int | None = None
    over_rival_low: float | None = None
    clock: str | None = None

    @property
    def alone(self) -> Self:
        return self._replace(turn=None, rival=None)


def result_of(row: ResultRow) -> TurnResult:
    return TurnResult(
        row.outcome == Outcome.CORRECT,
        row.speedup,
        row.speedup_low,
        row.speedup_high,
        turn=row.turn,
        rival=row.rival_turn,
        over_rival_low=row.over_rival_low,
        clock=row.clock,
    )


def find_best(results: Sequence[TurnResult]) -> int | None:
    """Return the index of the last correct result that beats its predecessors; None without correct results."""
    bests = list_best(results)
    return bests[-1] if bests else None


def list_best(results: Sequence[TurnResult]) -> list[int | None]:
    bests: list[int | None] = []
    best: int | None = None
    for index, result in enumerate(results):
        if result.is_correct and (best is None or beats(result, results[best])):
            best = index
        bests.append(best)
    return bests


def beats(new: TurnResult, old: TurnResult) -> bool:
    """Compare by the interval of A/B pairs with `old`, else both speedup and lower end must exceed `old`'s interval."""
    if new.speedup is None or old.speedup is None:
        return new.speedup is not None
    if new.rival is not None and new.rival == old.turn:
        return (new.over_rival_low or 0.0) > 1
    is_beyond_error = new.speedup > (old.speedup_high or float("inf"))
    return is_beyond_error and (new.speedup_low or 0.0) > (old.speedup_low or 0.0)
