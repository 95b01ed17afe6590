"""Finds the folders that come with the harness: reference_models/, prompts/, recordings/."""

from __future__ import annotations

from pathlib import Path

import harness
from harness.domain import UsageError


def find_folder(name: str, given: Path | None, *, option: str = "") -> Path:
    """The folder `given`, or `name` in the working folder, or `name` in the checkout that holds the package.

    Raises UsageError naming where it looked; `option` is the flag to mention.
    """
    if given is not None:
        if given.is_dir():
            return given
        raise UsageError(f"no folder {given}{f', given with {option}' if option else ''}")
    places = (Path.cwd() / name, Path(harness.__file__).resolve().parent.parent / name)
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        hint = f": name it with {option}" if option else ""
        raise UsageError(f"no folder {name}/ in {places[0].parent} nor in {places[1].parent}{hint}")
    return found
