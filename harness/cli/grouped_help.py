"""Commands whose `--help` groups options, in plain text of 80 columns."""

from __future__ import annotations

import re
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand

from harness.domain.suggestions import suggest

SETTINGS_NOTE = "Most options can also be set by HARNESS_<OPTION> variables and in harness.toml."
PLACEHOLDERS = {"path": "PATH", "int": "N", "int range": "N", "list[int]": "N", "float": "X", "float range": "X"}
_TYPE = re.compile(r"<([a-z][a-z\[\] ]*)>")

_NO_CHOICE = re.compile(r"^(?:Value error, )?'(?P<value>.*)' is not one of (?P<choices>'.*')\.$")


class GroupedCommand(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = _suggest_choice(error.message)
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        parameters: list[Any] = self.get_params(ctx)
        for parameter in parameters:
            parameter.show_envvar = False  # SETTINGS_NOTE says it once
            record = parameter.get_help_record(ctx)
            if record is not None:
                groups.setdefault(_name_group(parameter), []).append((_shorten(parameter, record[0]), record[1]))
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        if any(getattr(parameter, "envvar", None) for parameter in self.params):
            formatter.write_paragraph()
            formatter.write_text(SETTINGS_NOTE)


def _suggest_choice(message: str) -> str:
    """Append the nearest choice for an invalid option value."""
    found = _NO_CHOICE.match(message)
    if found is None:
        return message
    choices = [choice.strip("'") for choice in found["choices"].split(", ")]
    hint = suggest(found["value"].lower(), choices, "")
    return f"{found['value']!r} is not one of {', '.join(choices)}{hint and f'; {hint}'}"


def _name_group(parameter: Any) -> str:
    if isinstance(parameter, TyperArgument):
        return "Arguments"
    return getattr(parameter, "rich_help_panel", None) or "Options"


def _shorten(parameter: Any, usage: str) -> str:
    """`--limit <int range>` becomes `--limit N`; arguments lose their type."""
    if isinstance(parameter, TyperArgument):
        return _TYPE.sub("", usage).strip()
    return _TYPE.sub(lambda match: PLACEHOLDERS.get(match[1], "TEXT"), usage)
