"""`harness import PATH` recognises the format by its files."""

import pytest
from folders import write_json, write_sol_problem, write_task, write_trace_set

from harness.domain import UsageError
from harness.formats.table import FORMATS, recognise

PROBLEM = "class Model: pass\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n"


def write_levels(folder):
    (folder / "level1").mkdir(parents=True)
    (folder / "level1" / "1_Relu.py").write_text(PROBLEM)
    return folder


def write_verified(folder):
    write_levels(folder / "KernelBench")
    (folder / "hidden_tests").mkdir()
    return folder


def write_kernels(folder):
    folder.mkdir()
    (folder / "level_1_problem_1_sample_0_kernel.py").write_text("x = 1\n")
    return folder


def write_parquet(path):
    path.write_bytes(b"PAR1")
    return path


@pytest.mark.parametrize(
    ("write", "inner", "name"),
    [
        (write_levels, "", "kernelbench"),
        (lambda folder: write_levels(folder) / "level1", "", "kernelbench"),
        (write_kernels, "", "kernelbench"),
        (lambda folder: write_parquet(folder.with_suffix(".parquet")), "", "kernelbench"),
        (write_verified, "KernelBench", "kernelbench-verified"),
        (write_trace_set, "", "flashinfer-bench"),
        (lambda folder: write_trace_set(folder / "trace").parent, "trace", "flashinfer-bench"),
        (write_sol_problem, "", "sol-execbench"),
        (lambda folder: write_sol_problem(folder / "L1" / "scale").parents[1], "", "sol-execbench"),
        (write_task, "", "gpu-mode"),
        (lambda folder: write_task(folder / "problems" / "a" / "add").parents[2], "", "gpu-mode"),
    ],
)
def test_folder_is_recognised(write, inner, name, tmp_path):
    source = write(tmp_path / "given")
    found, root = recognise(source, None)
    assert (found.name, root) == (name, source / inner)


def test_unknown_folder_lists_the_formats_and_their_files(tmp_path):
    write_json(tmp_path / "data.json", {})
    with pytest.raises(UsageError, match="is in no known format") as raised:
        recognise(tmp_path, None)
    assert all(f"{one.name}: {one.recognised_by}" in str(raised.value) for one in FORMATS)


def test_folder_in_two_formats_needs_the_option(tmp_path):
    write_trace_set(tmp_path)
    write_task(tmp_path / "tasks" / "add")
    with pytest.raises(UsageError, match="flashinfer-bench and gpu-mode: choose one with --format"):
        recognise(tmp_path, None)
    assert recognise(tmp_path, "gpu-mode")[0].name == "gpu-mode"


def test_asked_format_that_the_folder_is_not_in_is_refused(tmp_path):
    write_trace_set(tmp_path)
    with pytest.raises(UsageError, match=r"Recognised are\n  gpu-mode: task\.yml beside reference\.py"):
        recognise(tmp_path, "gpu-mode")
