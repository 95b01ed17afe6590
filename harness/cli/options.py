"""Options of commands, their completion by shells, and their `--help`, grouped, in plain text of 80 columns.

A command's parameter whose type is a dataclass with options stands for these options:
`def prune(settings: Annotated[LocalSettings, Only("cache_dir")]) -> None: ...`

An option is given once: its value goes to each of a command's parameters that has a field of its name.
"""

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import Field, fields, is_dataclass, replace
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, get_args, get_type_hints

import typer
from rich.console import Console, RenderableType
from typer.core import TyperArgument, TyperCommand

from harness.domain import Baseline, HarnessError, StoreError
from harness.domain.errors import suggest
from harness.domain.files import raising, replacing
from harness.store.runs import list_runs


def complete_suite(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the user's and the shipped suites."""
    from harness.pipeline.data_folders import list_suite_names

    return _matching(list_suite_names(_list_roots(context)), incomplete)


def complete_problem(context: typer.Context, incomplete: str) -> list[str]:
    """Use the given suite, or `core`."""
    suite = str(context.params.get("suite") or context.params.get("only_suite") or "core")
    folder = next((root / suite for root in _list_roots(context) if (root / suite).is_dir()), None)
    return [] if folder is None else _matching([path.stem for path in folder.glob("*.py")], incomplete)


def complete_run(context: typer.Context, incomplete: str) -> list[str]:
    return _matching(list_runs(Path(context.params.get("generated_dir") or "generated")), incomplete)


def complete_baseline(incomplete: str) -> list[str]:
    """Complete the last of names that commas separate."""
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    return [f"{before}{comma}{name}" for name in _matching(get_args(Baseline), last) if name not in given]


def _list_roots(context: typer.Context) -> tuple[Path, ...]:
    from harness.pipeline.data_folders import list_suite_roots

    given = context.params.get("problems_dir")
    try:
        return list_suite_roots(Path(given) if given else None)
    except HarnessError:
        return ()


def _matching(names: list[str] | tuple[str, ...], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete) and not name.startswith(("_", ".")))


COMPLETIONS: dict[str, Callable[..., list[str]]] = {
    "only_run": complete_run,
    "only_problem": complete_problem,
    "only_suite": complete_suite,
    "baseline": complete_baseline,
}

SuiteOption = Annotated[
    str,
    typer.Option(
        envvar="HARNESS_SUITE",
        help="Suite of problems: a folder in reference_models/, or a shipped suite.",
        metavar="NAME",
        autocompletion=complete_suite,
    ),
]
ProblemOption = Annotated[
    list[str] | None,
    typer.Option(
        envvar="HARNESS_PROBLEM",
        help="Only this problem of the suite, or a reference file. Repeatable.",
        metavar="NAME|FILE",
        autocompletion=complete_problem,
    ),
]
OnlyProblem = Annotated[str | None, typer.Option("--problem", help="Only this problem; * and ? are wildcards.")]
RunOption = Annotated[
    str | None,
    typer.Option(
        envvar="HARNESS_RUN",
        help="Name of the run; an existing one is resumed. [default: the last unfinished run with these settings]",
        metavar="NAME",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", envvar="HARNESS_JSON", help="Print JSON on stdout, one record per line.")
]


class Panel:
    """Options that only commands have. `title` is the panel's in `--help`. `has_variables`: HARNESS_<NAME> apply."""

    __slots__ = ()
    title: ClassVar[str] = "Options"
    has_variables: ClassVar[bool] = True


class Only(tuple[str, ...]):
    """Selects a panel's options for a command, in this order."""

    def __new__(cls, *names: str) -> Self:
        return super().__new__(cls, names)

    def choose(self, known: list[str]) -> list[str]:
        return list(self)


class Without(Only):
    """Excludes a panel's options from a command."""

    def choose(self, known: list[str]) -> list[str]:
        return [name for name in known if name not in self]


def expand_panels(command: Callable[..., None]) -> Callable[..., None]:
    """Replace panels by options as parameters, as typer expects. A panel as default value gives other defaults."""
    signature = inspect.signature(command, eval_str=True)
    parameters: dict[str, Parameter] = {}
    panels: dict[str, Any] = {}
    options: set[str] = set()
    for parameter in signature.parameters.values():
        kind: Any
        kind, *choice = get_args(parameter.annotation) or [parameter.annotation]
        if not (isinstance(kind, type) and is_dataclass(kind)):
            parameters[parameter.name] = parameter
            continue
        panels[parameter.name] = defaults = kind() if parameter.default is Parameter.empty else parameter.default
        known = dict(_list_options(defaults))
        for name in choice[0].choose(list(known)) if choice else known:
            parameters.setdefault(name, known[name])
            options.add(name)

    @functools.wraps(command)
    def run(**values: Any) -> None:
        filled = {name: _fill(defaults, values, options) for name, defaults in panels.items()}
        command(**{name: values[name] for name in signature.parameters.keys() & values.keys()} | filled)

    run.__signature__ = signature.replace(parameters=list(parameters.values()))  # type: ignore[attr-defined]
    return run


def _list_options(panel: Any) -> Iterator[tuple[str, Parameter]]:
    """Yield the options of the class, then inherited ones."""
    declared, hints, usual = {one.name: one for one in fields(panel)}, get_type_hints(type(panel)), type(panel)()
    for owner in type(panel).__mro__:
        for name in filter(declared.__contains__, inspect.get_annotations(owner)):
            one = declared.pop(name)
            if one.metadata.get("help"):
                value = getattr(panel, name)
                typed = one.metadata["text"] if one.metadata["parse"] else one.default
                default = typed if value == getattr(usual, name) else value
                parameter = _make_parameter(one, default, hints[name], owner)
                yield parameter.name, parameter
            elif is_dataclass(getattr(panel, name)):
                yield from _list_options(getattr(panel, name))


def _make_parameter(one: Field[Any], default: Any, hint: Any, owner: Any) -> Parameter:
    about, name = one.metadata, one.metadata["key"] or one.name
    usual: dict[str, Any] = {
        "envvar": f"HARNESS_{name.upper()}" if getattr(owner, "has_variables", True) else None,
        "show_envvar": False,
        "rich_help_panel": about["panel"] or owner.title,
        "help": about["help"],
        "autocompletion": COMPLETIONS.get(name),
    }
    declared = typer.Option(*about["names"], **usual | about["typer"])
    typed = about["kind"] or hint
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[typed, declared])


def _fill(panel: Any, values: dict[str, Any], options: set[str]) -> Any:
    """A parameter of the command that is no option of a panel sets only fields without help."""
    changes = {}
    for one in fields(panel):
        name, known = one.metadata.get("key") or one.name, getattr(panel, one.name)
        if one.metadata and name in values and (name in options or not one.metadata["help"]):
            parse = one.metadata["parse"]
            changes[one.name] = values[name] if parse is None else parse(values[name])
        elif is_dataclass(known):
            changes[one.name] = _fill(known, values, options)
    return replace(panel, **changes)


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


def list_by_default(context: typer.Context) -> None:
    """Run the command `list` of a group of which no command was named."""
    if context.invoked_subcommand is None:
        listing = context.command.commands["list"]  # type: ignore[attr-defined]
        with listing.make_context("list", [], parent=context) as inner:
            listing.invoke(inner)


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


STDOUT = Path("-")


def print_records(*records: Any) -> None:
    """Print one JSON object per line."""
    from harness.report.export.json_records import dump_json

    typer.echo(dump_json(*records), nl=False)


def print_rich(content: RenderableType) -> None:
    Console().print(content)


def write_text(path: Path, text: str) -> None:
    """Path `-` prints the text. On StoreError an older file is kept."""
    if path == STDOUT:
        typer.echo(text, nl=False)
        return
    with raising(StoreError, f"write {path}", "; choose another file"), replacing(path) as partial:
        partial.write_bytes(text.encode("utf-8", "replace"))
