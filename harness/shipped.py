"""Folders that are shipped with harness (suites, prompts, recordings, the red-team corpus), and installation of its
optional parts."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def find_shipped(name: str) -> Path:
    """That folder in an installed wheel, or else in the checkout; it may be missing."""
    installed = PACKAGE / "data" / name
    return installed if installed.is_dir() else PACKAGE.parent / name


def name_install(extra: str) -> str:
    """The command that installs an optional part from a checkout: harness is on no package index."""
    return f"pip install -e '.[{extra}]' in the checkout of harness"
