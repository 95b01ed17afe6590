"""An exported trace has the format of Chrome's trace events: https://ui.perfetto.dev opens it."""

import json
import math
from dataclasses import replace

import pytest

from harness.domain import Block, StoreError, Work
from harness.report.export.json_records import write_trace
from harness.store.results import StoredEvaluation

BLOCK = Block(
    calls=1, baseline_reported_us=20.0, candidate_reported_us=10.5, baseline_evaluator_us=30.0,
    candidate_evaluator_us=20.0,
)  # fmt: skip
SPANS = (("reference", 0.0, 0.5), ("correctness", 0.5, 1.0), ("build", 0.6, 0.25), ("timing", 1.5, 2.0))
METADATA = {"process_name", "thread_name"}


@pytest.fixture
def export(tmp_path, evaluation_of):
    def export(blocks=(BLOCK, BLOCK), **changes):
        evaluation = evaluation_of("correct", 2.0)
        evaluation = replace(evaluation, timing=replace(evaluation.timing, blocks=blocks), **changes)
        write_trace(StoredEvaluation(id=7, evaluation=evaluation), tmp_path / "trace.json")
        return json.loads((tmp_path / "trace.json").read_text())

    return export


def require_format(trace):
    """As the specification of the format demands it of complete events and metadata."""
    assert trace["displayTimeUnit"] in ("ms", "ns")
    ends: dict[tuple[int, int], list[float]] = {}
    for event in trace["traceEvents"]:
        assert {type(event["pid"]), type(event["tid"])} == {int}
        assert isinstance(event["name"], str)
        assert isinstance(event["args"], dict)
        if event["ph"] == "M":
            assert event["name"] in METADATA
            assert isinstance(event["args"]["name"], str)
            continue
        assert event["ph"] == "X"
        begin, duration = event["ts"], event["dur"]
        assert math.isfinite(begin + duration)
        assert min(begin, duration) >= 0
        open_ends = ends.setdefault((event["pid"], event["tid"]), [])
        while open_ends and open_ends[-1] <= begin + 1e-3:
            open_ends.pop()
        assert not open_ends or begin + duration <= open_ends[-1] + 1e-3, "slices of a thread nest"
        open_ends.append(begin + duration)


@pytest.mark.parametrize(
    "changes", [{"spans_s": SPANS}, {"phases_s": (("load", 0.5), ("timing", 1.0))}, {"blocks": ()}]
)
def test_a_trace_has_the_format_that_perfetto_reads(export, changes):
    require_format(export(**changes))


def test_phases_and_timed_calls_are_slices_of_named_threads(export):
    trace = export(spans_s=SPANS)
    names = {
        (one["pid"], one["tid"]): one["args"]["name"] for one in trace["traceEvents"] if one["name"] == "thread_name"
    }
    slices = [one for one in trace["traceEvents"] if one["ph"] == "X"]
    found = [(names[one["pid"], one["tid"]], one["name"], one["ts"], one["dur"]) for one in slices]
    assert found[:2] == [("phases", "reference", 0.0, 5e5), ("phases", "correctness", 5e5, 1e6)]
    assert found[4:] == [
        ("eager", "eager", 1500000.0, 20.0),
        ("candidate", "candidate", 1500020.0, 10.5),
        ("eager", "eager", 1500030.5, 20.0),
        ("candidate", "candidate", 1500050.5, 10.5),
    ]


def test_kernels_are_slices_in_the_order_of_their_time(export):
    work = Work(custom=1.0, torch=0.0, library=0.0, other=0.0, parts=(("mine\x1b[2J", 30.0), ("other", 10.0)))
    trace = export(work=work)
    require_format(trace)
    found = [
        (one["name"], one["ts"], one["dur"]) for one in trace["traceEvents"] if (one["pid"], one["ph"]) == (3, "X")
    ]
    assert found == [("mine\\x1b[2J", 0.0, 30.0), ("other", 30.0, 10.0)]


def test_a_trace_that_cannot_be_written_is_an_error_with_its_path(tmp_path, evaluation_of):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot write .*file/trace\.json"):
        write_trace(StoredEvaluation(id=7, evaluation=evaluation_of()), tmp_path / "file" / "trace.json")
