"""The details of candidates in pieces that a browser unpacks when one of them is opened.

A piece holds some dozens of candidates that lie near each other, so that sources alike are packed once and small.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from harness.domain import StoreError
from harness.report.answers import locate_answer
from harness.report.candidates import make_answer, make_record
from harness.report.overview import Material
from harness.report.packing import pack
from harness.store.results import ResultRow, ResultStore

SHARD_CANDIDATES = 40
MANY_ROWS = 20_000
TAG_BYTES = 100  # of the element around a piece


@dataclass(slots=True, kw_only=True)
class Shards:
    """Packed pieces, and in which of them an evaluation's details and its answer lie, by id."""

    details: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    detail_places: dict[int, int] = field(default_factory=dict)
    answer_places: dict[int, int] = field(default_factory=dict)


class _Texts:
    """Texts of one piece, each once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def refer(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))

    def pack(self, records: dict[int, Any]) -> str:
        return pack({"texts": list(self.numbers), "records": records})


def pack_shards(store: ResultStore, material: Material, generated_dir: Path | None, *, max_bytes: int | None) -> Shards:
    """Packs candidates until `max_bytes` are full: the details of all of them go before the first answer."""
    shards, answers, used = Shards(), list[tuple[list[int], str]](), 0
    for batch in _batches(_order_rows(material.rows)):
        details, answer = _pack_batch(store, batch, generated_dir)
        used += len(details) + TAG_BYTES
        if max_bytes is not None and used > max_bytes:
            used -= len(details) + TAG_BYTES
            break
        ids = [row.id for row in batch]
        shards.detail_places.update(dict.fromkeys(ids, len(shards.details)))
        shards.details.append(details)
        answers.append((ids, answer))
    for ids, answer in answers:
        used += len(answer) + TAG_BYTES
        if max_bytes is not None and used > max_bytes:
            break
        shards.answer_places.update(dict.fromkeys(ids, len(shards.answers)))
        shards.answers.append(answer)
    return shards


def _order_rows(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """Neighbours are alike: the samples of a problem. Where there are so many that not all will fit, the best of each
    model on each problem come first."""
    near = sorted(rows, key=lambda row: (row.suite, row.problem, row.model, row.run, row.sample, row.turn, row.id))
    if len(rows) <= MANY_ROWS:
        return near
    peers: dict[tuple[str, ...], list[ResultRow]] = defaultdict(list)
    for row in near:
        peers[row.suite, row.problem, row.model, row.device, row.workload, row.baseline].append(row)
    ranks: dict[int, int] = {}
    for group in peers.values():
        best = sorted(group, key=lambda row: (row.outcome != "correct", -(row.speedup or 0.0), row.id))
        ranks.update((row.id, rank) for rank, row in enumerate(best))
    return sorted(near, key=lambda row: ranks[row.id])


def _batches(rows: Sequence[ResultRow]) -> Iterator[list[ResultRow]]:
    remaining = iter(rows)
    while batch := list(islice(remaining, SHARD_CANDIDATES)):
        yield batch


def _pack_batch(store: ResultStore, batch: Sequence[ResultRow], generated_dir: Path | None) -> tuple[str, str]:
    details, answers = _Texts(), _Texts()
    detail_records: dict[int, Any] = {}
    answer_records: dict[int, Any] = {}
    for row in batch:
        try:
            stored, source = store.get(row.id), store.source(row.candidate) if row.candidate else None
        except StoreError as error:  # one damaged row must not cost the report of all others
            detail_records[row.id] = {"damaged": str(error)}
            continue
        if stored is None:
            continue
        build = stored.evaluation.build
        folder = locate_answer(generated_dir, row)
        detail_records[row.id] = make_record(stored, source, details.refer)
        answer_records[row.id] = make_answer(folder, build.log if build else "", answers.refer)
    return details.pack(detail_records), answers.pack(answer_records)
