"""Shell completion; see `harness --install-completion`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import typer

from harness.domain import Baseline, HarnessError


def complete_suite(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the user's and the shipped suites."""
    folders = {path.name for root in _list_roots(context) for path in root.iterdir() if path.is_dir()}
    return _matching(list(folders), incomplete)


def complete_problem(context: typer.Context, incomplete: str) -> list[str]:
    """Use the given suite, or `core`."""
    suite = str(_given(context, "suite") or _given(context, "only_suite") or "core")
    folder = next((root / suite for root in _list_roots(context) if (root / suite).is_dir()), None)
    return [] if folder is None else _matching([path.stem for path in folder.glob("*.py")], incomplete)


def complete_run(context: typer.Context, incomplete: str) -> list[str]:
    from harness.store.runs import list_runs

    return _matching(list_runs(Path(_given(context, "generated_dir") or "generated")), incomplete)


def complete_baseline(incomplete: str) -> list[str]:
    """Complete the last of names that commas separate."""
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    return [f"{before}{comma}{name}" for name in _matching(get_args(Baseline), last) if name not in given]


def _list_roots(context: typer.Context) -> tuple[Path, ...]:
    from harness.pipeline.data_folders import list_suite_roots

    given = _given(context, "problems_dir")
    try:
        return list_suite_roots(Path(given) if given else None)
    except HarnessError:
        return ()


def _given(context: typer.Context, name: str) -> Any:
    return context.params.get(name)


def _matching(names: list[str] | tuple[str, ...], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete) and not name.startswith(("_", ".")))


COMPLETIONS: dict[str, Callable[..., list[str]]] = {
    "only_run": complete_run,
    "only_problem": complete_problem,
    "only_suite": complete_suite,
    "baseline": complete_baseline,
}
