"""Whose the time of a replayed call is, with simulated recordings and replayers."""

import itertools
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from simulated_gpu import SimulatedAhead, SimulatedRecording, SimulatedReplayer, make_reference

from harness.evaluation.integrity.attribution import CustomKernels, attribute_replayed
from harness.evaluation.settings import TimingPlan
from harness.evaluation.timing import cold_replays
from harness.evaluation.timing.replay_statistics import CandidateNotReplayable, relate_to_calls
from harness.evaluation.timing.replay_timing import ReplayTimer
from harness.sandbox.gpu.recorded_code import RecordedFunction
from harness.sandbox.gpu.recording import READS_BACK, KeptBaseline, KernelTimes, NotReplayable

CUSTOM = CustomKernels(names=("scale",))
LIBRARYS_US = 50.0


class Recording(SimulatedRecording):
    """A kernel of its own and one of a library."""

    has_ended = False

    def end_worker(self):
        self.has_ended = True

    def list_functions(self):
        assert self.has_ended
        return [RecordedFunction("scale", "", b"\x7fELF"), RecordedFunction("sgemm", "/usr/lib/libcublas.so", b"")]


class Copied(Recording):
    """The library's kernel leaves the result in memory of the program, as `left` has it."""

    def __init__(self, time_us, left):
        super().__init__(time_us)
        self.left, self.result = left, torch.zeros(8, 8)

    def view_memory(self):
        return [*super().view_memory(), (4096, self.result.view(-1).view(torch.uint8))]

    def write_inputs(self, inputs, state):
        super().write_inputs(inputs, state)
        self.result.copy_(self.left(self.output))


class Unpacks(Recording):
    """The own kernel writes weights that the library's needs, the same in every call."""

    def __init__(self, time_us):
        super().__init__(time_us)
        self.weights, self.unpacked = torch.zeros(64), torch.arange(1.0, 65.0)

    def view_memory(self):
        return [(4096, self.weights.view(torch.uint8))]

    def run(self, graph):
        if graph == "call":
            self.weights.copy_(self.unpacked)
        elif graph == "without" and not self.weights.equal(self.unpacked):
            self.output = self.output * 3.0


class ReadsBack(Recording):
    """It is right for `right` inputs: all, its own, or none."""

    reads_back, seed = True, 4

    def __init__(self, time_us, right="all"):
        super().__init__(time_us)
        (own,) = make_reference().make_timed_inputs(self.seed)
        self.is_right = {"all": lambda x: True, "own": lambda x: x.equal(own), "none": lambda x: False}[right]

    def write_inputs(self, inputs, state):
        super().write_inputs(inputs, state)
        self.output = self.output if self.is_right(inputs[0]) else -self.output


class Malformed(Recording):
    def list_functions(self):
        raise NotReplayable("its recording cannot be read")


class Replayer(SimulatedReplayer):
    """The own kernel takes `own_us` where each kernel is timed. Without it, outputs differ unless it `is_decoy`, and
    the library's takes `idle_us`. `is_right_in_parts`: outputs are right with events between kernels.
    """

    own_us, is_decoy, idle_us, is_right_in_parts = 50.0, False, LIBRARYS_US, True

    def replay(self, graph="call", clock="device", places=()):
        if isinstance(self.recording, Unpacks):
            self.recording.run(graph)
        if graph != "without":
            return super().replay(graph, clock, places)
        if self.idle_us is None:
            raise NotReplayable("it failed")
        self.recording.output = self.recording.output * (1.0 if self.is_decoy else 3.0)
        return self.idle_us + 1.0, []

    def time_kernels(self, own):
        assert own == [0]
        if not self.is_right_in_parts:
            self.recording.output = -self.recording.output
        return KernelTimes({0: self.own_us, 1: LIBRARYS_US}, 2)

    def leave_out(self, functions):
        assert functions == [0]


@pytest.fixture
def measure(monkeypatch):
    monkeypatch.setattr(cold_replays, "CLEAN_BYTES", 64)

    def run(candidate=None, **facts):
        ahead, chosen = SimulatedAhead(), type("Chosen", (Replayer,), facts)
        ahead.take_replayer = lambda **_: chosen()
        plan, reference = TimingPlan(budget_s=0.1, allow_load=True), make_reference()
        timer = ReplayTimer(reference=reference, plan=plan, seeds=itertools.count(100), ahead=ahead, custom=CUSTOM)
        baseline, candidate = KeptBaseline(SimulatedRecording(100.0)), candidate or Recording(100.0)
        try:
            timer.measure("eager", lambda: nullcontext(baseline), lambda: nullcontext(candidate))
        except CandidateNotReplayable as reason:
            return timer.kernels, str(reason)
        return timer.kernels, ""

    return run


def attribute(kernels):
    return attribute_replayed(kernels, make_reference(), CUSTOM, has_kernel=True)


@pytest.mark.parametrize("own_us", [50.0, 20_000.0])
def test_waiting_where_kernels_are_timed_adds_no_share(measure, own_us):
    kernels, _ = measure(own_us=own_us)
    found = attribute(kernels)
    assert found.work.custom == pytest.approx(0.5, abs=0.02)
    assert found.work.without_custom == "changed"
    assert ("takes longer where its parts are timed" in found.findings[0].message) == (own_us > 50.0)


def test_the_time_of_others_that_are_idle_without_its_kernels_is_theirs(measure):
    kernels, _ = measure(own_us=20_000.0, idle_us=1.0)
    assert attribute(kernels).work.custom == pytest.approx(0.5, abs=0.02)


def test_wrong_outputs_where_parts_are_timed_leave_the_share_unverified(measure):
    kernels, _ = measure(is_right_in_parts=False)
    found = attribute(kernels)
    assert found.work.custom == pytest.approx(0.5, abs=0.02)
    assert "where its parts are timed" in found.findings[0].message


def test_the_share_is_not_verified_if_others_fail_without_its_kernels(measure):
    kernels, _ = measure(idle_us=None)
    found = attribute(kernels)
    assert (found.work.custom, found.work.without_custom) == (pytest.approx(0.5), "failed")
    assert "fails without its kernels" in found.findings[0].message


def test_a_decoy_is_recognised(measure):
    kernels, _ = measure(is_decoy=True)
    assert kernels.without_custom == "unchanged"


def test_a_kernel_that_unpacks_weights_in_each_call_is_no_decoy(measure):
    """What it left in the call before is still in memory."""
    kernels, _ = measure(Unpacks(100.0), is_decoy=True)
    assert kernels.without_custom == "changed"


@pytest.mark.parametrize(("left", "found"), [(torch.t, "unchanged"), (torch.exp, "changed")])
def test_kernels_that_only_copy_a_result_are_decoys(measure, left, found):
    kernels, _ = measure(Copied(100.0, left))
    assert kernels.without_custom == found


def test_the_share_of_results_that_its_kernels_copy_is_not_theirs(measure):
    kernels, _ = measure(Copied(100.0, lambda output: torch.where(torch.arange(8) < 6, output, 0.0)))
    work = attribute(kernels).work
    assert (work.custom, work.library, work.other) == pytest.approx((0.125, 0.5, 0.375), abs=0.01)
    assert work.without_custom == "changed"


def test_a_malformed_recording_is_not_replayed(measure):
    malformed = Malformed(100.0)
    assert measure(malformed) == (None, "its recording cannot be read")
    assert malformed.replays == 0


@pytest.mark.parametrize(
    ("call_us", "share"), [(300.0, 0.5), (90.0, 0.44), (40.0, 0.0)], ids=["longer", "as long", "shorter"]
)
def test_work_that_reads_back_is_attributed_and_bounded_by_calls(measure, call_us, share):
    kernels, reason = measure(ReadsBack(100.0))
    assert reason == READS_BACK
    assert kernels.without_custom == "changed"
    found = attribute(relate_to_calls(kernels, call_us))
    assert found.work.custom == pytest.approx(share, abs=0.01)
    assert kernels.is_general


def test_a_kernel_that_only_its_name_ascribes_to_the_program_is_noted(measure):
    kernels, _ = measure()
    (note,) = attribute(kernels).findings
    assert (note.check, note.severity) == ("unverified_share", "note")
    assert "the worker compiled scale," in note.message
    assert not attribute(replace(kernels, unverified=())).findings


def test_a_share_by_the_recorded_inputs_alone_is_not_verified(measure):
    kernels, _ = measure(ReadsBack(100.0, "own"))
    found = attribute(relate_to_calls(kernels, 300.0))
    assert found.work.custom == pytest.approx(0.5, abs=0.01)
    assert [one.check for one in found.findings] == ["unverified_share"]


def test_work_that_reads_back_and_is_wrong_when_replayed_is_not_attributed(measure):
    assert measure(ReadsBack(100.0, "none")) == (None, READS_BACK)


class Launches(Recording):
    def list_functions(self):
        return [RecordedFunction("launch", "", b"\x7fELF __cuda_syscall_cnpv2LaunchDeviceV2")]


def test_kernels_that_launch_others_from_the_device_are_not_replayed(measure):
    candidate = Launches(100.0)
    kernels, reason = measure(candidate)
    assert (kernels, candidate.replays) == (None, 0)
    assert "launch others from the device" in reason
