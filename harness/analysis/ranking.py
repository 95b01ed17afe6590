"""The leaderboard of stored evaluations, with the problems that run manifests request."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.analysis.leaderboard import LeaderboardRow, SearchSpending, rank_samples
from harness.analysis.samples import SampleId, group_of, group_samples, list_best, result_of
from harness.domain import FILE_RUN, FROM_FILE, NO_PROMPT, Comparison, Evaluation, Outcome, SampleKey, Timing
from harness.store.columns import ResultRow
from harness.store.completions import has_run
from harness.store.runs import MANIFEST, locate_run, read_manifest, read_search

if TYPE_CHECKING:
    from harness.store.results import StoredEvaluation


def rank_stored(
    rows: Iterable[ResultRow],
    *,
    generated_dir: Path | None,
    ks: Collection[int] = (),
    min_own_share: float | None = None,
    programs: Mapping[str, str] | None = None,
    common: bool = False,
) -> tuple[LeaderboardRow, ...]:
    """Rows are in order of id. A manifest's problems without row are unsolved. Raises StoreError and UsageError."""
    samples = list_ranked(rows)
    runs = {sample.run for sample in samples}
    asked = {} if generated_dir is None else read_requested_problems(generated_dir, runs)
    spent = {} if generated_dir is None else read_spending(generated_dir, samples)
    return rank_samples(
        samples,
        problems_by_run=asked,
        ks=ks,
        min_own_share=min_own_share,
        spent=spent,
        programs=programs,
        common=common,
    )


def list_ranked(rows: Iterable[ResultRow]) -> list[ResultRow]:
    """Exclude results of searches that began with a file: they say little about the model."""
    return [row for row in rows if not is_from_file(row)]


def is_from_file(row: ResultRow) -> bool:
    return (row.run, row.prompt) == (FILE_RUN, NO_PROMPT) or row.prompt.endswith(FROM_FILE)


def read_requested_problems(generated_dir: Path, runs: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Omit runs without a manifest. Raises StoreError for a damaged one."""
    # Run names come from the database; empty or invalid ones (a candidate given as a file) have no folder.
    folders = {path.parent.name: path.parent for path in generated_dir.glob(f"*/{MANIFEST}")}
    return {run: read_manifest(folders[run]).problems for run in runs if run in folders}


def read_spending(generated_dir: Path, samples: Iterable[ResultRow]) -> dict[SampleId, SearchSpending]:
    samples = list(samples)
    runs = {one.run for one in samples if one.turn}
    found = {}
    for run, problem, sample in {(one.run, one.problem, one.sample) for one in samples if one.run in runs}:
        if has_run(generated_dir, run):
            key = SampleKey(run=run, problem=problem, sample=sample)
            record = read_search(locate_run(generated_dir, run), key)
            if isinstance(record.get("tokens"), int):
                usd = record.get("usd")
                usd = float(usd) if isinstance(usd, int | float) else None
                found[run, problem, sample] = SearchSpending(record["tokens"], usd)
    return found


def find_best_turns(rows: Sequence[ResultRow]) -> dict[int, int]:
    """Return the sample's best turn up to each evaluation, for samples with several turns."""
    found = {}
    for samples in group_samples(rows, lambda row: group_of(row, 1)._replace(device=row.device)).values():
        for by_turn in samples.values():
            ordered = [by_turn[turn] for turn in sorted(by_turn)]
            for row, best in zip(ordered, list_best([result_of(one) for one in ordered]), strict=True):
                if best is not None and len(ordered) > 1:
                    found[row.id] = ordered[best].turn
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedFile:
    """`close_to` names the file with the largest speedup, if their intervals overlap. `pairs` compare both directly."""

    name: str
    stored: StoredEvaluation
    close_to: str = ""
    pairs: Comparison | None = None

    @property
    def evaluation(self) -> Evaluation:
        return self.stored.evaluation

    @property
    def is_correct(self) -> bool:
        return self.evaluation.outcome is Outcome.CORRECT

    @property
    def timing(self) -> Timing | None:
        return None if self.evaluation.speedup is None else self.evaluation.timing

    @property
    def device_kind(self) -> str:
        return self.evaluation.subject.device.partition(":")[0]


def rank_files(files: Iterable[RankedFile]) -> list[RankedFile]:
    """Largest speedup first, then untimed, then failures in the given order. A gain in pairs precedes the largest."""
    return sorted(files, key=_rank)


def _rank(file: RankedFile) -> tuple[bool, float, float]:
    gain = file.pairs.speedup if file.pairs is not None and file.pairs.is_gain else None
    return not file.is_correct, -(gain or 0.0), -(file.evaluation.speedup or 0.0)


def find_close(ranked: Sequence[RankedFile]) -> list[RankedFile]:
    """Return the files whose interval overlaps that of the first, by the same clock on the same kind of device."""
    first, others = ranked[0], ranked[1:]
    return [one for one in others if one.device_kind == first.device_kind and _overlap(one.timing, first.timing)]


def _overlap(one: Timing | None, first: Timing | None) -> bool:
    if one is None or first is None:
        return False
    return one.clock == first.clock and one.speedup_high >= first.speedup_low
