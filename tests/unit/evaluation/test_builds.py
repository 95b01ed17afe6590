import threading

import pytest

from harness.domain import BuildRequest, BuildResult, Candidate
from harness.evaluation.model_workers import CandidateBuilds
from harness.evaluation.record import EvaluationRecord

CUDA = BuildRequest(name="k", cuda_sources=("__global__ void k() {}",))
CPP = BuildRequest(name="k", cpp_sources=("int f();",))


class Builds:
    """A builder that ends once the sanitizer's build has begun, if it waits for that."""

    def __init__(self, *, waits):
        self.begun, self._waits = threading.Event(), waits

    def build(self, request):
        if self._waits:
            assert self.begun.wait(30)
        return BuildResult(key="k", status="built", extension="k.so", log="", duration_s=1.0)

    def build_ahead(self, request):
        self.begun.set()


def answer(builds, request, *, beside, ahead=False):
    candidate = Candidate(source="", language="cuda", rule="file")
    answers = CandidateBuilds(builds, builds, None, builds_beside=beside).answer_for(
        EvaluationRecord.__new__(EvaluationRecord), candidate, ahead=ahead
    )
    return answers(request)


@pytest.fixture(autouse=True)
def _without_record(monkeypatch):
    monkeypatch.setattr(EvaluationRecord, "add_build", lambda *_: None)


def test_the_sanitizer_builds_at_the_same_time_where_nothing_is_timed():
    assert answer(Builds(waits=True), CUDA, beside=True).extension == "k.so"


@pytest.mark.parametrize(
    ("request_", "beside", "ahead", "expected"),
    [(CUDA, False, False, False), (CPP, True, False, False), (CUDA, False, True, True), (CUDA, True, True, True)],
)
def test_elsewhere_it_builds_later_and_ahead_of_the_device_after_the_build(request_, beside, ahead, expected):
    builds = Builds(waits=False)
    answer(builds, request_, beside=beside, ahead=ahead)
    assert builds.begun.is_set() == expected
