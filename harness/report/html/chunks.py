"""Converts evaluations to data for the page, in compressed shards that the browser unpacks on demand; similar
candidates share a shard. Prompt, answer and build log are a separate record, which may be omitted.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

from harness.analysis.source_locations import find_lines
from harness.builder.error_excerpt import shorten_log
from harness.domain import (
    BuildSummary,
    CaseResult,
    Correctness,
    CounterReport,
    Finding,
    StoreError,
    Timing,
    Trial,
    Work,
)
from harness.report.html.encoding import clean, cut_text, encode_numbers, pack
from harness.report.html.overview import Material
from harness.report.terminal.timing_details import list_conditions
from harness.report.verdict_text import (
    CLOCKS,
    WHOLE_CALLS,
    WITHOUT_CUSTOM,
    explain_call_time,
    explain_cases,
    explain_resolution,
    explain_roofline,
    explain_timing_verdict,
    explain_use,
    format_interval,
    format_measured,
    list_circumstances,
    state_verdict,
)
from harness.store.columns import ResultRow
from harness.store.completions import locate_answer, read_answer, read_prompt
from harness.store.results import ResultStore, StoredEvaluation

SHARD_CANDIDATES = 40
MANY_ROWS = 20_000
MOST_DETAILED = 12_000  # with `MANY_ROWS`: limits the time to write the report
TAG_BYTES = 100  # of the element around a shard


@dataclass(slots=True, kw_only=True)
class Shards:
    """Packed shards, and shard numbers of details and answers by evaluation id."""

    details: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    detail_shards: dict[int, int] = field(default_factory=dict)
    answer_shards: dict[int, int] = field(default_factory=dict)


class _StringTable:
    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def refer(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))

    def pack(self, records: dict[int, Any]) -> str:
        return pack({"texts": list(self.numbers), "records": records})


def pack_shards(store: ResultStore, material: Material, generated_dir: Path | None, *, max_bytes: int | None) -> Shards:
    """Pack up to `max_bytes`. The details of all candidates precede the first answer."""
    shards, left = Shards(), inf if max_bytes is None else max_bytes
    kept: list[tuple[list[ResultRow], dict[int, str]]] = []
    for batch in _batches(_order_rows(material.rows)):
        packed, logs = _pack_details(store, batch)
        left -= len(packed) + TAG_BYTES
        if left < 0:
            return shards
        shards.detail_shards.update(dict.fromkeys((row.id for row in batch), len(shards.details)))
        shards.details.append(packed)
        kept.append((batch, logs))
    for batch, logs in kept:
        packed = _pack_answers(batch, logs, generated_dir)
        left -= len(packed) + TAG_BYTES
        if left < 0:
            break
        shards.answer_shards.update(dict.fromkeys((row.id for row in batch), len(shards.answers)))
        shards.answers.append(packed)
    return shards


def _order_rows(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """Samples of a problem are adjacent. If not all rows fit, the best of each model and problem come first."""
    near = sorted(rows, key=lambda row: (row.suite, row.problem, row.model, row.run, row.sample, row.turn, row.id))
    if len(rows) <= MANY_ROWS:
        return near
    peers: dict[tuple[str, ...], list[ResultRow]] = defaultdict(list)
    for row in near:
        peers[row.suite, row.problem, row.model, row.device, row.workload, row.baseline, row.dtype].append(row)
    ranks: dict[int, int] = {}
    for group in peers.values():
        best = sorted(group, key=lambda row: (row.outcome != "correct", -(row.speedup or 0.0), row.id))
        ranks.update((row.id, rank) for rank, row in enumerate(best))
    return sorted(near, key=lambda row: ranks[row.id])[:MOST_DETAILED]


def _batches(rows: Sequence[ResultRow]) -> Iterator[list[ResultRow]]:
    remaining = iter(rows)
    while batch := list(islice(remaining, SHARD_CANDIDATES)):
        yield batch


def _pack_details(store: ResultStore, batch: Sequence[ResultRow]) -> tuple[str, dict[int, str]]:
    strings, records, logs = _StringTable(), dict[int, Any](), dict[int, str]()
    for row in batch:
        try:
            stored, source = store.get(row.id), store.source(row.candidate) if row.candidate else None
        except StoreError as error:  # one damaged row must not prevent the report
            records[row.id] = {"damaged": str(error)}
            continue
        if stored is not None:
            build = stored.evaluation.build
            records[row.id] = make_record(stored, source, strings.refer)
            logs[row.id] = cut_text(build.log, LONGEST_LOG) if build else ""
    return strings.pack(records), logs


def _pack_answers(batch: Sequence[ResultRow], logs: Mapping[int, str], generated_dir: Path | None) -> str:
    strings = _StringTable()
    folders = {row.id: locate_answer(generated_dir, row) for row in batch}
    return strings.pack({row.id: make_answer(folders[row.id], logs.get(row.id, ""), strings.refer) for row in batch})


LONGEST_SOURCE = 200_000  # characters; longer ones are cut with a note
LONGEST_EVIDENCE = 4_000
LONGEST_ANSWER = 60_000
LONGEST_LOG = 30_000
MOST_BLOCKS = 200
MOST_TRIALS = 200

_TRIAL_FIELDS = tuple(Trial.__dataclass_fields__)
_SHOWN_PAIRS = ("baseline_reported_us", "candidate_reported_us", "baseline_evaluator_us", "candidate_evaluator_us")


def make_record(stored: StoredEvaluation, source: str | None, refer: Callable[[str], int]) -> dict[str, Any]:
    """`refer` stores a string once and returns its index."""
    evaluation, known = stored.evaluation, source or ""
    build, work = evaluation.build, evaluation.work
    shown = cut_text(known, LONGEST_SOURCE)
    record: dict[str, Any] = {
        "verdict": cut_text(state_verdict(evaluation), LONGEST_EVIDENCE),
        "findings": [_describe_finding(finding, shown) for finding in evaluation.findings],
        "correctness": _describe_trials(evaluation.correctness) if evaluation.correctness else None,
        "timing": _describe_timing(evaluation.timing) if evaluation.timing else None,
        "limits": explain_roofline(evaluation) or None,
        "cases": [_describe_case(case) for case in evaluation.cases],
        "case_facts": explain_cases(evaluation),
        "work": _describe_work(work) if work else None,
        "counters": _describe_counters(evaluation.counters) if evaluation.counters else None,
        "build": _describe_build(build) if build else None,
        "circumstances": [(name, cut_text(str(value), 300)) for name, value in list_circumstances(evaluation)],
        "phases": list(evaluation.phases_s),
    }
    record = clean(record)
    if evaluation.timing is not None:
        record["timing"]["samples"] = _list_samples(evaluation.timing)
    return {**record, "source": None if source is None else refer(clean(shown))}


def make_answer(folder: Path | None, log: str, refer: Callable[[str], int]) -> dict[str, Any]:
    prompt, completion = read_prompt(folder), read_answer(folder)
    strings = {
        "prompt": prompt,
        "reasoning": completion.reasoning if completion else None,
        "answer": completion.text if completion else None,
        "log": log or None,
    }
    return {
        name: None if text is None else refer(clean(cut_text(text, LONGEST_ANSWER))) for name, text in strings.items()
    } | {"finish": clean(completion.finish_reason) if completion else None}


def _describe_finding(finding: Finding, source: str) -> dict[str, Any]:
    return {
        "check": finding.check,
        "severity": finding.severity,
        "message": cut_text(finding.message, LONGEST_EVIDENCE),
        "evidence": cut_text(finding.evidence, LONGEST_EVIDENCE),
        "lines": find_lines(finding, source),
    }


def _describe_trials(correctness: Correctness) -> dict[str, Any]:
    trials = correctness.trials[:MOST_TRIALS]
    return {
        "weights": correctness.weights,
        "truth": correctness.truth,
        "passed": sum(trial.passed for trial in correctness.trials),
        "count": len(correctness.trials),
        "trials": {name: [getattr(trial, name) for trial in trials] for name in _TRIAL_FIELDS},
    }


def _describe_timing(timing: Timing) -> dict[str, Any]:
    return {
        "baseline": timing.baseline,
        "verdict": timing.verdict,
        "speedup": timing.speedup,
        "low": timing.speedup_low,
        "high": timing.speedup_high,
        "baseline_us": timing.baseline_us,
        "candidate_us": timing.candidate_us,
        "summary": f"{format_measured(timing)} against {timing.baseline}",
        "why": explain_timing_verdict(timing),
        "resolution": " ".join(
            filter(None, [CLOCKS[timing.clock], explain_resolution(timing), explain_call_time(timing)])
        ),
        "has_two_clocks": timing.clock in WHOLE_CALLS,
        "conditions": [*explain_use(timing), *list_conditions(timing)],
        "blocks": len(timing.blocks),
        "calls": sorted({block.calls for block in timing.blocks}),
    }


def _describe_case(case: CaseResult) -> dict[str, Any]:
    timing = case.timing
    return {
        "name": case.name,
        "sizes": case.sizes,
        "secret": case.is_secret,
        "outcome": case.outcome.value,
        "speedup": timing and timing.speedup,
        "clock": timing and timing.clock,
        "interval": format_interval(timing) if timing else "",
        "verdict": timing.verdict if timing else "not timed",
        "baseline_us": timing and timing.baseline_us,
        "candidate_us": timing and timing.candidate_us,
    }


def _list_samples(timing: Timing) -> dict[str, list[float | int | None]]:
    blocks = timing.blocks[:MOST_BLOCKS]
    return {name: encode_numbers([getattr(block, name) for block in blocks], digits=4) for name in _SHOWN_PAIRS}


def _describe_work(work: Work) -> dict[str, Any]:
    return {
        "custom": work.custom,
        "torch": work.torch,
        "library": work.library,
        "other": work.other,
        "kernels": [cut_text(name, 200) for name in work.custom_kernels[:20]],
        "without": WITHOUT_CUSTOM[work.without_custom],
    }


def _describe_counters(counters: CounterReport) -> dict[str, Any]:
    kernels = [(f"{one.kernel}: {one.describe_launch()}", one.list_facts()) for one in counters.kernels]
    return {"kernels": kernels, "note": counters.note}


def _describe_build(build: BuildSummary) -> dict[str, Any]:
    return {
        "keys": build.keys[:20],
        "cached": build.cached,
        "duration_s": build.duration_s,
        "strategy": build.strategy,
        "reason": build.reason,
        "errors": shorten_log(build.log) if build.log else "",
    }
