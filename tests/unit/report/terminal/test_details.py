"""`harness show` explains a verdict: everything that it rests on is on the screen, in 80 columns and in 200."""

import re
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from harness.domain import (
    Block,
    BuildSummary,
    Conditions,
    Correctness,
    CounterReport,
    Finding,
    KernelCounters,
    Outcome,
    RooflineBounds,
    Timing,
    Trial,
    Work,
)
from harness.report.terminal.details import render_details
from harness.store.results import StoredEvaluation


def show(evaluation, width=80, **options):
    console = Console(width=width, file=StringIO(), color_system=None)
    console.print(render_details(StoredEvaluation(id=42, evaluation=evaluation), **options))
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    return text


def flat(text):
    """The text on one line: where it is broken depends on the width."""
    return " ".join(text.split())


BLOCK = Block(
    calls=10,
    baseline_reported_us=1e6,
    candidate_reported_us=5e5,
    baseline_evaluator_us=1.1e6,
    candidate_evaluator_us=6.2e5,
    baseline_copy_us=1e3,
    candidate_copy_us=2e3,
)
CONDITIONS = Conditions(
    foreign_load=0.25,
    clock_low_mhz=1980.0,
    clock_high_mhz=2415.0,
    temperature_c=61.0,
    throttle_reasons=("power cap",),
    disturbed="other processes took 0.25 cores",
)
TRIALS = (
    Trial(
        distribution="as_given",
        passed=True,
        max_abs_error=1.25e-6,
        reference_max_abs_error=1.5e-7,
        worst_ratio=0.125,
        elements=4096,
    ),
    Trial(distribution="large_values", passed=True, message="fine", elements=4096),
)

COUNTED = KernelCounters(
    kernel="add_kernel(float const*)",
    grid="(64, 1, 1)",
    block="(256, 1, 1)",
    launches=3,
    metrics=(("gpu__time_duration.sum", 12_500.0), ("lts__t_sector_hit_rate.pct", 33.3)),
)


@pytest.fixture
def timing():
    return Timing(
        baseline="eager",
        baseline_us=1e6,
        candidate_us=5e5,
        speedup=2.0,
        speedup_low=1.9,
        speedup_high=2.1,
        verdict="faster",
        blocks=(BLOCK,) * 7,
        overhead_us=30.0,
        noise_floor=0.03,
        resolution_us=2e4,
        conditions=CONDITIONS,
        attempts=3,
    )


@pytest.fixture
def full_evaluation(evaluation_of, timing):
    return evaluation_of(
        "correct",
        extra={
            "correctness": Correctness(trials=TRIALS, weights="loaded"),
            "timing": timing,
            "build": BuildSummary(
                keys=("k" * 16,),
                cached=False,
                duration_s=12.0,
                strategy="plain",
                reason="it uses requires",
                log="\n".join(map("line {}".format, range(99))),
            ),
            "findings": (
                Finding(check="strides", severity="note", message="other strides"),
                Finding(check="weights", severity="warning", message="[b]m[/b] " * 30, evidence="\x1b[31m"),
            ),
            "started_at": "2026-01-01T00:00:00+00:00",
            "isolation": "private root, namespaces",
            "certificate": "f" * 16,
            "roofline": RooflineBounds(
                moved_bytes=4_194_304,
                flops=1_073_741_824,
                bandwidth_gb_s=12.5,
                tflops=0.25,
                bound_us=335.5,
                operations_us=4294.0,
                peak_fraction=0.42,
            ),
            "work": Work(
                custom=0.75,
                torch=0.25,
                library=0.0,
                other=0.0,
                custom_kernels=("add_kernel(float const*)",),
                without_custom="changed",
            ),
            "counters": CounterReport(kernels=(COUNTED,), note="ncu was ended after 18 s"),
        },
    )


@pytest.mark.parametrize("width", [80, 200])
def test_everything_a_verdict_rests_on_is_shown(full_evaluation, width):
    text = flat(show(full_evaluation, width))
    for expected in (
        "Evaluation 42: correct",
        "add_kernel(float const*): grid (64, 1, 1), block (256, 1, 1), the longest of 3 launches",
        "time 12.5 us",
        "L2 hit rate 33.3 %",
        "ncu was ended after 18 s",
        "strategy plain: it uses requires",
        "demo/add/0 is correct and 2.00x as fast as eager [1.90, 2.10]: faster, beyond the noise floor of 3.0%",
        "warning weights: [b]m[/b]",
        "\\x1b[31m",
        "2 of 2 trials passed, against the float64 truth; weights: loaded",
        "1 as_given yes 1.25e-06 1.5e-07 12% 0",
        "large_values",
        "4,096 elements each",
        "Passed without an error: so close",
        "trial 2: fine",
        "noise floor (a program against itself): 3.0%",
        "confirms the reported times to 20 ms, 4.0% of the candidate's time: work that takes less could go unnoticed",
        "reported by the worker 1.000 s 500 ms 2.00x",
        "measured by the evaluator 1.100 s 620 ms 1.77x",
        "of it the exchange 100 ms 120 ms",
        "copying the outputs 1 ms 2 ms",
        "7 blocks of 10 calls each",
        "YES: other processes took 0.25 cores",
        "1,980 to 2,415 MHz",
        "61 C",
        "power cap",
        "measurements 3: a disturbed one is repeated",
        "4.19 MB: inputs, weights and outputs",
        "336 us for 4.19 MB at 12.5 GB/s: no program is faster",
        "1.07 GFLOP in the reference",
        "of peak 42%",
        "achieved 0.008389 GB/s, 0.002147 TFLOP/s: these / its time",
        "gap closed 50% of the way from the baseline to the roofline",
        "candidate's kernels 75% ####",
        "add_kernel(float const*)",
        "the outputs changed: they depend on its own code",
        "(99 lines of log; --log shows them)",
        "private root, namespaces",
        "ffffffffffffffff: this harness passed the whole red-team corpus",
        "Example CPU 9000",
    ):
        assert expected in text


def test_the_verdict_is_the_first_line_and_a_short_last_one(full_evaluation):
    lines = show(full_evaluation).splitlines()
    assert lines[0] == "Evaluation 42: correct"
    assert lines[-1] == "correct 2.00x against eager (faster)"


def test_the_reason_is_printed_once_and_the_last_line_is_short(evaluation_of):
    reason = "error: two words\nsecond line"
    finding = Finding(check="correctness", severity="fatal", message=reason)
    trials = tuple(Trial(distribution="as_given", passed=False, message=message) for message in (reason, "nan"))
    extra = {
        "message": f"{reason} (on zeros inputs)",
        "findings": (finding,),
        "correctness": Correctness(trials=trials, weights="none"),
    }
    text = show(evaluation_of("wrong_value", extra=extra))
    assert (text.count("two words"), text.count("second line")) == (1, 1)
    assert "fatal correctness: the reason above" in text
    assert "trial 2: nan" in text
    assert text.splitlines()[-1] == "wrong_value (harness explain wrong_value)"


def test_findings_that_decided_come_first(full_evaluation):
    fatal = Finding(check="clock", severity="fatal", message="the clocks disagree", evidence="0\n" * 40)
    suspect = replace(full_evaluation, outcome=Outcome.SUSPECT, findings=(*full_evaluation.findings, fatal))
    text = show(suspect)
    assert text.index("fatal clock") < text.index("warning weights") < text.index("note strides")
    assert "(20 lines before these; --json has all)" in text
    assert "Not ranked: the candidate is not correct" in text


def test_blocks_are_listed_only_on_request(full_evaluation):
    assert show(full_evaluation).count("1.100 s") == 1
    assert show(full_evaluation, all_blocks=True).count("1.100 s") == 8


@pytest.mark.parametrize("times_us", [(5e5,), (5e5, 5e5), (0.0, 0.0), (0.0, 5e5), (5e5, 5e5, 5e5, 5e5, 1e3)], ids=str)
def test_odd_samples_are_shown_without_failing(full_evaluation, timing, times_us):
    blocks = tuple(replace(BLOCK, candidate_reported_us=time_us) for time_us in times_us)
    text = show(replace(full_evaluation, timing=replace(timing, blocks=blocks)), all_blocks=True)
    assert f"{len(blocks)} blocks of" in text


def test_a_timing_without_blocks_or_conditions_is_shown(evaluation_of):
    text = flat(show(evaluation_of("correct", 2.0)))
    assert "with no noise floor measured" in text
    assert "The resolution of the evaluator's clock was not recorded." in text
    assert "conditions not recorded" in text
    assert "counted 100 us 50 us 2.00x" in text


@pytest.mark.parametrize(
    ("verdict", "sentence", "last"),
    [
        ("slower", "but only 2.00x as fast as eager [1.90, 2.10]: slower", "correct 2.00x against eager (slower)"),
        ("tie", "ties with eager: measured 2.00x", "correct 1.00x against eager (tie)"),
        (
            "unreliable",
            "its time is unreliable and not ranked; measured 2.00x",
            "correct (time unreliable, not ranked)",
        ),
        ("unconfirmed", "unconfirmed and not ranked: the reported times", "correct (time unconfirmed, not ranked)"),
    ],
)
def test_each_timing_verdict_has_words_of_its_own(evaluation_of, verdict, sentence, last):
    text = show(evaluation_of("correct", 2.0, verdict=verdict))
    assert sentence in flat(text)
    assert text.splitlines()[-1] == last


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_a_sentence_with_its_reason(evaluation_of, outcome):
    lines = show(evaluation_of(outcome.value, extra={"message": "the reason"})).splitlines()
    assert lines[0] == f"Evaluation 42: {outcome}"
    assert "demo/add/0" in lines[1]
    assert "the reason" in flat(" ".join(lines[1:4]))
    assert str(outcome) in lines[-1]
    assert "none was valid" in flat(" ".join(lines))


def test_a_decoy_is_called_one(evaluation_of):
    work = Work(custom=0.9, torch=0.1, library=0.0, other=0.0, without_custom="unchanged")
    assert "they do not depend on its own code (decoy kernels)" in flat(show(evaluation_of(extra={"work": work})))


def test_the_log_is_shown_where_the_build_decided_or_on_request(full_evaluation):
    failed = replace(full_evaluation, outcome=Outcome.BUILD_ERROR, timing=None)
    assert "line 98" not in show(full_evaluation)
    assert "line 98" in show(failed)
    assert "line 50\n" not in show(failed)
    assert "line 0\n" in show(full_evaluation, whole_log=True)
    assert "--log shows all" in show(failed)


@pytest.mark.parametrize("width", [80, 200])
def test_several_programs_of_an_answer_are_named_with_the_chosen(evaluation_of, width):
    message = "rule fence, lines 2 to 3; chosen from 2 programs in the answer: the text rejects the others"
    note = Finding(
        check="extraction", severity="note", message=message, evidence="not taken: rule fence, lines 9 to 10"
    )
    text = flat(show(evaluation_of("no_code", extra={"findings": (note,)}), width))
    assert f"note extraction: {message}" in text
    assert "not taken: rule fence, lines 9 to 10" in text


def test_device_time_has_no_table_of_reported_and_evaluator_times(full_evaluation, timing):
    replayed = replace(timing, clock="device", resolution_us=1e3)
    text = show(replace(full_evaluation, timing=replayed), width=200, all_blocks=True)
    assert "Device time: the GPU work of one call, replayed without host code." in text
    assert "Forged device events could gain at most 1 ms" in text
    assert "reported" not in text.partition("Device time:")[2].partition("blocks of")[0]
    assert not re.search(r"evaluator +evaluator", text)


def test_a_lower_bound_is_shown_as_one_with_its_reason(full_evaluation, timing):
    text = " ".join(show(replace(full_evaluation, timing=replace(timing, clock="bound"))).split())
    assert ">=2.00x [1.90, 2.10] against eager" in text
    assert "A lower bound: whole calls of the candidate, whose GPU work cannot be replayed" in text
    assert "reported by the worker" in text
