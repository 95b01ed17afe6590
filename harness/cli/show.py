"""`harness show` explains an evaluation, `harness explain` the words of results."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.main import list_commands
from harness.cli.options import JsonOption, print_records, print_rich
from harness.cli.results import AsJson, StoredPanel
from harness.domain import FILE_RUN, NO_DEVICE, SampleKey, UsageError
from harness.domain.errors import suggest
from harness.report.explanations import (
    BASELINES,
    CHECKS,
    CLOCKS,
    INPUT_KINDS,
    LEADERBOARD,
    OUTCOMES,
    SETTINGS,
    SEVERITIES,
    TABLE_COLUMNS,
    VERDICTS,
    Explanation,
)
from harness.report.terminal.sources import SampleTurns, render_source
from harness.report.terminal.tables import style_text
from harness.report.verdict_text import name_sample
from harness.store.columns import COLUMNS, ResultRow
from harness.store.completions import locate_answer, read_origin, read_prompt, read_spent

if TYPE_CHECKING:
    from harness.store.results import ResultFilter, ResultStore, StoredEvaluation


def show(
    evaluation: Annotated[str, typer.Argument(metavar="ID", help="A number, or RUN/PROBLEM/SAMPLE[/turn-N].")],
    *,
    whole_log: Annotated[bool, typer.Option("--log", help="The whole build log, not only its end.")] = False,
    all_blocks: Annotated[bool, typer.Option("--blocks", help="Every timed block, not only their summary.")] = False,
    only_source: Annotated[bool, typer.Option("--source", help="Print only the candidate's source.")] = False,
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="FILE", help="Write phases and timed calls for ui.perfetto.dev.")
    ] = None,
    as_json: AsJson = False,
    folders: StoredPanel,
) -> None:
    """Explain one evaluation: findings, trials, both clocks, machine, build, source, sandbox; for several turns all
    results, the feedback, and the change.

    Examples: harness show 17

    harness show demo/softmax/0 --source > candidate.py
    """
    from harness.store.results import ResultStore

    with ResultStore.open(folders.results_dir, read_only=True) as store:
        stored = find_evaluation(store, evaluation)
        source = store.source(stored.evaluation.subject.candidate_digest)
        turns = _find_turns(store, stored, folders.generated_dir)
    if trace is not None:
        from harness.report.export.json_records import write_trace

        write_trace(stored, trace)
        typer.echo(f"{trace}: open it with https://ui.perfetto.dev", err=True)
    elif as_json:
        _print_json(stored, source)
    elif only_source:
        _print_source(stored, source)
    else:
        from harness.report.terminal.details import render_details

        print_rich(render_details(stored, source=source, turns=turns, whole_log=whole_log, all_blocks=all_blocks))


def find_evaluation(store: ResultStore, name: str) -> StoredEvaluation:
    """Find by id, or the sample's latest. Raises UsageError with similar names."""
    from harness.store.results import EVERYTHING, explain_no_match

    stored = store.get(int(name)) if _is_number(name) else _find_sample(store, name)
    if stored is None and not store.count():
        raise UsageError(explain_no_match(store, EVERYTHING))
    if stored is None:
        raise UsageError(f"no evaluation {name!r} in {store.path}: {_suggest(store, name)}")
    return stored


def _find_turns(store: ResultStore, stored: StoredEvaluation, generated_dir: Path) -> SampleTurns:
    from harness.store.results import ResultFilter

    subject = stored.evaluation.subject
    where = ResultFilter(
        run=subject.run, model=subject.model, problem=subject.problem, sample=subject.sample, suite=subject.suite
    )
    same = [row for row in store.rows(where, sort="turn") if row.language == subject.language]
    rows = {
        row.turn: row
        for row in same
        if (row.workload, row.dtype) == (subject.workload, subject.dtype) and row.device in (NO_DEVICE, subject.device)
    }
    folders = {turn: locate_answer(generated_dir, row) for turn, row in rows.items()}
    origins = {turn: read_origin(folder, turn=turn) for turn, folder in folders.items()}
    parent = origins[subject.turn].parent
    before = next((row.candidate for row in reversed(same) if row.turn == parent and row.candidate), None)
    return SampleTurns(
        rows=[*rows.values()],
        origins=origins,
        spent={turn: read_spent(folder) for turn, folder in folders.items()},
        before=None if before is None else store.source(before),
        fed_back=None if parent is None else read_prompt(folders[subject.turn]),
    )


def _find_sample(store: ResultStore, name: str) -> StoredEvaluation | None:
    where = _parse_key(name)
    if where is None:
        return None
    rows = list(store.rows(where, sort="-id"))
    if len(rows) > 1:
        others = ", ".join(f"{row.id} ({_list_settings(row)})" for row in rows[1:])
        typer.echo(f"Showing {rows[0].id}, the latest; also evaluated: {others}", err=True)
    return store.get(rows[0].id) if rows else None


def _parse_key(name: str) -> ResultFilter | None:
    """Parse `run/problem/sample[/turn-N]`, or `file/problem/NAME` of a candidate given as a file; else return None."""
    from harness.store.results import ResultFilter

    if name.startswith(f"{FILE_RUN}/") and name.count("/") > 1 and not _is_number(name.rpartition("/")[2]):
        _, problem, file = name.split("/", 2)
        return ResultFilter(run=FILE_RUN, problem=problem, model=file)
    key = SampleKey.parse(name)
    return None if key is None else ResultFilter.of_sample(key)


def _list_settings(row: ResultRow) -> str:
    file = row.model if row.run == FILE_RUN else ""
    return ", ".join(filter(None, (file, row.device, row.workload, row.dtype, row.baseline)))


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= 18  # fits a database integer


def _suggest(store: ResultStore, name: str) -> str:
    rows = list(store.rows())
    if _is_number(name):
        near = sorted(rows, key=lambda row: abs(row.id - int(name)))[:3]
        return f"the nearest are {', '.join(str(row.id) for row in sorted(near))}"
    names = {name_sample(row) for row in rows}
    return suggest(name, sorted(names), "give a number from `harness results`, or RUN/PROBLEM/SAMPLE", most=3)


def _print_json(stored: StoredEvaluation, source: str | None) -> None:
    from harness.report.export.json_records import evaluation_record

    build = stored.evaluation.build
    record = evaluation_record(stored) | {"source": source, "build_log": build.log if build else None}
    print_records(record)


def _print_source(stored: StoredEvaluation, source: str | None) -> None:
    if source is None:
        digest = stored.evaluation.subject.candidate_digest
        why = f"the source of candidate {digest} was not stored" if digest else "no code was found in the completion"
        raise UsageError(f"evaluation {stored.id} has no source to print: {why}")
    if sys.stdout.isatty():
        print_rich(render_source(source))
    else:
        sys.stdout.buffer.write(source.encode())  # exact bytes, for redirection into a file


_FAMILIES = ((r"fast_\d+(?:\.\d+)?", "fast_p"), (r"pass@\d+", "pass@k"))


def _complete_word(incomplete: str) -> list[str]:
    return sorted({name for name, _, _ in list_entries() if name.startswith(incomplete)})


def explain(
    word: Annotated[
        str,
        typer.Argument(
            metavar="WORD",
            help="A word of results or of problem files, a command, or an option without its dashes. [default: list "
            "all words of results and problem files]",
            autocompletion=_complete_word,
            show_default=False,
        ),
    ] = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """Explain an outcome, verdict, finding, clock, baseline, kind of inputs, column or setting of a problem: what it
    means, what to do, and the page of the documentation. Commands and options are explained by their help.

    Example: harness explain wrong_value
    """
    found = _find_entries(word) if word else list(list_entries())
    if as_json:
        print_records(*({"word": name, "kind": kind} | asdict(about) for name, kind, about in found))
    elif word:
        for name, kind, about in found:
            _print_entry(name, kind, about)
    else:
        _print_words(found)


def list_entries() -> Iterator[tuple[str, str, Explanation]]:
    columns = {
        name: Explanation(one.meaning, _list_values(one.values), "report.md#columns") for name, one in COLUMNS.items()
    }
    groups: dict[str, Mapping[Any, Explanation]] = {
        "outcome": OUTCOMES,
        "verdict on speed": VERDICTS,
        "clock": CLOCKS,
        "baseline": BASELINES,
        "kind of inputs": INPUT_KINDS,
        "finding": CHECKS,
        "severity of a finding": SEVERITIES,
        "column of results": columns,
        "column of the leaderboard": LEADERBOARD,
        "setting of a problem": SETTINGS,
    }
    for kind, entries in groups.items():
        yield from ((str(name), kind, about) for name, about in entries.items())
    for title, kind, meaning, page in TABLE_COLUMNS:
        yield title, kind, Explanation(meaning, "", page)


def _list_values(values: tuple[str, ...]) -> str:
    return f"values: {', '.join(f'`{value}`' for value in values)}" if values else ""


def _find_entries(word: str) -> list[tuple[str, str, Explanation]]:
    """Raises UsageError."""
    simple = _simplify(word)
    entries = {(name, kind): about for name, kind, about in list_entries()}
    found = [(name, kind, about) for (name, kind), about in entries.items() if _simplify(name) == simple]
    found += _find_usage(simple)
    if not found:
        names = {_simplify(name): name for name, _ in entries}
        near = [name for one, name in names.items() if len(simple) > 2 and simple in one]
        near = near or [names[one] for one in get_close_matches(simple, names)]
        hint = f" Did you mean {', '.join(near)}?" if near else ""
        raise UsageError(f"nothing is called {word!r}.{hint} `harness explain` lists all words")
    return found


def _find_usage(simple: str) -> Iterator[tuple[str, str, Explanation]]:
    """Find commands and options by their help."""
    options: dict[tuple[str, str], list[str]] = {}
    for words, command in list_commands().items():
        if simple in (words[-1], "_".join(words)):
            summary = " ".join(command.help.partition("\n\n")[0].split()).removesuffix(".")
            name = f"harness {' '.join(words)}"
            yield name, "command", Explanation(summary, f"options: {name} --help", "getting-started.md")
        for option, about in ((one, parameter.help) for parameter in command.params for one in parameter.opts):
            if option.startswith("-") and _simplify(option.lstrip("-")) == simple:
                options.setdefault((option, about.partition(" [default:")[0].removesuffix(".")), []).append(
                    " ".join(words)
                )
    for (option, about), names in options.items():
        yield option, f"option of {', '.join(names)}", Explanation(about, "", "configuration.md")


def _simplify(word: str) -> str:
    simple = re.sub(r"[\s_-]+", "_", word.strip().lower())
    return next((name for pattern, name in _FAMILIES if re.fullmatch(pattern, simple)), simple)


def _print_entry(name: str, kind: str, about: Explanation) -> None:
    print_rich(style_text(name, "bold").append_text(style_text(f", {kind}: {about.meaning}.")))
    if about.remedy:
        print_rich(style_text(f"{about.remedy[0].upper()}{about.remedy[1:]}."))
    print_rich(style_text(f"docs/{about.page}\n", "dim"))


def _print_words(entries: list[tuple[str, str, Explanation]]) -> None:
    by_kind: dict[str, list[str]] = {}
    for name, kind, _ in entries:
        by_kind.setdefault(kind, []).append(name)
    for kind, names in by_kind.items():
        print_rich(style_text(f"{kind}: ", "bold").append_text(style_text(", ".join(names))))
