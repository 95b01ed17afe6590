"""`harness explain`: what the words of results mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from difflib import get_close_matches
from typing import Annotated, Any

import typer

from harness.analysis.explanations import (
    BASELINES,
    CHECKS,
    CLOCKS,
    INPUT_KINDS,
    LEADERBOARD,
    OUTCOMES,
    SETTINGS,
    SEVERITIES,
    VERDICTS,
    Explanation,
)
from harness.analysis.table_columns import TABLE_COLUMNS
from harness.cli.options import JsonOption, print_records, print_rich
from harness.domain import UsageError
from harness.report.terminal.tables import style_text
from harness.store.columns import COLUMNS

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
    from harness.cli.main import list_commands

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
