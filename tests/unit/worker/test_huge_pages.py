"""Memory in huge pages, in a process of its own: what it holds stays, and forking it is cheap where the kernel has
them."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, re
from pathlib import Path
from harness.worker.forkserver import HUGE_BYTES, collapse_memory

def count_huge_bytes():
    text = Path("/proc/self/smaps_rollup").read_text()
    return int(re.search(r"AnonHugePages:\\s+(\\d+) kB", text)[1]) << 10

data = bytearray(os.urandom(1 << 10) * (64 << 10))  # 64 MiB, which malloc maps apart
before, kept = bytes(data), count_huge_bytes()
collapsed = collapse_memory()
print(collapsed, count_huge_bytes() - kept, bytes(data) == before)
child = os.fork()
if child == 0:
    data[:4] = b"mine"
    os._exit(0 if data[4:] == before[4:] else 1)
print(os.waitpid(child, 0)[1], bytes(data) == before)
"""


def test_huge_pages_keep_their_contents_and_are_shared_by_a_fork():
    finished = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    collapsed, huge, same, status, same_after = finished.stdout.split()
    assert (same, status, same_after) == ("True", "0", "True")
    if int(collapsed) == 0:
        pytest.skip("this kernel collapses no memory into huge pages: older than Linux 6.1, or built without them")
    assert int(collapsed) >= 62 << 20
    assert int(huge) >= 62 << 20
