"""Explains outcomes, verdicts, clocks, columns, settings of problems and checks, from `explanations.toml`."""

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Explanation:
    """`page` is a page of docs/, with its section."""

    meaning: str
    remedy: str
    page: str


_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _read(kind: str) -> dict[str, Explanation]:
    entries = ((name, page, text) for page, texts in _TEXTS[kind].items() for name, text in texts.items())
    return {
        name: Explanation(text, "", page) if isinstance(text, str) else Explanation(text[0], text[1], page)
        for name, page, text in entries
    }


OUTCOMES = _read("outcomes")
VERDICTS = _read("verdicts")
CLOCKS = _read("clocks")
INPUT_KINDS = _read("input_kinds")
BASELINES = _read("baselines")
SEVERITIES = _read("severities")
LEADERBOARD = _read("leaderboard")
SETTINGS = _read("settings")
CHECKS = _read("checks")
TABLE_COLUMNS = [  # of terminal tables, beside those of results and of the leaderboard
    (title, f"column of `{command}`", meaning, page)
    for command, pages in _TEXTS["columns"].items()
    for page, columns in pages.items()
    for title, meaning in columns.items()
]
