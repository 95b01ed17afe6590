"""Ranks files with candidates of one problem, and says which are close."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.analysis.ranking import RankedFile, find_close, rank_files
from harness.domain import Comparison
from harness.report.terminal.tables import list_notes, render_ranked_files
from harness.store.results import StoredEvaluation


@pytest.fixture
def file_of(evaluation_of):
    def make(name, outcome="correct", speedup=None, pairs=None, **changes):
        evaluation = evaluation_of(outcome, speedup, **changes)
        return RankedFile(name=name, stored=StoredEvaluation(id=1, evaluation=evaluation), pairs=pairs)

    return make


def list_names(files):
    return [one.name for one in files]


def print_cells(ranked):
    columns = [[str(cell) for cell in column.cells] for column in render_ranked_files(ranked).columns]
    return list(zip(*columns, strict=True))


def test_the_fastest_comes_first_then_untimed_then_failures(file_of):
    files = [file_of("bad", "wrong_value"), file_of("slow", speedup=1.2), file_of("none"), file_of("fast", speedup=3.0)]
    assert list_names(rank_files(files)) == ["fast", "slow", "none", "bad"]


def test_an_unreliable_time_ranks_behind_reliable_ones(file_of):
    files = [file_of("doubtful", speedup=5.0, verdict="unreliable"), file_of("slow", speedup=1.2)]
    assert list_names(rank_files(files)) == ["slow", "doubtful"]


def test_files_are_close_if_their_intervals_overlap_on_one_device(file_of):
    files = [file_of("a", speedup=2.0), file_of("b", speedup=1.9), file_of("c", speedup=1.2), file_of("d", "timeout")]
    other = file_of("e", speedup=1.9, device="cuda:0")
    assert list_names(find_close(rank_files([*files, other]))) == ["b"]


def test_of_failures_alone_none_is_close(file_of):
    assert find_close([file_of("a", "wrong_value"), file_of("b", "wrong_value")]) == []


@pytest.mark.parametrize(
    ("pairs", "order", "note"),
    [
        (None, ["a", "b"], "overlaps with a"),
        (Comparison(turn=0), ["a", "b"], "overlaps with a"),
        (Comparison(turn=0, speedup=1.1, speedup_low=1.05, speedup_high=1.2), ["b", "a"], "faster than a: 1.10x"),
        (Comparison(turn=0, speedup=1.0, speedup_low=0.95, speedup_high=1.1), ["a", "b"], "tie with a: 1.00x"),
        (Comparison(turn=0, speedup=0.9, speedup_low=0.85, speedup_high=0.95), ["a", "b"], "slower than a: 0.90x"),
    ],
)
def test_pairs_decide_between_close_files(pairs, order, note, file_of):
    close = replace(file_of("b", speedup=1.9, pairs=pairs), close_to="a")
    ranked = rank_files([file_of("a", speedup=2.0), close])
    assert list_names(ranked) == order
    assert any(cells[-1].startswith(note) for cells in print_cells(ranked))


def test_a_failure_has_no_place_and_shows_its_reason(file_of):
    failed = file_of("bad", "wrong_value", extra={"message": "all wrong\nand more"})
    assert print_cells([failed]) == [("-", "1", "bad", "wrong_value", "-", "all wrong")]


def test_speedups_on_different_devices_are_said_to_be_not_comparable(file_of):
    files = [file_of("a", speedup=2.0), file_of("b", speedup=2.0, device="cuda:1")]
    assert list_notes(files) == ["Speedups on different devices (cpu, cuda) are not comparable."]
    assert list_notes(files[:1]) == []
