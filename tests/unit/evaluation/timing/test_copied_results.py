"""Whether the candidate's kernels compute a result, or only move values of others, in a simulated memory."""

import itertools
import random
from types import SimpleNamespace

import pytest
import torch
from simulated_memory import BUFFER, COLUMNS, FIRST_ADDRESS, KEPT, ROWS, Program

from harness.evaluation.timing import copied_results
from harness.evaluation.timing.copied_results import measure_computed
from harness.protocol.tensor_layout import TensorSpec


def compute(p):
    p.buffer.copy_((p.x * 1.25).sin())


def examine(program):
    return measure_computed(program, program.replay, itertools.count(1), random.Random(3))


def write(function, target="out"):
    return lambda p: getattr(p, target).copy_(function(p))


def copy_and_keep(p):
    p.out.copy_(p.buffer)
    p.kept.copy_(p.buffer)


def compute_in_the_input(p):
    p.x.copy_((p.x * 1.25).sin())


ORDER = torch.randperm(ROWS * COLUMNS)


@pytest.mark.parametrize(
    "program",
    [
        Program(compute, write(lambda p: p.buffer)),
        Program(compute, write(lambda p: p.buffer.flip(0))),
        Program(compute, write(lambda p: p.buffer.t().reshape(ROWS, COLUMNS))),
        Program(compute, write(lambda p: p.buffer.view(-1)[ORDER].view(ROWS, COLUMNS))),
        Program(compute, write(lambda p: -p.buffer)),
        Program(compute, write(lambda p: p.buffer.half()), dtype=torch.float16),
        Program(compute, write(lambda p: p.buffer.flip(1).double()), dtype=torch.float64),
        Program(compute, copy_and_keep),
        Program(compute_in_the_input, write(lambda p: p.x)),
        Program(lambda p: p.buffer.copy_(p.x.relu()), write(lambda p: p.buffer)),
        Program(lambda p: p.buffer.copy_((p.x * 1.25).sin().tril()), write(lambda p: p.buffer)),
        Program(lambda p: p.buffer.copy_(p.x * 3.0), lambda p: p.out.copy_(p.buffer), scale=2.0),
        Program(lambda p: p.out.copy_(p.x.exp()), lambda p: p.out.neg_()),
    ],
    ids=[
        "in order", "flipped", "transposed", "in any order", "with another sign", "rounded", "extended", "also kept",
        "in the input's memory", "a rectifier", "a triangle", "scaled by others", "in place",
    ],
)  # fmt: skip
def test_kernels_that_only_move_values_of_others_compute_nothing(program):
    assert examine(program) == 0


def prepare_and_multiply(p):
    """Others use what the candidate's kernel of this or an earlier call left."""
    p.buffer.copy_(p.kept * 2.0)


def prepare(p):
    p.kept.copy_(p.x.cos())
    p.out.copy_(p.kept * 2.0)


@pytest.mark.parametrize(
    "program",
    [
        Program(compute, write(lambda p: p.buffer + 0.01)),
        Program(compute, write(lambda p: p.buffer.relu())),
        Program(compute, write(lambda p: p.buffer.abs())),
        Program(compute, write(lambda p: p.buffer.tril())),
        Program(compute, write(lambda p: p.buffer.clamp(-0.999, 0.999))),
        Program(compute, write(lambda p: p.buffer.sort().values)),
        Program(compute, write(lambda p: torch.where(p.x > 0, p.buffer, p.buffer.flip(1)))),
        Program(compute, write(lambda p: p.buffer.view(-1, 2).amax(1)), shape=(ROWS * COLUMNS // 2,)),
        Program(compute, write(lambda p: p.buffer.sum()), shape=()),
        Program(compute, lambda p: p.out.copy_(p.buffer).relu_()),
        Program(lambda p: p.buffer.copy_(p.x), write(lambda p: p.buffer.t()), shape=(COLUMNS, ROWS)),
        Program(lambda p: p.buffer.copy_(p.x), write(lambda p: p.x.flip(0))),
        Program(lambda p: None, write(lambda p: p.x)),
        Program(prepare_and_multiply, prepare),
        Program(compute, write(lambda p: p.buffer.half().relu()), dtype=torch.float16),
        Program(compute, write(lambda p: p.buffer * p.x)),
    ],
    ids=[
        "a bias", "a rectifier", "magnitudes", "a triangle", "limits", "sorted", "chosen", "largest of two", "a sum",
        "in place", "transposes the input", "flips the input", "copies the input", "prepares for others",
        "in half precision", "a gate",
    ],
)  # fmt: skip
def test_kernels_that_compute_are_not_taken_for_copies(program):
    assert examine(program) > 0


@pytest.mark.parametrize(
    "program",
    [
        Program(compute, write(lambda p: p.buffer > 0), dtype=torch.bool),
        Program(compute, write(lambda p: p.buffer.tril().t()), shape=(COLUMNS, ROWS)),
        Program(compute, write(lambda p: torch.ones(()))),
        Program(lambda p: p.buffer[0, :1].copy_(p.x.sum()), write(lambda p: p.buffer[0, 0]), shape=()),
    ],
    ids=["two values", "a transposed triangle", "no effect of the input", "one number"],
)
def test_results_without_values_that_can_be_recognised_tell_nothing(program, monkeypatch):
    monkeypatch.setattr(copied_results, "MOST_PLACES", 100_000)
    program.view(KEPT, (1 << 16,), torch.uint8).copy_(torch.arange(1 << 16) % 2)
    if program.called.specs[0].dtype == "bool":
        program.others = lambda p: p.buffer.view(torch.uint8).copy_(torch.randint(2, (ROWS, COLUMNS * 4)))
    assert examine(program) is None


class Several(Program):
    """All outputs are the same one."""

    def __init__(self, count):
        super().__init__(compute, write(lambda p: p.buffer.flip(0)))
        self.called = SimpleNamespace(specs=self.called.specs * count, addresses=self.called.addresses * count)

    def view_outputs(self):
        return super().view_outputs() * len(self.called.specs)


def write_rows(function, part):
    """Copy the other rows."""

    def own(p):
        p.out.copy_(p.buffer)
        p.out[::part] = function(p)[::part]

    return own


def compute_half_there(p):
    compute(p)
    p.out[::2] = p.buffer[::2]


def add_to_others(p):
    p.out[1::2] = p.buffer[1::2] + 0.01


@pytest.mark.parametrize(
    ("program", "share"),
    [
        (Program(compute, write_rows(lambda p: p.buffer + 0.01, 10)), 0.1),
        (Program(compute, write(lambda p: p.buffer.tril())), 0.6),
        (Program(compute, write(lambda p: p.buffer.clamp(-0.9, 0.9))), 0.28),
        (Program(compute, write(lambda p: p.buffer.relu())), 0.98),
        (Program(compute_half_there, add_to_others), 1.0),
        (Program(compute, write(lambda p: p.buffer + 0.01)), 1.0),
    ],
    ids=["one row in ten", "a triangle", "limits", "a rectifier", "rows that others leave out", "a bias"],
)
def test_the_share_of_elements_that_are_no_copies_is_computed(program, share):
    assert examine(program) == pytest.approx(share, abs=0.1)


class TwoOutputs(Program):
    """Copies the large one, and computes the small one."""

    def __init__(self):
        super().__init__(compute, self.copy_and_sum)
        (spec,), (address,) = self.called.specs, self.called.addresses
        small = TensorSpec(dtype="float32", shape=(ROWS,), stride=(1,))
        self.called = SimpleNamespace(
            specs=(spec, small), addresses=(address, FIRST_ADDRESS + BUFFER + self.out.nbytes)
        )
        self.sums = self.view(BUFFER + self.out.nbytes, (ROWS,), torch.float32)

    def copy_and_sum(self, p):
        p.out.copy_(p.buffer)
        self.sums.copy_(p.x.sum(1))

    def view_outputs(self):
        return [*super().view_outputs(), self.sums.view(torch.uint8)]


def test_outputs_count_by_their_elements():
    assert examine(TwoOutputs()) == pytest.approx(1 / (COLUMNS + 1))


@pytest.mark.parametrize(("count", "found"), [(2, 0), (17, None)])
def test_all_outputs_must_be_copies_of_which_some_are_examined(count, found):
    assert examine(Several(count)) == found


def test_the_search_leaves_memory_as_it_is():
    program = Program(compute, write(lambda p: p.buffer.double()), dtype=torch.float64)
    examine(program)
    program.replay(1, "without")
    before = program.memory.clone()
    (track,) = [copied_results.Track.choose(spec, 0, random.Random(1)) for spec in program.called.specs]
    for _ in range(2):
        track.note(program.buffer.double().view(torch.uint8).view(-1))
    track.look(program.view_memory(), 0)
    assert program.memory.equal(before)


@pytest.mark.parametrize(("dtype", "replays"), [(torch.float32, 3), (torch.float16, 5)])
def test_the_search_ends_with_a_call_that_differs(dtype, replays):
    program = Program(compute, write(lambda p: (p.buffer + 0.01).to(dtype)), dtype=dtype)
    assert examine(program) == 1
    assert program.replays == replays


def test_narrow_copies_of_wide_results_are_searched_if_they_can_hold_them():
    halves = Program(lambda p: p.buffer.copy_((p.x * 1.25).sin().half()), write(lambda p: p.buffer.half().flip(0)))
    assert examine(halves) == 0


def test_fewer_elements_are_searched_where_many_places_hold_them(monkeypatch):
    monkeypatch.setattr(copied_results, "MOST_PLACES", 20_000)
    monkeypatch.setattr(copied_results, "SLICE_ELEMENTS", 1000)
    levels = Program(lambda p: p.buffer.copy_((p.x * 8).round().sin()), write(lambda p: p.buffer.flip(0)))
    assert examine(levels) == 0
    monkeypatch.setattr(copied_results, "MOST_PLACES", 300)
    assert examine(levels) is None
    other = Program(lambda p: p.buffer.copy_((p.x * 8).round().sin()), write(lambda p: p.buffer.flip(0) * 2.0))
    assert examine(other) == 1
