"""Lists the commands, each imported when it is used: `harness --help` imports none."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

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
HIDDEN = ("reextract",)
INTERRUPTED_EXIT_CODE = 130


class CommandGroup(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(SUMMARIES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in (*SUMMARIES, *HIDDEN):
            self.load_all()  # typer suggests similar names
        elif cmd_name not in self.commands:
            self.commands[cmd_name] = _load_command(cmd_name)
        return self.commands.get(cmd_name)

    def load_all(self) -> None:
        for name in (*SUMMARIES, *HIDDEN):
            self.get_command(None, name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))


def _load_command(name: str) -> Any:
    from harness.cli.grouped_help import GroupedCommand
    from harness.cli.panels import expand_panels

    word = name.replace("-", "_")
    if name in GROUPS:
        group = typer.main.get_group(getattr(import_module(f"harness.cli.{word}"), f"{word}_app"))
        group.name, group.help = name, SUMMARIES[name]
        return group
    word = "import_" if word == "import" else word
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    command = expand_panels(getattr(import_module(f"harness.cli.{word}"), word))
    app.command(name, cls=GroupedCommand)(_report_interrupts(command))
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
