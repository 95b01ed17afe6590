"""Makes the page's overview. Groups list their members' row indices: charts show the leaderboard's samples."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from harness.analysis.leaderboard import (
    GroupMembers,
    LeaderboardRow,
    describe_unequal_problems,
    list_members,
    rank_samples,
)
from harness.analysis.metrics import CURVE_THRESHOLDS, Price, find_price, trace_fast_curve
from harness.analysis.ranking import list_ranked
from harness.analysis.samples import Section
from harness.domain import Outcome
from harness.report.export.json_records import leaderboard_record
from harness.report.html.encoding import clean
from harness.report.terminal.tables import list_clock_notes
from harness.report.values import make_printable
from harness.store.columns import ResultRow
from harness.store.completions import Spent, TurnOrigin
from harness.store.results import EvidenceRow

STAGES = (
    ("no code", (Outcome.NO_CODE,)),
    ("rejected", (Outcome.REJECTED,)),
    ("build", (Outcome.BUILD_ERROR,)),
    ("load, run", (Outcome.LOAD_ERROR, Outcome.RUNTIME_ERROR, Outcome.TIMEOUT, Outcome.OUT_OF_MEMORY)),
    ("wrong", (Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE, Outcome.WRONG_VALUE)),
    ("suspect", (Outcome.SUSPECT,)),
    ("correct", (Outcome.CORRECT,)),
    ("not evaluated", (Outcome.NOT_RUN, Outcome.PROBLEM_ERROR, Outcome.HARNESS_ERROR)),
)
_TOKENS = ("prompt_tokens", "completion_tokens", "reasoning_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    rows: Sequence[ResultRow]
    evidence: Mapping[int, EvidenceRow]
    spent: Mapping[int, Spent]
    origins: Mapping[int, TurnOrigin]  # of later turns
    asked: Mapping[str, Collection[str]]
    prices: Sequence[Price] = ()


def describe_overview(material: Material) -> dict[str, Any]:
    samples = list_ranked(material.rows)
    ranked = rank_samples(samples, problems_by_run=material.asked)
    members = list_members(samples, problems_by_run=material.asked)
    indices = {row.id: index for index, row in enumerate(material.rows)}
    sections = list(dict.fromkeys(row.group.section for row in ranked))
    costs = _Costs(material)
    groups = [_describe_group(row, members[row.group], indices, material, costs) for row in ranked]
    for group, row in zip(groups, ranked, strict=True):
        group["section"] = sections.index(row.group.section)
    return {
        "groups": groups,
        "sections": [_describe_section(section, ranked) for section in sections],
        "thresholds": clean(CURVE_THRESHOLDS),
        "stages": [{"name": name, "outcomes": [outcome.value for outcome in outcomes]} for name, outcomes in STAGES],
    }


def _describe_section(section: Section, ranked: Sequence[LeaderboardRow]) -> dict[str, str]:
    rows = [row for row in ranked if row.group.section == section]
    notes = filter(None, [*list_clock_notes(rows), describe_unequal_problems(rows)])
    return section._asdict() | {"note": "; ".join(map(make_printable, notes))}


def _describe_group(
    row: LeaderboardRow, members: GroupMembers, indices: Mapping[int, int], material: Material, costs: "_Costs"
) -> dict[str, Any]:
    curve = trace_fast_curve(members.draws)
    whole = curve[0] if curve else None
    record: dict[str, Any] = leaderboard_record(row) | {
        "correct_low": whole.low if whole else None,
        "correct_high": whole.high if whole else None,
        "curve": {name: [getattr(point, name) for point in curve[1:]] for name in ("share", "low", "high")},
        "asked": [draws.problem for draws in members.draws if not draws.outcomes],
        "phases": _sum_phases(material.evidence[one.id] for one in members.samples if one.id in material.evidence),
        "cost": costs.describe(members, row.group.model),
    }
    return {**clean(record), "members": [indices[one.id] for one in members.samples]}


def _sum_phases(evidence: Iterable[EvidenceRow]) -> dict[str, float]:
    seconds: dict[str, float] = defaultdict(float)
    for one in evidence:
        for name, phase_s in one.phases_s:
            seconds[make_printable(name)] += phase_s
    return dict(seconds)


class _Costs:
    def __init__(self, material: Material) -> None:
        self._prices = material.prices
        turns: dict[tuple[str, str, int], dict[int, Spent]] = defaultdict(dict)
        for row in material.rows:
            turns[row.run, row.problem, row.sample][row.turn] = material.spent[row.id]
        self._answers = {sample: tuple(by_turn.values()) for sample, by_turn in turns.items()}

    def describe(self, members: GroupMembers, model: str) -> dict[str, Any]:
        """Sum over the answers with token counts; `usd` is None without a price."""
        answers = [spent for one in members.samples for spent in self._answers[one.run, one.problem, one.sample]]
        counted = [spent for spent in answers if spent.completion_tokens is not None]
        sums = Counter(dict.fromkeys(_TOKENS, 0))
        for spent in counted:
            sums.update({name: getattr(spent, name) or 0 for name in _TOKENS})
        price = find_price(self._prices, model)
        return {
            **sums,
            "answers": len(answers),
            "counted": len(counted),
            "correct": sum(one.outcome == Outcome.CORRECT for one in members.samples),
            "latency_s": fsum(spent.latency_s for spent in answers if spent.latency_s is not None),
            "usd": price.compute_usd(sums["prompt_tokens"], sums["completion_tokens"]) if price and counted else None,
        }
