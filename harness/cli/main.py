"""Reads settings, runs a command, and turns errors into messages and exit codes. Commands are imported when they are
used: `harness --help` imports none.

Exit codes: 0 success, 1 negative result, 2 wrong usage, 3 failure of harness or endpoint, 130 interrupted.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import harness

SETTINGS_FILE = "harness.toml"


def read_settings(folder: Path) -> dict[str, Any]:
    """Return {} without a file. Raises UsageError."""
    path = folder / SETTINGS_FILE
    if not path.exists():
        return {}
    import tomllib

    from harness.domain import UsageError

    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}") from error


def map_defaults(settings: dict[str, Any], options: dict[str, set[str]]) -> dict[str, dict[str, Any]]:
    """Top-level keys apply to every command with that option, tables to theirs. Raises UsageError for others."""
    known = set().union(*options.values())
    defaults: dict[str, dict[str, Any]] = {command: {} for command in options}
    for key, value in settings.items():
        name = key.replace("-", "_")
        if isinstance(value, dict):
            _check_known(value, options.get(key, set()), where=f"[{key}]")
        else:
            _check_known([key], known, where="the top level")
            for command, names in options.items():
                if name in names:
                    defaults[command].setdefault(name, value)
    for command, table in settings.items():
        if isinstance(table, dict):
            defaults[command].update({key.replace("-", "_"): value for key, value in table.items()})
    return defaults


def _check_known(keys: Iterable[str], known: set[str], *, where: str) -> None:
    from harness.domain import UsageError

    unknown = [key for key in keys if key.replace("-", "_") not in known]
    if unknown:
        raise UsageError(f"{SETTINGS_FILE}: {where} has {', '.join(sorted(unknown))}, which is no option")


WAIT_POLICY = "OMP_WAIT_POLICY"


def wait_passively() -> bool:
    """Set OMP_WAIT_POLICY=PASSIVE unless set. Return False if torch is loaded already: its threads then spin for ms."""
    if WAIT_POLICY not in os.environ and "torch" in sys.modules:
        return False
    os.environ.setdefault(WAIT_POLICY, "PASSIVE")
    return True


USAGE_EXIT_CODE = 2
FAILURE_EXIT_CODE = 3


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"harness {harness.__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Benchmark kernels written by language models: generate, build, verify, time, rank.

    `harness run` does all of it; the other commands do one step each or read stored results. Settings come from
    options, then HARNESS_* variables, then harness.toml in the working folder.
    """


def build_group() -> CommandGroup:
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None, cls=CommandGroup)
    app.callback()(_root)
    group = typer.main.get_command(app)
    assert isinstance(group, CommandGroup)
    return group


def list_commands() -> dict[tuple[str, ...], Any]:
    """By their words, such as ("runs", "rm")."""
    group = build_group()
    group.load_all()
    found: dict[tuple[str, ...], Any] = {(name,): command for name, command in group.commands.items()}
    return found | {(name, part): one for (name,), group in found.items() for part, one in _parts_of(group).items()}


def _parts_of(command: Any) -> dict[str, Any]:
    """Return the commands of a group by name."""
    return getattr(command, "commands", {})


class _Notes(logging.Handler):
    """Prints messages that a command logs."""

    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(record.getMessage(), err=True)


def main(arguments: list[str] | None = None) -> None:
    sys.exit(run_command(sys.argv[1:] if arguments is None else arguments))


def run_command(arguments: list[str]) -> int:
    """Return the exit code."""
    wait_passively()  # before any command imports torch
    logging.getLogger("harness.pipeline").handlers = [_Notes()]
    try:
        group, settings = build_group(), read_settings(Path.cwd())
        group.main(args=arguments, prog_name="harness", default_map=_read_defaults(group, settings, arguments))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except Exception as error:  # noqa: BLE001 - unknown ones are raised again
        return _report_error(error)
    return 0


def _report_error(error: Exception) -> int:
    """Return the exit code; re-raise bugs."""
    from harness.domain import HarnessError, ProblemError, ProviderError, UsageError

    if isinstance(error, UsageError | ProblemError):
        return _complain(f"harness: {error}", USAGE_EXIT_CODE)
    if isinstance(error, ProviderError):  # such as a wrong key: no failure of the harness
        return _complain(f"harness: {error}", FAILURE_EXIT_CODE)
    if isinstance(error, HarnessError):
        return _complain(f"harness failed: {error}", FAILURE_EXIT_CODE)
    raise error


def _read_defaults(group: CommandGroup, settings: dict[str, Any], arguments: list[str]) -> dict[str, Any]:
    """The options of all commands are needed to detect unknown keys."""
    if not settings:
        return {}
    group.load_all()
    # Groups include their commands' parameters.
    names = {}
    for name, command in group.commands.items():
        parts = [command, *_parts_of(command).values()]
        names[name] = {parameter.name for part in parts for parameter in part.params}
    defaults = map_defaults(settings, names)
    _name_settings_file(group, defaults, arguments)
    return _nest_defaults(group, defaults)


def _name_settings_file(group: Any, defaults: dict[str, dict[str, Any]], arguments: list[str]) -> None:
    """Make errors about values from the settings file name that file instead of a variable."""
    given = {argument.split("=", 1)[0] for argument in arguments}
    for name, command in group.commands.items():
        for part in (command, *_parts_of(command).values()):
            for parameter in part.params:
                in_file = parameter.name in defaults[name] and given.isdisjoint(parameter.opts)
                if in_file and not any(map(os.environ.get, _list_variables(parameter))):
                    hint = f"'{' / '.join(parameter.opts)}' in {SETTINGS_FILE}"
                    parameter.get_error_hint = lambda *_, hint=hint: hint


def _list_variables(parameter: Any) -> list[str]:
    names = getattr(parameter, "envvar", None) or []
    return [names] if isinstance(names, str) else list(names)


def _complain(message: str, exit_code: int) -> int:
    typer.echo(message, err=True)
    return exit_code


def _nest_defaults(group: Any, defaults: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Groups need one more level."""
    nested: dict[str, Any] = {}
    for name, command in group.commands.items():
        parts = _parts_of(command)
        nested[name] = dict.fromkeys(parts, defaults[name]) if parts else defaults[name]
    return nested


# In the order of `harness --help`, with what it says.
SUMMARIES = {
    "generate": "Ask a model for kernels and store its answers.",
    "extract": "Print the program that a raw completion submits.",
    "evaluate": "Build, verify and time candidates, and store the results.",
    "run": "Generate candidates, evaluate them, print the leaderboard.",
    "improve": "Ask the model again, with errors and times fed back.",
    "capture": "Profile a model and write its modules as problems.",
    "apply": "Put verified kernels into a captured model and measure it.",
    "runs": "List runs, annotate or remove one.",
    "results": "List evaluations: filter, sort, group, choose columns.",
    "leaderboard": "Rank models by correctness, fast_p and mean speedup.",
    "show": "Explain one evaluation.",
    "explain": "Explain an outcome, finding, column or setting.",
    "report": "Write one HTML file for offline use, or serve a live page.",
    "diff": "Compare two runs, models, prompts or versions of harness.",
    "regress": "Re-evaluate past generations and compare the results.",
    "serve": "Evaluate candidates on request, over HTTP.",
    "export": "Export problems, or a run.",
    "import": "Import problems, or a run with its reported results.",
    "red-team": "Evaluate a corpus of exploits and legitimate programs.",
    "doctor": "Report what this machine can do.",
    "problems": "List, search, show, create or validate problems.",
    "cache": "Show or reduce the size of the build cache.",
    "tools": "Evaluation as tools of a coding agent.",
}
GROUPS = ("runs", "problems", "cache", "tools")
# Other commands have a module of their name.
MODULES = {
    "extract": "generate",
    "improve": "run",
    "regress": "run",
    "apply": "capture",
    "runs": "results",
    "leaderboard": "compare",
    "diff": "compare",
    "explain": "show",
    "report": "export",
    "import": "export",
    "tools": "serve",
    "red-team": "doctor",
    "cache": "doctor",
}
INTERRUPTED_EXIT_CODE = 130


class CommandGroup(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(SUMMARIES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in SUMMARIES:
            self.load_all()  # typer suggests similar names
        elif cmd_name not in self.commands:
            self.commands[cmd_name] = _load_command(cmd_name)
        return self.commands.get(cmd_name)

    def load_all(self) -> None:
        for name in SUMMARIES:
            self.get_command(None, name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))


def _load_command(name: str) -> Any:
    from harness.cli.options import GroupedCommand, expand_panels

    module = import_module(f"harness.cli.{MODULES.get(name, name)}")
    if name in GROUPS:
        group = typer.main.get_group(getattr(module, f"{name}_app"))
        group.name, group.help = name, SUMMARIES[name]
        return group
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    function = "import_" if name == "import" else name.replace("-", "_")
    app.command(name, cls=GroupedCommand)(_report_interrupts(expand_panels(getattr(module, function))))
    return typer.main.get_command(app)


def _report_interrupts(command: Callable[..., None]) -> Callable[..., None]:
    """The option parser ends silently on Ctrl-C."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt as error:
            typer.echo("harness: interrupted; everything finished before is kept", err=True)
            raise typer.Exit(INTERRUPTED_EXIT_CODE) from error

    return run


if __name__ == "__main__":
    main()
