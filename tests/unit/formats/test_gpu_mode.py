"""Import of gpu-mode's tasks."""

from types import ModuleType

import pytest
import torch
from folders import REFERENCE_PY, SUBMISSION_PY, TASK_YML, write_task

from harness.problems.discovery import read_problem
from harness.problems.loading import load_problem
from harness.store.runs import load_samples

SUITE = "gpu_mode_pmpp"
CUSTOM = REFERENCE_PY.replace("check_implementation = make_match_reference", "compare = make_match_reference")


@pytest.fixture
def imports(call_harness, tmp_path):
    """Imports one task with changed files, and returns the finished command."""

    def run(**changes):
        write_task(tmp_path / "kernels" / "pmpp" / "add_py", **changes)
        return call_harness(["import", "kernels"])

    return run


@pytest.fixture
def read(tmp_path):
    """Reads the imported problem."""
    return lambda: read_problem(tmp_path / "reference_models" / SUITE / "add_py.py", SUITE)


def test_tests_and_benchmarks_become_cases_without_their_seeds(imports, read):
    done = imports()
    assert (done.returncode, done.stderr) == (0, "")
    assert f"1 problem in reference_models/{SUITE}: harness problems check --suite {SUITE}" in done.stdout
    problem = read()
    assert [(case.name, dict(case.sizes), case.timed) for case in problem.cases] == [
        ("benchmark-0", {"size": 64}, True),
        ("test-0", {"size": 7}, False),
        ("test-1", {"size": 9}, False),
    ]
    assert (problem.summary, dict(problem.workload("small").overrides)) == ("Add two vectors.", {"size": 7})
    assert (problem.tolerance.atol, problem.tolerance.rtol) == (1e-5, 1e-4)


def test_problem_file_needs_no_other_file_and_holds_only_used_names(imports, read):
    imports()
    source = read().source
    assert all(
        name not in source for name in ("import_", "TestSpec", "make_match_reference", "from utils", "from task")
    )
    assert "def twice(x):" in source


def test_inputs_are_drawn_anew_on_the_device_of_the_evaluation(imports, read):
    imports()
    loaded = load_problem(read(), "small")
    one, two = (loaded.make_inputs(seed, torch.device("cpu")) for seed in (1, 2))
    assert not torch.equal(one[0], two[0])
    assert one[0].device.type == "cpu"
    assert torch.Generator.__module__ == "torch._C", "generators are only redirected inside"


def test_output_buffers_are_no_inputs(imports, read):
    imports()
    loaded = load_problem(read(), "small")
    a, b, buffer = loaded.make_inputs(1, torch.device("cpu"))
    assert buffer == ((7,), (1,), "float32")
    assert torch.equal(loaded.make_model(1, torch.device("cpu"))(a, b, buffer), a + 2 * b)


def test_submissions_become_candidates(imports, read, tmp_path):
    assert f"2 candidates in generated/{SUITE}-submissions" in imports().stdout
    wrong, right = load_samples(tmp_path / "generated" / f"{SUITE}-submissions")
    a, b, buffer = load_problem(read(), "small").make_inputs(1, torch.device("cpu"))
    for sample, expected in ((right, a + 2 * b), (wrong, a)):
        module = ModuleType("submission")
        exec(sample.candidate.source, module.__dict__)
        assert torch.equal(module.ModelNew()(a, b, buffer), expected)


def test_single_tensor_is_passed_as_it_is(imports, read):
    reference = (
        "import torch\n\n\ndef ref_kernel(data):\n    return data.sort()[0]\n\n\n"
        "def generate_input(size: int, seed: int):\n    torch.manual_seed(seed)\n    return torch.rand(size)\n"
    )
    imports(reference=reference)
    loaded = load_problem(read(), "small")
    [x] = loaded.make_inputs(1, torch.device("cpu"))
    assert torch.equal(loaded.make_model(1, torch.device("cpu"))(x), x.sort()[0])


@pytest.mark.parametrize(
    ("reference", "task", "note"),
    [
        (CUSTOM, TASK_YML, "its check_implementation is not imported"),
        (
            REFERENCE_PY,
            TASK_YML.replace('"size": 9', '"size": [[1], [2]]'),
            "test-1 is left out: its size is [[1], [2]]",
        ),
        (
            REFERENCE_PY,
            TASK_YML.replace("benchmarks:", '  - {"size": 5, "depth": 2, "seed": 1}\nbenchmarks:'),
            "test-2 is left out: generate_input has no argument depth",
        ),
    ],
)
def test_differences_are_named(reference, task, note, imports):
    done = imports(reference=reference, task=task)
    assert done.returncode == 0
    assert note in done.stderr


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": TASK_YML.replace('lang: "py"', 'lang: "cu"')}, "language cu of the task is not supported"),
        ({"task": TASK_YML + "multi_gpu: true\n"}, "the task uses several GPUs"),
        ({"task": TASK_YML.partition("tests:")[0]}, "no test or benchmark in task.yml can be used"),
        ({"task": "tests: [1\n"}, "task.yml, line 2: not YAML"),
        ({"task": "tests: {a: 1}\n"}, "tests must be a list of mappings"),
        ({"reference": "x = 1\n"}, "reference.py has no function generate_input"),
        ({"reference": "def (\n"}, "reference.py, line 1: expected Python"),
        (
            {"reference": REFERENCE_PY.replace("torch.empty(size", "torch.empty(size, dtype=torch.float4_e2m1fn_x2")},
            "dtype float4_e2m1fn_x2 is not supported",
        ),
    ],
)
def test_unusable_task_is_refused_by_name(changes, message, imports):
    done = imports(**changes)
    assert done.returncode == 2
    assert message in done.stderr


def test_submission_that_is_no_python_is_evaluated_as_it_is(imports, tmp_path):
    text = "def custom_kernel(data:\n"
    imports(submission=text)
    sample = load_samples(tmp_path / "generated" / f"{SUITE}-submissions")[-1]
    assert (sample.candidate.source, sample.candidate.not_run) == (text, "")


def test_submission_that_cannot_be_merged_is_not_run(imports, tmp_path):
    imports(submission=f"import utils\n{SUBMISSION_PY}")
    sample = load_samples(tmp_path / "generated" / f"{SUITE}-submissions")[-1]
    assert "submission imports 'utils' in a form that cannot be merged" in sample.candidate.not_run
