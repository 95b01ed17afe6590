"""Names the C++ function in which a signal ended a process.

`faulthandler` shows no native frames, so the precompiled binding prints them first, by the async-signal-safe
`cpp/crash_stack.h`, whose first frame is in the extension itself. Functions with internal linkage
have no name at run time: their caller is named.
"""

import re

NATIVE_STACK = "Native stack (most recent call first):\n"
_FRAME = re.compile(r"^(?P<library>[^(\n]+)\((?P<symbol>\w*)\+0x[0-9a-f]+\) ?\[0x[0-9a-f]+\]$", re.MULTILINE)
# Of AddressSanitizer, without the map of its shadow memory.
ADDRESS_REPORT = re.compile(
    r"^==\d+==ERROR: AddressSanitizer: .*?(?=^SUMMARY|^Shadow bytes|\Z)", re.MULTILINE | re.DOTALL
)
MOST_REPORT, MOST_OUTPUT = 6000, 1500  # characters
_LENGTH = re.compile(r"\d{1,4}")
_OWN = "harness"


def name_native_function(printed: str) -> str:
    """Return the innermost function with a name in an extension that printed a stack, or ""."""
    for stack in printed.split(NATIVE_STACK)[1:]:
        frames = list(_FRAME.finditer(stack))
        for frame in frames[1:]:
            name = _read_name(frame["symbol"])
            if frame["library"] == frames[0]["library"] and name and not name.startswith(_OWN):
                return name
    return ""


def shorten_output(printed: str) -> str:
    """Return a report of AddressSanitizer, or else the end."""
    report = ADDRESS_REPORT.search(printed)
    return f"\n{report[0].strip()[:MOST_REPORT]}" if report else printed.strip()[-MOST_OUTPUT:]


def _read_name(symbol: str) -> str:
    """Return the qualified name of a mangled one, without parameters: `_ZN2my3addEf` is `my::add`."""
    if not symbol.startswith("_Z"):
        return symbol
    is_nested, rest, parts = symbol.startswith("_ZN"), symbol[2:].lstrip("NKL"), list[str]()
    while (length := _LENGTH.match(rest)) and (is_nested or not parts):
        rest = rest[length.end() :]
        parts.append(rest[: int(length[0])])
        rest = rest[int(length[0]) :].lstrip("L")
    return "::".join(parts)
