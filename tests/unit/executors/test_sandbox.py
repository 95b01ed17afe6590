"""What a program can do in the sandbox of a client's problem files; none of these needs torch."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.builder.toolchain import probe_toolchain
from harness.executors import clients
from harness.executors.evaluator_process import Start
from harness.executors.settings import LocalSettings, Setup
from harness.sandbox.policy import explain_evaluator_failure, probe_isolation

ROOT = Path(__file__).resolve().parents[4]
PROBE = r"""
import ctypes, json, os, signal, socket, sys, time
from pathlib import Path

*secrets, shared, parent = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
NEW_USERS, NEW_MOUNTS, BIND = 0x10000000, 0x20000, 0x1000


def attempt(action):
    try:
        return str(action())
    except OSError as error:
        return type(error).__name__


def try_as_root_of_new_namespaces(action):
    # The end of the child says whether the action succeeded.
    child = os.fork()
    if child == 0:
        user = os.getuid()
        done = libc.unshare(NEW_USERS | NEW_MOUNTS) == 0
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        os._exit(0 if done and action() else 9)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def unmount_everything():
    while libc.umount2(b"/usr", 0) == 0 or libc.umount2(b"/tmp", 0) == 0:
        pass
    return any(Path(secret).exists() for secret in secrets)


def write_to_shared():
    libc.mount(b"none", b"/", None, 0x1000 | 0x20, None)  # remount, writable
    return (Path(shared) / "kits" / "poison").write_text("x")


def write(folder):
    return (Path(folder) / "x").write_text("x")


UNWRITABLE = ("/", "/usr", f"{shared}/kits", "/proc/sys/kernel")
found = {
    "reads": [os.path.exists(path) and open(path).read() for path in (*secrets, f"/proc/{parent}/environ")],
    "etc": sorted(os.listdir("/etc")),
    "processes": [name for name in os.listdir("/proc") if name.isdigit()],
    "sockets": [attempt(lambda: socket.socket(*kind)) for kind in ((2, 1), (2, 2), (10, 1), (16, 3), (17, 3))],
    "writes": [attempt(lambda: write(folder)) for folder in UNWRITABLE],
    "kill": attempt(lambda: os.kill(int(parent), 9)),
    "escapes": [try_as_root_of_new_namespaces(one) for one in (unmount_everything, write_to_shared)],
    "environment": sorted(os.environ),
    "user": os.getuid(),
}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    """What the probe found, and the folder of the shared cache."""
    why = explain_evaluator_failure()
    if why:
        pytest.skip(f"needs user namespaces: {why}")
    folder = tmp_path_factory.mktemp("service")
    (folder / "tokens.txt").write_text("alice secret")
    (folder / "cache" / "kits").mkdir(parents=True)
    secrets = [folder / "tokens.txt", ROOT / "pyproject.toml"]
    arguments = ["-c", PROBE, *map(str, [*secrets, folder / "cache", os.getpid()])]
    os.environ["HARNESS_SERVICE_TOKEN"] = "secret"
    try:
        printed = subprocess.run(
            clients.wrap([sys.executable, *arguments], shared=folder / "cache"),
            env=clients.make_environment({}), capture_output=True, check=True, cwd="/",
        )  # fmt: skip
    finally:
        del os.environ["HARNESS_SERVICE_TOKEN"]
    return json.loads(printed.stdout), folder / "cache"


def test_files_of_the_service_and_its_user_cannot_be_read(probed):
    found, _ = probed
    assert found["reads"] == [False] * 3
    assert "secret" not in json.dumps(found)
    assert not {"shadow", "hosts", "ssh"} & set(found["etc"])


def test_no_other_process_is_seen_or_ended(probed):
    found, _ = probed
    assert len(found["processes"]) <= 4
    assert found["kill"] == "ProcessLookupError"


def test_there_is_no_network(probed):
    found, _ = probed
    assert found["sockets"] == ["PermissionError"] * 5


def test_nothing_is_written_outside_its_memory(probed):
    found, cache = probed
    assert not {"None", "1"} & set(found["writes"])
    assert list((cache / "kits").iterdir()) == []


def test_root_of_new_namespaces_reaches_no_more(probed):
    found, _ = probed
    assert found["escapes"] == [False, False]


def test_no_token_is_in_the_environment_and_the_user_is_not_root(probed):
    found, _ = probed
    assert "HARNESS_SERVICE_TOKEN" not in found["environment"]
    assert found["user"] != 0 or os.getuid() != 0


def test_all_its_processes_end_with_the_one_that_started_it(tmp_path):
    if why := explain_evaluator_failure():
        pytest.skip(f"needs user namespaces: {why}")
    (tmp_path / "kits").mkdir()
    forks = "import os, time\nos.fork()\nos.fork()\nos.setsid()\nprint('up', flush=True)\ntime.sleep(60)"
    command, environment = [sys.executable, "-c", forks], clients.make_environment({})
    process = subprocess.Popen(clients.wrap(command, shared=tmp_path), env=environment, stdout=subprocess.PIPE, cwd="/")
    with process, process.stdout:
        for _ in range(2):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        began_s = time.monotonic()
        process.stdout.read()  # until the last one has ended
        assert time.monotonic() - began_s < 20


def test_it_begins_with_links_to_prebuilt_parts_and_copies_of_measurements(tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    for name in ("kits/made/headers", "kits/begun", "driver-1", "machine/cuda-0", "aa/build-of-another-client"):
        (shared / name).mkdir(parents=True)
    (shared / "kits/made/ready").touch()
    (shared / "machine/cuda-0/peaks.json").write_text("{}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    settings = LocalSettings(cache=shared, isolation="none")
    setup = Setup(settings=settings, toolchain=probe_toolchain(), isolation=probe_isolation("none"))
    floors = shared / "machine/cuda-0"
    start = Start(setup=setup, device="cpu", checks=False, floors=floors, alone=False, build_cores=frozenset({0}))
    settled, own = clients.settle(start), tmp_path / "harness" / "builds"
    assert settled.setup.settings.cache == own
    assert sorted(path.relative_to(own).as_posix() for path in own.glob("*/*")) == ["kits/made", "machine/cuda-0"]
    assert (own / "kits/made").is_symlink() and (own / "driver-1").is_symlink()
    assert settled.floors == own / "machine/cuda-0"
    (settled.floors / "peaks.json").write_text("poison")
    assert (shared / "machine/cuda-0/peaks.json").read_text() == "{}"
