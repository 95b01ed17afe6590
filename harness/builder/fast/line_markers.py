"""Splits preprocessed source by line markers. Also runs as a script in the build sandbox: standard library only."""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

_MARKER = re.compile(r'^# \d+ "([^"]*)"')
_DIRECTIVE = re.compile(r"^#(define|undef) (\w+)")
# Stub for a kernel template instance that the device pass has not made.
_NO_KERNEL = re.compile(r"\{\s*::cudaLaunchKernel\(0, 0, 0, 0, 0, 0\);\s*\}")
MISSING = "__wrapper__device_stub_missing"
_UNNAMED_NAMESPACE = re.compile(r"\busing namespace ::((?:\w+::)+_GLOBAL__N__\w+);")


def split_regions(text: str) -> Iterator[tuple[str, str]]:
    """Yield (file, source with markers) in order; the first part precedes all headers."""
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
    """Map names to #define lines, from the output of `-E -dD`, optionally of some files only."""
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
    """Replace the regions of dropped files by `after_prologue`. Launches without device code then fail to link."""
    regions = list(split_regions(lowered))
    own = "".join(_keep_regions(regions[1:], dropped))
    # The front end names unnamed namespaces; in a dropped file's text they still have no name.
    for name in sorted(set(_UNNAMED_NAMESPACE.findall(lowered)) - set(_UNNAMED_NAMESPACE.findall(own))):
        after_prologue += f"namespace {name} {{ using namespace ::{name.rpartition('::')[0]}; }}\n"
    declared = f'extern "C" void {MISSING}();\n'
    return f'# 1 "{source}"\n{regions[0][1]}{declared}{after_prologue}{_NO_KERNEL.sub(f"{{ {MISSING}(); }}", own)}'


def _keep_regions(regions: Iterable[tuple[str, str]], dropped: set[str]) -> Iterator[str]:
    """The front end attributes parts of a declaration to an earlier one's file; they stay with its beginning."""
    keeps, is_open = True, False
    for name, text in regions:
        if not is_open:
            keeps = name not in dropped
        if keeps:
            yield text
        code = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        is_open = not code[-1].rstrip().endswith((";", "{", "}")) if code else is_open


def main(lowered: str, dropped: str, delta: str, source: str, out: str) -> None:
    """`dropped` names a JSON list of files; `delta` names the replacement."""
    text = keep_own(
        Path(lowered).read_text(encoding="utf-8", errors="surrogateescape"),
        source=source,
        dropped=set(json.loads(Path(dropped).read_text(encoding="utf-8"))),
        after_prologue=Path(delta).read_text(encoding="utf-8", errors="surrogateescape"),
    )
    Path(out).write_text(text, encoding="utf-8", errors="surrogateescape")


if __name__ == "__main__":
    main(*sys.argv[1:])
