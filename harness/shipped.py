"""Finds shipped folders (suites, prompts, recordings, corpus), and names the installation of optional parts."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def find_shipped(name: str) -> Path:
    """Prefer an installed wheel to the checkout; the folder may be missing."""
    installed = PACKAGE / "data" / name
    return installed if installed.is_dir() else PACKAGE.parent / name


def name_install(extra: str) -> str:
    """Return a command for a checkout, since harness is on no package index."""
    return f"pip install -e '.[{extra}]' in the checkout of harness"
