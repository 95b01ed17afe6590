"""What tests of several packages share: the real command line in a process of its own, one evaluator per session, one
cache of built libraries per session, and tests that skip themselves where the machine lacks what they need.

Runs from a checkout on a machine that has neither openai nor hypothesis: imports only pytest at the top.
"""

import fcntl
import gc
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from shared_bench import TINY_PROBLEM, Bench

from harness.sandbox.forkserver import EXPANDABLE_SEGMENTS

ROOT = Path(__file__).resolve().parents[1]
MEMORY, LEAST_MEMORY_BYTES = Path("/dev/shm"), 1 << 30
KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CC", "CXX", "USER")


def pytest_configure(config):
    gc.disable()  # until all is collected
    _listen_to_interrupts()
    if config.option.markexpr == "not slow":
        _write_into_memory()
    _keep_to_own_cores()
    _set_up_hypothesis()
    # Read by torch when it is loaded; as in the processes of the evaluators.
    os.environ |= {"OMP_WAIT_POLICY": "PASSIVE", **EXPANDABLE_SEGMENTS, **os.environ}
    # No certificates: each of 120 clients of local servers would read all of the machine in 20 ms.
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = str(ROOT / "tests")


def _listen_to_interrupts():
    """A shell without job control starts what runs in the background with Ctrl-C ignored, by all its children too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _write_into_memory():
    """The quick tests write thousands of small files and databases, each synchronised with the disk in milliseconds."""
    if not MEMORY.is_dir() or "PYTEST_DEBUG_TEMPROOT" in os.environ:
        return
    facts = os.statvfs(MEMORY)
    is_large = facts.f_bavail * facts.f_frsize >= LEAST_MEMORY_BYTES
    if is_large and not facts.f_flag & os.ST_NOEXEC and os.access(MEMORY, os.W_OK):
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)


def _keep_to_own_cores():
    """Each of several test processes keeps to its own cores: two evaluators whose threads share all of them wait for
    each other's most of the time."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    cores, count = sorted(os.sched_getaffinity(0)), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    own = cores[int(worker.removeprefix("gw")) :: count] if worker else cores
    os.sched_setaffinity(0, own or cores)


def _set_up_hypothesis():
    """No deadlines: on a busy machine an example that takes a millisecond may take a second. Few examples."""
    with suppress(ImportError):
        from hypothesis import settings

        settings.register_profile("harness", deadline=None, max_examples=30)
        settings.load_profile("harness")


@pytest.hookimpl(tryfirst=True)  # before tests are deselected by marker
def pytest_collection_modifyitems(items):
    _mark_further_parameters_slow(items)
    if any(item.get_closest_marker("gpu") for item in items):
        _skip_all(items, "gpu", _why_no_gpu())
    if any(item.get_closest_marker("nvcc") for item in items):
        _skip_all(items, "nvcc", _why_no_nvcc())


def _mark_further_parameters_slow(items):
    """`quick(n)`: all but the first n parameters of the test are slow."""
    seen = Counter()
    for item in items:
        quick = item.get_closest_marker("quick")
        if quick is not None:
            seen[item.function] += 1
            if seen[item.function] > quick.args[0]:
                item.add_marker("slow")


def pytest_collection_finish():
    """Thousands of tests and the modules that they import live until the end: none is garbage. Nor are the modules that
    tests import later, and to look through them takes 0.2 s each time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    gc.enable()


def pytest_terminal_summary(terminalreporter):
    """The skipped tests, counted by reason: `-rs` has a line for each place that skips."""
    reasons = Counter(_why_skipped(report) for report in terminalreporter.stats.get("skipped", ()))
    if reasons:
        terminalreporter.section(f"{reasons.total()} tests skipped")
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count:5}  {reason}")


def _why_skipped(report):
    _, _, reason = report.longrepr
    return reason.removeprefix("Skipped: ").partition("\n")[0]


def _skip_all(items, mark, reason):
    for item in items:
        if reason is not None and item.get_closest_marker(mark):
            item.add_marker(pytest.mark.skip(reason=reason))


def _why_no_gpu():
    import torch

    return None if torch.cuda.is_available() else "needs an NVIDIA GPU that torch can use; there is none here"


def _why_no_nvcc():
    from harness.builder.toolchain import probe_toolchain

    toolchain = probe_toolchain()
    if toolchain.can_build_cuda:
        return None
    return f"needs nvcc and a CUDA build of torch; found nvcc {toolchain.nvcc_version}, CUDA {toolchain.torch_cuda}"


@pytest.fixture(autouse=True)
def seed_draws():
    """Each test draws the same numbers in every run; the first draws of a library that it imports itself are the same
    anyway, or have a seed of their own."""
    random.seed(0)
    for library, seed in (("torch", "manual_seed"), ("numpy.random", "seed")):
        if library in sys.modules:
            getattr(sys.modules[library], seed)(0)


@pytest.fixture(scope="session")
def build_cache(tmp_path_factory):
    """One folder of built libraries for the whole session, over all its processes."""
    given = os.environ.get("HARNESS_TEST_CACHE")
    if given:
        return Path(given)
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "built-libraries"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def once(tmp_path_factory):
    """Calls `once(name, make)`: what `make` returns, as JSON, made once for all processes of the session."""
    own = tmp_path_factory.getbasetemp()
    folder = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def find(name, make):
        path = folder / f"{name}.json"
        with (folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                path.write_text(json.dumps(make()))
        return json.loads(path.read_text())

    return find


@dataclass(frozen=True)
class Finished:
    """A command that ended: its exit code and what it printed."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def clean_environment_for(tmp_path, build_cache):
    """An environment for the command line with nothing of the caller's but the tools; its own home and /tmp."""

    def make(**changes):
        for name in ("home", "tmp"):
            (tmp_path / f".{name}").mkdir(exist_ok=True)
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        fixed = {"HOME": str(tmp_path / ".home"), "TMPDIR": str(tmp_path / ".tmp"), "COLUMNS": "80", "LANG": "C.UTF-8"}
        fixed |= {"PYTHONPATH": str(ROOT), "HARNESS_CACHE_DIR": str(build_cache)}
        fixed["HARNESS_ALLOW_LOAD"] = "1"  # other tests run beside this one
        merged = kept | fixed | changes
        return {name: value for name, value in merged.items() if value is not None}

    return make


@pytest.fixture
def start_harness(tmp_path, clean_environment_for):
    """Starts `python PROGRAM ARGS` in a process group of its own; every one is ended with the test."""
    started = []

    def start(args, *, cwd=None, env=None, before=(), program=("-m", "harness"), stderr=subprocess.PIPE):
        command = [*before, sys.executable, *program, *map(str, args)]
        process = subprocess.Popen(
            command,
            cwd=cwd or tmp_path,
            env=clean_environment_for(**(env or {})),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def run_harness(start_harness):
    """Runs `python -m harness ARGS` to its end."""

    def run(args, *, timeout_s=800, **options):
        process = start_harness(args, **options)
        stdout, stderr = process.communicate(timeout=timeout_s)
        return Finished(process.returncode, stdout, stderr)

    return run


@pytest.fixture
def call_harness(tmp_path, monkeypatch, capsys, clean_environment_for):
    """Runs a command line in this process, which spares importing torch: for what no process of its own is needed."""

    def call(args):
        from harness.cli.main import run_command

        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            for name, value in clean_environment_for().items():
                patch.setenv(name, value)
            patch.setattr("tempfile.tempdir", None)  # read again from TMPDIR: devices are locked there
            capsys.readouterr()
            code = run_command([str(arg) for arg in args])
        return Finished(code, *capsys.readouterr())

    return call


@pytest.fixture
def tiny_suite(tmp_path):
    """A folder of problems with one suite, `tiny`, that holds one problem, `add`: 64x65 floats."""
    folder = tmp_path / "problems" / "tiny"
    folder.mkdir(parents=True)
    (folder / "add.py").write_text(TINY_PROBLEM)
    return folder


@pytest.fixture
def write_run(tmp_path):
    """Writes a stored run as `harness generate` leaves it: one sample of problem `add` per source (None: no code)."""
    from harness.domain import Candidate, Completion, Prompt, RunManifest, SampleKey
    from harness.store.runs import write_manifest, write_sample

    def write(name, sources, language="cpp"):
        run_dir = tmp_path / "generated" / name
        manifest = RunManifest(
            run=name, suite="tiny", model="model-a", provider="recorded", prompt="plain", language=language,
            samples=len(sources), temperature=None, problems=("add",), created_at="2025-01-01T00:00:00+00:00",
            harness_version="0",
        )  # fmt: skip
        write_manifest(run_dir, manifest)
        for number, source in enumerate(sources):
            write_sample(
                run_dir,
                key=SampleKey(run=name, problem="add", sample=number),
                prompt=Prompt(name="plain", problem="add", language=language, text="make it fast"),
                completion=Completion(text="an answer"),
                candidate=None if source is None else Candidate(source=source, language=language, rule="last_block"),
                provenance={"model": "model-a", "suite": "tiny"},
            )
        return run_dir

    return write


@pytest.fixture(scope="session")
def open_bench(build_cache):
    """Makes a Bench; all of them are closed with the session. Those with the same isolation have one forkserver."""
    from harness.sandbox.forkserver import Forkserver
    from harness.sandbox.policy import probe_isolation

    opened, forkservers = [], {}

    def make(isolation="auto", **options):
        isolation = probe_isolation(isolation) if isinstance(isolation, str) else isolation
        if isolation not in forkservers:
            forkservers[isolation] = Forkserver(isolation)
        opened.append(Bench(forkserver=forkservers[isolation], isolation=isolation, cache=build_cache, **options))
        return opened[-1]

    yield make
    for one in [*opened, *forkservers.values()]:
        one.close()


@pytest.fixture(scope="session")
def bench(open_bench):
    """The evaluator on the CPU with the strongest isolation of this machine."""
    return open_bench(isolation="auto")


def find_processes(marker, file="cmdline"):
    """Ids of the processes of this machine that have `marker` in their command line (or "environ")."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / file).read_bytes()
        except OSError:
            continue
        if marker.encode() in words and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


@pytest.fixture
def processes_with():
    return find_processes


@pytest.fixture
def without_nvcc(tmp_path):
    """Variables of a machine without the CUDA compiler, whose answers take longer than all the rest."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("c++", "g++", "cc", "gcc", "ld", "as", "sh", "ar", "nice", "cat"):
        found = shutil.which(name)
        if found is not None:
            (folder / name).symlink_to(Path(found).resolve())
    return {"PATH": str(folder), "CUDA_HOME": str(tmp_path / "no-cuda"), "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture
def needs_compiler():
    if shutil.which(os.environ.get("CXX", "c++")) is None and shutil.which("g++") is None:
        pytest.skip("needs a C++ compiler; there is none here")
