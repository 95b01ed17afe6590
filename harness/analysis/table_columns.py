"""Explains columns of terminal tables by command. A test compares them with the titles in the source."""

from __future__ import annotations

_TABLES: dict[tuple[str, str], dict[str, str]] = {  # by command and page of docs/
    ("show", "report.md#in-a-terminal"): {
        "#": "number of the trial",
        "case": "sizes and dtype of the inputs; `secret` ones are drawn for each evaluation",
        "inputs": "kind of the trial's inputs: `harness explain` lists the kinds",
        "passed": "whether the outputs are accepted",
        "max error": "largest difference between an output of the program and the truth",
        "reference's": "largest difference between an output of the reference and the truth",
        "of allowed": "error of the worst element, as a share of the error allowed for it; above 100% is wrong",
        "wrong": "number of wrong elements",
        "interval": "confidence interval of the speedup, noise floor included, and the verdict on speed",
        "time": "median time of a call",
        "code": "whose code a call spends its time in",
        "share": "share of a call's time",
        "of the time": "the share as a bar",
        "over": "speedup over the best earlier turn",
        "best": "largest speedup of a correct program up to this turn",
        "median per call": "the clock, and what is between its two readings",
        "ratio": "time of the baseline / time of the program",
        "blocks": "whose calls; a block is one measured pair of calls, or replays, of both",
        "block": "number of the pair of calls, or replays, of baseline and program",
        "least": "smallest time of all blocks",
        "1/4": "a quarter of the blocks has a smaller time",
        "median": "half of the blocks has a smaller time",
        "3/4": "three quarters of the blocks have a smaller time",
        "most": "largest time of all blocks",
    },
    ("evaluate", "your-operator.md#several-kernels"): {
        "#": "rank of the file among the correct and timed ones",
        "file": "file of the program",
        "note": "reason of a failure, or how the file compares with the first",
    },
    ("results --by", "report.md#in-a-terminal"): {
        "evaluations": "number of evaluations in the group",
        "share": "share of correct evaluations in the group",
        "timed": "number of correct evaluations with a confirmed time",
    },
    ("run", "turns.md#while-it-runs"): {
        "samples": "finished and wanted samples of the problem",
        "best": "largest speedup of a correct program so far",
    },
    ("run --dry-run", "getting-started.md#models"): {
        "stored": "answers that are stored already",
        "evaluated": "answers that have a verdict already",
        "requests": "requests to the model, at most",
        "prompt": "tokens of the prompts, estimated from their characters",
        "answer": "tokens of the answers, from earlier answers of the model, else `--max-tokens`",
        "US$": "cost of the tokens, by `--price`",
        "minutes": "time of the evaluations, from earlier ones on this machine",
    },
    ("runs", "report.md#in-a-terminal"): {
        "date": "day on which the run began",
        "answers": "number of stored answers",
        "evaluated": "number of evaluations",
    },
    ("diff", "comparing.md#harness-diff-a-b"): {
        "before": "value of A",
        "after": "value of B",
        "after/before": "ratio of the speedups of B and A, with its interval",
        "q": "share of false discoveries among changes that are at least as certain",
        "change": "difference of the counts",
        "what": "quantity that is compared",
        "error": "message of a failure",
    },
    ("regress", "comparing.md#harness-regress"): {
        "change": "what became of the verdict",
        "then": "stored verdict",
        "now": "verdict of the new evaluation",
        "now/then": "ratio of the speedups, with its interval",
        "visible from": "smallest slowdown that would have been detected",
    },
    ("extract --stored", "comparing.md#harness-extract---stored"): {
        "change": "how the program that is extracted now differs from the stored one",
        "why": "reason of the choice",
    },
    ("problems", "problems.md#cases"): {
        "cases": "sizes and dtypes of the problem that count",
        "small": "sizes of the workload `small`",
        "tags": "words to filter by",
        "sizes": "sizes that the case changes",
        "inputs": "shapes and dtypes of the arguments of `forward`",
        "time": "median time of a baseline's call in earlier evaluations",
        "hardware": "chip that the time was measured on",
        "content": "what the suite is about",
        "folder": "where its files are",
        "summary": "first sentence of the problem's description",
    },
    ("problems check", "problems.md#tolerance"): {
        "case": "sizes and dtype that were checked",
        "checks": "passed and made checks",
    },
    ("capture", "your-model.md#capture"): {
        "module": "modules of one class with equal settings and weights' shapes",
        "calls": "calls per call of the model",
        "time": "share of the model's time; on a GPU of the time in which the GPU works",
        "us": "time of one call",
        "of peak": "share of the roofline that the module reaches",
        "at most": "speedup of the whole model if the module reached the roofline",
        "bound by": "what limits the module",
    },
    ("apply", "your-model.md#apply"): {
        "kernel": "captured problem and the program for it",
        "alone": "speedup of the program by itself, in its stored evaluation",
        "predicted": "speedup of the whole model that follows from the module's share of the time",
        "in the model": "measured speedup of the whole model with it",
        "result": "whether it was kept, or the reason why not",
    },
    ("red-team", "red-team.md#results"): {
        "layer": "part of the evaluator that the program attacks, or `legitimate`",
        "file": "file of the corpus",
        "result": "what became of it: caught, accepted, not run",
        "by": "outcome or check that decided",
        "s": "seconds that it took",
    },
    ("doctor", "containers.md#ray"): {
        "part": "what may be present on this machine",
        "found": "version or amount, or what is missing without it",
        "node": "node of the cluster",
        "chip": "GPU or CPU of the device",
        "isolation layers": "layers of the sandbox that are possible there",
    },
}
TABLE_COLUMNS = [
    (title, f"column of `{command}`", meaning, page)
    for (command, page), columns in _TABLES.items()
    for title, meaning in columns.items()
]
