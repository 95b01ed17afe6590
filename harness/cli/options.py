"""Options shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.completion import complete_problem, complete_suite

SuiteOption = Annotated[
    str,
    typer.Option(
        envvar="HARNESS_SUITE",
        help="Suite of problems: a folder in reference_models/, or a shipped suite.",
        metavar="NAME",
        autocompletion=complete_suite,
    ),
]
ProblemsDirOption = Annotated[
    Path | None,
    typer.Option(
        envvar="HARNESS_PROBLEMS_DIR",
        help="Folder of suites, searched before the shipped ones. [default: reference_models]",
    ),
]
ReferenceTimeoutOption = Annotated[
    float,
    typer.Option(
        envvar="HARNESS_REFERENCE_TIMEOUT",
        help="Limit for each step of a reference: import, construction, inputs, call.",
        min=0.1,
        metavar="SECONDS",
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
RunOption = Annotated[
    str | None,
    typer.Option(
        envvar="HARNESS_RUN",
        help="Name of the run; an existing one is resumed. [default: the last unfinished run with these settings]",
        metavar="NAME",
    ),
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", envvar="HARNESS_JSON", help="Print JSON on stdout, one record per line."),
]
