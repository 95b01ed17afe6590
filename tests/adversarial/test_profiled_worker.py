"""A worker under a profiler: it reaches the profiler, and nothing more than other workers reach. The profiler here is a
small server with ncu's way to follow a program; ncu itself needs a GPU, see `tests/gpu/test_gpu_ncu.py`.
"""

import re
import sys

import pytest

from harness.sandbox.forkserver import Profiler

PROFILER = """
import socket, subprocess, sys, threading

def listen():
    while True:
        heard, _ = server.accept()
        print("connected:", heard.recv(100).decode(), flush=True)

server = socket.create_server("/tmp/profiler", family=socket.AF_UNIX)
threading.Thread(target=listen, daemon=True).start()
ended = subprocess.run(sys.argv[1:], close_fds=False).returncode
print("profiled:", ended, flush=True)
"""
CANDIDATE = """
import socket
import torch

def attempt(action):
    try:
        return action() or "done"
    except OSError as error:
        return type(error).__name__

with socket.socket(socket.AF_UNIX) as profiler:
    profiler.connect("/tmp/profiler")
    found = [attempt(lambda: open({secret!r}).read()), attempt(lambda: socket.socket(socket.AF_INET))]
    found += [attempt(lambda: open("/usr/added", "w")), attempt(lambda: open("/tmp/added", "w").close())]
    profiler.sendall(" ".join(found).encode())

class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return a + b
"""


@pytest.fixture
def run_profiled(open_isolated_bench, tmp_path):
    """Imports a program in a profiled worker; returns what the profiler printed."""
    folder = tmp_path / "profiler"
    folder.mkdir()
    (folder / "profiler.py").write_text(PROFILER)

    def run(source):
        bench = open_isolated_bench("private_root")
        command = (sys.executable, str(folder / "profiler.py"))
        profiled = bench.forkserver.profile_with(Profiler(command=command, readable=(folder,)))
        try:
            with bench.open_session(source, forkserver=profiled):
                pass
        finally:
            printed = profiled.finish(30.0)
        return printed

    return run


@pytest.mark.slow
def test_a_profiled_worker_reaches_the_profiler_and_nothing_else(run_profiled, tmp_path):
    (tmp_path / "secret").write_text("the expected outputs")
    printed = run_profiled(CANDIDATE.format(secret=str(tmp_path / "secret")))
    reached = re.search(r"connected: (.*)", printed)[1].split()
    assert reached[:2] == ["FileNotFoundError", "PermissionError"]
    assert reached[2] in ("OSError", "PermissionError")  # by the mount, or by Landlock
    assert reached[3] == "done"
