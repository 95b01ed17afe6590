"""Generates one run for a command."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import harness
from harness.domain import UsageError
from harness.generate.options import GenerateOptions
from harness.generate.planning import GenerationSettings, make_plan
from harness.generate.providers import Provider, RecordedProvider, name_recorded_model
from harness.generate.providers.endpoint_errors import RetryPolicy
from harness.generate.sampler import Asker, Plan, SessionReport
from harness.pipeline.chains import Session, ShowSearch, follow_all
from harness.pipeline.data_folders import find_folder, find_suite_folder
from harness.problems.watched_process import describe_inputs
from harness.report.terminal.search_progress import SearchProgress
from harness.store.runs import discard_empty_run, has_sample, hold_run, write_manifest, write_reference

NO_MODEL = "none"  # in place of the name, in a dry run


def check_files(plan: Plan) -> None:
    """Raises ProblemError for files that do not load. `harness problems check` checks suites."""
    for problem in plan.problems:
        if plan.manifest.find_file(problem.name):
            describe_inputs(problem, "full")


def generate_run(options: GenerateOptions, show: ShowSearch = nullcontext) -> SessionReport:
    """Raises HarnessError and KeyboardInterrupt; stored samples stay."""
    plan, open_provider = prepare_run(options)

    async def ask() -> SessionReport:
        asker = open_asker(plan, open_provider, options.concurrency)
        head = f"generating run {plan.manifest.run}{asker.report.describe_resumed()}"
        progress = SearchProgress(plan.list_keys(), head=head)
        with show(progress):
            await follow_all(Session(plan=plan, asker=asker, progress=progress))
        return asker.report

    with open_run(plan):
        return asyncio.run(ask())


def open_asker(plan: Plan, open_provider: Callable[[], Provider], concurrency: int) -> Asker:
    keys = plan.list_keys()
    there = sum(has_sample(plan.run_dir, key) for key in keys)
    report = SessionReport(run=plan.manifest.run, run_dir=plan.run_dir, planned=len(keys), already_there=there)
    return Asker(plan, open_provider(), report, concurrency=concurrency, read_clock=read_clock)


def prepare_run(
    options: GenerateOptions, check: Callable[[Plan], None] = check_files
) -> tuple[Plan, Callable[[], Provider]]:
    """Return the checked plan, and a function that opens its provider. Write nothing. Raises HarnessError."""
    plan, replay = plan_run(options)
    open_provider = _find_provider(options) if replay is None else lambda: replay
    check(plan)
    return plan, open_provider


def plan_run(options: GenerateOptions) -> tuple[Plan, RecordedProvider | None]:
    """Return the plan, and the recording that answers it, by reading files only. Raises HarnessError."""
    recording = _find_recording(options)
    model = options.model or (name_recorded_model(recording, options.language) if recording else None)
    if model is None:
        raise UsageError("no model: name one with --model, or replay stored completions with --provider recorded")
    settings = GenerationSettings(
        options=options if recording is None else replace(options, base_url=None),
        suite_dir=find_suite_folder(options.suite, options.problems_dir),
        prompts_dir=find_folder("prompts", options.prompts_dir, option="--prompts-dir"),
        model=model,
    )
    plan = _plan(settings)
    if recording is None:
        return plan, None
    replay = RecordedProvider(recording, options.language)
    keys = plan.list_keys()
    recorded = {key.problem for key in keys if replay.can_answer(key)}
    if not recorded:
        raise UsageError(
            f"{replay.folder} has none of the {len(keys)} requested samples, such as "
            f"{keys[0].problem}/{keys[0].sample}: choose other problems, another --language or another --recording"
        )
    kept = tuple(name for name in plan.manifest.problems if name in recorded)
    if not options.problems:  # problems given by name stay, and are reported as not recorded
        plan = _plan(replace(settings, options=replace(settings.options, problems=kept)))
    return plan, replay


def plan_dry_run(options: GenerateOptions) -> tuple[Plan, RecordedProvider | None]:
    """`plan_run` that needs no model."""
    needs_name = options.provider != "recorded" and options.model is None
    return plan_run(replace(options, model=NO_MODEL) if needs_name else options)


def _find_provider(options: GenerateOptions) -> Callable[[], Provider]:
    """Reads its settings at once. Raises HarnessError."""
    from harness.generate.providers.openai_compatible import EndpointSettings, open_endpoint, read_key

    endpoint = EndpointSettings(
        base_url=options.base_url,
        api_key=read_key(os.environ, options.base_url),
        concurrency=options.concurrency,
        timeout_s=options.timeout_s,
        retries=RetryPolicy(max_wait_s=options.max_wait_s),
        token_limit_name=options.token_limit_name,
    )
    return lambda: open_endpoint(endpoint)


def _plan(settings: GenerationSettings) -> Plan:
    return make_plan(settings, now=read_clock(), harness_version=harness.__version__)


@contextmanager
def open_run(plan: Plan) -> Iterator[None]:
    """Lock the run and write its manifest and references; remove a run that stays empty."""
    with hold_run(plan.run_dir):
        try:
            manifest = write_manifest(plan.run_dir, plan.manifest)
            for problem in plan.problems:
                if manifest.find_file(problem.name):
                    write_reference(plan.run_dir, problem.name, problem.source)
            yield
        finally:
            discard_empty_run(plan.run_dir)


def _find_recording(options: GenerateOptions) -> Path | None:
    if options.provider != "recorded":
        return None
    if options.recording is not None:
        return options.recording
    return find_folder("recordings", None, option="--recording") / "demo"


def read_clock() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
