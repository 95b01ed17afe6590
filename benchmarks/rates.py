"""How often verdicts agree with labels, how long they take, and how claimed speedups compare with measured ones.

    python benchmarks/rates.py RESULTS [RESULTS ...] --labels LABELS

Prints Markdown tables. LABELS is a CSV file, one line a program: run, problem (a name or KernelBench's number), sample,
label, correct (yes, no, or empty where the label does not tell), and optionally kind, claimed (a speedup) and note. It
may also be the folder of imported runs, whose reported results are the labels. Outcomes without a verdict
(`not_run`, `harness_error`, `problem_error`) are counted apart. Seconds are those of an evaluation without builds made
ahead; verdicts per GPU hour count from the first evaluation's start to the last one's end, without pauses of more than
ten minutes between commands.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import harness

PAUSE_S = 600.0
NO_VERDICT = ("not_run", "harness_error", "problem_error")
EXPECTED = {"yes": True, "no": False}
OPTIONAL = {"kind": "", "claimed": "", "note": ""}
CLAIMED_GAIN = 1.05
LARGEST = 10  # differences between claimed and measured speedups that are listed
KEY = ["run", "number", "sample"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path, help="folders with harness.db; of one program the last counts")
    parser.add_argument("--labels", required=True, type=Path)
    options = parser.parse_args()
    labels = read_reports(options.labels) if options.labels.is_dir() else read_labels(options.labels)
    rows = join_labels(load_rows(options.results), labels)
    if rows.empty:
        raise SystemExit(f"no program in {', '.join(map(str, options.results))} has a label in {options.labels}")
    print(*describe_rates(rows), "", *list_differences(rows), sep="\n")
    if rows.claimed.notna().any():
        print("", *compare_claims(rows), sep="\n")


def load_rows(folders: Sequence[Path]) -> pd.DataFrame:
    rows = pd.concat([harness.load_results(folder) for folder in folders]).sort_values("started_at")
    rows = rows.assign(number=rows.problem.map(number_of), speedup=pd.to_numeric(rows.speedup))
    return rows.drop_duplicates([*KEY, "device"], keep="last")


def number_of(problem: str) -> str:
    """KernelBench's number of a problem, or its name."""
    first = problem.partition("_")[0]
    return first if first.isdecimal() else problem


def read_labels(path: Path) -> pd.DataFrame:
    labels = pd.read_csv(path, dtype=str, keep_default_na=False)
    labels = labels.assign(**{name: value for name, value in OPTIONAL.items() if name not in labels})
    return labels.assign(
        number=labels.problem.map(number_of),
        sample=labels["sample"].astype(int),
        expected=labels.correct.map(EXPECTED),
        claimed=pd.to_numeric(labels.claimed),
    )


def read_reports(generated: Path) -> pd.DataFrame:
    """Results that were reported with imported runs."""
    runs = [path.parent.name for path in sorted(generated.glob("*/claims.json"))]
    reports = pd.concat([harness.load_claims(run, generated).assign(run=run) for run in runs], ignore_index=True)
    return reports.assign(
        number=reports.number.astype(str),
        label=reports.correct.map({True: "reported correct", False: "reported failed"}),
        expected=reports.correct.astype(object),
        claimed=pd.to_numeric(reports.claimed_speedup),
        kind="",
        note="",
    )


def join_labels(rows: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """`has_verdict`, `gains` (correct and faster), and `differs` from the label, are added to each result."""
    joined = rows.merge(labels[[*KEY, "label", "expected", "claimed", "kind", "note"]], on=KEY)
    has_verdict, is_correct = ~joined.outcome.isin(NO_VERDICT), joined.outcome == "correct"
    differs = joined.expected.notna() & has_verdict & (joined.expected != is_correct)
    return joined.assign(has_verdict=has_verdict, gains=is_correct & (joined.verdict == "faster"), differs=differs)


def describe_rates(rows: pd.DataFrame) -> Iterator[str]:
    counts = []
    for label, group in [*rows.groupby("label"), ("all", rows)]:
        is_correct = group.outcome == "correct"
        accepted = group.differs & is_correct
        columns = (
            ~group.has_verdict,
            is_correct,
            group.gains,
            accepted,
            accepted & group.gains,
            group.differs & ~accepted,
        )
        counts.append((label, len(group), *(column.sum() for column in columns), f"{group.duration_s.median():.1f}"))
    yield from format_table(
        "label|programs|no verdict|correct|faster|falsely accepted|with a gain|falsely refused|median s", counts
    )
    for hardware, group in rows[rows.device.str.startswith("cuda")].groupby("hardware"):
        hours = sum(measure_span_s(one) for _, one in group.groupby("device")) / 3600
        rate = f"{len(group) / hours:,.0f} per GPU hour"
        yield f"\n{len(group)} verdicts in {60 * hours:.0f} minutes of one {hardware}: {rate}"


def format_table(columns: str, rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    names = columns.split("|")
    for row in (names, ["---"] * len(names), *rows):
        yield f"| {' | '.join(map(str, row))} |"


def measure_span_s(rows: pd.DataFrame) -> float:
    """Seconds in which one device evaluated."""
    starts = pd.to_datetime(rows.started_at).map(pd.Timestamp.timestamp)
    spans = sorted(zip(starts, starts + rows.duration_s, strict=True))
    spent_s, until = 0.0, spans[0][0]
    for start, end in spans:
        spent_s += max(end - until, 0.0) if start - until < PAUSE_S else end - start
        until = max(until, end)
    return spent_s


def list_differences(rows: pd.DataFrame) -> Iterator[str]:
    differing = rows[rows.differs].itertuples()
    cells = (
        (name_program(row), f"{row.label} {row.note}", describe_verdict(row), shorten(row.message)) for row in differing
    )
    return format_table("differs from its label|label|verdict|message", cells)


def compare_claims(rows: pd.DataFrame) -> Iterator[str]:
    claimed = rows[rows.claimed.notna()]
    measured = claimed[(claimed.outcome == "correct") & claimed.speedup.notna()]
    counts = []
    for kind, group in [*claimed.groupby("kind"), ("all", claimed)]:
        timed = measured[measured.index.isin(group.index)]
        above = timed[timed.claimed > CLAIMED_GAIN]
        medians = (f"{timed[column].median():.2f}x" for column in ("claimed", "speedup"))
        counts.append((kind, len(group), len(timed), *medians, len(above), (above.verdict == "faster").sum()))
    gain = f"claimed above {CLAIMED_GAIN}x"
    yield from format_table(
        f"kind|programs|correct and timed|claimed, median|measured, median|{gain}|of these faster", counts
    )
    order = (measured.claimed / measured.speedup).map(lambda ratio: max(ratio, 1 / ratio)).sort_values(ascending=False)
    largest = measured.loc[order.index[:LARGEST]].itertuples()
    cells = ((name_program(row), row.kind, f"{row.claimed:.2f}x", describe_verdict(row), row.note) for row in largest)
    yield ""
    yield from format_table("largest differences|kind|claimed|measured|note", cells)


def name_program(row: Any) -> str:
    return f"{row.run}/{row.problem}/{row.sample}"


def describe_verdict(row: Any) -> str:
    timed = row.outcome == "correct" and row.speedup == row.speedup
    return f"{row.verdict}, {row.speedup:.2f}x" if timed else row.outcome


def shorten(message: str, limit: int = 160) -> str:
    text = " ".join(message.split()).replace("|", "\\|")
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


if __name__ == "__main__":
    main()
