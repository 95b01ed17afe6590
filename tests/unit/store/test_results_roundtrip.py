"""Whatever an evaluation holds, the store gives back exactly that."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.domain import (
    Block,
    BuildSummary,
    Comparison,
    Conditions,
    Correctness,
    CounterReport,
    Evaluation,
    Finding,
    KernelCounters,
    LaunchedKernels,
    Outcome,
    RooflineBounds,
    Subject,
    Timing,
    Trial,
    Work,
)
from harness.store.results import ResultStore

TEXT = st.text(max_size=20) | st.sampled_from(
    ["", "=cmd|' /C calc'!A0", "nul\0nul", "\udcff lone", "ü\r\n\t", "a'b\";--"]
)
DIGESTS = st.text("0123456789abcdef", max_size=16)
NUMBER = st.floats(allow_nan=False)
TIME_US = st.floats(min_value=1e-3, max_value=1e9)
PAIRS = st.lists(st.tuples(TEXT, TEXT), max_size=4).map(tuple)

SUBJECTS = st.builds(
    Subject,
    run=TEXT,
    sample=st.integers(0, 10**6),
    turn=st.integers(0, 9),
    model=TEXT,
    prompt=TEXT,
    suite=TEXT,
    problem=TEXT,
    problem_digest=DIGESTS,
    candidate_digest=DIGESTS,
    language=st.sampled_from(["cuda", "cpp"]),
    device=st.sampled_from(["cpu", "cuda:0", "none"]),
    workload=st.sampled_from(["full", "small"]),
    baseline=st.sampled_from(["eager", "compile"]),
)
TRIALS = st.builds(
    Trial,
    distribution=TEXT,
    passed=st.booleans(),
    max_abs_error=st.none() | NUMBER,
    reference_max_abs_error=st.none() | NUMBER,
    worst_ratio=st.none() | NUMBER,
    mismatched=st.integers(0, 2**70),
    elements=st.integers(0, 2**70),
    message=TEXT,
)
CORRECTNESS = st.builds(
    Correctness,
    trials=st.lists(TRIALS, max_size=3).map(tuple),
    weights=st.sampled_from(["identical", "loaded", "unmatched", "none"]),
    truth=st.sampled_from(["float64", "reference"]),
)
FINDINGS = st.builds(Finding, check=TEXT, severity=st.sampled_from(["note", "warning"]), message=TEXT, evidence=TEXT)
TIMES = tuple(f"{side}_{clock}_us" for side in ("baseline", "candidate") for clock in ("reported", "evaluator", "copy"))
BLOCKS = st.builds(
    Block,
    calls=st.integers(1, 100),
    **dict.fromkeys(TIMES, NUMBER),
)
BUILDS = st.builds(
    BuildSummary,
    keys=st.lists(TEXT, max_size=2).map(tuple),
    cached=st.booleans(),
    duration_s=NUMBER,
    strategy=TEXT,
    log=TEXT | st.just("error: expected ';'\n" * 500),
)
CONDITIONS = st.builds(
    Conditions,
    foreign_load=st.none() | NUMBER,
    clock_low_mhz=st.none() | NUMBER,
    clock_high_mhz=st.none() | NUMBER,
    temperature_c=st.none() | NUMBER,
    throttle_reasons=st.lists(TEXT, max_size=2).map(tuple),
    disturbed=TEXT,
)
ROOFLINE = st.builds(
    RooflineBounds,
    moved_bytes=st.integers(0, 2**70),
    flops=st.none() | st.integers(0, 2**70),
    bandwidth_gb_s=NUMBER,
    tflops=NUMBER,
    bound_us=NUMBER,
    operations_us=st.none() | NUMBER,
    peak_fraction=st.none() | NUMBER,
)
WORK = st.builds(
    Work,
    custom=NUMBER,
    torch=NUMBER,
    library=NUMBER,
    other=NUMBER,
    custom_kernels=st.lists(TEXT, max_size=3).map(tuple),
    without_custom=st.sampled_from(["changed", "unchanged", "failed", "not_tried"]),
    launched=st.none()
    | st.builds(
        LaunchedKernels, custom=st.integers(0, 99), total=st.integers(0, 99), custom_us=TIME_US, total_us=TIME_US
    ),
)
COUNTERS = st.builds(
    CounterReport,
    kernels=st.lists(
        st.builds(
            KernelCounters,
            kernel=TEXT,
            grid=TEXT,
            block=TEXT,
            launches=st.integers(1, 99),
            metrics=st.lists(st.tuples(TEXT, NUMBER), max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
    note=TEXT,
)


COMPARISONS = st.builds(Comparison, turn=st.integers(0, 99), speedup=NUMBER, speedup_low=NUMBER, speedup_high=NUMBER)


@st.composite
def timings(draw, baseline):
    low, speedup, high = sorted(draw(st.tuples(TIME_US, TIME_US, TIME_US)))
    return Timing(
        baseline=baseline,
        baseline_us=draw(TIME_US),
        candidate_us=draw(TIME_US),
        speedup=speedup,
        speedup_low=low,
        speedup_high=high,
        verdict=draw(st.sampled_from(["faster", "tie", "slower", "unreliable", "unconfirmed"])),
        blocks=tuple(draw(st.lists(BLOCKS, max_size=4))),
        overhead_us=draw(NUMBER),
        noise_floor=draw(st.none() | NUMBER),
        resolution_us=draw(st.none() | NUMBER),
        conditions=draw(st.none() | CONDITIONS),
        attempts=draw(st.integers(1, 9)),
        clock=draw(st.sampled_from(["call", "device", "bound", "mixed"])),
    )


@st.composite
def evaluations(draw):
    often_timed = st.sampled_from([Outcome.CORRECT, Outcome.SUSPECT])
    outcome, subject = draw(st.sampled_from(Outcome) | often_timed), draw(SUBJECTS)
    correctness = draw(st.none() | CORRECTNESS)
    if outcome is Outcome.CORRECT:
        correctness = Correctness(trials=(Trial(distribution=draw(TEXT), passed=True),), weights="identical")
    timed = outcome in (Outcome.CORRECT, Outcome.SUSPECT)
    return Evaluation(
        subject=subject,
        outcome=outcome,
        message=draw(TEXT),
        findings=tuple(draw(st.lists(FINDINGS, max_size=3))),
        correctness=correctness,
        timing=draw(st.none() | timings(subject.baseline)) if timed else None,
        comparison=draw(st.none() | COMPARISONS),
        build=draw(st.none() | BUILDS),
        environment=draw(PAIRS),
        isolation=draw(TEXT),
        seeds_digest=draw(TEXT),
        started_at=draw(TEXT),
        duration_s=draw(NUMBER),
        phases_s=tuple(draw(st.lists(st.tuples(TEXT, NUMBER), max_size=3))),
        roofline=draw(st.none() | ROOFLINE),
        work=draw(st.none() | WORK),
        counters=draw(st.none() | COUNTERS),
        certificate=draw(DIGESTS),
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with ResultStore.open(tmp_path_factory.mktemp("results")) as opened:
        # The property needs the encoding, not the disk: hundreds of examples, each waiting for a real disk, would
        # cost the suite a minute.
        opened._connection.execute("PRAGMA synchronous=OFF")
        yield opened


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(evaluations(), TEXT.filter(lambda text: text.isprintable()))
def test_an_evaluation_comes_back_exactly_as_it_was_recorded(store, evaluation, source):
    evaluation_id = store.record(evaluation, source)
    assert store.get(evaluation_id).evaluation == evaluation
    found = store.find(evaluation.subject)
    assert (found.id, found.evaluation) == (evaluation_id, evaluation)


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(evaluations())
def test_the_flat_row_says_the_same_as_the_evaluation(store, evaluation):
    evaluation_id = store.record(evaluation)
    row = next(store.rows(sort="-id", limit=1))
    subject = evaluation.subject
    assert (row.id, row.sample, row.turn, row.device) == (evaluation_id, subject.sample, subject.turn, subject.device)
    assert (row.outcome, row.speedup) == (evaluation.outcome, evaluation.speedup)
    assert row.verdict == (evaluation.timing.verdict if evaluation.timing else None)
    assert (row.own_share, row.without_own) == (
        (evaluation.work.custom, evaluation.work.without_custom) if evaluation.work else (None, None)
    )
    assert row.peak_fraction == (evaluation.roofline.peak_fraction if evaluation.roofline else None)
    assert row.noise_floor == (evaluation.timing.noise_floor if evaluation.timing else None)
    assert row.certificate == evaluation.certificate
    assert row.clock == (evaluation.timing.clock if evaluation.timing else None)
    comparison = evaluation.comparison
    assert (row.rival_turn, row.over_rival_low) == (
        (comparison.turn, comparison.speedup_low) if comparison else (None, None)
    )
    assert row.message == evaluation.message.replace("\udcff", "?")


@pytest.mark.parametrize("copy_us", [(None, None), (0.0, 0.0), (None, 0.0)])
def test_blocks_of_zeros_and_of_nothing_are_told_apart(store, evaluation_of, copy_us):
    evaluation = evaluation_of("correct", 2.0)
    blocks = tuple(Block(calls=1, **dict.fromkeys(TIMES, 0.0) | {"candidate_copy_us": value}) for value in copy_us)
    timed = replace(evaluation, timing=replace(evaluation.timing, blocks=blocks))
    assert store.get(store.record(timed)).evaluation == timed
