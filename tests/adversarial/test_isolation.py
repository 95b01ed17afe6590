"""The isolation of a worker, tried from inside: one candidate looks at everything it can reach and reports it in its
output tensor, the only place where a candidate can leave that much. Once for each kind of isolation here."""

import json
import os
import socket
import sys
import uuid
from pathlib import Path

import pytest

SECRET = f"secret-{uuid.uuid4().hex}"
ROOT = Path(__file__).resolve().parents[2]
KINDS = ("private_root", "filters")
TRIED = ("private_root", pytest.param("filters", marks=pytest.mark.slow))  # each starts a forkserver
WITH_OWN_ROOT = KINDS[:1]
LEVELS = {
    "private_root": "private root, namespaces, landlock, seccomp, rlimits",
    "filters": "landlock, seccomp, rlimits",
    "nothing": "rlimits",
}

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

PLACES, FOLDERS, PORT, ADDRESSES, DEVICES = __FACTS__
libc = ctypes.CDLL(None, use_errno=True)
CLONE = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
IO_SETUP = {"x86_64": 206, "aarch64": 0}[os.uname().machine]
LIMITS = ("CORE", "CPU", "AS", "NOFILE")


def attempt(action):
    try:
        return str(action())
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def connect(host, port):
    socket.create_connection((host, port), timeout=1).close()
    return "connected"


def connect_unix(address):
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(address.encode())
    return "connected"


def send_datagram(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.sendto(b"x", ("127.0.0.1", port))
    return "sent"


def bind():
    with socket.socket(socket.AF_INET) as line:
        line.bind(("127.0.0.1", 0))
    return "bound"


def write(path):
    with open(path, "w") as file:
        file.write("x")
    return "written"


def listed(path):
    return "seen: " + " ".join(os.listdir(path)) if os.path.isdir(path) else "seen: " + open(path, "rb").read(80).hex()


def others():
    me = os.readlink("/proc/self")
    return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and pid != me]


def signal_all():
    reached = []
    for pid in {*others(), *range(2, 300), os.getppid()} - {os.getpid()}:
        try:
            os.kill(pid, 0)
            reached.append(pid)
        except OSError:
            pass
    return reached


def trace_all():
    return [pid for pid in others() if libc.ptrace(16, pid, None, None) == 0]


def read_all(name, mode):
    reached = []
    for pid in others():
        try:
            descriptor = os.open(f"/proc/{pid}/{name}", mode)
            if name == "mem" or os.read(descriptor, 1):
                reached.append(pid)
            os.close(descriptor)
        except OSError:
            pass
    return reached


def write_far(path):
    with open(path, "wb") as file:
        file.seek((1 << 30) + 4096)
        file.write(b"x")
    return "written"


def open_device(path):
    os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
    return "opened"


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


def is_root_outside():
    inside, outside = open("/proc/self/uid_map").read().split()[:2]
    return os.getuid() - int(inside) + int(outside) == 0


def look():
    status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
    return {
        "environment": dict(os.environ),
        "network": {
            "tcp": attempt(lambda: connect("127.0.0.1", PORT)),
            "tcp outside": attempt(lambda: connect("192.0.2.1", 80)),
            "udp": attempt(lambda: send_datagram(PORT)),
            "bind": attempt(bind),
            "netlink": attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)),
            "packet": attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)),
            **{address: attempt(lambda: connect_unix(address)) for address in ADDRESSES},
        },
        "pair": attempt(lambda: len(socket.socketpair())),
        "places": {path: attempt(lambda: listed(path)) for path in PLACES},
        "writes": {path: attempt(lambda: write(path + "/harness-probe")) for path in FOLDERS},
        "own_scratch": attempt(lambda: write("mine")),
        "far": attempt(lambda: write_far("far")),
        "scratch_bytes": fill("big") if __FILL__ else None,
        "signalled": signal_all(),
        "traced": trace_all(),
        "memory_of_others": read_all("mem", os.O_RDWR),
        "environment_of_others": read_all("environ", os.O_RDONLY),
        "parent": os.getppid(),
        "tasks": None if is_root_outside() else count_tasks(),
        "capabilities": {name: status[name].strip() for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")},
        "no_new_privileges": status["NoNewPrivs"].strip(),
        "became_root": None if os.getuid() == 0 else attempt(lambda: os.setuid(0)),
        "calls": {
            "new user namespace": libc.unshare(0x10000000),
            "mount": attempt(lambda: libc.mount(b"none", b"/", None, 0x5000, None)),
            "clone into a user namespace": libc.syscall(CLONE, 0x10000011, 0, 0, 0, 0),
            "io_uring": libc.syscall(425, 1, ctypes.create_string_buffer(120)),
            "hide from /proc": libc.prctl(4, 0, 0, 0, 0),
            "a timer that continues it": libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())),
            "a timer that wakes its watchers": libc.timerfd_create(1, 0),
            "a signal that wakes its watchers": libc.signalfd(-1, ctypes.create_string_buffer(128), 0),
            "watches to wait for at its end": libc.inotify_init1(0),
            "work to wait for at its end": libc.syscall(IO_SETUP, 1, ctypes.byref(ctypes.c_ulong(0))),
            "a file that continues it": libc.fcntl(0, 10, 18),
            "a parent's end that continues it": libc.prctl(1, 18, 0, 0, 0),
            "a child's end that continues it": libc.syscall(CLONE, 18, 0, 0, 0, 0),
        },
        "devices": {path: attempt(lambda: open_device(path)) for path in DEVICES},
        "limits": {name: resource.getrlimit(getattr(resource, "RLIMIT_" + name))[0] for name in LIMITS},
        "descriptors": {fd: attempt(lambda: os.readlink(f"/proc/self/fd/{fd}")) for fd in os.listdir("/proc/self/fd")},
    }


class ModelNew(nn.Module):
    def forward(self, a, b):
        text = json.dumps(look()).encode()
        return torch.frombuffer(bytearray(text.ljust(1 << 16)), dtype=torch.uint8)
"""


# A candidate that is alive while the other one looks around, with a file of its own.
SIBLING = """
import os, torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, a, b):
        with open("of-a-sibling", "w") as file:
            file.write("private")
        return torch.frombuffer(bytearray(os.getcwd().encode().ljust(1 << 16)), dtype=torch.uint8)
"""


@pytest.fixture(scope="module")
def listener(tmp_path_factory):
    """A port of this machine, a Unix socket by path and an abstract one that accept connections: (port, addresses)."""
    addresses = (str(tmp_path_factory.mktemp("sockets") / "s"), f"\0{uuid.uuid4().hex}")
    with socket.socket() as server, socket.socket(socket.AF_UNIX) as by_path, socket.socket(socket.AF_UNIX) as abstract:
        server.bind(("127.0.0.1", 0))
        by_path.bind(addresses[0])
        Path(addresses[0]).chmod(0o777)
        abstract.bind(addresses[1].encode())
        for line in (server, by_path, abstract):
            line.listen(8)
        yield server.getsockname()[1], addresses


@pytest.fixture(scope="module")
def secret_home(tmp_path_factory):
    """A folder that anybody may read, with what a user has at home: results, generated runs, a key."""
    home = tmp_path_factory.mktemp("home")
    for name in ("results/harness.db", "generated/run/add/0/candidate.py", ".ssh/id_rsa"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("private")
    for folder in (home, *home.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o755)
    return home


@pytest.fixture(scope="module")
def isolated_bench(open_isolated_bench):
    """A bench by kind of isolation, each opened once."""
    benches = {}

    def choose(kind):
        if kind not in benches:
            benches[kind] = open_isolated_bench(kind)
        return benches[kind]

    return choose


def look_around(bench, listener, home, cache, kind):
    """What a candidate finds in the isolation of that bench, with the level that is recorded for it."""
    port, addresses = listener
    folders = ["/", "/usr", "/usr/lib", "/etc", "/var/tmp", "/tmp/..", sys.prefix, str(home), str(cache)]
    if kind == "filters":
        folders += ["/tmp", "/dev/shm"]  # with namespaces these are its own
    devices = ["/dev/ptmx", "/dev/kmsg", "/dev/autofs", "/dev/vda", "/dev/loop0", "/dev/mem", "/dev/fuse"]
    os.environ |= {"OPENAI_API_KEY": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET, "HARNESS_TOKEN": SECRET}
    try:
        with bench.open_session(SIBLING, PROBLEM) as (sibling, reference):
            sibling.construct(1, reference.loaded.init_inputs)
            run = sibling.call(reference.loaded.make_inputs(3, bench.device.torch_device), bench.device)
            scratch = bytes(run.outputs.tensors[0].tolist()).decode().strip()
            places = [
                *(home / name for name in (".", "results", ".ssh/id_rsa")), cache, f"{scratch}/of-a-sibling", "/..",
                *(ROOT / name for name in ("reference_models", "README.md", "harness/evaluation", "tests", ".git")),
                "/root", "/home", "/etc/shadow",
            ]  # fmt: skip
            facts = ([str(place) for place in places], folders, port, addresses, devices)
            source = PROBE.replace("__FACTS__", repr(facts)).replace("__FILL__", repr(kind != "filters"))
            report = bytes(bench.call_once(source, PROBLEM).outputs.tensors[0].tolist())
    finally:
        for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "HARNESS_TOKEN"):
            del os.environ[name]
    return json.loads(report) | {"level": bench.forkserver.isolation, "kind": kind}


@pytest.fixture(scope="module")
def inside(isolated_bench, listener, secret_home, build_cache):
    """Reports by kind of isolation, each made once."""
    reports = {}

    def look(kind):
        if kind not in reports:
            reports[kind] = look_around(isolated_bench(kind), listener, secret_home, build_cache, kind)
        return reports[kind]

    return look


@pytest.fixture(params=TRIED)
def report(request, inside):
    return inside(request.param)


@pytest.mark.quick(1)
def test_no_network_is_there(report):
    reached = {name: what for name, what in report["network"].items() if "Error" not in what}
    assert reached == {}
    assert report["pair"] == "2"


@pytest.mark.quick(1)
def test_the_environment_holds_no_secret(report):
    assert SECRET not in json.dumps(report["environment"])
    assert not [name for name in report["environment"] if "KEY" in name or "TOKEN" in name or "SECRET" in name]
    assert report["environment"]["HOME"] == report["environment"]["TMPDIR"]
    assert report["environment"]["HOME"].startswith("/tmp")


def test_nothing_can_be_written_but_in_a_scratch_folder(report):
    assert "written" not in report["writes"].values(), report["writes"]
    assert report["own_scratch"] == "written"


def test_files_cannot_exceed_the_size_of_the_scratch_folder(report):
    assert "File too large" in report["far"]
    if report["kind"] in WITH_OWN_ROOT:
        assert 900 << 20 < report["scratch_bytes"] <= 1 << 30


def test_nothing_of_the_user_the_evaluator_or_a_sibling_can_be_seen(report):
    refused = ("FileNotFoundError", "PermissionError")
    seen = {path: what for path, what in report["places"].items() if not what.startswith(refused)}
    if report["kind"] in WITH_OWN_ROOT:
        seen.pop("/root", None)  # where the interpreter lives there, the way to it can be seen, and nothing else
        seen.pop("/..")  # its own root
    assert seen == {}


def test_other_processes_cannot_be_signalled_traced_or_read(report):
    assert report["signalled"] == []
    assert report["traced"] == []
    assert report["memory_of_others"] == []
    assert report["environment_of_others"] == []
    assert report["parent"] == 1 or report["kind"] == "filters"


def test_the_number_of_processes_is_limited_for_every_user_but_root(report):
    if report["tasks"] is None:
        pytest.skip("the worker's user is root here, whom no limit binds: they all end with the worker instead")
    assert report["tasks"] < 600


def test_no_privilege_is_left_nor_can_be_gained(report):
    capabilities = {name: int(value, 16) for name, value in report["capabilities"].items() if name != "CapBnd"}
    assert set(capabilities.values()) == {0}
    assert report["no_new_privileges"] == "1"
    assert report["became_root"] is None or "Error" in report["became_root"]


def test_calls_that_would_open_or_hide_something_are_refused(report):
    assert {name for name, result in report["calls"].items() if str(result) != "-1"} == set()


def test_no_device_can_be_opened_but_the_harmless_ones(report):
    assert "opened" not in report["devices"].values(), report["devices"]


def test_processor_time_and_memory_are_limited_and_no_core_is_dumped(report):
    assert report["limits"]["CORE"] == 0
    assert 0 < report["limits"]["CPU"] <= 3600
    assert 0 < report["limits"]["AS"] < 1 << 40
    assert 0 < report["limits"]["NOFILE"] <= 4096


def test_open_files_are_channel_output_and_shared_memory_only(report):
    kinds = {what.split(":")[0] for what in report["descriptors"].values() if "FileNotFoundError" not in what}
    assert kinds == {"/dev/null", "pipe", "socket", "/memfd"}


@pytest.mark.parametrize("kind", TRIED)
def test_the_record_says_which_isolation_there_was(kind, inside):
    assert inside(kind)["level"] == LEVELS[kind]


GOOD = """
from torch import nn
class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
"""


@pytest.mark.parametrize("kind", [*KINDS, "nothing"])
@pytest.mark.quick(1)
def test_isolation_weaker_than_a_private_root_is_a_warning(kind, isolated_bench):
    evaluation = isolated_bench(kind).evaluate(GOOD, attribute_work=False)
    warnings = [finding.message for finding in evaluation.findings if finding.check == "confinement"]
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.isolation == LEVELS[kind]
    assert bool(warnings) == (kind not in WITH_OWN_ROOT)
    assert all(LEVELS[kind] in message for message in warnings)


ESCAPING = """
import os, subprocess, sys, time, torch
from torch import nn
class ModelNew(nn.Module):
    started = False

    def forward(self, a, b):
        if not self.started:
            self.started = True
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
@pytest.mark.parametrize("kind", [*KINDS, "nothing"])
@pytest.mark.quick(4)
def test_processes_of_a_candidate_end_with_its_worker(kind, end, isolated_bench, processes_with):
    seconds = f"{4321 + os.getpid() % 1000}.{len(end)}"
    source = ESCAPING.replace("__SECONDS__", seconds).replace("__END__", end)
    evaluation = isolated_bench(kind).evaluate(source, attribute_work=False)
    assert evaluation.outcome in ("correct", "runtime_error"), evaluation.message
    assert processes_with(seconds) == []
