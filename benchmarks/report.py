"""How long `report.html` takes to be written and to open, and how large it is.

    python benchmarks/report.py [--rows 10000] [--large 100000] [--keep FOLDER]

The goals: 10,000 candidates with source, prompt, reasoning, log and samples under 30 MB, open in under 2 s in Chromium
(where there is one); 100,000 evaluations written in under 20 s. The ratio is against the plain way: every evaluation
of the file as one JSON document.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stored_results import measure_s

from harness.domain import (
    Block,
    BuildSummary,
    Candidate,
    Completion,
    Correctness,
    Evaluation,
    Finding,
    Outcome,
    Prompt,
    RooflineBounds,
    RunManifest,
    SampleKey,
    Subject,
    Timing,
    Trial,
    Usage,
    Work,
)
from harness.report.export.json_records import evaluation_record
from harness.report.html.page import ReportChoice, ReportPage, render_report
from harness.store.results import ResultStore
from harness.store.runs import write_manifest, write_sample

GOALS = {"size_mb": 30.0, "open_s": 2.0, "write_s": 20.0}
SMALL, LARGE = 10_000, 100_000
PROBLEMS, BLOCKS = 250, 24
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FAILURES = (
    Outcome.NO_CODE, Outcome.BUILD_ERROR, Outcome.BUILD_ERROR, Outcome.WRONG_VALUE, Outcome.WRONG_VALUE,
    Outcome.RUNTIME_ERROR, Outcome.TIMEOUT, Outcome.WRONG_SHAPE, Outcome.SUSPECT, Outcome.REJECTED,
)  # fmt: skip
OPERATORS = (
    "matmul",
    "softmax",
    "layer_norm",
    "conv2d",
    "gelu",
    "max_pool",
    "cumsum",
    "embedding",
    "top_k",
    "attention",
)
WORDS = (
    "kernel", "block", "thread", "warp", "shared", "memory", "tile", "load", "store", "bank", "conflict", "vector",
    "register", "occupancy", "loop", "unroll", "reduce", "sum", "maximum", "row", "column", "stride", "bound", "launch",
    "grid", "half", "float", "precision", "accumulate", "edge", "case", "mask",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=SMALL)
    parser.add_argument("--large", type=int, default=LARGE)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    print(f"{'what':<40}{'rows':>9}{'seconds':>10}{'MB':>8}{'against plain':>15}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        small = measure_report(folder / "small", options.rows, with_files=True)
        large = measure_report(folder / "large", options.large, with_files=False)
        opened = [measure_opening(folder / name / "report.html") for name in ("small", "large")]
    for name, seconds in zip((f"{options.rows:,}", f"{options.large:,}"), opened, strict=True):
        print(f"opens with {name:<29}{'':>9}{'no browser' if seconds is None else f'{seconds:.2f}':>10}")
    met = small[1] / 1e6 < GOALS["size_mb"] and large[0] < GOALS["write_s"] and (opened[0] or 0) < GOALS["open_s"]
    print(f"goals: {GOALS['size_mb']:g} MB, opens in {GOALS['open_s']:g} s, writes in {GOALS['write_s']:g} s:", end=" ")
    print("met" if met else "MISSED")


def measure_report(folder: Path, rows: int, *, with_files: bool) -> tuple[float, int]:
    """(seconds to write the report, its bytes)"""
    fill(folder, rows, with_files=with_files)
    with ResultStore.open(folder / "results", read_only=True) as store:
        plain_s, plain = measure_s(lambda: dump_plain(store))
        seconds, page = measure_s(lambda: render(store, folder))
    for what, took_s, size in (("plain: one JSON document", plain_s, plain), ("report", seconds, page.size_bytes)):
        ratio = f"{plain / size:.1f}x smaller" if size != plain else ""
        print(f"{what:<40}{rows:>9,}{took_s:>10.2f}{size / 1e6:>8.1f}{ratio:>15}")
    print(f"  of them with details {page.with_details:,}, with prompt and answer {page.with_answer:,}")
    return seconds, page.size_bytes


def render(store: ResultStore, folder: Path) -> ReportPage:
    return render_report(store, folder / "report.html", ReportChoice(generated_dir=folder / "generated"), now=NOW)


def dump_plain(store: ResultStore) -> int:
    """Bytes of the evaluations as JSON with their sources."""
    size = 0
    for stored in store.load_all():
        source = store.source(stored.evaluation.subject.candidate_digest)
        size += len(json.dumps(evaluation_record(stored) | {"source": source}))
    return size


def measure_opening(path: Path) -> float | None:
    """Seconds from the request for the file until the overview is drawn; None without Chromium or playwright."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if browser is None:
        return None
    with (
        sync_playwright() as player,
        player.chromium.launch(executable_path=browser, args=["--no-sandbox"]) as chromium,
    ):
        page = chromium.new_page()
        page.goto("about:blank")
        seconds, _ = measure_s(lambda: (page.goto(path.as_uri()), page.wait_for_selector("#main[data-ready]")))
        return seconds


def fill(folder: Path, rows: int, *, with_files: bool) -> None:
    """Results, and the generated files of a run per model if wanted: about half of the candidates are correct."""
    with ResultStore.open(folder / "results") as store:
        store.record_all(make_evaluations(rows, folder / "generated" if with_files else None))


def make_evaluations(count: int, generated: Path | None) -> Iterator[tuple[Evaluation, str | None]]:
    source = random.Random(0)
    per_model = max(PROBLEMS * 4, count // 10)
    for number in range(count):
        model, draw = divmod(number, per_model)
        key = SampleKey(run=f"run-{model}", problem=name_problem(draw % PROBLEMS), sample=draw // PROBLEMS)
        if generated and draw == 0:
            write_manifest(generated / key.run, make_manifest(key.run, model))
        program = write_program(source, key.problem)
        evaluation = make_evaluation(source, key, model, program)
        if generated:
            write_files(generated, key, source, program)
        yield evaluation, program if evaluation.subject.candidate_digest else None


def name_problem(number: int) -> str:
    return f"{OPERATORS[number % len(OPERATORS)]}_{number // len(OPERATORS):02}"


def write_program(source: random.Random, problem: str) -> str:
    """About 3 kB, alike for one problem as answers are, and different in its details."""
    body = "\n".join(
        f"    float acc{i} = input[row * stride + {source.randrange(4096)}] * {source.random():.6f}f;"
        f"  // {' '.join(source.choices(WORDS, k=6))}"
        for i in range(18)
    )
    total = " + ".join(f"acc{i}" for i in range(18))
    return (
        "import torch\nimport torch.nn as nn\nfrom torch.utils.cpp_extension import load_inline\n\n"
        'SOURCE = r"""\n#include <torch/extension.h>\n\n'
        f"__global__ void {problem}_kernel(const float* input, float* output, int stride) {{\n"
        f"    const int row = blockIdx.x * blockDim.x + threadIdx.x;\n{body}\n    output[row] = {total};\n}}\n\n"
        f"torch::Tensor {problem}(torch::Tensor input) {{\n    auto output = torch::empty_like(input);\n"
        f"    {problem}_kernel<<<{source.randrange(1, 999)}, 256>>>(input.data_ptr<float>(), "
        'output.data_ptr<float>(), input.size(1));\n    return output;\n}\n"""\n\n'
        f'extension = load_inline(name="{problem}", cpp_sources="torch::Tensor {problem}(torch::Tensor input);", '
        f'cuda_sources=SOURCE, functions=["{problem}"])\n\n\nclass ModelNew(nn.Module):\n'
        f'    """Computes {problem} in one pass."""\n\n    def forward(self, x):\n'
        f"        return extension.{problem}(x)\n"
    )


def make_manifest(run: str, model: int) -> RunManifest:
    return RunManifest(
        run=run, suite="core", model=f"model-{model}", provider="openai", prompt="plain", language="cuda", samples=4,
        temperature=1.0, problems=tuple(map(name_problem, range(PROBLEMS))), created_at=NOW.isoformat(),
        harness_version="0.1.0",
    )  # fmt: skip


def write_files(generated: Path, key: SampleKey, source: random.Random, program: str) -> None:
    instructions = "\n".join(" ".join(WORDS) for _ in range(20))
    prompt = Prompt(
        name="plain", problem=key.problem, language="cuda", text=f"Make {key.problem} fast.\n{instructions}"
    )
    reasoning = " ".join(source.choices(WORDS, k=400))
    usage = Usage(prompt_tokens=900, completion_tokens=source.randrange(1500, 9000), reasoning_tokens=700)
    completion = Completion(
        text=f"Here it is.\n\n```python\n{program}```\n", reasoning=reasoning, finish_reason="stop", usage=usage,
        latency_s=source.uniform(5, 90),
    )  # fmt: skip
    write_sample(
        generated / key.run, key=key, prompt=prompt, completion=completion,
        candidate=Candidate(source=program, language="cuda", rule="fence"), provenance={},
    )  # fmt: skip


def make_evaluation(source: random.Random, key: SampleKey, model: int, program: str) -> Evaluation:
    difficulty = sum(map(ord, key.problem)) % 10 / 10
    correct = source.random() < 0.85 - 0.06 * model - 0.4 * difficulty
    outcome = Outcome.CORRECT if correct else source.choice(FAILURES)
    has_code = outcome is not Outcome.NO_CODE
    subject = Subject(
        run=key.run, sample=key.sample, turn=0, model=f"model-{model}", prompt="plain", suite="core",
        problem=key.problem, problem_digest=f"{sum(map(ord, key.problem)):016x}",
        candidate_digest=f"{source.getrandbits(64):016x}" if has_code else "", language="cuda",
        device="none" if outcome in (Outcome.NO_CODE, Outcome.REJECTED, Outcome.BUILD_ERROR) else "cuda:0",
        workload="full", baseline="eager",
    )  # fmt: skip
    return Evaluation(
        subject=subject, outcome=outcome, message="" if correct else f"{outcome.value}: {source.randrange(9999)} wrong",
        environment=(("harness", "0.1.0"), ("torch", "2.11.0"), ("gpu", "NVIDIA H200"), ("cpu", "Example")),
        isolation="private root, namespaces, rlimits", started_at=NOW.isoformat(), duration_s=source.uniform(2, 40),
        seeds_digest="5" * 16, certificate="f" * 16 if model % 2 else "",
        build=make_build(source, outcome) if has_code else None, findings=make_findings(program, outcome),
        phases_s=(("build", source.uniform(1, 30)), ("correctness", source.random()), ("timing", source.uniform(0, 5))),
        **(measure_candidate(source, model) if correct else {}),
    )  # fmt: skip


def make_build(source: random.Random, outcome: Outcome) -> BuildSummary:
    log = f"[1/2] nvcc {' '.join(WORDS)}\nmain.cu(12): warning: {' '.join(source.choices(WORDS, k=8))}\n"
    if outcome is Outcome.BUILD_ERROR:
        log += f'main.cu(14): error: identifier "acc{source.randrange(99)}" is undefined\n'
    key = f"{source.getrandbits(256):064x}"
    return BuildSummary(keys=(key,), cached=False, duration_s=source.uniform(5, 40), strategy="plain", log=log)


def make_findings(program: str, outcome: Outcome) -> tuple[Finding, ...]:
    findings = [Finding(check="weights", severity="note", message="no parameters")]
    if outcome is Outcome.BUILD_ERROR:
        evidence = f'main.cu(5): error: identifier "acc" is undefined\n{program.splitlines()[9]}'
        findings.append(Finding(check="build", severity="fatal", message="the build failed", evidence=evidence))
    return tuple(findings)


def measure_candidate(source: random.Random, model: int) -> dict[str, Any]:
    """What only a correct evaluation has."""
    trials = tuple(
        Trial(
            distribution="as_given", passed=True, max_abs_error=source.random() * 1e-6,
            reference_max_abs_error=source.random() * 1e-6, worst_ratio=source.random() / 2, elements=1 << 22,
        )
        for _ in range(5)
    )  # fmt: skip
    flops, moved = 10 ** source.uniform(8, 12), 10 ** source.uniform(7, 9)
    least_us = max(flops / 400e6, moved / 4e6)
    candidate_us = least_us / source.uniform(0.2, 0.95)
    own = source.uniform(0.5, 1.0)
    roofline = RooflineBounds(
        moved_bytes=round(moved), flops=round(flops), bandwidth_gb_s=4000.0, tflops=400.0, bound_us=moved / 4e6,
        operations_us=flops / 400e6, peak_fraction=least_us / candidate_us,
    )  # fmt: skip
    return {
        "correctness": Correctness(trials=trials, weights="none"),
        "timing": make_timing(source, source.lognormvariate(0.5 - 0.09 * model, 0.55), candidate_us),
        "roofline": roofline,
        "work": Work(
            custom=own, torch=1 - own, library=0.0, other=0.0, custom_kernels=("kernel",), without_custom="changed"
        ),
    }


def make_timing(source: random.Random, speedup: float, candidate_us: float) -> Timing:
    blocks = []
    for _ in range(BLOCKS):
        slow, fast = speedup * candidate_us * source.gauss(1, 0.02), candidate_us * source.gauss(1, 0.02)
        blocks.append(
            Block(
                calls=10, baseline_reported_us=slow, candidate_reported_us=fast, baseline_evaluator_us=slow + 30,
                candidate_evaluator_us=fast + 30, baseline_copy_us=50.0, candidate_copy_us=50.0,
            )
        )  # fmt: skip
    return Timing(
        baseline="eager", baseline_us=speedup * candidate_us, candidate_us=candidate_us, speedup=speedup,
        speedup_low=0.97 * speedup, speedup_high=1.03 * speedup, verdict="faster" if speedup > 1 else "slower",
        blocks=tuple(blocks), overhead_us=30.0, noise_floor=0.02, resolution_us=1.0,
    )  # fmt: skip


if __name__ == "__main__":
    main()
