"""Gathers the two sides of `harness diff`: evaluations, costs, prompt and code diffs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Literal

from harness.analysis.side_by_side import DiffResult, Pair, compare_rows
from harness.domain import UsageError
from harness.domain.errors import suggest
from harness.store.columns import ResultRow
from harness.store.completions import locate_answer, read_prompt, read_spent
from harness.store.results import EVERYTHING, ResultFilter, ResultStore, explain_no_match

SideKind = Literal["run", "model", "prompt", "harness"]
_COLUMNS: dict[SideKind, str] = {"run": "run", "model": "model", "prompt": "prompt", "harness": "harness_version"}
_identify = attrgetter(
    "run", "problem", "sample", "turn", "suite", "language", "device", "workload", "baseline", "dtype"
)
MOST_ANSWERS = 10_000  # per side, whose costs are read
MOST_PROMPTS = 50  # problems whose prompts are compared
MOST_CODE = 100  # candidates whose sources are compared
LONGEST_DIFF = 400  # lines
MOST_LINES = 3000  # of a compared file


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Tokens and latency are sums over the `counted` of `answers` whose files exist."""

    answers: int
    counted: int
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    latency_s: float
    evaluated_s: float
    correct: int

    @property
    def tokens_per_correct(self) -> float | None:
        whole = self.counted == self.answers and self.correct
        return self.completion_tokens / self.correct if whole else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDiff:
    names: tuple[str, ...]
    lines: tuple[str, ...]
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """Prompts were compared for `prompts_read` of `prompts_shared` problems; equal prompts give no diff."""

    kind: SideKind
    before: str
    after: str
    comparison: DiffResult
    costs: tuple[Cost, Cost]
    prompts: tuple[TextDiff, ...]
    prompts_read: int
    prompts_shared: int
    code: tuple[TextDiff, ...]


def compare_sides(
    store: ResultStore,
    before: str,
    after: str,
    *,
    kind: SideKind | None = None,
    where: ResultFilter = EVERYTHING,
    generated_dir: Path | None = None,
) -> SideBySide:
    """Raises UsageError for unknown or ambiguous names."""
    rows = list(store.rows(where, history=True))
    if not rows and store.count():
        raise UsageError(explain_no_match(store, where))
    chosen = kind or _guess_kind(rows, before, after, store.path)
    column = _COLUMNS[chosen]
    sides = tuple(_latest([row for row in rows if getattr(row, column) == name]) for name in (before, after))
    for name, side in zip((before, after), sides, strict=True):
        if not side:
            raise UsageError(_explain_unknown(name, chosen, rows, store.path))
    old, new = ([row._replace(speedup=_measured(row)) for row in side] for side in sides)
    comparison = compare_rows(old, new, store.problem_digests(), by_sample=chosen == "harness")
    by_id = {row.id: row for side in sides for row in side}
    prompts, prompts_read, prompts_shared = _diff_prompts(comparison, by_id, generated_dir)
    return SideBySide(
        kind=chosen,
        before=before,
        after=after,
        comparison=comparison,
        costs=(_sum_cost(sides[0], generated_dir), _sum_cost(sides[1], generated_dir)),
        prompts=prompts,
        prompts_read=prompts_read,
        prompts_shared=prompts_shared,
        code=tuple(_diff_code(store, comparison)),
    )


def _guess_kind(rows: Sequence[ResultRow], before: str, after: str, path: Path) -> SideKind:
    known = {kind: {getattr(row, column) for row in rows} for kind, column in _COLUMNS.items()}
    fitting = [kind for kind, names in known.items() if before in names and after in names]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(f"{before!r} and {after!r} could each be a {' or a '.join(fitting)}: choose one with --by")
    for name in (before, after):
        if not any(name in names for names in known.values()):
            raise UsageError(_explain_unknown(name, None, rows, path))
    kinds = [next(kind for kind, names in known.items() if name in names) for name in (before, after)]
    raise UsageError(f"{before!r} is a {kinds[0]} and {after!r} a {kinds[1]}: both sides must be of the same kind")


def _explain_unknown(name: str, kind: SideKind | None, rows: Sequence[ResultRow], path: Path) -> str:
    columns = [_COLUMNS[kind]] if kind else [*_COLUMNS.values()]
    names = sorted({str(getattr(row, column)) for row in rows for column in columns})
    what = kind or "run, model, prompt or harness version"
    return f"no evaluations of a {what} {name!r} in {path}; {suggest(name, names, most=3)}"


def _latest(rows: Iterable[ResultRow]) -> list[ResultRow]:
    latest = {_identify(row): row for row in rows}
    return sorted(latest.values(), key=lambda row: row.id)


def _measured(row: ResultRow) -> float | None:
    """A tie is not rounded to 1."""
    if row.speedup is None or row.verdict != "tie" or not (row.baseline_us and row.candidate_us):
        return row.speedup
    ratio = row.baseline_us / row.candidate_us
    return min(max(ratio, row.speedup_low or ratio), row.speedup_high or ratio)


def _sum_cost(rows: Sequence[ResultRow], generated_dir: Path | None) -> Cost:
    answers = {row.key: row for row in rows}
    names = {row.run for row in rows}
    runs = set() if generated_dir is None else {name for name in names if (generated_dir / name).is_dir()}
    there = (row for row in answers.values() if row.run in runs)
    read = [read_spent(locate_answer(generated_dir, row)) for row in islice(there, MOST_ANSWERS)]
    known = [spent for spent in read if spent.completion_tokens is not None]
    return Cost(
        answers=len(answers),
        counted=len(known),
        prompt_tokens=sum(spent.prompt_tokens or 0 for spent in known),
        completion_tokens=sum(spent.completion_tokens or 0 for spent in known),
        reasoning_tokens=sum(spent.reasoning_tokens or 0 for spent in known),
        latency_s=sum(spent.latency_s or 0.0 for spent in read),
        evaluated_s=sum(row.duration_s for row in rows),
        correct=len({(row.run, row.problem, row.sample) for row in rows if row.outcome == "correct"}),
    )


def _diff_prompts(
    comparison: DiffResult, rows: dict[int, ResultRow], generated_dir: Path | None
) -> tuple[tuple[TextDiff, ...], int, int]:
    """Return (distinct diffs, problems read, problems shared). Hunk headers differ between problems and are ignored."""
    pairs = {pair.problem: pair for group in comparison.groups for pair in group.pairs}
    found: dict[tuple[str, ...], list[str]] = {}
    whole: dict[tuple[str, ...], list[str]] = {}
    read = 0
    for problem, pair in islice(pairs.items(), MOST_PROMPTS):
        prompts = [read_prompt(locate_answer(generated_dir, rows[side[0].id])) for side in (pair.before, pair.after)]
        if None in prompts:
            continue
        read += 1
        lines = _diff(*(prompt or "" for prompt in prompts))
        changed = tuple(line for line in lines if line[:1] in "+-")
        if changed:
            found.setdefault(changed, []).append(problem)
            whole.setdefault(changed, lines)
    diffs = tuple(_cut(tuple(names), whole[changed]) for changed, names in found.items())
    return diffs, read, len(pairs)


def _diff_code(store: ResultStore, comparison: DiffResult) -> Iterable[TextDiff]:
    flipped = [pair for group in comparison.groups for pair in group.pairs if pair.flip]
    changed = [pair for group in comparison.groups for pair in group.changed_speed()]
    shown: set[tuple[str, str]] = set()
    for pair in (*flipped, *changed):
        digests = _representative(pair.before).candidate, _representative(pair.after).candidate
        if digests in shown or digests[0] == digests[1]:
            continue
        if len(shown) == MOST_CODE:
            return
        shown.add(digests)
        sources = [store.source(digest) or "" if digest else "" for digest in digests]
        lines = _diff(*sources)
        if lines:
            yield _cut((pair.name,), lines)


def _representative(rows: Sequence[ResultRow]) -> ResultRow:
    return max(rows, key=lambda row: (row.outcome == "correct", row.speedup or 0.0, -row.sample))


def pick_samples(pair: Pair) -> tuple[ResultRow, ResultRow]:
    return _representative(pair.before), _representative(pair.after)


def _diff(before: str, after: str) -> list[str]:
    """Compare only the first lines of large files: the cost is quadratic."""
    old, new = (text.splitlines()[:MOST_LINES] for text in (before, after))
    return list(unified_diff(old, new, n=3, lineterm=""))[2:]


def _cut(names: tuple[str, ...], lines: Sequence[str]) -> TextDiff:
    return TextDiff(names=names, lines=tuple(lines[:LONGEST_DIFF]), is_cut=len(lines) > LONGEST_DIFF)
