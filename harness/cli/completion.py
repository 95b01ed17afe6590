"""Shell completion; see `harness --install-completion`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from harness.domain import HarnessError


def complete_suite(context: typer.Context, incomplete: str) -> list[str]:
    folder = _find_suites(context)
    return [] if folder is None else _matching([path.name for path in folder.iterdir() if path.is_dir()], incomplete)


def complete_problem(context: typer.Context, incomplete: str) -> list[str]:
    """Of the given suite, or `core`."""
    folder = _find_suites(context)
    if folder is None:
        return []
    suite = _given(context, "suite") or _given(context, "only_suite") or "core"
    return _matching([path.stem for path in (folder / str(suite)).glob("*.py")], incomplete)


def complete_run(context: typer.Context, incomplete: str) -> list[str]:
    from harness.store.runs import list_runs

    return _matching(list_runs(Path(_given(context, "generated_dir") or "generated")), incomplete)


def _find_suites(context: typer.Context) -> Path | None:
    from harness.pipeline.data_folders import find_folder

    given = _given(context, "problems_dir")
    try:
        return find_folder("reference_models", Path(given) if given else None)
    except HarnessError:
        return None


def _given(context: typer.Context, name: str) -> Any:
    return context.params.get(name)


def _matching(names: list[str] | tuple[str, ...], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete) and not name.startswith(("_", ".")))
