"""The leaderboard of stored evaluations: joins results with the manifests of their runs and ranks them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import attrgetter
from pathlib import Path

from harness.analysis.leaderboard import JudgedSample, LeaderboardRow, rank_samples
from harness.domain import FILE_RUN, NO_PROMPT
from harness.store.results import ResultRow
from harness.store.runs import MANIFEST, read_manifest

_ranking_fields = attrgetter(*JudgedSample._fields)


def rank_stored(
    rows: Iterable[ResultRow],
    *,
    generated_dir: Path | None,
    ks: Collection[int] = (),
    min_own_share: float | None = None,
) -> tuple[LeaderboardRow, ...]:
    """Ranks flat rows, given in the order of their ids. A problem that a run's manifest asks for and that has no row
    counts as not solved; a run without a manifest in `generated_dir` is ranked over the problems it has rows for.

    Raises StoreError for a damaged manifest, UsageError for a k that the samples cannot give.
    """
    samples = judged_samples(rows)
    runs = {sample.run for sample in samples}
    asked = {} if generated_dir is None else read_asked_problems(generated_dir, runs)
    return rank_samples(samples, problems_by_run=asked, ks=ks, min_own_share=min_own_share)


def judged_samples(rows: Iterable[ResultRow]) -> list[JudgedSample]:
    """The fields that rank, of flat rows; without candidates that were given as files, which are no model's."""
    return [JudgedSample._make(_ranking_fields(row)) for row in rows if not is_single(row)]


def is_single(row: ResultRow) -> bool:
    """Whether the candidate was given as a file and belongs to no run of a model."""
    return (row.run, row.prompt) == (FILE_RUN, NO_PROMPT)


def read_asked_problems(generated_dir: Path, runs: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The problems that each run's manifest asks for; a run without a manifest has no entry. StoreError for a damaged
    manifest."""
    # A run's name comes from the database here; an empty or strange one (a candidate given as a file) has no folder.
    folders = {path.parent.name: path.parent for path in generated_dir.glob(f"*/{MANIFEST}")}
    return {run: read_manifest(folders[run]).problems for run in runs if run in folders}
