"""Names the C++ function in which a signal ended a process.

`faulthandler` shows no native frames, so the precompiled binding prints them first. Functions with internal linkage
have no name at run time: their caller is named.
"""

from __future__ import annotations

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

# Async-signal-safe. The first frame is the handler's, in the extension itself. Python's handler follows.
CRASH_STACK = r"""
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>
namespace {
struct sigaction harness_previous[NSIG];
void harness_print_stack(int number, siginfo_t* info, void*) {
  static const char head[] = "Native stack (most recent call first):\n";
  void* frames[16];
  if (write(2, head, sizeof head - 1) > 0) { backtrace_symbols_fd(frames, backtrace(frames, 16), 2); }
  sigaction(number, &harness_previous[number], nullptr);
  if (info->si_code <= 0) { raise(number); }  // sent by a process; else the fault recurs on return
}
const bool harness_prints_stack = [] {
  void* frame;
  backtrace(&frame, 1);  // loads the unwinder
  struct sigaction action {};
  action.sa_sigaction = harness_print_stack;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    sigaction(number, &action, &harness_previous[number]);
  }
  return true;
}();
}
"""


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
