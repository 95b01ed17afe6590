"""What is made of ncu's output, which a candidate can forge. The output here has the form of `ncu --csv --page raw`;
`tests/gpu/test_gpu_ncu.py` runs ncu itself."""

import csv
import io
import os
from dataclasses import replace

import pytest

from harness.domain import NCU_METRICS, CounterReport, KernelCounters
from harness.evaluation.counters import (
    NO_KERNEL,
    NO_PERMISSION,
    count_in_hardware,
    find_ncu,
    make_profiler,
    make_report,
    parse_counters,
)
from harness.evaluation.integrity.attribution import CustomKernels

TIME, READ = "gpu__time_duration.sum", "dram__bytes_read.sum"
HEAD = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
        "Device", "CC", READ, TIME)  # fmt: skip
UNITS = ("",) * 11 + ("byte", "ns")
CUSTOM = CustomKernels(names=("add_relu", "scale"))


def launch(kernel, time="1000", read="512"):
    return ("0", "7", "python3", "127.0.0.1", kernel, "1", "7", "(256, 1, 1)", "(64, 1, 1)", "0", "9.0", read, time)


def printed(*launches):
    """The output of ncu about these launches, with that of the program before."""
    table = io.StringIO()
    csv.writer(table, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([HEAD, UNITS, *launches])
    before = '==PROF== Connected to process 7 (python3)\nmine\n==PROF== Profiling "x": 0%....100% - 8 passes\n'
    return before + table.getvalue()


def test_longest_launch_of_each_custom_kernel_has_its_launch_count():
    calls = [launch("scale", "10"), launch("void <unnamed>::add_relu<float>(T1 *, long)", "2,000.5", "1,024")]
    calls += [launch("scale", "30"), launch("scale", "20")]
    report = make_report(printed(*calls), CUSTOM)
    assert [(one.kernel, one.launches, dict(one.metrics)) for one in report.kernels] == [
        ("void (anonymous namespace)::add_relu<float>(T1 *, long)", 1, {TIME: 2000.5, READ: 1024.0}),
        ("scale", 3, {TIME: 30.0, READ: 512.0}),
    ]
    assert report.note == ""


@pytest.mark.parametrize("kernel", ["cutlass::add_relu<int>()", "at::native::scale<float>(int)", "sm90_scale", "other"])
def test_kernels_of_torch_and_libraries_are_left_out(kernel):
    assert make_report(printed(launch(kernel)), CUSTOM) == CounterReport(note=NO_KERNEL)


@pytest.mark.parametrize("value", ["n/a", "", "nan", "inf", "1e999", "twelve"])
def test_a_metric_without_a_number_is_left_out(value):
    (one,) = make_report(printed(launch("scale", read=value)), CUSTOM).kernels
    assert dict(one.metrics) == {TIME: 1000.0}


@pytest.mark.parametrize(
    ("output", "note"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", NO_PERMISSION),
        ("==ERROR== Failed to find metric regex:^x$\n", "ncu failed: Failed to find metric regex:^x$"),
        ("==ERROR== \x1b]0;title\x07" + "y" * 5000, "ncu failed: ?]0;title?" + "y" * 290),
        ("==WARNING== No kernels were profiled.\n", NO_KERNEL),
        ("", NO_KERNEL),
        (printed(launch("scale")) + '"unclosed', "ncu printed a malformed table: unexpected end of data"),
    ],
)
def test_output_without_counters_becomes_a_note_that_says_why(output, note):
    assert make_report(output, CUSTOM) == CounterReport(note=note)


def test_counters_that_arrived_before_the_end_of_time_are_kept():
    cut = printed(launch("scale"), launch("add_relu")).rpartition('"0","7"')[0]
    report = make_report(cut, CUSTOM, "ncu was ended after 18 s")
    assert ([one.kernel for one in report.kernels], report.note) == (["scale"], "ncu was ended after 18 s")


def test_names_are_printable_and_bounded_and_so_is_their_number():
    names = [f"scale<{number}\x1b[31m\n{'x' * 1000}>()" for number in range(100)]
    kernels = parse_counters(printed(*map(launch, names)), lambda name: True)
    assert len(kernels) == 8
    assert all(one.kernel.isprintable() and len(one.kernel) <= 200 for one in kernels)


def test_a_name_cannot_widen_the_filter():
    (after,) = [one for one in make_profiler("/x/ncu", ["a", "b|.*", "c" * 300]).command if one.startswith("regex:")]
    assert after == r"regex:^(a|b\|\.\*)$"


def test_ncu_is_found_beside_the_cuda_compiler_too(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "ncu"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert find_ncu() == str(program)


def test_facts_have_units_that_people_read():
    metrics = ((TIME, 12345.0), (READ, 5.4e8))
    one = KernelCounters(kernel="f", grid="(1, 1, 1)", block="(32, 1, 1)", launches=2, metrics=metrics)
    assert one.list_facts() == [("time", "12.3 us"), ("DRAM read", "540 MB")]
    assert one.describe_launch() == "grid (1, 1, 1), block (32, 1, 1), the longest of 2 launches"
    assert replace(one, launches=1).describe_launch() == "grid (1, 1, 1), block (32, 1, 1)"


def test_there_are_25_metrics_with_different_labels():
    assert len({label for _, label, _, _ in NCU_METRICS}) == len(NCU_METRICS) == 25


@pytest.fixture
def read(bench, tmp_path, tiny_suite, monkeypatch):
    """Reads the counters of a program on the CPU, with this shell script in place of ncu."""
    from harness.domain import Candidate, Problem
    from harness.domain.options import TimeLimits
    from harness.evaluation.correctness.reference import prepare_reference
    from harness.evaluation.model_workers import CandidateBuilds, ModelWorkers
    from harness.problems.loading import load_problem
    from harness.sandbox.workers_ahead import WorkersAhead

    def call(script, limit_s, source="class ModelNew: pass\n"):
        program = tmp_path / "tools" / "ncu"  # in a folder that all users may enter
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
        problem = Problem(name="add", suite="tiny", source=(tiny_suite / "add.py").read_text())
        reference = prepare_reference(load_problem(problem, "full"), bench.device, 1, 2)
        builds, ahead = CandidateBuilds(bench.builder, None, None), WorkersAhead(bench.forkserver, None)
        candidate = Candidate(source=source, language="triton", rule="file")
        return count_in_hardware(
            ModelWorkers(ahead, builds, TimeLimits()), candidate, reference, 3, CUSTOM, limit_s=limit_s
        )

    return call


@pytest.mark.slow
def test_an_ncu_that_hangs_is_ended_with_all_that_it_started(read, processes_with):
    assert read("sleep 4321 & sleep 4322", 2.0) == CounterReport(note="ncu was ended after 2 s")
    assert processes_with("4321") == processes_with("4322") == []


@pytest.mark.slow
def test_an_ncu_that_fails_at_once_says_why(read):
    report = read("echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'; exit 1", 60.0)
    assert report == CounterReport(note=NO_PERMISSION)


@pytest.mark.slow
def test_a_candidate_that_fails_under_ncu_is_a_note(read):
    source = "import os\nclass ModelNew:\n    def __init__(self): os._exit(3)\n"
    run = 'while :; do case "$1" in */python*) exec "$@";; esac; shift; done'
    assert read(run, 60.0, source).note.startswith("the candidate failed under ncu: ")
