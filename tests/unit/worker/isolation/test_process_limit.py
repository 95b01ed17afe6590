"""The limit on processes where a user has more than can be seen. Root is bound by none, so it becomes another user."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, resource, sys, threading
sys.path[:0] = {path!r}
from harness.worker.isolation import namespaces
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
namespaces._count_tasks_of_user = lambda: {seen}
limits = namespaces.Limits(memory_bytes=None, scratch_bytes=1 << 20, processes=20, cpu_s=60)
namespaces.apply_limits(limits, shares_user=True)
print(resource.getrlimit(resource.RLIMIT_NPROC)[0])
thread = threading.Thread(target=lambda: print("started"))
thread.start()
thread.join()
"""


def run(seen):
    program = PROGRAM.format(path=sys.path, seen=seen)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()


def test_a_user_with_few_others_is_limited():
    assert run(seen=1000) == ["1020", "started"]


@pytest.mark.parametrize("seen", [-20, -19])
def test_where_the_limit_would_stop_everything_only_the_keeper_counts(seen):
    limit, word = run(seen)
    assert word == "started"
    assert int(limit) not in (0, 1)
