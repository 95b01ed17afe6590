"""Subjects and evaluations, without evaluating."""

from harness.domain import Correctness, Evaluation, Outcome, Subject, Timing, Trial

ENVIRONMENT = (("harness", "0.1.0"), ("torch", "2.9.0"), ("cpu", "Example CPU 9000"), ("gpu", "NVIDIA H200"))


def build_subject(**changes):
    fields = {
        "run": "demo",
        "sample": 0,
        "turn": 0,
        "model": "model-a",
        "prompt": "plain",
        "suite": "core",
        "problem": "add",
        "problem_digest": "1" * 16,
        "candidate_digest": "c" * 16,
        "language": "cpp",
        "device": "cpu",
        "workload": "full",
        "baseline": "eager",
    }
    return Subject(**fields | changes)


def build_evaluation(outcome="correct", speedup=None, *, spread=0.1, verdict="faster", extra=None, **subject_changes):
    """An evaluation that ended as `outcome`; with a speedup it is timed, `spread` wide on each side."""
    subject = build_subject(**subject_changes)
    timing = None
    if speedup is not None:
        timing = Timing(
            baseline=subject.baseline,
            baseline_us=100.0,
            candidate_us=100.0 / speedup,
            speedup=speedup,
            speedup_low=speedup - spread,
            speedup_high=speedup + spread,
            verdict=verdict,
            blocks=(),
            overhead_us=1.0,
        )
    passed = outcome in ("correct", "suspect")
    correctness = Correctness(trials=(Trial(distribution="as_given", passed=True),), weights="none") if passed else None
    fields = {"environment": ENVIRONMENT, "timing": timing, "correctness": correctness} | (extra or {})
    return Evaluation(subject=subject, outcome=Outcome(outcome), **fields)
