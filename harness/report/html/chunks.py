"""Packs candidate details into compressed shards that the browser unpacks on demand; similar candidates
share a shard.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

from harness.domain import StoreError
from harness.report.html.candidate_record import LONGEST_LOG, make_answer, make_record
from harness.report.html.encoding import cut_text, pack
from harness.report.html.overview import Material
from harness.store.columns import ResultRow
from harness.store.completions import locate_answer
from harness.store.results import ResultStore

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
