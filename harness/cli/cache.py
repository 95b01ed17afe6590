"""`harness cache`: size and pruning of the build cache."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.options import GroupedCommand, Only, expand_panels
from harness.executors.settings import LocalSettings

cache_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@cache_app.command(cls=GroupedCommand)
@expand_panels
def info(settings: Annotated[LocalSettings, Only("cache_dir")]) -> None:
    """Show the number and size of cached builds and precompiled headers.

    Example: harness cache info
    """
    from harness.builder.cache import read_cache

    folder = _find_folder(settings.cache)
    contents = read_cache(folder)
    typer.echo(f"cache    {folder}")
    for name, entries in (
        ("builds", contents.builds),
        ("headers", contents.prebuilt),
        ("left over", contents.leftovers),
    ):
        size_bytes = sum(entry.size_bytes for entry in entries)
        oldest = f", oldest use {_describe_age(min(entry.used_at for entry in entries))}" if entries else ""
        typer.echo(f"{name:<9}{len(entries):>6}  {_describe_size(size_bytes):>9}{oldest}")
    typer.echo(f"{'total':<15}  {_describe_size(contents.size_bytes):>9}")


@cache_app.command(cls=GroupedCommand)
@expand_panels
def prune(settings: Annotated[LocalSettings, Only("cache_dir", "cache_size")]) -> None:
    """Remove the least recently used builds until the rest fits. Builds in use stay.

    Example: harness cache prune --cache-size 5G
    """
    from harness.builder.cache import prune_cache, read_cache

    folder = _find_folder(settings.cache)
    count, size_bytes = prune_cache(folder, settings.max_cache_bytes)
    left = read_cache(folder)
    typer.echo(f"removed {count} ({_describe_size(size_bytes)}), {_describe_size(left.size_bytes)} left in {folder}")


def _find_folder(given: Path | None) -> Path:
    from harness.builder.cache import default_cache_folder

    return given or default_cache_folder()


def _describe_size(size_bytes: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.0f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} GiB"


def _describe_age(used_at: float) -> str:
    hours = (time.time() - used_at) / 3600
    return f"{hours / 24:.0f} days ago" if hours >= 48 else f"{hours:.0f} hours ago"
