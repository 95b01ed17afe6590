"""The shipped recording, replayed by the real command: every hand-written completion ends as it is meant to."""

import json
import re
from pathlib import Path

import pytest

from harness.domain import SampleKey
from harness.generate.extraction.extractor import extract_candidate
from harness.generate.providers import RecordedProvider, name_recorded_model
from harness.store.runs import locate_sample, read_completion

ROOT = Path(__file__).resolve().parents[2]
RECORDING = ROOT / "recordings" / "demo"

# problem, sample: (outcome, what the message must say)
CPP = {
    ("cumulative_sum", 0): ("timeout", r"forward\(\) did not return within"),
    ("cumulative_sum", 1): ("correct", ""),
    ("embedding", 0): ("no_code", "cut off .* after 1024 tokens"),
    ("group_norm", 0): ("runtime_error", "SIGSEGV|SIGBUS"),
    ("layer_norm", 0): ("no_code", "no program that defines ModelNew"),
    ("linear_bias_relu", 0): ("build_error", "no matching function for call to .*min"),
    ("matmul", 0): ("correct", ""),
    ("max_pool2d", 0): ("correct", ""),
    ("max_pool2d", 1): ("wrong_shape", r"\(5, 29, 47, 36\), found \(5, 29, 46, 35\)"),
    ("rms_norm", 0): ("correct", ""),
    ("rms_norm", 1): ("load_error", "positional arguments"),
    ("softmax", 0): ("wrong_value", r"elements wrong.*\(on (mixed|large\w*) inputs\)"),
    ("top_k", 0): ("correct", ""),
    ("top_k", 1): ("wrong_dtype", r"torch\.int64, found torch\.int32"),
    ("transpose_add", 0): ("runtime_error", "b must be contiguous"),
}
CUDA = {
    ("conv2d_relu_bias", 0): ("not_run", "not on the chosen device"),
    ("layer_norm", 0): ("not_run", "not on the chosen device"),
    ("matmul", 0): ("not_run", "not on the chosen device"),
    ("rms_norm", 0): ("build_error", "channels"),
    ("softmax", 0): ("not_run", "not on the chosen device"),
}
TRITON = {
    ("layer_norm", 0): ("runtime_error", r"candidate\.py:\d+: error: reads beyond the end of weight"),
    ("softmax", 0): ("correct", ""),
}
PARTS = 2  # of what takes minutes, so that two test processes share it
RECORDED = {"cpp": CPP, "cuda": CUDA, "triton": TRITON}


def replay(run_harness, language, problems, *options):
    """The records of one replay on the small workload, by (problem, sample)."""
    wanted = [word for name in sorted(problems) for word in ("--problem", name)]
    done = run_harness(
        [
            "run", "--provider", "recorded", "--recording", RECORDING, "--problems-dir", ROOT / "reference_models",
            "--prompts-dir", ROOT / "prompts", "--language", language, "--samples", "2", "--workload", "small",
            "--no-time", "--run", "replay", "--json", *wanted, *options,
        ]
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {
        (record["problem"], record["sample"]): record
        for record in [json.loads(line) for line in done.stdout.splitlines()]
    }


def problems_of(language):
    return {problem for problem, _ in RECORDED[language]}


def choose_part(meant, part):
    """One of `PARTS` nearly equal parts: a problem's samples stay together."""
    problems = sorted({problem for problem, _ in meant})[part::PARTS]
    return {key: end for key, end in meant.items() if key[0] in problems}


def assert_ended_as_meant(records, meant):
    assert {key: record["outcome"] for key, record in records.items()} == {
        key: fate for key, (fate, _) in meant.items()
    }
    for key, (_, message) in meant.items():
        assert re.search(message, records[key]["message"]), (key, records[key]["message"])


@pytest.mark.slow
def test_recorded_completions_without_a_program_end_as_meant(call_harness):
    chosen = {"embedding", "layer_norm"}
    meant = {key: end for key, end in CPP.items() if key[0] in chosen}
    assert_ended_as_meant(replay(call_harness, "cpp", chosen), meant)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_recorded_cpp_completion_ends_as_meant(run_harness, needs_compiler, part):
    meant = choose_part(CPP, part)
    records = replay(run_harness, "cpp", {problem for problem, _ in meant}, "--first-call-timeout", "5")
    assert_ended_as_meant(records, meant)
    assert {record["model"] for record in records.values()} == {"hand-written-example"}
    if ("softmax", 0) in meant:
        overflowing = records["softmax", 0]["correctness"]["trials"]
        assert {trial["distribution"] for trial in overflowing if trial["passed"]} >= {"as_given"}


@pytest.mark.slow
@pytest.mark.nvcc
def test_a_recorded_cuda_completion_is_built_and_then_not_run(run_harness):
    """One, since each takes nvcc a minute."""
    meant = {key: end for key, end in CUDA.items() if key[0] == "softmax"}
    assert_ended_as_meant(replay(run_harness, "cuda", {"softmax"}, "--device", "cpu"), meant)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_recorded_triton_completion_ends_as_meant(run_harness):
    pytest.importorskip("triton", reason="the emulated device runs Triton kernels in Triton's own interpreter")
    assert_ended_as_meant(replay(run_harness, "triton", problems_of("triton"), "--device", "emulated"), TRITON)


@pytest.mark.parametrize("language", RECORDED)
def test_the_table_names_every_recorded_sample(language):
    there = {(path.parent.name, int(path.name)) for path in (RECORDING / language).glob("*/*")}
    assert there == set(RECORDED[language])


@pytest.mark.parametrize("language", RECORDED)
def test_every_recorded_problem_is_one_of_the_core_suite(language):
    for problem, _ in RECORDED[language]:
        assert (ROOT / "reference_models" / "core" / f"{problem}.py").is_file(), problem


@pytest.mark.parametrize(("language", "problem", "sample"), [(k, *key) for k in RECORDED for key in RECORDED[k]])
def test_only_the_answers_meant_to_hold_no_program_hold_none(language, problem, sample):
    provider = RecordedProvider(RECORDING, language)
    key = SampleKey(run="replay", problem=problem, sample=sample)
    assert provider.can_answer(key)
    completion = read_completion(locate_sample(provider.folder, key))
    candidate = extract_candidate(completion, language)
    assert (candidate is None) == (RECORDED[language][problem, sample][0] == "no_code")


@pytest.mark.parametrize("language", RECORDED)
def test_the_recording_says_that_it_was_written_by_hand(language):
    assert name_recorded_model(RECORDING, language) == "hand-written-example"
    assert "No model wrote these completions" in (ROOT / "recordings" / "README.md").read_text()


REPAIR = ROOT / "recordings" / "repair"
REPAIRED = {
    "cpp": {"layer_norm": "build_error", "softmax": "wrong_value", "sum_reduction": "wrong_shape"},
    "cuda": {"elementwise_add": "runtime_error", "layer_norm": "wrong_value", "softmax": "wrong_value"},
    "triton": {"layer_norm": "runtime_error", "rms_norm": "wrong_value", "softmax": "wrong_value"},
}
OPTIMISED = {("cuda", "layer_norm"), ("cuda", "softmax"), *(("triton", problem) for problem in REPAIRED["triton"])}


def replay_turns(run_harness, language, *options, strategy="repair", env=None):
    """The outcomes by turn of each problem."""
    done = run_harness(
        [
            "run", "--provider", "recorded", "--recording", REPAIR, "--problems-dir", ROOT / "reference_models",
            "--prompts-dir", ROOT / "prompts", "--language", language, "--workload", "small", "--turns", 3,
            "--strategy", strategy, "--run", "replay", "--json", *options,
        ],
        env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    return {record["problem"]: [turn["outcome"] for turn in record["turns"]] for record in records}


@pytest.mark.slow
def test_every_recorded_repair_in_cpp_ends_correct(run_harness, needs_compiler):
    repaired = replay_turns(run_harness, "cpp", "--no-time")
    assert repaired == {problem: [first, "correct"] for problem, first in REPAIRED["cpp"].items()}


@pytest.mark.slow
def test_a_recorded_repair_in_triton_and_its_optimised_program_are_correct(run_harness):
    """Best of n goes through all turns, also where nothing is timed."""
    options = ("--device", "emulated", "--problem", "softmax")
    turns = replay_turns(run_harness, "triton", *options, strategy="best-of-n")
    assert turns == {"softmax": [REPAIRED["triton"]["softmax"], "correct", "correct"]}


@pytest.mark.slow
def test_recorded_repairs_in_cuda_end_correct_on_the_emulated_device(run_harness, needs_compiler, without_nvcc):
    """That of softmax is a part of `make demo`."""
    chosen = ("elementwise_add", "layer_norm")
    options = (word for problem in chosen for word in ("--problem", problem))
    repaired = replay_turns(run_harness, "cuda", "--device", "emulated", *options, env=without_nvcc)
    assert repaired == {problem: [REPAIRED["cuda"][problem], "correct"] for problem in chosen}


@pytest.mark.parametrize("language", REPAIRED)
def test_every_recorded_repair_has_its_turns_with_programs(language):
    provider = RecordedProvider(REPAIR, language)
    assert {path.name for path in (REPAIR / language).iterdir()} == set(REPAIRED[language])
    for problem in REPAIRED[language]:
        programs = []
        for turn in range(3 if (language, problem) in OPTIMISED else 2):
            key = SampleKey(run="replay", problem=problem, sample=0, turn=turn)
            candidate = extract_candidate(read_completion(locate_sample(provider.folder, key)), language)
            programs.append(candidate.source)
        assert len(set(programs)) == len(programs)
        assert all("load_inline" in program or "triton.jit" in program for program in programs)
