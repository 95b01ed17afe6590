"""The best turn of a sample up to each one, from stored rows."""

from harness.analysis.ranking import find_best_turns
from harness.domain import Comparison
from harness.store.results import ResultStore


def test_pairs_decide_and_turns_without_a_device_belong_to_the_sample(tmp_path, evaluation_of):
    pairs = Comparison(turn=0, speedup=1.2, speedup_low=1.1, speedup_high=1.3)
    evaluations = [
        evaluation_of("correct", 2.0, turn=0),
        evaluation_of("build_error", turn=1, device="none"),
        evaluation_of("correct", 2.0, turn=2, extra={"comparison": pairs}),
        evaluation_of("correct", 2.0, turn=0, sample=1),
    ]
    with ResultStore.open(tmp_path) as store:
        ids = [store.record(one, None) for one in evaluations]
        best = find_best_turns(list(store.rows()))
    assert best == {ids[0]: 0, ids[1]: 0, ids[2]: 2}
