"""`results/evaluations.csv` and `results/leaderboard.csv`: the store's content for spreadsheets and data frames.

The database is the truth; these are rewritten from it, each in one step, and may be deleted at any time.

Columns keep their place, and new ones are added at the end: those of `evaluations.csv` are the fields of `ResultRow`;
`leaderboard.csv` has the rank, the group, problems, scored and samples, one column per fast_p (and per pass@k, where
asked for), the mean speedup and how many it is of, one count per outcome, hardware and runs; then the interval of the
mean speedup, the median share of own code, whether it was judged under a red-team certificate (yes, part, no), how
many answers the token limit cut off before they held a whole program, and the chip.
"""

from __future__ import annotations

import csv
import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

from harness.analysis.leaderboard import GroupKey, LeaderboardRow
from harness.analysis.ranking import rank_stored
from harness.domain import Outcome, StoreError
from harness.domain.files import replacing
from harness.report.escaping import make_cell
from harness.store.results import ResultRow, ResultStore

EVALUATIONS_CSV = "evaluations.csv"
LEADERBOARD_CSV = "leaderboard.csv"


def write_csvs(store: ResultStore, results_dir: Path, *, generated_dir: Path | None = None) -> tuple[Path, Path]:
    """Rewrites both files from the latest evaluations and returns their paths. `generated_dir` tells which problems
    the runs asked for. Raises StoreError when they cannot be written; the old files are then still there."""
    paths = results_dir / EVALUATIONS_CSV, results_dir / LEADERBOARD_CSV
    try:
        # Reading and replacing under one lock: of two commands that end at once the later must not lay an older
        # listing over the newer one.
        with _lock_folder(results_dir):
            rows = list(store.rows())
            _replace_text(paths[0], format_evaluations(rows))
            _replace_text(paths[1], format_leaderboard(rank_stored(rows, generated_dir=generated_dir)))
    except OSError as error:
        raise StoreError(
            f"cannot write the CSV files in {results_dir}: {error}; every evaluation is safe in {store.path}: "
            "make room or mend the permissions, and the next command writes them"
        ) from error
    return paths


def format_evaluations(rows: Sequence[ResultRow], columns: Sequence[str] = ResultRow._fields) -> str:
    """CSV text with one line per row; `columns` chooses among the fields of ResultRow."""
    return _format_columns(columns, [[getattr(row, name) for row in rows] for name in columns])


def format_records(records: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    """CSV text of flat records."""
    return _format_columns(columns, [[record[name] for record in records] for name in columns])


def format_leaderboard(rows: Sequence[LeaderboardRow]) -> str:
    """CSV text with one line per group, in order of rank; one column per fast_p and per outcome."""
    records = [{"rank": rank} | _flatten_row(row) for rank, row in enumerate(rows, start=1)]
    return format_records(records, list(records[0]) if records else ["rank", *GroupKey._fields])


def _flatten_row(row: LeaderboardRow) -> dict[str, Any]:
    outcomes, group = dict(row.outcomes), row.group._asdict()
    chip = group.pop("chip")
    return {
        **group,
        "problems": row.problems,
        "scored": row.scored,
        "samples": row.samples,
        **{f"fast_{threshold:g}": share for threshold, share in row.fast},
        **{f"pass@{at.k}": at.correct for at in row.at_k},
        **{f"fast_1@{at.k}": at.fast_1 for at in row.at_k},
        "geometric_mean_speedup": row.geometric_mean_speedup,
        "timed": row.timed,
        **{outcome.value: outcomes.get(outcome, 0) for outcome in Outcome},
        "hardware": "; ".join(row.hardware),
        "runs": "; ".join(row.runs),
        "speedup_low": row.speedup_low,
        "speedup_high": row.speedup_high,
        "own_share": row.own_share,
        "certificate": row.certificate,
        "truncated": row.truncated,
        "chip": chip,
    }


def _format_columns(header: Sequence[str], columns: Sequence[list[Any]]) -> str:
    """One line per place in the columns; None is an empty cell. By hand, since a data frame takes thrice as long."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(zip(*map(_make_cells, columns), strict=True))
    return text.getvalue()


def _make_cells(values: list[Any]) -> list[Any]:
    """Safe cells of a column: each distinct text is looked at once."""
    unsafe = {text: cell for text in set(values) if isinstance(text, str) and (cell := make_cell(text)) != text}
    return [unsafe.get(value, value) for value in values] if unsafe else values


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    with (folder / ".csv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _replace_text(path: Path, text: str) -> None:
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="")
