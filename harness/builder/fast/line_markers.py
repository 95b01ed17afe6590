"""Takes apart what the CUDA front end and the preprocessor write: line markers say which file each part is of.

Runs on its own too, inside the walls of a build (see `main`), so it imports the standard library only.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

_MARKER = re.compile(r'^# \d+ "([^"]*)"')
_DIRECTIVE = re.compile(r"^#(define|undef) (\w+)")
# What the front end gives a kernel template as the stub of an instance that the device pass has not made.
_NO_KERNEL = re.compile(r"\{\s*::cudaLaunchKernel\(0, 0, 0, 0, 0, 0\);\s*\}")
MISSING = "__wrapper__device_stub_missing"


def split_regions(text: str) -> Iterator[tuple[str, str]]:
    """(file, text) in order. The text keeps its markers; the first part is what stands before any header's."""
    name, lines = "", list[str]()
    for line in text.splitlines(keepends=True):
        found = _MARKER.match(line)
        if found and found[1] != name:
            if lines:
                yield name, "".join(lines)
            name, lines = found[1], []
        lines.append(line)
    yield name, "".join(lines)


def read_macros(preprocessed: str, files: Iterable[str] | None = None) -> dict[str, str]:
    """Macro name -> its #define line, as they are at the end of the output of `-E -dD`; those of some files only."""
    wanted = None if files is None else set(files)
    macros: dict[str, str] = {}
    name = ""
    for line in preprocessed.splitlines():
        if not line.startswith("#"):
            continue
        if found := _MARKER.match(line):
            name = found[1]
        elif (found := _DIRECTIVE.match(line)) and not name.startswith("<") and (wanted is None or name in wanted):
            if found[1] == "define":
                macros[found[2]] = line
            else:
                macros.pop(found[2], None)
    return macros


def keep_own(lowered: str, *, source: str, dropped: set[str], after_prologue: str) -> str:
    """The lowered text without the regions of dropped files; `after_prologue` stands in their place.

    A launch of an instance without device code names `MISSING`, which nobody defines, where it would fail when called.
    """
    regions = list(split_regions(lowered))
    own = "".join(_keep_regions(regions[1:], dropped))
    declared = f'extern "C" void {MISSING}();\n'
    return f'# 1 "{source}"\n{regions[0][1]}{declared}{after_prologue}{_NO_KERNEL.sub(f"{{ {MISSING}(); }}", own)}'


def _keep_regions(regions: Iterable[tuple[str, str]], dropped: set[str]) -> Iterator[str]:
    """The texts of files that are not dropped. Within a declaration the front end gives attributes the place of an
    earlier declaration, in another file: what continues a declaration goes where its beginning went."""
    keeps, is_open = True, False
    for name, text in regions:
        if not is_open:
            keeps = name not in dropped
        if keeps:
            yield text
        code = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        is_open = not code[-1].rstrip().endswith((";", "{", "}")) if code else is_open


def main(lowered: str, dropped: str, delta: str, source: str, out: str) -> None:
    """Files: the lowered text, a JSON list of dropped files, what stands in their place; where the result goes."""
    text = keep_own(
        Path(lowered).read_text(encoding="utf-8", errors="surrogateescape"),
        source=source,
        dropped=set(json.loads(Path(dropped).read_text(encoding="utf-8"))),
        after_prologue=Path(delta).read_text(encoding="utf-8", errors="surrogateescape"),
    )
    Path(out).write_text(text, encoding="utf-8", errors="surrogateescape")


if __name__ == "__main__":
    main(*sys.argv[1:])
