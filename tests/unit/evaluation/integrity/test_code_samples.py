"""Whose the sampled code is, and the shares that follow."""

import random
from itertools import chain, count, repeat
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

from harness.domain import Work
from harness.evaluation.integrity.attribution import confirm_custom_code
from harness.evaluation.integrity.code_samples import (
    LEAST_CALLS,
    LEAST_SAMPLES,
    MOST_S,
    SURE_SAMPLES,
    TORCH_FOLDER,
    CodeSamples,
)
from harness.sandbox.worker_process import CodePlace, CodeSample

WORK = Work(custom=0.9, torch=0.06, library=0.02, other=0.02)
UNSAID = Work(custom=0.0, torch=0.0, library=0.0, other=1.0)
OWN_CODE = random.Random(1).randbytes(64)


def place(path, *, installed=True, offset=0, code=b""):
    return CodePlace(path=path, installed=installed, offset=offset, code=code)


TORCH = place(f"{TORCH_FOLDER}/lib/libtorch_cpu.so")
GOMP = place(f"{TORCH_FOLDER}/lib/libgomp.so.1")
LIBM, NUMPY = place("/usr/lib/libm.so.6"), place("/usr/lib/python3/numpy/_multiarray_umath.so")
PYTHON, GENERATED = place("/usr/lib/libpython3.11.so.1.0"), place("", installed=False, code=OWN_CODE)
OWN = place("/tmp/own.so", installed=False, code=OWN_CODE)


class FakeSession:
    """Calls in which these threads are seen."""

    def __init__(self, traces, *, maps_code=True):
        self.sample = None if traces is None else CodeSample(traces=traces, maps_custom_code=maps_code)

    def call_sampled(self, delay_us):
        return self.sample


def sample(*instants, built=(), times=SURE_SAMPLES, maps_code=True):
    samples = CodeSamples(random.Random(1), built, is_required=True)
    samples.note_call(100.0)
    for traces in instants * times:
        samples.call(FakeSession(traces, maps_code=maps_code))
    return samples


@pytest.fixture
def own_library(tmp_path):
    """The evaluator's build, so that no file is searched."""
    (tmp_path / "library.so").write_bytes(OWN_CODE)
    return (str(tmp_path / "library.so"),)


@pytest.mark.parametrize(
    ("threads", "owner"),
    [
        ([(OWN,)], "custom"),
        ([(TORCH,)], "torch"),
        ([(NUMPY,)], "library"),
        ([(GENERATED,)], "library"),
        ([(LIBM, OWN, PYTHON)], "custom"),
        ([(LIBM, TORCH, OWN)], "torch"),
        ([(OWN,), (GOMP, TORCH)], "custom"),
        ([(OWN,), (PYTHON,)], "custom"),
        ([(OWN,), (OWN,), (TORCH,)], "torch"),
        ([(OWN, TORCH), (LIBM, NUMPY)], "library"),
    ],
)
def test_instant_belongs_to_the_code_that_executes(threads, owner, own_library):
    work = sample(threads, built=own_library).share(UNSAID)
    assert getattr(work, owner) == 1.0


def test_python_and_waiting_threads_have_no_share(own_library):
    work = sample([(OWN,)], [(PYTHON,)], [(GOMP,)], [], [(TORCH,)], built=own_library).share(UNSAID)
    assert (work.custom, work.torch, work.other) == (0.5, 0.5, 0.0)


def test_profile_divides_the_time_in_torchs_files_only(own_library):
    work = sample([(OWN,)], [(TORCH,)], built=own_library).share(WORK)
    assert (work.custom, work.torch, work.library) == pytest.approx((0.5, 0.375, 0.125))


def test_few_samples_tell_nothing(own_library):
    assert sample([(OWN,)], [(PYTHON,)], built=own_library, times=LEAST_SAMPLES - 1).share(WORK) is None


@pytest.mark.parametrize(("own", "torch", "share"), [(20, 0, 1.0), (0, 40, 0.063), (20, 20, 0.624), (5, 5, 0.730)])
def test_share_of_a_further_case_is_the_largest_that_its_samples_permit(own, torch, share, own_library):
    samples = sample(*[[(OWN,)]] * own, *[[(TORCH,)]] * torch, built=own_library, times=1)
    work = samples.share(None)
    assert work.custom == pytest.approx(share, abs=0.002)
    assert work.custom + work.torch == pytest.approx(1.0)


def test_code_is_unused_only_after_many_samples(own_library):
    few, many, some = (
        sample([(TORCH,)], times=SURE_SAMPLES - 1),
        sample([(TORCH,)]),
        sample([(TORCH,)], [(OWN,)], built=own_library),
    )
    assert (few.is_unused, many.is_unused, some.is_unused) == (False, True, False)
    assert (few.is_enough(), many.is_enough(), few.is_enough(spent_s=MOST_S)) == (False, True, True)


def test_code_is_unused_at_once_if_only_installed_files_are_mapped():
    fewest, few = (sample([(TORCH,)], times=times, maps_code=False) for times in (LEAST_CALLS, LEAST_CALLS - 1))
    assert (fewest.is_unused, fewest.is_enough(spent_s=2.0), few.is_unused) == (True, True, False)


def test_library_that_no_installed_one_equals_is_own():
    assert sample([(OWN,)]).share(WORK).custom == 1.0


def test_copied_library_of_the_machine_is_not_own():
    library = next(Path(numpy.__file__).parent.rglob("_multiarray_umath*.so"))
    offset = library.stat().st_size // 128 * 64
    code = library.read_bytes()[offset : offset + 64]
    work = sample([(place("/tmp/own.so", installed=False, offset=offset, code=code),)]).share(WORK)
    assert (work.custom, work.library) == (0.0, 1.0)


def test_sampling_ends_where_linux_does_not_tell():
    samples = sample(None, times=1)
    assert (samples.share(WORK), samples.is_unused) == (None, False)
    assert not samples.draws_call()


class ChangingSession(FakeSession):
    """Calls take longer once one was stopped."""

    def __init__(self, traces, before_us, after_us):
        super().__init__(traces)
        self.times_us = iter(before_us)
        self.after_us = iter(after_us)

    def call_sampled(self, delay_us):
        self.times_us = self.after_us
        return super().call_sampled(delay_us)

    def call_timed(self, *, take):
        return next(self.times_us)

    def complete(self, time_us):
        return SimpleNamespace(evaluator_us=time_us)

    def prepare_call(self, inputs):
        pass

    stage, await_rest, disarm = prepare_call, lambda self: None, lambda self: None


@pytest.mark.parametrize(
    ("after_us", "checks"),
    [(repeat(100.0), []), (repeat(190.0), ["unverified_share"]), (chain([190.0] * 3, repeat(100.0)), [])],
    ids=["as before", "slower", "disturbed"],
)
def test_a_share_of_calls_that_change_after_a_stop_is_not_verified(after_us, checks, own_library):
    samples = CodeSamples(random.Random(1), own_library, is_required=True)
    session = ChangingSession([(OWN,)], repeat(100.0), after_us)
    samples.make_calls(session, SimpleNamespace(make_inputs=lambda seed: []), count())
    found = confirm_custom_code(None, WORK, samples.share(WORK), samples)
    assert (found.work.custom, [one.check for one in found.findings]) == (1.0, checks)
