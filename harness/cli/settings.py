"""Reads `harness.toml`, which ranks between variables and defaults."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

SETTINGS_FILE = "harness.toml"


def read_settings(folder: Path) -> dict[str, Any]:
    """{} without a file. Raises UsageError."""
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
    """Top-level keys apply to every command with that option, tables to their command. `options`: parameters per
    command. Raises UsageError for an unknown key."""
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
