"""Registers commands, reads settings, and turns errors into messages and exit codes.

Exit codes: 0 success, 1 negative result, 2 wrong usage, 3 failure of harness or endpoint, 130 interrupted.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import harness
from harness.cli.cache import cache_app
from harness.cli.diff import diff
from harness.cli.doctor import doctor
from harness.cli.evaluate import evaluate
from harness.cli.export import export
from harness.cli.extract import extract
from harness.cli.generate import generate
from harness.cli.grouped_help import GroupedCommand
from harness.cli.import_ import import_
from harness.cli.improve import improve
from harness.cli.leaderboard import leaderboard
from harness.cli.problems import problems_app
from harness.cli.red_team import red_team
from harness.cli.reextract import reextract
from harness.cli.regress import regress
from harness.cli.report import report
from harness.cli.results import results
from harness.cli.run import run
from harness.cli.serve import serve
from harness.cli.settings import SETTINGS_FILE, map_defaults, read_settings
from harness.cli.show import show
from harness.cli.tools import tools_app
from harness.domain import HarnessError, ProviderError, UsageError
from harness.evaluation.timing.threads import wait_passively

USAGE_EXIT_CODE = 2
FAILURE_EXIT_CODE = 3
INTERRUPTED_EXIT_CODE = 130


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


def build_app() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback()(_root)
    app.add_typer(problems_app, name="problems", help="List the problems, or validate them.")
    app.add_typer(cache_app, name="cache", help="Show or reduce the size of the build cache.")
    app.add_typer(tools_app, name="tools", help="Evaluation as tools of a coding agent.")
    evaluating = (generate, extract, evaluate, run, improve)
    reading = (results, leaderboard, show, report, diff, regress)
    for command in (*evaluating, *reading, serve, export, import_, red_team, doctor):
        name = command.__name__.rstrip("_").replace("_", "-")
        app.command(name, cls=GroupedCommand)(_report_interrupts(command))
    app.command("reextract", cls=GroupedCommand, hidden=True)(_report_interrupts(reextract))
    return app


def _report_interrupts(command: Callable[..., None]) -> Callable[..., None]:
    """The option parser ends silently on Ctrl-C."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt as error:
            message = "harness: interrupted; everything finished before is kept"
            raise typer.Exit(_complain(message, INTERRUPTED_EXIT_CODE)) from error

    return run


def main(arguments: list[str] | None = None) -> None:
    sys.exit(run_command(sys.argv[1:] if arguments is None else arguments))


def run_command(arguments: list[str]) -> int:
    """Returns the exit code."""
    wait_passively()  # before any command imports torch
    try:
        command = typer.main.get_command(build_app())
        defaults = map_defaults(read_settings(Path.cwd()), _options_by_command(command))
        _name_settings_file(command, defaults, arguments)
        command.main(args=arguments, prog_name="harness", default_map=_nest_defaults(command, defaults))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except UsageError as error:
        return _complain(f"harness: {error}", USAGE_EXIT_CODE)
    except ProviderError as error:  # such as a wrong key: no failure of the harness
        return _complain(f"harness: {error}", FAILURE_EXIT_CODE)
    except HarnessError as error:
        return _complain(f"harness failed: {error}", FAILURE_EXIT_CODE)
    return 0


def _name_settings_file(group: Any, defaults: dict[str, dict[str, Any]], arguments: list[str]) -> None:
    """Errors about its values name the settings file instead of a variable."""
    given = {argument.split("=", 1)[0] for argument in arguments}
    for name, command in group.commands.items():
        for part in (command, *getattr(command, "commands", {}).values()):
            for parameter in part.params:
                in_file = parameter.name in defaults[name] and given.isdisjoint(parameter.opts)
                if in_file and not os.environ.get(getattr(parameter, "envvar", None) or ""):
                    hint = f"'{' / '.join(parameter.opts)}' in {SETTINGS_FILE}"
                    parameter.get_error_hint = lambda *_, hint=hint: hint


def _complain(message: str, exit_code: int) -> int:
    typer.echo(message, err=True)
    return exit_code


def _options_by_command(group: Any) -> dict[str, set[str]]:
    """Groups include their commands' parameters."""
    names = {}
    for name, command in group.commands.items():
        parts = [command, *getattr(command, "commands", {}).values()]
        names[name] = {parameter.name for part in parts for parameter in part.params}
    return names


def _nest_defaults(group: Any, defaults: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Groups need one more level."""
    nested: dict[str, Any] = {}
    for name, command in group.commands.items():
        inner = getattr(command, "commands", None)
        nested[name] = dict.fromkeys(inner, defaults[name]) if inner else defaults[name]
    return nested


if __name__ == "__main__":
    main()
