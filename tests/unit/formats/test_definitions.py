"""Import of definitions, workloads and solutions of flashinfer-bench and SOL-ExecBench."""

import json
import re
from types import ModuleType

import pytest
import torch
from folders import (
    HELPER,
    RIGHT,
    SCALE,
    WRONG,
    solution_of,
    workload_of,
    write_json,
    write_sol_problem,
    write_tensors,
    write_trace_set,
)

from harness.domain import Outcome
from harness.problems.cases import MAX_CASES
from harness.problems.discovery import read_problem
from harness.store.results import ResultStore
from harness.store.runs import load_samples

SUITES = "reference_models"
CUDA = {"kernel.cu": '#include "k.h"\nPYBIND11_MODULE(x, m) {}\n', "k.h": "#pragma once\nint one();\n"}


@pytest.fixture
def imports(call_harness, tmp_path):
    """Imports a folder, and returns the finished command."""

    def run(folder, *options):
        return call_harness(["import", folder, *options])

    return run


@pytest.fixture
def read(tmp_path):
    """Reads an imported problem."""

    def find(name="scale_rows_k8", suite="flashinfer"):
        return read_problem(tmp_path / SUITES / suite / f"{name}.py", suite)

    return find


def execute(source):
    module = ModuleType("imported")
    exec(compile(source, "imported", "exec"), module.__dict__)
    return module


def change(definition, **parts):
    """Replace axes, inputs or outputs by name."""
    return definition | {kind: definition[kind] | value for kind, value in parts.items()}


def test_definition_becomes_a_problem_and_workloads_its_cases(imports, read, tmp_path):
    done = imports(write_trace_set(tmp_path / "set"))
    assert done.returncode == 0, done.stderr
    assert "1 problem in reference_models/flashinfer: harness problems check --suite flashinfer" in done.stdout
    problem = read()
    assert [(case.name, dict(case.sizes)) for case in problem.cases] == [
        ("w1", {"M": 4, "factor": 1.5}),
        ("w2", {"M": 6, "factor": 1.5}),
    ]
    assert (problem.summary, problem.tags) == ("Multiply rows by a factor.", ("elementwise", "status:verified"))
    assert dict(problem.workload("small").overrides) == {"M": 4, "factor": 1.5}
    module = execute(problem.source)
    x, rows, factor = module.get_inputs()
    assert (x.shape, rows.dtype, factor) == ((4, 8), torch.int32, 1.5)
    assert torch.equal(module.Model()(x, rows, factor), (x * 1.5)[rows.long().abs() % 4])


def test_tolerances_of_workloads_become_those_of_cases(imports, read, tmp_path):
    stated = {"max_atol": 1e-3, "max_rtol": 0.05, "required_matched_ratio": 0.99, "max_error_cap": None}
    write_sol_problem(tmp_path / "sol" / "a", workloads=[workload_of(), workload_of("w2", 6, tolerance=stated)])
    assert imports(tmp_path / "sol").returncode == 0
    first, second = read(suite="sol_execbench").cases
    assert first.tolerance is None
    assert (second.tolerance.atol, second.tolerance.rtol, second.tolerance.matched) == (1e-3, 0.05, 0.99)


def test_derived_axes_custom_inputs_and_clashing_names_are_kept_apart(imports, read, tmp_path):
    reference = (
        "import torch\n\ntwo = 2\n\n\ndef get_inputs(axes, device):\n"
        "    return {'x': torch.ones(axes['half'], device=device)}\n\n\ndef run(x):\n    x.mul_(two)\n    return (x,)\n"
    )
    definition = {
        "name": "double",
        "axes": {"two": {"type": "var"}, "half": {"type": "expr", "expression": "two // 2"}},
        "inputs": {"x": {"shape": ["half"], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["half"], "dtype": "float32"}},
        "custom_inputs_entrypoint": "get_inputs",
        "reference": reference,
    }
    workload = {"uuid": "u", "axes": {"two": 6}, "inputs": {"x": {"type": "custom"}}}
    write_sol_problem(tmp_path / "sol", definition, [workload])
    done = imports(tmp_path / "sol")
    assert done.returncode == 0, done.stderr
    module = execute(read("double", "sol_execbench").source)
    [x] = module.get_inputs()
    assert module.Model()(x).tolist() == [2.0, 2.0, 2.0]
    assert x.tolist() == [1.0, 1.0, 1.0], "inputs that the reference writes are copied"


def test_small_workload_has_no_empty_axis_if_possible(imports, read, tmp_path):
    workloads = [workload_of(str(size), axes={"M": size}) for size in (0, 9, 5)]
    write_trace_set(tmp_path / "set", workloads=workloads)
    assert imports(tmp_path / "set").returncode == 0
    assert dict(read().workload("small").overrides)["M"] == 5


def test_tensors_are_read_from_safetensors_files(imports, read, tmp_path):
    folder = tmp_path / "set"
    write_tensors(folder / "blob" / "a.safetensors", {"rows": [3, 1, 0, 2]})
    spec = {"type": "safetensors", "path": "./blob/a.safetensors", "tensor_key": "rows"}
    given = workload_of("file", inputs={**workload_of()["inputs"], "rows": spec})
    write_trace_set(folder, workloads=[given, workload_of("drawn")])
    assert imports(folder).returncode == 0
    problem = read()
    assert execute(problem.source).get_inputs()[1].tolist() == [3, 1, 0, 2]
    assert dict(problem.cases[1].sizes)["rows_file"] == ""
    assert "INPUTS = {'rows': 'as_drawn'}" in problem.source


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"path": "absent.safetensors"}, "set/absent.safetensors: No such file or directory"),
        ({"path": "pointer"}, "pointer is no safetensors file (perhaps a pointer of Git LFS: git lfs pull)"),
        ({"tensor_key": "other"}, "has no tensor 'other'"),
        ({"axes": {"M": 5}}, "has shape [4], the workload [5]"),
        ({"name": "x"}, "has dtype I32, the definition float32"),
    ],
)
def test_workload_without_its_tensors_is_left_out_by_name(spec, message, imports, read, tmp_path):
    folder, name = tmp_path / "set", spec.pop("name", "rows")
    write_tensors(folder / "a.safetensors", {"rows": [3, 1, 0, 2]})
    (folder / "pointer").write_text("version https://git-lfs.github.com/spec/v1\n")
    axes = spec.pop("axes", {"M": 4})
    tensor = {"type": "safetensors", "path": "a.safetensors", "tensor_key": "rows"} | spec
    bad = workload_of("bad", axes=axes, inputs={**workload_of()["inputs"], name: tensor})
    write_trace_set(folder, workloads=[workload_of(), bad])
    done = imports(folder)
    assert done.returncode == 0
    assert f"scale_rows_k8.jsonl, line 2: input {name}" in done.stderr
    assert message in done.stderr
    assert [case.name for case in read().cases] == ["w1"]


@pytest.mark.parametrize(
    ("definition", "workloads", "message"),
    [
        (SCALE, [workload_of(axes={})], "the workload does not fix the axis M: found None"),
        (SCALE, [workload_of(axes={"M": -1})], "the workload does not fix the axis M: found -1"),
        (SCALE, [workload_of(axes={"M": 4, "N": 4})], "fixes the axis N, which its definition lacks"),
        (SCALE, [workload_of(axes={"M": 4, "K": 9})], "the workload has K 9, its definition 8"),
        (
            change(SCALE, axes={"L": {"type": "var"}}),
            [workload_of(axes={"M": 4})],
            "scale_rows_k8: no usable workload fixes M, L",
        ),
        (SCALE, [workload_of(inputs={"z": {"type": "random"}})], "has the input z, which its definition lacks"),
        (SCALE, [workload_of(inputs={"x": {"type": "file"}})], "input x has the unknown type 'file'"),
        (SCALE, [workload_of(inputs={"x": {"type": "custom"}})], "no custom_inputs_entrypoint"),
        (
            change(SCALE, inputs={"x": {"shape": ["M", "K"], "dtype": "float4_e2m1"}}),
            None,
            "scale_rows_k8: dtype float4_e2m1 of x is not supported",
        ),
        (SCALE | {"op_type": "sampling"}, None, "scale_rows_k8: its outputs are random"),
        (change(SCALE, outputs={"y": {"shape": None, "dtype": "float32"}}), None, "output y is a number"),
        (change(SCALE, inputs={"lambda": {"shape": [], "dtype": "int8"}}), None, "the name 'lambda' cannot be used"),
        (SCALE | {"reference": SCALE["reference"] + "\nATOL = 1e-3\n"}, None, "ATOL is no setting"),
    ],
)
def test_unsupported_content_is_named_and_left_out(definition, workloads, message, imports, tmp_path):
    done = imports(write_trace_set(tmp_path / "set", definition, workloads))
    assert done.returncode == 2
    assert message in done.stderr
    assert "nothing was imported" in done.stderr


def test_definition_without_workloads_names_its_free_axis(imports, tmp_path):
    write_json(tmp_path / "set" / "definitions" / "a.json", SCALE)
    assert "scale_rows_k8: no usable workload fixes M" in imports(tmp_path / "set").stderr


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "bfloat16", "int8", "uint8", "bool", "float64"])
def test_inputs_have_the_dtype_of_the_definition(dtype, imports, read, tmp_path):
    spec = {"shape": ["M", "K"], "dtype": dtype}
    imports(write_trace_set(tmp_path / "set", change(SCALE, inputs={"x": spec})))
    assert execute(read().source).get_inputs()[0].dtype is getattr(torch, dtype)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("workloads/op/scale_rows_k8.jsonl", '{"uuid": "a"}\n\n{"uuid": \n', "scale_rows_k8.jsonl, line 3: not JSON"),
        ("workloads/op/scale_rows_k8.jsonl", "[1]\n", "line 1: holds a list, expected a JSON object"),
        ("definitions/op/scale_rows_k8.json", '{\n "name": "a",\n "axes": }', "scale_rows_k8.json, line 3: not JSON"),
        ("definitions/op/scale_rows_k8.json", '{"name": "a"}', "expected an object as 'inputs', found null"),
        ("solutions/op/right.json", '{"name": 3}', "right.json: expected a string as 'name', found 3"),
    ],
)
def test_malformed_file_is_named_with_its_line_and_the_rest_imported(file, text, message, imports, tmp_path):
    folder = write_trace_set(tmp_path / "set", solutions=[solution_of("right", {"main.py": RIGHT})])
    write_trace_set(folder, SCALE | {"name": "sound"})
    (folder / file).write_text(text)
    done = imports(folder)
    assert done.returncode == 0
    assert message in done.stderr
    assert (tmp_path / SUITES / "flashinfer" / "sound.py").is_file()


def test_malformed_definition_does_not_stop_the_import_of_its_neighbours(imports, tmp_path):
    write_sol_problem(tmp_path / "sol" / "L1" / "broken")
    (tmp_path / "sol" / "L1" / "broken" / "definition.json").write_text("{")
    write_sol_problem(tmp_path / "sol" / "L1" / "sound")
    done = imports(tmp_path / "sol")
    assert done.returncode == 0
    assert "broken/definition.json, line 1: not JSON" in done.stderr
    assert "1 problem in" in done.stdout


@pytest.mark.parametrize("kind", ["solutions", "definitions"])
def test_the_second_of_two_files_of_one_name_is_left_out(kind, imports, tmp_path):
    folder = write_trace_set(tmp_path / "set", solutions=[solution_of("twin", {"main.py": WRONG})])
    [first] = (folder / kind).rglob("*.json")
    first.with_name("z.json").write_text(first.read_text())
    done = imports(folder)
    assert done.returncode == 0
    assert f"z.json is left out: {first}" in done.stderr
    assert "1 problem in" in done.stdout
    assert "1 candidate in" in done.stdout


def test_workloads_beyond_the_most_cases_are_chosen_evenly(imports, read, tmp_path):
    workloads = [workload_of(f"w{rows}", rows) for rows in range(1, 131)]
    done = imports(write_trace_set(tmp_path / "set", workloads=workloads))
    assert f"scale_rows_k8: {MAX_CASES} of 130 workloads" in done.stderr
    cases = read().cases
    assert (len(cases), cases[0].name, cases[-1].name) == (MAX_CASES, "w1", "w130")


def test_solutions_become_candidates_of_a_run(imports, tmp_path):
    right = solution_of("right", {"main.py": RIGHT, "helper.py": HELPER})
    wrong = solution_of("wrong", {"main.py": WRONG}, destination_passing_style=False)
    done = imports(write_trace_set(tmp_path / "set", solutions=[right, wrong]))
    assert "2 candidates in generated/flashinfer-someone: harness evaluate flashinfer-someone" in done.stdout
    first, second = load_samples(tmp_path / "generated" / "flashinfer-someone")
    assert (first.model, first.candidate.language, first.candidate.not_run) == ("someone", "torch", "")
    assert "unused" not in first.candidate.source
    x, rows = torch.randn(4, 8), torch.tensor([1, 0, 3, 2], dtype=torch.int32)
    outputs = [execute(one.candidate.source).ModelNew()(x, rows, 2.0) for one in (first, second)]
    assert torch.equal(outputs[0], (x * 2)[rows.long()])
    assert torch.equal(outputs[1], x * 2)


def test_cuda_solution_is_built_by_load_inline(imports, tmp_path):
    cuda = solution_of("cuda", CUDA, language="cuda", binding="torch", compile_options={"cuda_cflags": ["-O3"]})
    imports(write_trace_set(tmp_path / "set", solutions=[cuda]))
    [sample] = load_samples(tmp_path / "generated" / "flashinfer-someone")
    assert sample.candidate.language == "cuda"
    assert 'CUDA_SOURCE = r"""int one();' in sample.candidate.source
    assert "extra_cuda_cflags=['-O3']" in sample.candidate.source
    assert "extension.run(x, rows, factor, y)" in sample.candidate.source


@pytest.mark.parametrize(
    ("sources", "spec", "reason"),
    [
        ({"main.py": "x"}, {"language": None, "languages": ["cutile"]}, "language cutile is not supported"),
        (CUDA, {"language": "cuda"}, "its binding is tvm-ffi"),
        (CUDA, {"language": "cuda", "binding": "torch", "dependencies": ["CUTLASS_3_7"]}, "it needs cutlass"),
        ({"main.py": "import a\n", "a.py": "b = 1\n"}, {}, "main imports 'a' in a form that cannot be merged"),
        ({"main.py": "from a import b\nc = 1\n", "a.py": "b = c = 2\n"}, {}, "two of its modules define c"),
    ],
)
def test_solution_that_cannot_run_is_not_run_with_the_reason(sources, spec, reason, imports, tmp_path):
    imports(write_trace_set(tmp_path / "set", solutions=[solution_of("odd", sources, **spec)]))
    [sample] = load_samples(tmp_path / "generated" / "flashinfer-someone")
    assert sample.candidate.not_run.startswith("solution odd cannot be run here: ")
    assert reason in sample.candidate.not_run


def test_solution_that_is_no_python_is_evaluated_as_it_is(imports, tmp_path):
    imports(write_trace_set(tmp_path / "set", solutions=[solution_of("odd", {"main.py": "def run(:\n"})]))
    [sample] = load_samples(tmp_path / "generated" / "flashinfer-someone")
    assert (sample.candidate.source.strip(), sample.candidate.not_run) == ("def run(:", "")


def test_solution_of_an_unknown_definition_is_left_out_by_name(imports, tmp_path):
    lost = solution_of("lost", {"main.py": WRONG}, definition="other")
    done = imports(write_trace_set(tmp_path / "set", solutions=[lost]))
    assert "solution lost: its definition other is not imported" in done.stderr
    assert not (tmp_path / "generated").exists()


def test_sol_sources_without_content_are_files_beside_the_solution(imports, tmp_path):
    solution = solution_of("right", {"kernel.py": None}, language=None, languages=["pytorch"])
    folder = write_sol_problem(tmp_path / "sol" / "L1" / "scale", solutions=[solution])
    (folder / "kernel.py").write_text(RIGHT.replace("from helper import scale\n", HELPER))
    assert "1 candidate in" in imports(tmp_path / "sol").stdout


@pytest.fixture
def export(imports, call_harness, tmp_path, evaluation_of):
    """Imports a solution, stores an outcome of it, and returns the exported traces."""

    def run(outcome, **changes):
        imports(write_trace_set(tmp_path / "set", solutions=[solution_of("right", {"main.py": WRONG})]))
        subject = {"run": "flashinfer-someone", "suite": "flashinfer", "problem": "scale_rows_k8"}
        with ResultStore.open(tmp_path / "results") as store:
            store.record(evaluation_of(outcome, **subject, **changes))
        done = call_harness(["export", "--format", "flashinfer-bench", "--run", "flashinfer-someone", "out"])
        assert done.returncode == 0, done.stderr
        path = tmp_path / "out" / "traces" / "scale_rows_k8.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else done.stderr

    return run


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Outcome.CORRECT, "PASSED"),
        (Outcome.WRONG_VALUE, "INCORRECT_NUMERICAL"),
        (Outcome.WRONG_SHAPE, "INCORRECT_SHAPE"),
        (Outcome.BUILD_ERROR, "COMPILE_ERROR"),
        (Outcome.SUSPECT, "RUNTIME_ERROR"),
        (Outcome.TIMEOUT, "TIMEOUT"),
    ],
)
def test_verdict_is_exported_as_traces_with_its_workloads(outcome, status, export):
    traces = export(outcome)
    assert [one["workload"] for one in traces] == [workload_of(), workload_of("w2", 6)]
    assert {(one["definition"], one["solution"]) for one in traces} == {("scale_rows_k8", "right")}
    for one in traces:
        evaluation = one["evaluation"]
        assert evaluation["status"] == status
        assert (evaluation["performance"] is not None) == (status == "PASSED")
        assert (evaluation["correctness"] is not None) == (status in ("PASSED", "INCORRECT_NUMERICAL"))
        assert str(outcome) in evaluation["log"]


def test_an_evaluation_of_a_solution_shows_its_name(export, call_harness):
    export(Outcome.CORRECT)
    assert re.search(r"^solution +right *$", call_harness(["show", "1"]).stdout, re.MULTILINE)


def test_evaluations_without_a_verdict_are_left_out_of_the_traces(export):
    assert "left out: 1 evaluation without a verdict on the program" in export(Outcome.NOT_RUN)


def test_evaluations_of_other_workloads_are_named_when_they_are_left_out(export):
    assert "left out: 1 evaluation of another workload than full" in export(Outcome.CORRECT, workload="small")


def test_traces_of_other_problems_are_refused(call_harness, tiny_suite, write_run, tmp_path, evaluation_of):
    write_run("mine", {"add": ["class ModelNew: pass\n"]})
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct", run="mine", problem="add", suite="tiny"))
    folder = ("--problems-dir", tiny_suite.parent)
    done = call_harness(["export", "--format", "flashinfer-bench", "--run", "mine", "out", *folder])
    assert done.returncode == 2
    assert "traces need a problem that was imported with its workloads" in done.stderr
