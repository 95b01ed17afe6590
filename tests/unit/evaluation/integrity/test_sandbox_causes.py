"""Notes that name the sandbox where it is the cause."""

import pytest

from harness.domain import Finding
from harness.evaluation.integrity.sandbox_causes import note_output, note_sandbox

SOCKET_TRACE = 'File "/usr/lib/python3.11/socket.py", line 232, in __init__'
LAYERS = "private root, namespaces, landlock, seccomp, rlimits"


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("URLError: <urlopen error [Errno -3] Temporary failure in name resolution>", "no network"),
        ("ConnectionError: HTTPSConnectionPool(host='x', port=443): Max retries exceeded", "no network"),
        ("OSError: [Errno 101] Network is unreachable", "no network"),
        ("ConnectTimeout: [Errno 113] No route to host", "no network"),
        (f"PermissionError: [Errno 1] Operation not permitted\n{SOCKET_TRACE}", "no network"),
        (f"{SOCKET_TRACE}\nPermissionError: [Errno 1] Operation not permitted", "no network"),
        (f"{SOCKET_TRACE}\nURLError: <urlopen error [Errno 1] Operation not permitted>", "no network"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'weights.pt'", "neither your files nor"),
        ("PermissionError: [Errno 13] Permission denied: '/etc/shadow'", "neither your files nor"),
        ("ModuleNotFoundError: No module named 'my_kernels'", "no modules beside the candidate"),
        ("OSError: [Errno 30] Read-only file system: '/x'", "only the temporary folder"),
    ],
)
def test_a_failure_at_the_sandbox_has_a_note_that_says_so(message, note):
    (found,) = note_sandbox([Finding(check="exception", severity="fatal", message=message)], LAYERS)
    assert (found.check, found.severity) == ("sandbox", "note")
    assert note in found.message


def test_a_header_beside_the_candidate_is_named_as_well():
    log = "main.cpp:2:10: fatal error: my.h: No such file or directory"
    (found,) = note_sandbox(
        [Finding(check="build", severity="fatal", message="the build failed", evidence=log)], LAYERS
    )
    assert "headers into the program" in found.message


def test_other_failures_have_no_note():
    exception = Finding(check="exception", severity="fatal", message="ValueError: no")
    warning = Finding(check="build", severity="warning", message="x", evidence="No such file or directory")
    assert not list(note_sandbox([exception, warning], LAYERS))
    network = Finding(check="exception", severity="fatal", message="gaierror")
    assert not list(note_sandbox([network], "rlimits"))


def test_much_output_is_a_warning():
    (found,) = note_output(100_000_000)
    assert (found.severity, found.message) == (
        "warning",
        "the candidate printed 100 MB, which takes time and counts as its own",
    )
    assert not list(note_output(1000))
