"""Loads a program in a worker, and constructs its model like the reference."""

import secrets
from typing import Any

from harness.domain import AnswerBuild, Candidate, CandidateFailure, Weights
from harness.domain.options import TimeLimits
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.integrity.static_checks import find_syntax_error
from harness.evaluation.record import EvaluationRecord
from harness.problems.loading import LoadedProblem
from harness.sandbox.arena_layout import Footprint
from harness.sandbox.devices import CpuDevice, Device
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.model_session import ModelSession, fits, open_session
from harness.sandbox.worker_client import CANDIDATE_ENTRY, Program, describe
from harness.tensors.outputs import FlatOutputs


def construct_model(session: ModelSession, reference: Reference, *, compile_mode: str = "") -> Weights:
    """Load the reference's weights if names and shapes match."""
    loaded = reference.loaded
    session.construct(reference.seed, loaded.init_inputs, compile_mode=compile_mode, **describe_construction(loaded))
    return session.match_weights(reference.state)


def describe_unmatched(session: ModelSession, reference: Reference) -> str:
    """Say of weights that do not match which one is the first."""
    wanted = {name: describe(tensor) for name, tensor in reference.state.items()}
    name = next(name for name, spec in wanted.items() if not fits(session.state.get(name), spec))
    own, spec = session.state.get(name), wanted[name]
    has = "no" if own is None else f"{list(own.shape)} {own.dtype} instead of {list(spec.shape)} {spec.dtype} as"
    return f"the reference's weights were not loaded: the program has {has} {name}"


def describe_construction(loaded: LoadedProblem) -> dict[str, Any]:
    """Return arguments of `WorkerClient.construct`."""
    return {
        "training": loaded.problem.training,
        "dtype": loaded.problem.dtype,
        "call": loaded.call,
        "returned_inputs": loaded.returned_inputs,
        "frozen": loaded.frozen or (),
        "constants": loaded.constants,
    }


def construct_with_state(session: ModelSession, reference: Reference, *, compile_mode: str = "") -> None:
    """Construct the model and set the state from which calls start. Raises CandidateFailure if it lacks some."""
    construct_model(session, reference, compile_mode=compile_mode)
    session.hold_state(reference.changing)
    session.reset_state()


def find_load_error(source: str) -> str | None:
    is_named = CANDIDATE_ENTRY in source
    return find_syntax_error(source) or (None if is_named else f"the program defines no class {CANDIDATE_ENTRY}")


def load_only(
    record: EvaluationRecord,
    init_inputs: tuple[Any, ...],
    candidate: Candidate,
    *,
    forkserver: Forkserver,
    device: Device | None,
    answer_build: AnswerBuild,
    limits: TimeLimits,
) -> None:
    """Load without a GPU. Raises CandidateFailure. A construction may lack its device: it fails only after a build."""
    stand_in = CpuDevice() if device is None else device.find_loading_device()
    nothing = Footprint.measure((), FlatOutputs(tree={"v": None}, tensors=()), {})
    program = Program(source=candidate.source, answer_build=answer_build, limits=limits, threads=1)
    with record.blaming_builds(), open_session(forkserver.spawn, stand_in, nothing, program) as session:
        try:
            session.construct(secrets.randbits(62), init_inputs)  # the record's seed gives all of an evaluation
        except CandidateFailure as failure:
            if record.blame_build(failure) is not failure:
                raise
    record.check_builds()
