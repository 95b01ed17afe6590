"""Results for the tests of the report's page: a few honest ones, and ones that try to break out of it."""

from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256

from harness.domain import (
    Block,
    BuildSummary,
    Candidate,
    CaseResult,
    Comparison,
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
)
from harness.store.runs import write_manifest, write_sample

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
ENVIRONMENT = (("harness", "0.1.0"), ("torch", "2.9.0"), ("cpu", "Example CPU 9000"), ("seed", "123456"))
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>\"'&\u202e\x1b[2J\u2028 {{7*7}}"
)
REFERENCE = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x.softmax(-1)\n"
SOURCE = (
    'import torch\nSOURCE = r"""\nint add(int a) {\n    return a + missing;\n}\n"""\n\n\n'
    "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x  # turn 0\n"
)
BUILD_EVIDENCE = "main.cpp:3:16: error: 'missing' was not declared in this scope\n    3 |     return a + missing;"


def make_evaluation(problem="softmax", outcome="correct", speedup=None, *, source=SOURCE, **changes):
    fields = {
        "run": "demo", "sample": 0, "turn": 0, "model": "model-a", "prompt": "plain", "suite": "core",
        "problem_digest": digest(REFERENCE), "candidate_digest": digest(source), "language": "cpp", "device": "cpu",
        "workload": "full", "baseline": "eager",
    }  # fmt: skip
    subject = Subject(**fields | {name: value for name, value in changes.items() if name in fields}, problem=problem)
    rest = {name: value for name, value in changes.items() if name not in fields}
    if outcome == "correct":
        trials = tuple(Trial(distribution="normal", passed=True, max_abs_error=1e-7, elements=64) for _ in range(3))
        rest.setdefault("correctness", Correctness(trials=trials, weights="none"))
    timing = None if speedup is None else make_timing(speedup)
    rest = {"environment": ENVIRONMENT, "duration_s": 2.5} | rest
    return Evaluation(subject=subject, outcome=Outcome(outcome), timing=timing, **rest)


def make_timing(speedup):
    blocks = tuple(
        Block(
            calls=10, baseline_reported_us=100.0 + number, candidate_reported_us=100.0 / speedup,
            baseline_evaluator_us=130.0, candidate_evaluator_us=30 + 100.0 / speedup,
            baseline_copy_us=5.0, candidate_copy_us=5.0,
        )
        for number in range(12)
    )  # fmt: skip
    return Timing(
        baseline="eager", baseline_us=100.0, candidate_us=100.0 / speedup, speedup=speedup, speedup_low=0.95 * speedup,
        speedup_high=1.05 * speedup, verdict="faster" if speedup > 1 else "slower", blocks=blocks, overhead_us=30.0,
    )  # fmt: skip


def wait_for(page, address):
    page.wait_for_function("address => document.getElementById('main').dataset.ready === address", arg=address)


def digest(text):
    return sha256(text.encode()).hexdigest()[:16]


def store_honest(store, generated):
    """Two models, three problems, a repaired sample, one on the emulated device."""
    repaired = SOURCE.replace("turn 0", "turn 1")
    limits = RooflineBounds(
        moved_bytes=4096, flops=10_000_000, bandwidth_gb_s=20.0, tflops=1.0, bound_us=0.2, operations_us=10.0,
        peak_fraction=0.25,
    )  # fmt: skip
    finding = Finding(check="build", severity="fatal", message="the build failed", evidence=BUILD_EVIDENCE)
    build = BuildSummary(keys=("k",), cached=False, duration_s=3.0, strategy="plain", log=BUILD_EVIDENCE)
    measured = {"roofline": limits, "phases_s": (("build", 1.5), ("timing", 0.5))}
    for evaluation, source in (
        (make_evaluation("softmax", "build_error", findings=(finding,), build=build, device="none"), SOURCE),
        (make_evaluation("softmax", "correct", 2.0, turn=1, source=repaired, **measured), repaired),
        (make_evaluation("conv", "correct", 0.5, certificate="f" * 16), SOURCE),
        (make_evaluation("matmul", "no_code", candidate_digest="", device="none"), None),
        (make_evaluation("softmax", "correct", 1.5, model="model-b", run="other"), SOURCE),
        (make_evaluation("conv", "wrong_value", model="model-b", run="other", message="3 of 64 wrong"), SOURCE),
        (make_evaluation("softmax", "correct", model="model-b", run="emu", language="cuda", device="emulated"), SOURCE),
    ):  # fmt: skip
        store.record(evaluation, source)
    write_run(generated, "demo", ("softmax", "conv", "matmul"))
    for turn in (0, 1):
        write_answer(generated, SampleKey(run="demo", problem="softmax", sample=0, turn=turn), f"turn {turn}")


def write_run(generated, run, problems):
    manifest = RunManifest(
        run=run, suite="core", model="model-a", provider="recorded", prompt="plain", language="cpp", samples=1,
        temperature=None, problems=problems, created_at="", harness_version="0.1.0",
    )  # fmt: skip
    write_manifest(generated / run, manifest)


def write_answer(generated, key, text, reasoning="I think.", provenance=None):
    prompt = Prompt(name="plain", problem=key.problem, language="cpp", text="Make it fast.")
    usage = Usage(prompt_tokens=100, completion_tokens=900, reasoning_tokens=50)
    completion = Completion(text=text, reasoning=reasoning, finish_reason="stop", usage=usage, latency_s=2.0)
    candidate = Candidate(source=SOURCE, language="cpp", rule="fence")
    write_sample(
        generated / key.run, key=key, prompt=prompt, completion=completion, candidate=candidate,
        provenance=provenance or {},
    )  # fmt: skip


def store_hostile(store, generated):
    """Every text that a candidate, a model or a compiler can choose is an attack on the page."""
    source = f'x = 1\n"""{HOSTILE}{{"""\n{HOSTILE}\n'
    finding = Finding(check=HOSTILE, severity="warning", message=HOSTILE, evidence=HOSTILE)
    trial = Trial(
        distribution=HOSTILE, passed=False, max_abs_error=float("inf"), worst_ratio=float("nan"), message=HOSTILE
    )
    evaluation = make_evaluation(
        HOSTILE, "wrong_value", source=source, model=HOSTILE, prompt=HOSTILE, run="demo", suite=HOSTILE,
        message=HOSTILE, findings=(finding,), correctness=Correctness(trials=(trial,), weights="none"),
        build=BuildSummary(keys=(HOSTILE,), cached=False, duration_s=1.0, strategy=HOSTILE, log=HOSTILE),
        isolation=HOSTILE, seeds_digest=HOSTILE, phases_s=((HOSTILE, 1.0),),
        environment=(("harness", HOSTILE), ("cpu", HOSTILE), (HOSTILE, HOSTILE)),
    )  # fmt: skip
    store.record(evaluation, source)
    timed = make_evaluation("conv", "correct", 2.0, model=HOSTILE, phases_s=((HOSTILE, 1.0),))
    store.record(replace(timed, findings=(finding,)), source)
    write_run(generated, "demo", ("conv",))
    write_answer(generated, SampleKey(run="demo", problem="conv", sample=0), HOSTILE, reasoning=HOSTILE)


def store_search(store, generated):
    """Five turns of one sample; the last one combines two programs."""
    write_run(generated, "demo", ("softmax",))
    turns = ((None, None), (1.0, None), (2.0, (1, 2.0)), (1.6, None), (3.0, (2, 1.5)))
    origins = ({"parent": None}, {"parent": 0}, {"parent": 1}, {"parent": 0}, {"parent": 2, "partner": 3})
    for turn, ((speedup, pairs), origin) in enumerate(zip(turns, origins, strict=True)):
        source = SOURCE.replace("turn 0", f"turn {turn}")
        comparison = pairs and Comparison(
            turn=pairs[0], speedup=pairs[1], speedup_low=0.9 * pairs[1], speedup_high=1.1 * pairs[1]
        )
        outcome = "correct" if speedup else "wrong_value"
        store.record(
            make_evaluation("softmax", outcome, speedup, turn=turn, source=source, comparison=comparison), source
        )
        write_answer(
            generated, SampleKey(run="demo", problem="softmax", sample=0, turn=turn), "text", provenance=origin
        )


def store_cases(store, generated):
    """One evaluation with two known cases and a secret one."""
    del generated
    names = (("tall", 99, 4.0), ("<b>wide", 3, 1.0), ("secret", 57, 0.5))
    cases = tuple(
        CaseResult(
            name=name,
            sizes=f"rows={rows}",
            outcome=Outcome.CORRECT,
            is_secret=name == "secret",
            timing=make_timing(speedup),
        )
        for name, rows, speedup in names
    )
    evaluation = make_evaluation(speedup=2.0, cases=cases)
    store.record(replace(evaluation, timing=replace(evaluation.timing, blocks=())), SOURCE)
