import pytest

from harness.analysis.leaderboard import SearchSpending
from harness.domain import TRUNCATED, Comparison, Finding, Outcome, UsageError, Work


@pytest.fixture
def only_row(evaluation_of, rank_evaluations):
    def rank(*evaluations, **options):
        (row,) = rank_evaluations(evaluations, **options)
        return row

    return rank


def test_rows_are_sorted_by_fast_1_then_correctness_then_mean_speedup(evaluation_of, rank_evaluations):
    evaluations = [
        evaluation_of("wrong_value", model="hopeless"),
        evaluation_of("correct", 0.9, model="correct"),
        evaluation_of("correct", 3.0, model="fastest"),
        evaluation_of("correct", 2.0, model="fast"),
        evaluation_of("correct", 2.0, model="half"),
        evaluation_of("timeout", model="half", problem="mul"),
        evaluation_of("not_run", model="unknown"),
    ]
    ranked = [row.group.model for row in rank_evaluations(evaluations)]
    assert ranked == ["fastest", "fast", "half", "correct", "hopeless", "unknown"]


@pytest.mark.parametrize(
    "change",
    [
        {"model": "b"},
        {"prompt": "tips"},
        {"language": "cuda"},
        {"device": "cuda:0"},
        {"suite": "other"},
        {"workload": "small"},
        {"baseline": "compile"},
        {"extra": {"environment": (("cpu", "Another CPU"),)}},
    ],
)
def test_samples_of_different_groups_have_separate_rows(evaluation_of, change, rank_evaluations):
    rows = rank_evaluations([evaluation_of("correct", 2.0), evaluation_of("wrong_value", **change)])
    assert sorted(row.fast_p(0.0) for row in rows) == [0.0, 1.0]


def test_emulated_evaluations_have_a_separate_row_without_speed(evaluation_of, rank_evaluations):
    emulated = evaluation_of("correct", device="emulated", language="cuda", workload="small")
    timed = evaluation_of("correct", 2.0, device="cuda:0", language="cuda", workload="small")
    rows = {row.group.device: row for row in rank_evaluations([emulated, timed], ks=(1,))}
    assert [share for _, share in rows["emulated"].fast] == [1.0] + [None] * 5
    assert (rows["emulated"].at_k[0].correct, rows["emulated"].at_k[0].fast_1) == (1.0, None)
    assert rows["cuda"].fast_p(1.0) == 1.0


def test_a_correct_sample_that_was_not_timed_leaves_the_speed_unknown(evaluation_of, only_row):
    row = only_row(
        evaluation_of("correct"),
        evaluation_of("wrong_value", problem="mul"),
        evaluation_of("correct", 2.0, problem="sub"),
        ks=(1,),
    )
    assert (row.untimed, row.fast_p(0.0)) == (1, pytest.approx(2 / 3))
    assert [share for threshold, share in row.fast if threshold] == [None] * 5
    assert (row.at_k[0].correct, row.at_k[0].fast_1) == (pytest.approx(2 / 3), None)


def test_speed_without_correct_samples_is_unknown_only_if_untimed(evaluation_of, only_row):
    untimed = {"environment": (("fidelity", "correctness"),)}
    row = only_row(
        evaluation_of("wrong_value", extra=untimed), evaluation_of("no_code", sample=1, extra=untimed), ks=(1,)
    )
    assert [share for _, share in row.fast] == [0.0] + [None] * 5
    assert (row.at_k[0].correct, row.at_k[0].fast_1) == (0.0, None)
    assert only_row(evaluation_of("wrong_value")).fast_p(1.0) == 0.0


def test_answers_that_the_token_limit_cut_off_are_counted(evaluation_of, only_row):
    cut_off = Finding(check=TRUNCATED, severity="note", message="cut off")
    row = only_row(
        evaluation_of("no_code", sample=0, extra={"findings": (cut_off,)}),
        evaluation_of("no_code", sample=1),
        evaluation_of("correct", 2.0, sample=2),
    )
    assert (row.samples, row.truncated, dict(row.outcomes)[Outcome.NO_CODE]) == (3, 1, 2)


def test_a_problem_of_the_manifest_without_a_sample_counts_as_not_solved(evaluation_of, only_row):
    row = only_row(evaluation_of("correct", 2.0), problems_by_run={"demo": ("add", "mul"), "else": ("other",)})
    assert (row.problems, row.scored, row.fast_p(1.0)) == (2, 2, 0.5)


def test_a_harness_error_leaves_the_denominator_but_is_shown(evaluation_of, only_row):
    row = only_row(evaluation_of("correct", 2.0), evaluation_of("harness_error", problem="mul"))
    assert (row.problems, row.scored, row.fast_p(0.0)) == (2, 1, 1.0)
    assert dict(row.outcomes) == {Outcome.CORRECT: 1, Outcome.HARNESS_ERROR: 1}


def test_the_latest_evaluation_of_a_sample_speaks_for_it(evaluation_of, only_row):
    stale = evaluation_of("correct", 5.0, problem_digest="0" * 16)
    row = only_row(stale, evaluation_of("wrong_value"))
    assert (row.samples, row.fast_p(0.0)) == (1, 0.0)


def test_sample_counts_by_its_best_turn_and_a_tie_is_no_gain(evaluation_of, only_row):
    turns = [evaluation_of("correct", speed, turn=turn) for turn, speed in enumerate((2.0, 3.0, 3.1, 1.0))]
    row = only_row(*turns, evaluation_of("timeout", turn=4), spent={("demo", "add", 0): SearchSpending(700, 0.5)})
    assert (row.samples, row.geometric_mean_speedup) == (1, pytest.approx(3.0))
    assert (row.group.turns, row.mean_turns, row.best_turn) == (5, 5.0, 1.0)
    assert (row.tokens_per_correct, row.usd_per_correct) == (700.0, 0.5)


def test_without_a_correct_turn_the_last_one_speaks_for_a_sample(evaluation_of, only_row):
    row = only_row(evaluation_of("wrong_value"), evaluation_of("build_error", turn=1, device="none"))
    assert dict(row.outcomes)["build_error"] == 1
    assert (row.best_turn, row.tokens_per_correct) == (None, None)


def test_runs_with_several_turns_are_ranked_apart(evaluation_of, rank_evaluations):
    single, several = evaluation_of("timeout", run="one"), [evaluation_of("correct", 2.0, turn=turn) for turn in (0, 1)]
    assert [row.group.turns for row in rank_evaluations([single, *several])] == [2, 1]


def test_the_last_turn_of_a_sample_speaks_for_it(evaluation_of, only_row):
    row = only_row(evaluation_of("correct", 2.0, turn=1), evaluation_of("build_error", turn=0))
    assert (row.samples, row.fast_p(0.0)) == (1, 1.0)


def test_samples_of_several_runs_are_draws_of_their_own(evaluation_of, only_row):
    row = only_row(evaluation_of("correct", 2.0), evaluation_of("wrong_value", run="again"))
    assert (row.samples, row.fast_p(0.0), row.runs) == (2, 0.5, ("again", "demo"))


def test_sample_without_code_counts_on_every_device_of_its_model(evaluation_of, rank_evaluations):
    nothing = evaluation_of("no_code", problem="mul", device="none")
    devices = [evaluation_of("correct", 2.0, device=device) for device in ("cpu", "cuda:0")]
    rows = rank_evaluations([nothing, *devices])
    assert [(row.group.device, row.fast_p(0.0)) for row in rows] == [("cpu", 0.5), ("cuda", 0.5)]


def test_samples_that_went_to_different_gpus_of_one_chip_share_a_row(evaluation_of, only_row):
    one, other = (
        evaluation_of("correct", 2.0, problem=problem, device=device)
        for problem, device in (("add", "cuda:0"), ("mul", "cuda:3"))
    )
    assert (only_row(one, other).group.device, only_row(one, other).samples) == ("cuda", 2)


def test_evaluation_on_a_device_replaces_a_not_run_one(evaluation_of, only_row):
    row = only_row(evaluation_of("correct", 2.0, device="cuda:0"), evaluation_of("not_run", device="none"))
    assert (row.group.device, row.samples, row.fast_p(1.0)) == ("cuda", 1, 1.0)


def test_samples_without_any_device_have_a_separate_row(evaluation_of, only_row):
    row = only_row(evaluation_of("not_run", device="none"))
    assert (row.group.device, row.scored, row.fast_p(0.0)) == ("none", 0, None)


def test_an_unconfirmed_speedup_does_not_rank(evaluation_of, only_row):
    row = only_row(evaluation_of("correct", 9.0, verdict="unconfirmed"))
    assert (row.fast_p(0.0), row.fast_p(0.5), row.geometric_mean_speedup, row.timed) == (1.0, 0.0, None, 0)


def test_the_mean_speedup_is_over_correct_candidates_only(evaluation_of, only_row):
    row = only_row(
        evaluation_of("correct", 4.0), evaluation_of("correct", 1.0, sample=1), evaluation_of("suspect", 99.0, sample=2)
    )
    assert (row.geometric_mean_speedup, row.timed) == (pytest.approx(2.0), 2)


def test_pass_at_k_is_over_the_samples_of_each_problem(evaluation_of, only_row):
    row = only_row(evaluation_of("correct", 0.5), evaluation_of("timeout", sample=1), ks=(1, 2))
    assert [(at.k, at.correct, at.fast_1) for at in row.at_k] == [(1, 0.5, 0.0), (2, 1.0, 0.0)]


def test_k_above_the_number_of_samples_is_an_error_naming_the_problem(evaluation_of, rank_evaluations):
    with pytest.raises(UsageError, match="@3 needs at least 3 evaluated samples of every problem; add has 1"):
        rank_evaluations([evaluation_of("correct", 2.0)], ks=(3,))


def test_a_row_names_the_chip_it_was_evaluated_on(evaluation_of, only_row):
    row = only_row(evaluation_of("correct", 2.0), evaluation_of("no_code", problem="mul", device="none"))
    assert (row.hardware, row.group.chip) == (("Example CPU 9000",), "Example CPU 9000")


def test_sample_without_code_counts_on_every_chip_of_its_model(evaluation_of, rank_evaluations):
    nothing = evaluation_of("no_code", problem="mul", device="none")
    gpus = [
        evaluation_of("correct", 2.0, device="cuda:0", extra={"environment": (("cpu", "CPU"), ("gpu", gpu))})
        for gpu in ("NVIDIA A100", "NVIDIA H100")
    ]
    rows = rank_evaluations([nothing, *gpus])
    assert [(row.group.chip, row.fast_p(0.0)) for row in rows] == [("NVIDIA A100", 0.5), ("NVIDIA H100", 0.5)]


def test_the_emulated_device_is_one_row_whatever_cpu_it_ran_on(evaluation_of, only_row):
    other = evaluation_of("correct", device="emulated", sample=1, extra={"environment": (("cpu", "Another CPU"),)})
    row = only_row(evaluation_of("correct", device="emulated"), other)
    assert (row.group.chip, row.samples) == ("", 2)


def work_of(custom, without_custom="changed"):
    return Work(custom=custom, torch=1 - custom, library=0.0, other=0.0, without_custom=without_custom)


def test_only_code_of_its_own_counts_where_it_is_asked_for(evaluation_of, only_row):
    works = {
        "own": work_of(0.5), "borrowed": work_of(0.4), "decoy": work_of(0.9, "unchanged"), "unknown": None,
    }  # fmt: skip
    evaluations = [evaluation_of("correct", 2.0, problem=name, extra={"work": work}) for name, work in works.items()]
    evaluations.append(evaluation_of("wrong_value", problem="wrong", extra={"work": work_of(0.1)}))
    row = only_row(*evaluations, min_own_share=0.5, ks=(1,))
    assert (row.fast_p(0.0), row.fast_p(1.0), row.timed, row.not_own) == (0.2, 0.2, 1, 3)
    assert (row.at_k[0].correct, row.own_share) == (0.2, 0.5)
    assert dict(row.outcomes) == {Outcome.CORRECT: 4, Outcome.WRONG_VALUE: 1}
    assert only_row(*evaluations).fast_p(0.0) == 0.8


def test_custom_share_is_the_median_over_correct_candidates_with_one(evaluation_of, only_row):
    shares = [0.1, 0.8, 0.9]
    known = [
        evaluation_of("correct", 2.0, sample=sample, extra={"work": work_of(share)})
        for sample, share in enumerate(shares)
    ]
    wrong = evaluation_of("wrong_value", sample=8, extra={"work": work_of(0.0)})
    assert only_row(*known, evaluation_of("correct", sample=9), wrong).own_share == 0.8
    assert only_row(evaluation_of("correct")).own_share is None


@pytest.mark.parametrize(("certificates", "expected"), [(("a", "b"), "yes"), (("a", ""), "part"), (("", ""), "no")])
def test_a_row_says_whether_it_was_evaluated_under_a_certificate(evaluation_of, only_row, certificates, expected):
    evaluated = [
        evaluation_of("correct", sample=sample, extra={"certificate": certificate})
        for sample, certificate in enumerate(certificates)
    ]
    row = only_row(*evaluated, evaluation_of("no_code", sample=9, device="none"))
    assert (row.certificate, row.on_device) == (expected, 2)


def test_sample_without_a_device_needs_no_certificate(evaluation_of, only_row):
    assert only_row(evaluation_of("no_code", device="none")).certificate is None


def test_the_interval_of_one_speedup_is_its_own(evaluation_of, only_row):
    row = only_row(evaluation_of("correct", 2.0))
    assert (row.speedup_low, row.speedup_high) == (pytest.approx(1.9), pytest.approx(2.1))


def test_the_mean_of_many_measurements_is_surer_than_each(evaluation_of, only_row):
    row = only_row(*(evaluation_of("correct", 2.0, sample=sample) for sample in range(4)))
    assert row.speedup_low == pytest.approx(2.0 * (1.9 / 2.0) ** 0.5)
    assert row.speedup_high == pytest.approx(2.0 * (2.1 / 2.0) ** 0.5)


def test_a_measurement_without_a_lower_bound_leaves_the_mean_without_one(evaluation_of, only_row):
    row = only_row(evaluation_of("correct", 2.0, spread=2.0), evaluation_of("correct", 2.0, sample=1))
    assert (row.speedup_low, row.geometric_mean_speedup) == (0.0, pytest.approx(2.0))


def test_without_a_timed_candidate_there_is_no_interval(evaluation_of, only_row):
    row = only_row(evaluation_of("correct"))
    assert (row.speedup_low, row.speedup_high) == (None, None)


def test_nothing_gives_no_rows(rank_evaluations):
    assert rank_evaluations([]) == ()


def test_identical_programs_count_as_one_draw_at_k(evaluation_of, only_row):
    samples = [
        evaluation_of("correct", 0.9, candidate_digest="a"),
        evaluation_of("correct", 1.1, sample=1, candidate_digest="b"),  # the same program; noise favours this draw
        evaluation_of("wrong_value", sample=2, candidate_digest="c"),
    ]
    row = only_row(*samples, ks=(1, 2, 3), programs={"a": "p", "b": "p", "c": "q"})
    assert [(at.k, at.correct, at.fast_1) for at in row.at_k] == [(1, 0.5, 0.0), (2, 1.0, 0.0), (3, 1.0, 0.0)]
    assert row.fast_p(0.0) == pytest.approx(2 / 3)
    apart = only_row(*samples, ks=(1,), programs={"a": "p", "b": "other", "c": "q"})
    assert [(at.correct, at.fast_1) for at in apart.at_k] == [(pytest.approx(2 / 3), pytest.approx(1 / 3))]


def test_samples_without_a_program_stay_draws_of_their_own(evaluation_of, only_row):
    samples = [evaluation_of("no_code", sample=n, candidate_digest="", device="none") for n in range(3)]
    samples.append(evaluation_of("correct", 2.0, sample=3))
    assert only_row(*samples, ks=(1,), programs={}).at_k[0].correct == 0.25


def test_pairs_with_the_best_turn_before_decide_which_turn_counts(evaluation_of, only_row):
    pairs = Comparison(turn=0, speedup=1.2, speedup_low=1.1, speedup_high=1.3)
    row = only_row(
        evaluation_of("correct", 2.0, turn=0), evaluation_of("correct", 1.9, turn=1, extra={"comparison": pairs})
    )
    assert row.best_turn == 1.0
