"""Builders that the tests of several packages share."""

import pytest
from built_evaluations import build_evaluation, build_subject

from harness.analysis.leaderboard import rank_samples
from harness.store.columns import make_row


@pytest.fixture(scope="module")
def one_thread():
    """Threads that wait for each other in a spin take minutes where other tests run beside these."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def evaluation_of():
    return build_evaluation


@pytest.fixture(scope="session")
def subject_of():
    return build_subject


@pytest.fixture(scope="session")
def rank_evaluations():
    """Ranks evaluations as they would be ranked from their flat rows."""

    def rank(evaluations, **options):
        return rank_samples(map(make_row, evaluations), **options)

    return rank
