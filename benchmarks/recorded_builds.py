"""How many recorded CUDA kernels of models the fast build strategy takes, why not the others, and what it makes of
them.

    python benchmarks/recorded_builds.py FOLDER [--compile N] [--jobs N] [--cache FOLDER] [--seed N] [--plain]
        [--unsandboxed] [--verbose]

FOLDER holds one folder for each run with programs `*_kernel.py`, as KernelBench records them. Each is imported in a
isolated process in which `load_inline` only writes down what it was asked for. Without --compile the sources are only
looked at: the row of a run counts those the strategy takes, and the reasons for the rest. With it, N of them (0: all)
are built, by the fast strategy where it can, or by the plain one (--plain); the last rows are those that build, those
that do not, and the time until the first library and until all builds are done, with CPU time, which --unsandboxed
needs. For cold caches --cache names an empty folder. Needs nvcc and a CUDA build of torch, and no GPU. Goals: the fast
strategy decides 95 % of those that build, 90 % of those that do not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from harness.builder.builder import Builder
from harness.builder.cache import default_cache_folder
from harness.builder.error_excerpt import name_first_error
from harness.builder.fast.strategy import prepare_fast
from harness.builder.targets import select_target
from harness.builder.toolchain import probe_toolchain
from harness.builder.torch_ninja import write_plan
from harness.domain import BuildRequest, BuildResult
from harness.sandbox.exchange import parse_build_request
from harness.sandbox.policy import clean_environment, interpreter_folders, probe_isolation

GOALS = {"built": 0.95, "failed": 0.90}
CAPTURE = """
import json, os, sys
from pathlib import Path
from harness.worker.load_inline_hook import LoadInlineHook
class Anything:
    def __getattr__(self, name): return self
    def __call__(self, *args, **kwargs): return self
class Catcher(LoadInlineHook):
    def _build(self, request):
        caught.append(request)
        return Anything()
for path in sys.argv[2:]:
    child = os.fork()
    if child == 0:
        caught, error = [], ""
        Catcher(None, Path("."), None, None).install()
        try:
            exec(compile(Path(path).read_text(), path, "exec"), {"__name__": "candidate"})
        except BaseException as problem:
            error = f"{type(problem).__name__}: {problem}"
        with open(sys.argv[1], "a") as file:
            file.write(json.dumps({"path": path, "requests": caught, "error": error[:200]}) + "\\n")
        os._exit(0)
    os.waitpid(child, 0)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One build that a recorded program asks for."""

    run: str
    program: str
    request: BuildRequest


def main() -> None:
    options = parse_options()
    toolchain = probe_toolchain()
    if not toolchain.can_build_cuda:
        raise SystemExit("this needs nvcc and a CUDA build of torch")
    recorded = [one for one in capture(options.folder) if one.request.needs_cuda]
    layers = probe_isolation("auto")
    builder = Builder(
        cache=options.cache, toolchain=toolchain, wrap=run_plainly if options.unsandboxed else layers.wrap,
        readable=interpreter_folders(), environment=clean_environment, fast=not options.plain,
    )  # fmt: skip
    if options.compile is None:
        print_reasons(recorded, builder)
        return
    sample = random.Random(options.seed).sample(recorded, options.compile or len(recorded))
    results = build_all(builder, [one.request for one in sample], options.jobs)
    if options.verbose:
        for one, result in zip(sample, results, strict=True):
            print(describe(one, result))
    print_results(results)


def run_plainly(command: Sequence[str], *, readable: object, writable: object) -> list[str]:
    return list(command)


def build_all(builder: Builder, requests: list[BuildRequest], jobs: int) -> list[BuildResult]:
    began_s, ended_s = time.monotonic(), list[float]()

    def build(request: BuildRequest) -> BuildResult:
        result = builder.build(request)
        if result.extension is not None:
            ended_s.append(time.monotonic() - began_s)
        return result

    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(build, requests))
    builder.stop()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    first, whole = min(ended_s, default=0.0), time.monotonic() - began_s
    print(f"{'first library, all builds, CPU':28}{first:8.1f} s {whole:8.1f} s {used.ru_utime + used.ru_stime:8.1f} s")
    return results


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--compile", type=int, metavar="N", help="build N of them; 0: all")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="builds at a time")
    parser.add_argument("--cache", type=Path, default=default_cache_folder(), help="folder of built libraries")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="build by the plain strategy alone")
    parser.add_argument("--unsandboxed", action="store_true", help="compilers run without isolation")
    parser.add_argument("--verbose", action="store_true", help="a line for each build")
    return parser.parse_args()


def capture(folder: Path) -> Iterator[Recorded]:
    """What the programs below a folder ask the compiler for."""
    paths = sorted(map(str, folder.resolve().glob("**/*_kernel.py")))
    if not paths:
        raise SystemExit(f"no *_kernel.py below {folder}")
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "requests"
        layers = probe_isolation("auto")
        command = layers.wrap(
            [sys.executable, "-c", CAPTURE, str(out), *paths],
            readable=[*interpreter_folders(), folder.resolve(), Path(__file__).resolve().parents[1]],
            writable=[Path(name)],
        )
        finished = subprocess.run(
            command, env=clean_environment(), capture_output=True, text=True, check=False, cwd=name
        )
        if finished.returncode != 0:
            raise SystemExit(finished.stderr[-3000:])
        lines = [json.loads(line) for line in out.read_text().splitlines()]
    for line in lines:
        path = Path(line["path"])
        if not line["requests"]:
            print(f"{path.parent.name}/{path.name} asks for no build: {line['error'] or 'no load_inline'}")
        for request in line["requests"]:
            yield Recorded(run=path.parent.name, program=path.name, request=parse_build_request(request))


def print_reasons(recorded: list[Recorded], builder: Builder) -> None:
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for one in recorded:
        rows[one.run][find_reason(one.request, builder)] += 1
    for run, reasons in sorted(rows.items()):
        others = ", ".join(f"{count}: {reason}" for reason, count in reasons.most_common() if reason)
        print(f"{run:28}{reasons['']:5} of {reasons.total():4} sources are taken  {others}", flush=True)


def find_reason(request: BuildRequest, builder: Builder) -> str:
    """Why the fast strategy does not take a request; nothing of it is compiled. "" where it does."""
    assert builder._prebuilt is not None
    with tempfile.TemporaryDirectory() as name:
        work = Path(name) / "work"
        work.mkdir()
        write_plan(select_target(request, builder.toolchain.architecture)[0], work)
        fast = next(prepare_fast(request, work, builder._prebuilt))
    return fast if isinstance(fast, str) else ""


def describe(one: Recorded, result: BuildResult) -> str:
    error = "" if result.extension else f"; {name_first_error(result.log)}"
    return (
        f"{one.run}/{one.program}: {result.status} {result.strategy} {result.duration_s:.1f} s {result.reason}{error}"
    )


def print_results(results: list[BuildResult]) -> None:
    for kind, goal in GOALS.items():
        own = [result for result in results if (result.extension is not None) == (kind == "built")]
        fast = sum(result.strategy == "fast" for result in own)
        reasons = Counter(result.reason.partition(":")[0] for result in own if result.strategy != "fast")
        share = f"{100 * fast / len(own):.1f} %" if own else "none"
        print(f"{kind:28}{fast:5} of {len(own):4} by `fast`: {share} (goal {100 * goal:.0f} %)  {dict(reasons)}")


if __name__ == "__main__":
    main()
