"""Explains outcomes, verdicts, clocks, columns of the leaderboard, and settings of problems: `harness explain`. Tests
compare the tables of docs/ with these.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.domain.evaluation import Clock, Outcome, TimingVerdict


@dataclass(frozen=True, slots=True)
class Explanation:
    """`page` is a page of docs/, with its section."""

    meaning: str
    remedy: str
    page: str


def _explain(page: str, meaning: str, remedy: str = "") -> Explanation:
    return Explanation(meaning, remedy, page)


def _outcome(meaning: str, remedy: str) -> Explanation:
    return _explain("correctness.md#outcomes", meaning, remedy)


OUTCOMES = {
    Outcome.CORRECT: _outcome(
        "every output was accepted",
        "the column `verdict` says how fast it is: `faster`, `slower`, `tie`, or not ranked",
    ),
    Outcome.WRONG_SHAPE: _outcome(
        "the outputs differ from the reference's in number, structure or sizes", "return what the reference returns"
    ),
    Outcome.WRONG_DTYPE: _outcome(
        "an output has another dtype, or is on another device, than the reference's",
        "allocate outputs with the dtype and device of the reference's",
    ),
    Outcome.WRONG_VALUE: _outcome(
        "values differ from the float64 truth by more than the tolerance, or a kernel has a race",
        "`harness show ID` names elements, inputs and case that are wrong; check tails, types of sums, barriers",
    ),
    Outcome.NO_CODE: _outcome(
        "the answer contains no program", "check token limit and reasoning parser; `harness extract ANSWER` says why"
    ),
    Outcome.REJECTED: _outcome(
        "not an admissible answer: another language, no custom kernel where the suite requires one, refused compiler "
        "flags",
        "write the kernel in the language asked for; for plain PyTorch use `--language torch`",
    ),
    Outcome.BUILD_ERROR: _outcome("an extension or kernel does not compile", "`harness show ID --log` prints the log"),
    Outcome.LOAD_ERROR: _outcome(
        "importing the program, or constructing `ModelNew`, fails",
        "`harness show ID` has the traceback; `ModelNew` takes the constructor arguments of `Model`",
    ),
    Outcome.RUNTIME_ERROR: _outcome(
        "a call raises an error or ends the process, or a kernel does what a GPU does not allow",
        "`harness show ID` has the traceback and the kernel's line",
    ),
    Outcome.TIMEOUT: _outcome(
        "a call, an import or a kernel exceeded its time limit",
        "look for endless loops; limits: `--call-timeout`, `--first-call-timeout`, `--load-timeout`",
    ),
    Outcome.OUT_OF_MEMORY: _outcome(
        "the program exceeded the memory of the device or sandbox", "allocate less; free what a call no longer needs"
    ),
    Outcome.SUSPECT: _outcome(
        "never ranked: behaviour that legitimate programs do not show",
        "the fatal finding names it; a false positive is a bug of harness, which docs/red-team.md says how to report",
    ),
    Outcome.NOT_RUN: _outcome(
        "not evaluated: no suitable device, compiler or feature; does not count against the model",
        "the message names what is missing; `harness doctor` lists what this machine can evaluate",
    ),
    Outcome.PROBLEM_ERROR: _outcome(
        "not evaluated: a fault of the problem's file; does not count against the model",
        "`harness problems check FILE`, then the same command again",
    ),
    Outcome.HARNESS_ERROR: _outcome(
        "not evaluated: harness itself failed; does not count against the model",
        "the same command evaluates it again; report it if it stays",
    ),
}


def _timing(meaning: str, remedy: str = "") -> Explanation:
    return _explain("measurement.md#interval-verdict-conditions", meaning, remedy)


VERDICTS: dict[TimingVerdict | str, Explanation] = {
    "faster": _timing("the interval of the speedup lies above 1"),
    "slower": _timing("the interval of the speedup lies below 1"),
    "tie": _timing("the interval of the speedup contains 1; the speedup counts as 1"),
    "unreliable": _timing(
        "not ranked: the machine was disturbed in every measurement",
        "stop other programs, and evaluate again with `--again`",
    ),
    "unconfirmed": _timing(
        "not ranked: a call is too short for the evaluator's clock", "use larger sizes, or `timed: False` for the case"
    ),
    "untimed": _timing("only correctness was asked for (`--no-time`)", "evaluate again without this option"),
}


def _clock(meaning: str, remedy: str = "") -> Explanation:
    return _explain("report.md#in-a-terminal", meaning, remedy)


CLOCKS: dict[Clock, Explanation] = {
    "device": _clock("device time: replays of both programs' GPU work, without host code"),
    "call": _clock("call time: whole calls of both programs, by the evaluator's clock"),
    "bound": _clock(
        "whole calls of the candidate against device time of the baseline: the speedup (`>=1.23x`) is a lower bound",
        "the finding `not_replayable` says why the candidate's work cannot be replayed",
    ),
    "mixed": _clock("the cases were timed by different clocks (`~1.23x`)", "`harness show ID` has each case's time"),
}


def _severity(meaning: str) -> Explanation:
    return _explain("report.md#findings", meaning)


SEVERITIES = {
    "fatal": _severity("a finding that decided the outcome"),
    "warning": _severity("a finding that does not change the outcome, but deserves attention"),
    "note": _severity("a finding that does not change the outcome"),
}


def _ranking(meaning: str, remedy: str = "") -> Explanation:
    return _explain("getting-started.md#the-leaderboard", meaning, remedy)


LEADERBOARD = {
    "correct": _ranking("share of all problems with a correct candidate, averaged over the samples of a problem"),
    "fast_p": _ranking(
        "share of all problems with a correct candidate that is more than p times as fast as the baseline"
    ),
    "pass@k": _ranking("estimated share of problems that k different programs solve", "`-k 5` adds pass@5"),
    "problems": _ranking("number of problems that the model was asked, and of those with a result"),
    "speedup": _ranking(
        "geometric mean over the correct candidates with a confirmed time; their number in parentheses"
    ),
    "[low, high]": _ranking("interval of the mean speedup, noise floor included"),
    "own": _ranking("median share of a correct candidate's time that is spent in its own compiled code"),
    "cert": _ranking("whether all results were made under a valid certificate of the red team"),
    "turns": _ranking("mean number of turns per sample"),
    "best@turn": _ranking("median turn of the result that counts, from 0"),
    "tokens": _ranking("tokens per correct sample"),
    "cost": _ranking("cost per correct sample", "`--price` sets prices"),
}
_SETTINGS = {
    "SMALL": "sizes of the workload `small`; `full` has the sizes of the file and is scored",
    "TAGS": "for filters only",
    "TOLERANCE": "an output may deviate by `factor` times the reference's own error, or by atol + rtol * magnitude; "
    "null: the default of the dtype; `matched`: the share of elements that must be within it",
    "DISTRIBUTIONS": "distributions of the input values that a program must compute correctly",
    "CASES": "sizes, dtypes and distributions that a program must compute correctly; the score is the geometric mean "
    "of the speedups of those without ranges. `small`: sizes in the workload `small`",
    "RANGES": "sizes drawn in secret for each evaluation: they add the case `secret`",
    "ALLOW_TF32": "whether the reference's matrix products may be computed in TF32",
    "DETERMINISTIC": "whether equal inputs must give bitwise equal outputs",
    "TRAINING": "whether the model is in training mode, and its buffers are compared too",
    "BACKWARD": "whether a call is forward and backward, and the gradients of floating inputs and parameters are "
    "compared too",
    "IN_PLACE": "whether calls change their inputs, which are compared too",
    "SEEDED_CALLS": "whether torch is seeded before each call, so that random numbers must be those of the reference",
    "DYNAMIC_SHAPES": "whether the program must be correct at nearby shapes",
    "DYNAMIC_WEIGHTS": "whether the program must be correct after a change of its weights",
    "FRESH_OUTPUTS": "whether each call must return new memory, so that outputs of earlier calls never change",
}
SETTINGS = {name: _explain("problems.md", meaning) for name, meaning in _SETTINGS.items()}
