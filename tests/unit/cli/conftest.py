"""Stored results, and the commands that browse them."""

import pytest
import typer
from browsing import SOURCE
from typer.testing import CliRunner

from harness.cli.compare import leaderboard
from harness.cli.options import expand_panels
from harness.cli.results import results
from harness.cli.show import show
from harness.domain import BuildSummary
from harness.store.results import ResultStore


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs one command line in an empty working folder; its exceptions pass through."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    for command in (results, leaderboard, show):
        app.command()(expand_panels(command))

    def run_line(*arguments):
        outcome = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert outcome.exit_code == 0, outcome.stderr
        return outcome

    return run_line


@pytest.fixture
def stored(tmp_path, evaluation_of):
    build = BuildSummary(
        keys=("k",), cached=True, duration_s=0.0, strategy="plain", log="\n".join(f"line {n}" for n in range(60))
    )
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct", 2.0, problem="softmax", extra={"build": build}), SOURCE)
        store.record(evaluation_of("correct", 3.0, problem="conv", model="model-b", candidate_digest="d" * 16))
        store.record(evaluation_of("no_code", problem="softmax", sample=1, device="none", candidate_digest=""))
        store.record(evaluation_of("timeout", problem="softmax", workload="small"), SOURCE)
