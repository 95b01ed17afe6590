"""Notes failures that the sandbox may have caused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from harness.domain import Finding

_CAUSES = (
    (
        re.compile(
            r"gaierror|name resolution|Network is unreachable|URLError|Max retries exceeded|ConnectionRefusedError"
            r"|ConnectionError|Could not resolve host|LocalEntryNotFoundError|OfflineModeIsEnabled|No route to host"
            r"|(?s:(?=.*\bsocket).*Operation not permitted)"  # of the system call, before any address is looked at
        ),
        "the sandbox has no network: a candidate cannot download anything",
    ),
    (
        re.compile(r"FileNotFoundError|No such file or directory|Permission denied|NotADirectoryError"),
        "the sandbox shows a candidate, and the build of its extensions, neither your files nor the working folder: "
        "put data and headers into the program, and write files into the temporary folder",
    ),
    (
        re.compile(r"ModuleNotFoundError|No module named"),
        "the sandbox shows installed packages, but no modules beside the candidate: put their code into the program",
    ),
    (
        re.compile(r"Read-only file system|No space left on device"),
        "in the sandbox only the temporary folder can be written, up to a limit",
    ),
)
_LAYERS = ("bubblewrap", "private root", "namespaces", "landlock")
_CHECKS = ("exception", "build")
MUCH_OUTPUT_BYTES = 1_000_000


def note_sandbox(findings: Iterable[Finding], isolation: str) -> Iterator[Finding]:
    if not any(layer in isolation for layer in _LAYERS):
        return
    texts = [f"{one.message}\n{one.evidence}" for one in findings if one.check in _CHECKS and one.severity == "fatal"]
    for pattern, message in _CAUSES:
        if any(map(pattern.search, texts)):
            yield Finding(check="sandbox", severity="note", message=message)


def note_output(printed_bytes: int) -> Iterator[Finding]:
    if printed_bytes > MUCH_OUTPUT_BYTES:
        size = f"{printed_bytes / 1e6:,.0f} MB"
        message = f"the candidate printed {size}, which takes time and counts as its own"
        yield Finding(check="output", severity="warning", message=message)
