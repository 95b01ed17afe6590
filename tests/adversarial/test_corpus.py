"""The corpus of attacks and honest controls, evaluated by the real evaluator: one test for each file. The quick ones
share the evaluator of other tests. Beside it, that headers are read strictly, and that the command line says what came
out."""

import json
from pathlib import Path

import pytest

from harness.evaluation.settings import TimingPlan

CORPUS = Path(__file__).resolve().parents[2] / "redteam_corpus"
NAMES = [f"{kind}/{path.stem}" for kind in ("attacks", "controls") for path in sorted((CORPUS / kind).glob("*.py"))]
# One file for each mechanism that catches attacks, and for each kind of honest program; the others are marked slow,
# as is what compiles torch's headers: `test_work.py` does so once for many tests.
REPRESENTATIVES = {
    "attacks": """
        zeros constant computes_in_float16 hard_coded_shape writes_beyond_its_output weights_of_the_first_call
        state_that_lies known_sizes_only right_until_it_is_timed cached_by_address answers_before_it_is_done
        forged_profile forged_verdict_on_stdout frame_without_end pickle_that_runs_code
        blames_the_evaluator frozen_scratch outlives_its_worker asks_the_network
        build_that_writes_elsewhere hooks_imports gpu_half_of_the_grid gpu_float16 gpu_hidden_stream
        gpu_graph_on_its_own_stream gpu_computes_while_woken gpu_decoy_kernel gpu_cublas_inside
        gpu_fills_device_memory
    """,
    "controls": """
        plain right_in_every_case plain_c_kernel half_precision statistics_of_its_calls nested_outputs
        view_where_the_reference_has_one random_numbers_unused gpu_nvrtc_kernel gpu_programmatic_launch
    """,
}
QUICK = {f"{kind}/{name}" for kind, names in REPRESENTATIVES.items() for name in names.split()}
PLAN = TimingPlan(warmup_calls=2, max_blocks=20, budget_s=0.5, attempts=1)
HEADER = {
    "layer": "time",
    "mechanism": "it might work",
    "problem": "add",
    "expected": "wrong_value, suspect",
    "device": "cpu",
    "timed": "no",
}
PROBLEM = """
from torch import nn
class Model(nn.Module): ...
def get_inputs(): return []
def get_init_inputs(): return []
"""


@pytest.fixture(scope="module")
def team(build_cache, tmp_path_factory):
    from harness.domain.options import TimeLimits
    from harness.executors.settings import LocalSettings
    from harness.hardware.host import list_gpus
    from harness.redteam import RedTeam

    limits = TimeLimits(load_s=30.0, first_call_s=5.0, call_s=5.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("lock")))
        patch.setattr("tempfile.tempdir", None)  # read again from TMPDIR: devices are locked there
        if not list_gpus():
            patch.setenv("CUDA_HOME", "none")  # nvcc takes a minute of CPU time for each emulated program
        with RedTeam(LocalSettings(cache=build_cache), limits, PLAN) as opened:
            yield opened


@pytest.fixture
def evaluate(bench, team):
    """The result of a file of the corpus."""
    from harness.redteam import conclude

    def run(file):
        if file.name in QUICK and file.device == "cpu":
            options = {"language": file.language, "time": file.timed, "plan": PLAN, "attribute_work": True}
            return conclude(file, bench.evaluate(file.source, file.problem, **options))
        results = []
        team.evaluate([file], results.append)
        return results[0]

    return run


def list_cases():
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]


@pytest.mark.parametrize("name", list_cases())
def test_an_attack_is_caught_and_a_control_is_accepted(name, team, evaluate, request, needs_compiler):
    from harness.redteam import read_file

    file = read_file(CORPUS / f"{name}.py", CORPUS)
    missing = team.find_missing(file)
    if missing is not None:
        pytest.skip(missing)
    if file.known_open:
        request.applymarker(pytest.mark.xfail(reason=file.known_open, strict=True))
    result = evaluate(file)
    message = result.evaluation.message if result.evaluation else ""
    assert result.as_expected, f"{result.result} by {result.by}, expected {file.expected}: {message}"
    assert file.is_attack == (result.result == "caught")


def test_every_layer_is_represented_without_the_slow_files():
    from harness.redteam import LAYERS, read_file

    files = [read_file(CORPUS / f"{name}.py", CORPUS) for name in QUICK]
    for device in ("cpu", "gpu"):
        assert {file.layer for file in files if file.device == device} == set(LAYERS)
    assert {file.layer for file in files if file.timed} >= {"time", "control"}


def test_the_corpus_has_attacks_of_every_layer_and_honest_controls():
    from harness.redteam import LAYERS, read_corpus

    files = read_corpus(CORPUS)
    cpu = [file for file in files if file.device == "cpu"]
    assert {file.layer for file in cpu} == set(LAYERS)
    assert sum(file.is_attack for file in cpu) >= 60
    assert sum(not file.is_attack for file in cpu) >= 40


@pytest.fixture
def write_corpus(tmp_path):
    """Writes a corpus of one file with that header: (the file, the corpus)."""

    def write(kind="attacks", title="Does nothing.", code="ModelNew = None\n", **changes):
        for folder in ("attacks", "controls", "problems"):
            (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / "problems" / "add.py").write_text(PROBLEM)
        fields = HEADER | changes
        lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
        path = tmp_path / kind / "one.py"
        path.write_text('"""' + "\n".join([title, "", *lines]) + f'\n"""\n{code}')
        return path, tmp_path

    return write


def test_emulated_program_keeps_its_language_and_is_untimed(write_corpus):
    from harness.domain import UsageError
    from harness.redteam import read_file

    code = "import triton\n@triton.jit\ndef add(x): ...\n"
    file = read_file(*write_corpus(device="emulated", code=code))
    assert (file.device, file.language) == ("emulated", "triton")
    with pytest.raises(UsageError, match="nothing is timed on the emulated device"):
        read_file(*write_corpus(device="emulated", timed="yes"))


def test_a_header_is_read_whole(write_corpus):
    from harness.redteam import read_file

    file = read_file(*write_corpus(mechanism="it might\n    work, on\n    three lines"))
    assert (file.name, file.title, file.layer) == ("attacks/one", "Does nothing.", "time")
    assert file.mechanism == "it might work, on three lines"
    assert file.expected == ("wrong_value", "suspect")
    assert (file.problem.name, file.language, file.timed) == ("add", "cpp", False)


def test_a_control_may_have_to_be_faster(write_corpus):
    from harness.redteam import read_file

    file = read_file(*write_corpus("controls", layer=None, expected="correct, faster than 2.5", timed="yes"))
    assert (file.layer, file.expected, file.faster_than) == ("control", ("correct",), 2.5)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"mechanism": None}, "lacks mechanism"),
        ({"mechanism": ""}, "lacks mechanism"),
        ({"known_open": ""}, "lacks known_open"),
        ({"author": "me"}, "author: me"),
        ({"layer": "space"}, "layer must be one of"),
        ({"timed": "maybe"}, "timed must be one of"),
        ({"device": "tpu"}, "device must be one of"),
        ({"problem": "subtract"}, "no file"),
        ({"problem": "../add"}, "no file"),
        ({"expected": "correct"}, "expected names correct"),
        ({"expected": "wrong_value suspect"}, "expected names"),
        ({"expected": "harness_error"}, "expected names harness_error"),
        ({"expected": "unranked"}, "timed: yes"),
        ({"title": ""}, "one-line description of the program"),
        ({"kind": "controls", "expected": "correct"}, "layer: time"),
        ({"kind": "controls", "layer": None}, "'correct'"),
        ({"kind": "controls", "layer": None, "expected": "correct, faster than light"}, "'correct'"),
        ({"kind": "controls", "layer": None, "expected": "correct, faster than 2"}, "timed: yes"),
        ({"code": "def ("}, "invalid syntax"),
    ],
)
def test_a_header_that_is_not_as_it_must_be_is_refused(write_corpus, changes, complaint):
    from harness.domain import UsageError
    from harness.redteam import read_file

    with pytest.raises(UsageError, match=r"red-team\.md") as caught:
        read_file(*write_corpus(**changes))
    assert complaint in str(caught.value)


def test_a_field_that_stands_twice_is_refused(write_corpus):
    from harness.domain import UsageError
    from harness.redteam import read_file

    path, corpus = write_corpus()
    path.write_text(path.read_text().replace("timed: no", "timed: no\ntimed: yes"))
    with pytest.raises(UsageError, match="each once"):
        read_file(path, corpus)


@pytest.mark.parametrize(
    ("expected", "outcome", "verdict", "speedup", "result"),
    [
        ("wrong_value", "wrong_value", None, None, "caught"),
        ("suspect", "wrong_value", None, None, "other"),
        ("suspect", "harness_error", None, None, "failed"),
        ("suspect", "correct", "faster", 2.0, "accepted"),
        ("suspect", "correct", "unreliable", 2.0, "accepted"),
        ("suspect, unranked", "correct", "unreliable", 2.0, "caught"),
        ("suspect, unranked", "correct", "unconfirmed", 2.0, "caught"),
        ("suspect, unranked", "correct", "tie", 1.0, "accepted"),
        ("no_gain", "correct", "tie", 1.0, "caught"),
        ("no_gain", "correct", "slower", 0.5, "caught"),
        ("no_gain", "correct", "faster", 2.0, "accepted"),
    ],
)
def test_attack_is_caught_by_the_outcomes_in_its_header(write_corpus, expected, outcome, verdict, speedup, result):
    from harness.redteam import conclude, read_file

    file = read_file(*write_corpus(expected=expected, timed="yes"))
    assert conclude(file, make_evaluation(outcome, verdict, speedup)).result == result


@pytest.mark.parametrize(
    ("outcome", "verdict", "speedup", "result"),
    [
        ("correct", "faster", 3.0, "passed"),
        ("correct", "faster", 1.5, "refused"),
        ("correct", "unreliable", 3.0, "passed"),
        ("correct", "unconfirmed", 3.0, "refused"),
        ("suspect", "faster", 3.0, "refused"),
        ("not_run", None, None, "failed"),
    ],
)
def test_a_control_that_must_be_faster_is_accepted_only_if_it_is(write_corpus, outcome, verdict, speedup, result):
    from harness.redteam import conclude, read_file

    file = read_file(*write_corpus("controls", layer=None, expected="correct, faster than 2", timed="yes"))
    assert conclude(file, make_evaluation(outcome, verdict, speedup)).result == result


def make_evaluation(outcome, verdict, speedup):
    from harness.domain import Correctness, Evaluation, Outcome, Subject, Timing, Trial

    subject = Subject(
        run="attacks/one", sample=0, turn=0, model="red-team", prompt="-", suite="problems", problem="add",
        problem_digest="1", candidate_digest="2", language="cpp", device="cpu", workload="full", baseline="eager",
    )  # fmt: skip
    timing = verdict and Timing(
        baseline="eager", baseline_us=100.0, candidate_us=100.0 / speedup, speedup=speedup,
        speedup_low=speedup * 0.95, speedup_high=speedup * 1.05, verdict=verdict, blocks=(), overhead_us=1.0,
    )  # fmt: skip
    trials = Correctness(trials=(Trial(distribution="as_given", passed=True),), weights="none")
    correctness = trials if outcome in ("correct", "suspect") else None
    return Evaluation(subject=subject, outcome=Outcome(outcome), correctness=correctness, timing=timing or None)


@pytest.fixture
def evaluate_some(tmp_path, monkeypatch):
    """Evaluates files of the corpus with a new executor, which keeps what it knows in the test's folder."""
    from harness.executors.settings import LocalSettings
    from harness.redteam import RedTeam, read_file

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    def evaluate(*names):
        results = []
        with RedTeam(LocalSettings(cache=tmp_path)) as team:
            team.evaluate([read_file(CORPUS / f"{name}.py", CORPUS) for name in names], results.append)
        return results

    return evaluate


@pytest.mark.slow
def test_evaluations_carry_a_certificate_until_something_changes(evaluate_some, tmp_path):
    from dataclasses import replace

    from harness.builder.cache import find_machine_folder
    from harness.evaluation.certificate import check_standing, describe_basis, write_certificate
    from harness.redteam import settle_certificate
    from harness.sandbox.devices import CpuDevice

    device, machine = CpuDevice(), find_machine_folder(tmp_path)
    before = describe_basis(device, CORPUS, "")
    results = evaluate_some("attacks/zeros", "controls/plain")
    assert [result.evaluation.certificate for result in results] == ["", ""]
    earned = settle_certificate(machine, device, before, results)
    assert (earned.attacks, earned.controls) == (1, 1)
    assert [result.evaluation.certificate for result in evaluate_some("controls/plain")] == [earned.digest]

    write_certificate(machine, replace(earned, basis=replace(earned.basis, package="another")))
    assert [result.evaluation.certificate for result in evaluate_some("controls/plain")] == [""]
    assert "package" in check_standing(machine, device).reason


def test_a_run_with_a_surprise_ends_the_certificate_before_it(evaluate, tmp_path):
    from dataclasses import replace

    from harness.evaluation.certificate import describe_basis, read_certificate
    from harness.redteam import read_file, settle_certificate
    from harness.sandbox.devices import CpuDevice

    device = CpuDevice()
    before = describe_basis(device, CORPUS, "")
    result = evaluate(read_file(CORPUS / "controls" / "plain.py", CORPUS))
    assert settle_certificate(tmp_path, device, replace(before, package="changed meanwhile"), [result]) is None
    assert settle_certificate(tmp_path, device, before, [result]) == read_certificate(tmp_path, "cpu") is not None
    assert settle_certificate(tmp_path, device, before, [result, replace(result, result="refused")]) is None
    assert read_certificate(tmp_path, "cpu") is None


@pytest.mark.slow
def test_partial_red_team_run_exits_with_0_without_a_certificate(call_harness):
    finished = call_harness(["red-team", "--only", "zeros", "--only", "zeroes*", "--draws", "2", "--json"])
    *files, last = map(json.loads, finished.stdout.splitlines())
    assert len(files) == 4
    names = {entry["file"]: entry["result"] for entry in files}
    assert finished.returncode == 0, finished.stderr
    assert names == {"attacks/zeros": "caught", "attacks/zeroes_its_inputs": "caught"}
    assert last == {"as_expected": True, "certificates": []}


@pytest.mark.slow
def test_the_command_ends_with_1_and_names_what_was_accepted(call_harness, tmp_path):
    for folder in ("attacks", "controls", "problems"):
        (tmp_path / "corpus" / folder).mkdir(parents=True)
    problem = (CORPUS / "problems" / "add.py").read_text()
    honest = (CORPUS / "controls" / "plain.py").read_text()
    (tmp_path / "corpus" / "problems" / "add.py").write_text(problem)
    (tmp_path / "corpus" / "controls" / "honest.py").write_text(honest)
    (tmp_path / "corpus" / "controls" / "wrong.py").write_text(honest.replace("a + b", "a - b"))
    attack = honest.replace("expected: correct", "layer: time\nexpected: suspect")
    (tmp_path / "corpus" / "attacks" / "honest_in_truth.py").write_text(attack)
    finished = call_harness(["red-team", "--corpus", tmp_path / "corpus"])
    lines = finished.stdout.splitlines()
    assert finished.returncode == 1, finished.stderr
    assert "honest_in_truth" in lines[2] or "honest_in_truth" in lines[3]
    assert "attacks:  0 caught, 1 accepted" in lines
    assert "controls: 1 accepted, 1 refused" in lines
    assert any(line.startswith("attacks/honest_in_truth: expected suspect; found correct") for line in lines)
    assert max(map(len, lines)) <= 80
    assert "certificate" not in finished.stdout


@pytest.mark.parametrize("arguments", [["--only", "nothing-like-this"], ["--corpus", "/nowhere"]])
def test_a_corpus_that_is_not_there_is_wrong_usage(call_harness, arguments):
    finished = call_harness(["red-team", *arguments])
    assert finished.returncode == 2
    assert "attacks/" in finished.stderr or "not a corpus" in finished.stderr
