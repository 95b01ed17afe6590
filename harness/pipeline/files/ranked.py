"""Evaluates files with candidates of one problem, and ranks them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from harness.analysis.file_ranking import RankedFile, find_close, rank_files
from harness.domain import Evaluation
from harness.executors.tasks import Task
from harness.pipeline.evaluations import EvaluationReport, Evaluations, ShowSteps, open_evaluations
from harness.pipeline.options import EVERY_TASK, EvaluateOptions, Selection


def evaluate_files(
    tasks: Mapping[Path, Task],
    options: EvaluateOptions,
    show: ShowSteps = nullcontext,
    selection: Selection = EVERY_TASK,
) -> tuple[EvaluationReport, list[RankedFile]]:
    """Compare close ones directly if one of them is new. The ranking lacks files that were not evaluated. Raises as
    `evaluate_tasks`.
    """
    wanted = list({task.subject: task for task in tasks.values()}.values())
    with open_evaluations(options, wanted) as evaluations:
        evaluations.evaluate_all(wanted, show, selection)
        ranked = rank_report(tasks, evaluations.report)
        ranked = asyncio.run(_compare_close(ranked, tasks, evaluations)) if ranked else []
    return evaluations.report, ranked


def rank_report(tasks: Mapping[Path, Task], report: EvaluationReport) -> list[RankedFile]:
    found = {_name_program(one.evaluation): one for one in report.all}
    return rank_files(
        RankedFile(name=str(file), stored=found[name])
        for file, task in tasks.items()
        if (name := (task.subject.model, task.subject.candidate_digest)) in found
    )


async def _compare_close(
    ranked: Sequence[RankedFile], tasks: Mapping[Path, Task], evaluations: Evaluations
) -> list[RankedFile]:
    """Compare files with the first, one after the other."""
    new, first, compared = {one.id for one in evaluations.report.evaluations}, ranked[0], dict[str, RankedFile]()
    for one in find_close(ranked):
        pairs = None
        if {one.stored.id, first.stored.id} & new and one.stored.id != first.stored.id:
            candidate = tasks[Path(first.name)].candidate
            assert candidate is not None
            rival = first.evaluation.as_rival(0, candidate)
            pairs = (await evaluations.try_out(replace(tasks[Path(one.name)], rival=rival))).comparison
        compared[one.name] = replace(one, close_to=first.name, pairs=pairs)
    return rank_files(compared.get(one.name, one) for one in ranked)


def _name_program(evaluation: Evaluation) -> tuple[str, str]:
    return evaluation.subject.model, evaluation.subject.candidate_digest
