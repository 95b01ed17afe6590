"""Which values the candidate's kernels alone write in every call, in a simulated memory."""

import itertools

import pytest
import torch
from simulated_memory import COLUMNS, ROWS, Program

from harness.evaluation.timing.kept_values import find_kept_values

WEIGHTS = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(1))


def multiply(p):
    p.out.copy_(p.x * p.kept)


def unpack(p):
    p.kept.copy_(WEIGHTS)


def write_unused(p):
    p.buffer.copy_(p.x)


def write_what_it_reads(p):
    p.kept.copy_(p.kept.clone())


def write_zeros(p):
    p.kept.zero_()


def test_values_that_each_call_writes_again_are_needed():
    program = Program(multiply, unpack)
    program.replay(1, "call")
    (kept,) = find_kept_values(program, program.replay, itertools.count(2).__next__)
    assert len(kept.at) == ROWS * COLUMNS // 2
    program.replay(9, "without")
    assert program.out.equal(program.x * WEIGHTS)
    kept.move()
    program.replay(9, "without")
    assert not torch.isclose(program.out, program.x * WEIGHTS).all()
    program.replay(9, "call")
    assert program.kept.equal(WEIGHTS)


@pytest.mark.parametrize("own", [write_unused, write_what_it_reads, write_zeros])
def test_values_that_others_do_not_read_or_that_are_equal_change_nothing(own):
    program = Program(multiply, own)
    unpack(program)
    program.replay(1, "call")
    expected = program.kept.clone()
    for kept in find_kept_values(program, program.replay, itertools.count(2).__next__):
        kept.move()
    program.replay(9, "without")
    assert program.out.equal(program.x * expected)
