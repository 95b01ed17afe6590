"""Where the folders lie that come with harness: problem suites, prompts, recordings, the red-team corpus; and how its
optional parts are installed."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def find_shipped(name: str) -> Path:
    """That folder in an installed wheel, or else in the checkout; it may be missing."""
    installed = PACKAGE / "data" / name
    return installed if installed.is_dir() else PACKAGE.parent / name


def name_install(extra: str) -> str:
    """How to install an optional part. No package index has harness."""
    return f"pip install -e '.[{extra}]' in the checkout of harness"
