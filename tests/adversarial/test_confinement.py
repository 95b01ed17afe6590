"""The walls around a worker, tried from inside: one candidate looks at everything it can reach and reports it in its
output tensor, the only place where a candidate can leave that much."""

import json
import os
import socket
import sys
import uuid
from pathlib import Path

import pytest

SECRET = f"secret-{uuid.uuid4().hex}"
ROOT = Path(__file__).resolve().parents[2]

PROBLEM = """
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, a, b):
        return torch.zeros(1 << 16, dtype=torch.uint8)
def get_inputs(): return [torch.rand(4), torch.rand(4)]
def get_init_inputs(): return []
"""
# Fields of the report are facts, not verdicts: the tests say which of them are right.
PROBE = r"""
import ctypes, errno, glob, json, os, resource, signal, socket, sys, threading, time
import torch
from torch import nn

PLACES = __PLACES__
PORT = __PORT__
libc = ctypes.CDLL(None, use_errno=True)


def attempt(action):
    try:
        return str(action())
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def connect(host, port):
    socket.create_connection((host, port), timeout=1).close()
    return "connected"


def write(path):
    with open(path, "w") as file:
        file.write("x")
    return "written"


def listed(path):
    return "seen: " + " ".join(os.listdir(path)) if os.path.isdir(path) else "seen: " + open(path, "rb").read(80).hex()


def signal_all():
    reached = []
    for pid in range(1, 300):
        if pid not in (os.getpid(), 1):
            try:
                os.kill(pid, 0)
                reached.append(pid)
            except OSError:
                pass
    return json.dumps(reached)


def open_memory():
    reached = []
    for path in glob.glob("/proc/[0-9]*/mem"):
        if path.split("/")[2] == os.readlink("/proc/self"):
            continue
        try:
            os.close(os.open(path, os.O_RDWR))
            reached.append(path)
        except OSError:
            pass
    return json.dumps(reached)


def fill(path):
    written = 0
    try:
        with open(path, "wb") as file:
            while written < 3 << 30:
                written += file.write(bytes(1 << 25))
    except OSError:
        pass
    try:
        os.remove(path)
    except OSError:
        pass
    return written


def count_tasks():
    # How many threads can be started: they count like processes, and cost less to try.
    threading.stack_size(1 << 16)
    stop = threading.Event()
    threads = []
    try:
        while len(threads) < 2000:
            threads.append(threading.Thread(target=stop.wait, daemon=True))
            threads[-1].start()
    except RuntimeError:
        threads.pop()
    stop.set()
    for thread in threads:
        thread.join()
    return len(threads)


def look():
    status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
    return {
        "environment": dict(os.environ),
        "loopback": attempt(lambda: connect("127.0.0.1", PORT)),
        "outside": attempt(lambda: connect("192.0.2.1", 80)),
        "interfaces": [name for _, name in socket.if_nameindex()],
        "places": {path: attempt(lambda: listed(path)) for path in PLACES},
        "writes": {path: attempt(lambda: write(path + "/harness-probe")) for path in __FOLDERS__},
        "own_scratch": attempt(lambda: write("mine")),
        "scratch_bytes": fill("big"),
        "signalled": attempt(signal_all),
        "memory_of_others": attempt(open_memory),
        "parent": os.getppid(),
        "tasks": count_tasks(),
        "capabilities": {name: status[name].strip() for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")},
        "no_new_privileges": status["NoNewPrivs"].strip(),
        "user": int(open("/proc/self/uid_map").read().split()[1]),
        "new_user_namespace": libc.unshare(0x10000000),
        "mount": attempt(lambda: libc.mount(b"none", b"/", None, 0x5000, None)),
        "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
        "descriptors": {fd: attempt(lambda: os.readlink(f"/proc/self/fd/{fd}")) for fd in os.listdir("/proc/self/fd")},
    }


class ModelNew(nn.Module):
    def forward(self, a, b):
        text = json.dumps(look()).encode()
        return torch.frombuffer(bytearray(text.ljust(1 << 16)), dtype=torch.uint8)
"""


@pytest.fixture(scope="module")
def listener():
    """A port on this machine that accepts connections: what a candidate must not reach."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(8)
        yield server.getsockname()[1]


@pytest.fixture(scope="module")
def secret_home(tmp_path_factory):
    """A folder with what a user has at home: results, generated runs, a key."""
    home = tmp_path_factory.mktemp("home")
    for name in ("results/harness.db", "generated/run/add/0/candidate.py", ".ssh/id_rsa"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("private")
    return home


@pytest.fixture(scope="module")
def walled_bench(open_bench):
    """A bench by kind of confinement, each opened once: with bubblewrap, or with what a worker does by itself."""
    from harness.judge.confinement import Confinement, probe_confinement

    benches = {}

    def choose(kind):
        if kind not in benches:
            walls = probe_confinement() if kind == "bubblewrap" else Confinement(bubblewrap=None)
            if kind == "bubblewrap" and walls.bubblewrap is None:
                pytest.skip("needs bubblewrap; it is not installed here, or cannot start")
            benches[kind] = open_bench(confinement=walls, call_s=60.0)
        return benches[kind]

    return choose


def look_around(open_walled_bench, listener, home, cache):
    """What a candidate finds in a worker with that confinement, with the level that is recorded for it."""
    places = [home, home / "results", home / ".ssh/id_rsa", cache, ROOT / "reference_models", ROOT / "harness/judge",
              ROOT / "tests", ROOT / ".git", "/root", "/home"]  # fmt: skip
    folders = ["/", "/usr", "/usr/lib", "/etc", "/var/tmp", "/dev/shm", sys.prefix, str(home), str(cache)]
    source = PROBE.replace("__PLACES__", json.dumps([str(place) for place in places]))
    source = source.replace("__PORT__", str(listener)).replace("__FOLDERS__", json.dumps(folders))
    os.environ |= {"OPENAI_API_KEY": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET, "HARNESS_TOKEN": SECRET}
    try:
        bench = open_walled_bench()
        report = bytes(bench.call_once(source, PROBLEM).outputs.tensors[0].tolist())
    finally:
        for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "HARNESS_TOKEN"):
            del os.environ[name]
    return json.loads(report) | {"level": bench.forkserver.level}


@pytest.fixture(scope="module")
def inside(walled_bench, listener, secret_home, build_cache):
    """Reports by kind of confinement, each made once."""
    reports = {}

    def look(kind):
        if kind not in reports:
            reports[kind] = look_around(lambda: walled_bench(kind), listener, secret_home, build_cache)
        return reports[kind]

    return look


@pytest.fixture(params=["bubblewrap", "namespaces"])
def report(request, inside):
    return inside(request.param)


def test_no_network_is_there(report):
    assert "Network is unreachable" in report["loopback"]
    assert "Network is unreachable" in report["outside"]
    assert report["interfaces"] == ["lo"]


def test_the_environment_holds_no_secret(report):
    assert SECRET not in json.dumps(report["environment"])
    assert not [name for name in report["environment"] if "KEY" in name or "TOKEN" in name or "SECRET" in name]
    assert report["environment"]["HOME"] == report["environment"]["TMPDIR"]
    assert report["environment"]["HOME"].startswith("/tmp")


def test_nothing_can_be_written_but_in_a_scratch_folder_of_limited_size(report):
    assert "written" not in report["writes"].values(), report["writes"]
    assert report["own_scratch"] == "written"
    assert 900 << 20 < report["scratch_bytes"] <= 1 << 30


def test_under_bubblewrap_nothing_of_the_user_or_the_judge_can_be_seen(inside):
    seen = {path: what for path, what in inside("bubblewrap")["places"].items() if "FileNotFoundError" not in what}
    seen.pop("/root", None)  # where the interpreter lives there, the way to it can be seen, and nothing else
    assert seen == {}


def test_other_processes_cannot_be_signalled_or_read(report):
    assert report["signalled"] == "[]"
    assert report["memory_of_others"] == "[]"
    assert report["parent"] == 1


def test_the_number_of_processes_is_limited_for_every_user_but_root(report):
    if report["user"] == 0:
        pytest.skip("the worker's user is root here, whom no limit binds: they all end with the worker instead")
    assert report["tasks"] < 512


def test_no_privilege_is_left_nor_can_be_gained(report):
    capabilities = {name: int(value, 16) for name, value in report["capabilities"].items() if name != "CapBnd"}
    assert set(capabilities.values()) == {0}
    assert report["no_new_privileges"] == "1"
    assert report["core"] == 0


def test_the_only_open_files_are_its_line_its_output_and_the_shared_memory(report):
    kinds = {what.split(":")[0] for what in report["descriptors"].values() if "FileNotFoundError" not in what}
    assert kinds == {"/dev/null", "pipe", "socket", "/memfd"}


def test_the_record_says_which_walls_there_were(inside):
    assert inside("namespaces")["level"] == "no bubblewrap, namespaces, rlimits"
    assert inside("bubblewrap")["level"] == "bubblewrap, namespaces, rlimits"


ESCAPING = """
import os, subprocess, sys, time, torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, a, b):
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.execvp("sleep", ["sleep", "__SECONDS__"])
                os._exit(0)
        time.sleep(0.3)
        __END__
"""


@pytest.mark.parametrize("end", ["return a + b", "os._exit(0)", "os.abort()"], ids=["returns", "exits", "crashes"])
@pytest.mark.parametrize("kind", ["bubblewrap", "namespaces"])
def test_what_a_candidate_starts_ends_with_it(kind, end, walled_bench, processes_with):
    seconds = f"{4321 + os.getpid() % 1000}.{len(end)}"
    evaluation = walled_bench(kind).judge(ESCAPING.replace("__SECONDS__", seconds).replace("__END__", end))
    assert evaluation.outcome in ("correct", "runtime_error"), evaluation.message
    assert processes_with(seconds) == []
